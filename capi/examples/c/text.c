/* SPDX-License-Identifier: Apache-2.0 */
/* `demo text`: text from a word model, one token at a time through the library, as an engine would call it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"
#include "ngram.h"

enum { LINE_WIDTH = 78 };

/* Prints a word, on a new line where it does not fit. Continuation bytes of UTF-8 take no place. */
static void print_word(const struct word* w, size_t* column) {
  size_t width = 0, i;
  for (i = 0; i < w->length; i++) width += ((unsigned char)w->text[i] & 0xC0) != 0x80;
  if (*column != 0) {
    int fits = *column + 1 + width <= LINE_WIDTH;
    putchar(fits ? ' ' : '\n');
    *column = fits ? *column + 1 : 0;
  }
  fwrite(w->text, 1, w->length, stdout);
  *column += width;
}

/* A sampler with one request in slot 0, whose step stays the same from token to token. */
static ts_sampler* prepare(const ts_request_params* params, int32_t vocab) {
  ts_config config = {.struct_size = sizeof config,
                      .device = TS_DEVICE_CPU, /* the logits are in host memory */
                      .vocab_size = vocab,
                      .n_slots = 1};
  uint64_t request_id = 1;
  int32_t slot = 0;
  ts_step step = {
      .struct_size = sizeof step, .n_requests = 1, .request_ids = &request_id, .slots = &slot, .params = params};
  ts_sampler* sampler;
  check(ts_sampler_create(&config, &sampler));
  check(ts_sampler_prepare_step(sampler, &step, NULL));
  return sampler;
}

void run_text(const struct text_options* options) {
  size_t size, column = 0;
  char* text = read_file(options->file, &size);
  const char* zero = memchr(text, '\0', size);
  struct ngram model;
  ts_sampler* sampler;
  int32_t slot = 0, token;
  int64_t position; /* counts the tokens: the noise of each place is its own */
  float* logits;
  ts_rows rows;
  ts_sample_out out;
  double begin, taken;
  if (zero != NULL) fail("%s: not a text: byte %zu is 0", options->file, (size_t)(zero - text));
  if (text[strspn(text, " \t\n\v\f\r")] == '\0') fail("%s: no words", options->file);
  ngram_build(&model, text, size);

  logits = allocate((size_t)model.n_distinct, sizeof *logits);
  ngram_base_logits(&model, logits);
  sampler = prepare(&options->params, model.n_distinct);
  rows = (ts_rows){.struct_size = sizeof rows,
                   .n_requests = 1,
                   .logits = logits,
                   .slots = &slot,
                   .positions = &position,
                   .positions_type = TS_INT64};
  out = (ts_sample_out){.struct_size = sizeof out, .tokens = &token};

  begin = seconds();
  for (position = 0; position < options->tokens; position++) {
    ngram_apply(&model, model.history, logits);
    check(ts_sampler_sample(sampler, &rows, &out, NULL));
    ngram_revert(&model, model.history, logits);
    print_word(&model.vocab[token], &column);
    model.history[0] = model.history[1];
    model.history[1] = token;
    progress("%lld of %lld tokens", (long long)position + 1, options->tokens);
  }
  taken = seconds() - begin;
  putchar('\n');
  fflush(stdout);
  fprintf(stderr, "demo_c: %lld tokens, %d words to choose from, %.3f s: %.0f tokens/s\n", options->tokens,
          model.n_distinct, taken, (double)options->tokens / (taken > 0 ? taken : 1e-9));

  ts_sampler_destroy(sampler);
  ngram_free(&model);
  free(logits);
  free(text);
}
