/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the C ABI from strict C99, with answers known without the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c99_check.h"
#include "tssample.h"

enum { VOCAB = 40, REQUESTS = 3 };

static ts_sampler* make_sampler(void) {
  ts_config config;
  ts_sampler* sampler = NULL;
  memset(&config, 0, sizeof(config));
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CPU;
  config.vocab_size = VOCAB;
  config.n_slots = 8;
  config.flags = TS_CONFIG_PROGRAMMATIC_LAUNCH | TS_CONFIG_CLUSTERS;
  config.max_graphs = -1;
  CHECK(ts_sampler_create(&config, &sampler) == TS_OK);
  CHECK(sampler != NULL);
  return sampler;
}

/* Three greedy requests, row r with its largest logit at 7 * r + 1. */
static void greedy_step(ts_sampler* sampler, int32_t tokens[REQUESTS]) {
  static float logits[REQUESTS * VOCAB];
  const int64_t slots[REQUESTS] = {5, 0, 3};
  const uint64_t ids[REQUESTS] = {100, 101, UINT64_MAX};
  ts_request_params params[REQUESTS];
  ts_step step;
  ts_rows rows;
  ts_sample_out out;
  int r, i;
  memset(params, 0, sizeof(params));
  memset(&step, 0, sizeof(step));
  memset(&rows, 0, sizeof(rows));
  memset(&out, 0, sizeof(out));
  for (r = 0; r < REQUESTS; ++r) {
    params[r].struct_size = sizeof(params[r]);
    for (i = 0; i < VOCAB; ++i) logits[r * VOCAB + i] = (float)((i * 13) % 17) - 40.0f;
    logits[r * VOCAB + 7 * r + 1] = 1.5f;
  }
  step.struct_size = sizeof(step);
  step.n_requests = REQUESTS;
  step.request_ids = ids;
  step.slots = slots;
  step.slots_type = TS_INT64;
  step.params = params;
  CHECK(ts_sampler_prepare_step(sampler, &step, NULL) == TS_OK);
  CHECK(strcmp(ts_sampler_step_route(sampler), "greedy") == 0);
  CHECK(strcmp(ts_sampler_step_variant(sampler, TS_CALL_SAMPLE), "plain") == 0);
  CHECK(strcmp(ts_sampler_step_variant(sampler, TS_CALL_VERIFY), "verify_plain") == 0);
  CHECK(ts_sampler_step_variant(sampler, 7) == NULL);
  rows.struct_size = sizeof(rows);
  rows.n_requests = REQUESTS;
  rows.logits = logits;
  rows.slots = slots;
  rows.slots_type = TS_INT64;
  out.struct_size = sizeof(out);
  out.tokens = tokens;
  CHECK(ts_sampler_sample(sampler, &rows, &out, NULL) == TS_OK);
}

static void check_greedy(ts_sampler* sampler) {
  int32_t tokens[REQUESTS] = {-7, -7, -7};
  greedy_step(sampler, tokens);
  CHECK(tokens[0] == 1 && tokens[1] == 8 && tokens[2] == 15);
}

static void check_verify(ts_sampler* sampler) {
  /* One request, three rows peaked at 4, 9, 2; drafts 4 and 8: one accepted, then the correction 9. */
  static float logits[3 * VOCAB];
  const int32_t slot = 2;
  const uint64_t id = 7;
  const int32_t candidates[3] = {0, 4, 8};
  int32_t predict[3] = {9, 9, 9}, accept_index[3] = {9, 9, 9}, accept_length = -1, ranks[3] = {9, 9, 9};
  float logprobs[3] = {0, 0, 0};
  ts_request_params params = TS_REQUEST_PARAMS_INIT;
  ts_step step;
  ts_rows rows;
  ts_draft draft;
  ts_verify_out out;
  memset(&step, 0, sizeof(step));
  memset(&rows, 0, sizeof(rows));
  memset(&draft, 0, sizeof(draft));
  memset(&out, 0, sizeof(out));
  memset(logits, 0, sizeof(logits));
  logits[4] = logits[VOCAB + 9] = logits[2 * VOCAB + 2] = 200.0f;
  step.struct_size = sizeof(step);
  step.n_requests = 1;
  step.rows_per_request = 3;
  step.request_ids = &id;
  step.slots = &slot;
  step.params = &params;
  CHECK(ts_sampler_prepare_step(sampler, &step, NULL) == TS_OK);
  CHECK(strcmp(ts_sampler_step_route(sampler), "plain") == 0);
  rows.struct_size = sizeof(rows);
  rows.n_requests = 1;
  rows.rows_per_request = 3;
  rows.logits = logits;
  rows.slots = &slot;
  draft.struct_size = sizeof(draft);
  draft.candidates = candidates;
  out.struct_size = sizeof(out);
  out.predict = predict;
  out.accept_index = accept_index;
  out.accept_length = &accept_length;
  out.logprobs = logprobs;
  out.ranks = ranks;
  CHECK(ts_sampler_verify(sampler, &rows, &draft, &out, NULL) == TS_OK);
  CHECK(accept_length == 2);
  CHECK(predict[0] == 4 && predict[1] == 9 && predict[2] == -1);
  CHECK(accept_index[0] == 0 && accept_index[1] == 1 && accept_index[2] == -1);
  CHECK(logprobs[0] == 0.0f && logprobs[1] == 0.0f && logprobs[2] != logprobs[2]);
  CHECK(ranks[0] == 1 && ranks[1] == 1 && ranks[2] == 0);
}

