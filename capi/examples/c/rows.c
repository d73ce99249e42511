/* SPDX-License-Identifier: Apache-2.0 */
/* `demo rows`: real next-token logits; every row sampled at several settings, then the drafted chains verified. */
#include <stdio.h>
#include <stdlib.h>

#include "demo.h"

struct setting {
  const char* name;
  float temperature;
  int32_t top_k;
  float top_p;
  float min_p;
};

static const struct setting settings[] = {
    {"greedy", 0.0f, 0, 1.0f, 0.0f},          {"T=1", 1.0f, 0, 1.0f, 0.0f},
    {"T=0.8 top_k=50", 0.8f, 50, 1.0f, 0.0f}, {"T=1 top_p=0.9", 1.0f, 0, 0.9f, 0.0f},
    {"T=1 min_p=0.05", 1.0f, 0, 1.0f, 0.05f}, {"T=0.7 top_k=100 top_p=0.95 min_p=0.05", 0.7f, 100, 0.95f, 0.05f},
};
enum { N_SETTINGS = sizeof settings / sizeof settings[0], PLAIN = 1, N_SEEDS = 100 };

struct input {
  uint16_t* logits; /* bf16 [n_requests * rows_per_request, vocab] */
  int32_t vocab, n_requests, rows_per_request;
  int32_t* candidates; /* [n_requests, rows_per_request] */
};

/* What sample and verify return for one setting. */
struct results {
  int32_t *tokens, *ranks, *n_kept;
  float* logprobs;
  int32_t *predict, *accept_index, *accept_length;
  float* verify_logprobs;
};

static int32_t json_number(const char* path, const char* text, const char* key) {
  long long value;
  if (json_numbers(text, key, &value, 1) != 1 || value < 1 || value > TS_MAX_VOCAB)
    fail("%s: \"%s\" is not a number from 1 to %d", path, key, TS_MAX_VOCAB);
  return (int32_t)value;
}

static struct input read_input(const char* data_path, const char* json_path) {
  struct input in;
  size_t size, rows, i;
  char* json = read_file(json_path, NULL);
  long long* numbers;
  in.vocab = json_number(json_path, json, "vocab");
  in.rows_per_request = json_number(json_path, json, "rows_per_request");
  in.logits = (uint16_t*)read_file(data_path, &size);
  rows = size / sizeof(uint16_t) / (size_t)in.vocab;
  if (rows == 0 || rows > 1000000 || rows * sizeof(uint16_t) * (size_t)in.vocab != size ||
      rows % (size_t)in.rows_per_request != 0)
    fail("%s: %zu bytes are not requests of %d rows of %d bf16 logits", data_path, size, in.rows_per_request, in.vocab);
  in.n_requests = (int32_t)rows / in.rows_per_request;

  numbers = allocate(rows, sizeof *numbers);
  in.candidates = allocate(rows, sizeof *in.candidates);
  if (json_numbers(json, "candidates", numbers, rows) != rows)
    fail("%s: \"candidates\" does not have %zu ids", json_path, rows);
  for (i = 0; i < rows; i++) in.candidates[i] = (int32_t)numbers[i];
  free(numbers);
  free(json);
  return in;
}

/* Samples and verifies all rows with one setting; request r has the seed `seed` + r. */
static struct results run_setting(ts_sampler* sampler, const struct input* in, const struct setting* set,
                                  uint64_t seed) {
  static uint64_t next_request_id = 1;
  size_t n_requests = (size_t)in->n_requests, n_rows = n_requests * (size_t)in->rows_per_request, r;
  uint64_t* request_ids = allocate(n_requests, sizeof *request_ids);
  int32_t* slots = allocate(n_requests, sizeof *slots);
  ts_request_params* params = allocate(n_requests, sizeof *params);
  struct results out = {
      .tokens = allocate(n_rows, sizeof *out.tokens),
      .logprobs = allocate(n_rows, sizeof *out.logprobs),
      .ranks = allocate(n_rows, sizeof *out.ranks),
      .n_kept = allocate(n_rows, sizeof *out.n_kept),
      .predict = allocate(n_rows, sizeof *out.predict),
      .accept_index = allocate(n_rows, sizeof *out.accept_index),
      .accept_length = allocate(n_requests, sizeof *out.accept_length),
      .verify_logprobs = allocate(n_rows, sizeof *out.verify_logprobs),
  };
  ts_step step = {.struct_size = sizeof step,
                  .n_requests = in->n_requests,
                  .rows_per_request = in->rows_per_request,
                  .request_ids = request_ids,
                  .slots = slots,
                  .params = params};
  ts_rows rows = {.struct_size = sizeof rows,
                  .n_requests = in->n_requests,
                  .rows_per_request = in->rows_per_request,
                  .logits = in->logits,
                  .logits_type = TS_BF16,
                  .slots = slots};
  ts_sample_out sampled = {.struct_size = sizeof sampled,
                           .tokens = out.tokens,
                           .logprobs = out.logprobs,
                           .ranks = out.ranks,
                           .n_kept = out.n_kept};
  ts_draft draft = {.struct_size = sizeof draft, .candidates = in->candidates};
  ts_verify_out verified = {.struct_size = sizeof verified,
                            .predict = out.predict,
                            .accept_index = out.accept_index,
                            .accept_length = out.accept_length,
                            .logprobs = out.verify_logprobs};

  /* New request ids: the requests of the last call leave their slots to those of this one. */
  for (r = 0; r < n_requests; r++) {
    request_ids[r] = next_request_id++;
    slots[r] = (int32_t)r;
    params[r] = (ts_request_params){.struct_size = sizeof *params,
                                    .flags = TS_PARAMS_SEEDED,
                                    .seed = seed + r,
                                    .temperature = set->temperature,
                                    .top_k = set->top_k,
                                    .top_p = set->top_p,
                                    .min_p = set->min_p};
  }
  check(ts_sampler_prepare_step(sampler, &step, NULL));
  check(ts_sampler_sample(sampler, &rows, &sampled, NULL));
  check(ts_sampler_verify(sampler, &rows, &draft, &verified, NULL));
  free(request_ids);
  free(slots);
  free(params);
  return out;
}

