/* SPDX-License-Identifier: Apache-2.0 */
/* ts_sampler_create without enough memory, in a process of its own that may have 256 MiB: a status and a message that
 * names the arguments, nothing leaked, and the process goes on. */
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "c99_check.h"
#include "tssample.h"

enum { VOCAB = 40 };

/* out is left as it was when the call does not write it. */
static ts_status create(int32_t n_slots, ts_sampler** out) {
  ts_config config;
  memset(&config, 0, sizeof(config));
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CPU;
  config.vocab_size = VOCAB;
  config.n_slots = n_slots;
  return ts_sampler_create(&config, out);
}

/* A greedy row, whose largest logit is at 17. */
static void check_samples(ts_sampler* sampler) {
  float logits[VOCAB];
  const int32_t slot = 3;
  const uint64_t id = 9;
  int32_t token = -1;
  ts_request_params params;
  ts_step step;
  ts_rows rows;
  ts_sample_out out;
  memset(logits, 0, sizeof(logits));
  memset(&params, 0, sizeof(params));
  memset(&step, 0, sizeof(step));
  memset(&rows, 0, sizeof(rows));
  memset(&out, 0, sizeof(out));
  logits[17] = 1.0f;
  params.struct_size = sizeof(params);
  step.struct_size = sizeof(step);
  step.n_requests = 1;
  step.request_ids = &id;
  step.slots = &slot;
  step.params = &params;
  rows.struct_size = sizeof(rows);
  rows.n_requests = 1;
  rows.logits = logits;
  rows.slots = &slot;
  out.struct_size = sizeof(out);
  out.tokens = &token;
  CHECK(ts_sampler_prepare_step(sampler, &step, NULL) == TS_OK);
  CHECK(ts_sampler_sample(sampler, &rows, &out, NULL) == TS_OK);
  CHECK(token == 17);
}

int main(void) {
  struct rlimit limit;
  ts_sampler* first = NULL;
  ts_sampler* large = NULL;
  int shift, i;
#if defined(__SANITIZE_ADDRESS__)
  printf("skipped: the address sanitizer needs more address space\n");
  return 77;
#endif
  CHECK(create(8, &first) == TS_OK);
  CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
  limit.rlim_cur = 256 << 20;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);

  /* A slot takes 128 bytes and more: 256 MiB and more are asked for at once. */
  for (shift = 21; shift <= 24; ++shift) {
    char named[64];
    ts_sampler* out = first; /* to be overwritten */
    snprintf(named, sizeof(named), "ts_config.n_slots = %d,", 1 << shift);
    CHECK(create(1 << shift, &out) == TS_ERROR_OUT_OF_MEMORY);
    CHECK(out == NULL);
    CHECK(strstr(ts_last_error(), named) == ts_last_error() && strstr(ts_last_error(), "memory") != NULL);
  }
  /* Here the slots' states fit and the rest does not: a leak of the former would leave no memory for what follows. */
  for (i = 0; i < 4; ++i) CHECK(create(1 << 20, &large) == TS_ERROR_OUT_OF_MEMORY);
  CHECK(create(1 << 19, &large) == TS_OK);
  check_samples(large);
  check_samples(first);
  ts_sampler_destroy(large);
  ts_sampler_destroy(first);
  return checks_end();
}