static void check_capture_calls(ts_sampler* sampler) {
  static const char* const names[2][5] = {
      {"default", "plain", "top_p", "top_k", "top_k_top_p"},
      {"verify_default", "verify_plain", "verify_top_p", "verify_top_k", "verify_top_k_top_p"}};
  int call, i;
  for (call = 0; call < 2; ++call) {
    CHECK(ts_capture_variant_count(call) == 5);
    for (i = 0; i < 5; ++i) {
      CHECK(strcmp(ts_capture_variant_name(call, i), names[call][i]) == 0);
      CHECK(ts_sampler_prepare_capture(sampler, 2, 1, names[call][i], NULL) == TS_OK);
      CHECK(strcmp(ts_sampler_step_variant(sampler, call), names[call][i]) == 0);
    }
    CHECK(ts_capture_variant_name(call, 5) == NULL && ts_capture_variant_name(call, -1) == NULL);
  }
  CHECK(ts_capture_variant_count(2) == 0 && ts_capture_variant_count(-1) == 0);
  CHECK(ts_sampler_prepare_capture(sampler, 2, 1, "fast", NULL) == TS_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(ts_last_error(), "variant") != NULL);
  CHECK(ts_sampler_prepare_capture(sampler, 0, 1, "plain", NULL) == TS_ERROR_INVALID_ARGUMENT);
  CHECK(ts_sampler_prepare_capture(sampler, 2, 1, NULL, NULL) == TS_ERROR_INVALID_ARGUMENT);
  CHECK(ts_sampler_reset_capture(sampler, NULL) == TS_OK);
  CHECK(ts_sampler_step_variant(sampler, TS_CALL_SAMPLE) == NULL);
  CHECK(strcmp(ts_sampler_step_route(sampler), "none") == 0);
}

static ts_status count_call(void* user, void* data, size_t n_bytes, ts_stream stream) {
  int* n_calls = (int*)user;
  ++*n_calls;
  return data != NULL && n_bytes == REQUESTS * sizeof(int32_t) && stream == NULL ? TS_OK : TS_ERROR_INTERNAL;
}

static void check_broadcast(ts_sampler* sampler) {
  ts_broadcast broadcast;
  int n_calls = 0;
  memset(&broadcast, 0, sizeof(broadcast));
  broadcast.struct_size = sizeof(broadcast);
  broadcast.n_ranks = 4;
  broadcast.rank = 3;
  CHECK(ts_sampler_set_broadcast(sampler, &broadcast) == TS_ERROR_INVALID_ARGUMENT);
  broadcast.callback = count_call;
  broadcast.user = &n_calls;
  CHECK(ts_sampler_set_broadcast(sampler, &broadcast) == TS_OK);
  check_greedy(sampler);
  CHECK(n_calls == 1);
  CHECK(ts_sampler_set_broadcast(sampler, NULL) == TS_OK);
  check_greedy(sampler);
  CHECK(n_calls == 1);
}

static void check_versions(void) {
  char text[32];
  struct {
    ts_capabilities caps;
    unsigned char newer[16];
  } wide;
  int i;
  snprintf(text, sizeof(text), "%d.%d.%d", TS_VERSION_MAJOR, TS_VERSION_MINOR, TS_VERSION_PATCH);
  CHECK(strcmp(ts_version_string(), text) == 0);
  CHECK(ts_version() == TS_VERSION_MAJOR * 10000 + TS_VERSION_MINOR * 100 + TS_VERSION_PATCH);
  CHECK(TS_OK == 0);
  CHECK(strcmp(ts_status_string(TS_OK), "TS_OK") == 0);
  CHECK(strcmp(ts_status_string(TS_ERROR_INTERNAL), "TS_ERROR_INTERNAL") == 0);
  CHECK(strcmp(ts_status_string(-1), "TS_ERROR_UNKNOWN") == 0);
  memset(&wide, 0xAB, sizeof(wide));
  wide.caps.struct_size = sizeof(wide.caps);
  CHECK(ts_get_capabilities(&wide.caps) == TS_OK);
  CHECK(wide.newer[0] == 0xAB);
  CHECK((wide.caps.devices >> TS_DEVICE_CPU & 1u) == 1u);
  CHECK(wide.caps.logits_types == 7u && wide.caps.index_types == 3u);
  CHECK(wide.caps.max_vocab == TS_MAX_VOCAB && wide.caps.abi_version == TS_ABI_VERSION);
  CHECK(wide.caps.n_cuda_devices > 0 ? wide.caps.auto_device == TS_DEVICE_CUDA
                                     : wide.caps.auto_device == TS_DEVICE_CPU);
  /* A newer header's larger struct: what this library does not know becomes zero. */
  wide.caps.struct_size = sizeof(wide);
  CHECK(ts_get_capabilities(&wide.caps) == TS_OK);
  for (i = 0; i < 16; ++i) CHECK(wide.newer[i] == 0);
  CHECK(wide.caps.struct_size == sizeof(wide));
  wide.caps.struct_size = 8;
  CHECK(ts_get_capabilities(&wide.caps) == TS_ERROR_STRUCT_SIZE);
  CHECK(ts_get_capabilities(NULL) == TS_ERROR_INVALID_ARGUMENT);
}

int main(void) {
  ts_sampler* sampler = make_sampler();
  check_versions();
  CHECK(ts_sampler_device(sampler) == TS_DEVICE_CPU && ts_sampler_device(NULL) == 0);
  CHECK(strcmp(ts_sampler_step_route(NULL), "none") == 0);
  check_greedy(sampler);
  check_verify(sampler);
  check_capture_calls(sampler);
  check_greedy(sampler);
  check_broadcast(sampler);
  ts_sampler_destroy(sampler);
  ts_sampler_destroy(NULL);
  return checks_end();
}