static void free_results(struct results* r) {
  free(r->tokens);
  free(r->logprobs);
  free(r->ranks);
  free(r->n_kept);
  free(r->predict);
  free(r->accept_index);
  free(r->accept_length);
  free(r->verify_logprobs);
}

/* What the settings emit for request r. */
static void print_chain(const struct input* in, const struct results* results, int32_t r) {
  const int32_t first = r * in->rows_per_request;
  int32_t j, s;
  printf("\nrequest %d, drafts", r);
  for (j = 1; j < in->rows_per_request; j++) printf(" %d", in->candidates[first + j]);
  printf("\n%-38s  accepted  tokens (logprob)\n", "setting");
  for (s = 0; s < N_SETTINGS; s++) {
    printf("%-38s  %8d ", settings[s].name, results[s].accept_length[r] - 1);
    for (j = 0; j < results[s].accept_length[r]; j++)
      printf(" %d (%.4f)", results[s].predict[first + j], results[s].verify_logprobs[first + j]);
    printf("\n");
  }
}

/* How often 0, 1, 2, ... drafts are accepted at temperature 1. */
static void print_acceptance(ts_sampler* sampler, const struct input* in) {
  int32_t* times = allocate((size_t)in->n_requests * (size_t)in->rows_per_request, sizeof *times);
  int32_t r, j;
  uint64_t seed;
  for (seed = 1; seed <= N_SEEDS; seed++) {
    struct results results = run_setting(sampler, in, &settings[PLAIN], seed);
    for (r = 0; r < in->n_requests; r++) times[r * in->rows_per_request + results.accept_length[r] - 1]++;
    free_results(&results);
  }
  printf("\n%s, %d seeds: how often 0 to %d drafts were accepted\n", settings[PLAIN].name, N_SEEDS,
         in->rows_per_request - 1);
  for (r = 0; r < in->n_requests; r++) {
    printf("request %d: ", r);
    for (j = 0; j < in->rows_per_request; j++) printf(" %3d", times[r * in->rows_per_request + j]);
    printf("\n");
  }
  free(times);
}

void run_rows(const char* data_path, const char* json_path) {
  struct input in = read_input(data_path, json_path);
  struct results results[N_SETTINGS];
  int32_t n_rows = in.n_requests * in.rows_per_request, row, r, s;
  ts_config config = {.struct_size = sizeof config,
                      .device = TS_DEVICE_CPU, /* the logits are in host memory */
                      .vocab_size = in.vocab,
                      .n_slots = in.n_requests,
                      .max_rows_per_request = in.rows_per_request};
  ts_sampler* sampler;
  check(ts_sampler_create(&config, &sampler));
  for (s = 0; s < N_SETTINGS; s++) results[s] = run_setting(sampler, &in, &settings[s], 1);

  printf("%d rows of %d logits, sampled\n\n", n_rows, in.vocab);
  printf("row  %-38s  token   logprob    rank    kept\n", "setting");
  for (row = 0; row < n_rows; row++)
    for (s = 0; s < N_SETTINGS; s++)
      printf("%3d  %-38s %6d  %8.4f  %6d  %6d\n", row, settings[s].name, results[s].tokens[row],
             results[s].logprobs[row], results[s].ranks[row], results[s].n_kept[row]);

  printf("\n%d drafted chains, verified\n", in.n_requests);
  for (r = 0; r < in.n_requests; r++) print_chain(&in, results, r);
  print_acceptance(sampler, &in);

  ts_sampler_destroy(sampler);
  for (s = 0; s < N_SETTINGS; s++) free_results(&results[s]);
  free(in.logits);
  free(in.candidates);
}
