/* SPDX-License-Identifier: Apache-2.0 */
/* One step for two requests: the README's C example. */
#include <stdio.h>

#include "tssample.h"

int main(void) {
  /* A sampler for rows of up to 8 ids. Real engines set vocab_size and n_slots to the model's and their pool's. */
  ts_config config = {0};
  config.struct_size = sizeof(config);
  config.vocab_size = 8;
  ts_sampler* sampler = NULL;
  if (ts_sampler_create(&config, &sampler) != TS_OK) {
    fprintf(stderr, "%s\n", ts_last_error());
    return 1;
  }

  /* Request 11 in slot 0 samples with top-p and its own seed; request 12 in slot 1 is greedy. */
  const uint64_t request_ids[2] = {11, 12};
  const int32_t slots[2] = {0, 1};
  ts_request_params params[2] = {TS_REQUEST_PARAMS_INIT, TS_REQUEST_PARAMS_INIT};
  params[0].flags = TS_PARAMS_SEEDED;
  params[0].seed = 42;
  params[0].temperature = 0.8f;
  params[0].top_p = 0.9f;
  params[1].temperature = 0.0f;

  ts_step step = {0};
  step.struct_size = sizeof(step);
  step.n_requests = 2;
  step.request_ids = request_ids;
  step.slots = slots;
  step.params = params;

  /* One row of logits per request; positions are how far each request has come. */
  const float logits[2][8] = {{1, 4, 0, 3, 3, -2, 0, 1}, {0, 0, 1, 0, 0, 5, 0, 2}};
  const int32_t positions[2] = {17, 4};
  ts_rows rows = {0};
  rows.struct_size = sizeof(rows);
  rows.n_requests = 2;
  rows.logits = logits;
  rows.logits_type = TS_FP32;
  rows.slots = slots;
  rows.positions = positions;

  int32_t tokens[2];
  float logprobs[2];
  ts_sample_out out = {0};
  out.struct_size = sizeof(out);
  out.tokens = tokens;
  out.logprobs = logprobs;

  if (ts_sampler_prepare_step(sampler, &step, NULL) != TS_OK ||
      ts_sampler_sample(sampler, &rows, &out, NULL) != TS_OK) {
    fprintf(stderr, "%s\n", ts_last_error());
    return 1;
  }
  for (int r = 0; r < 2; ++r)
    printf("request %d: token %d, logprob %.4f\n", (int)request_ids[r], (int)tokens[r], logprobs[r]);
  ts_sampler_destroy(sampler);
  return 0;
}
