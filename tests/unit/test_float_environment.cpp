// SPDX-License-Identifier: Apache-2.0
// A host that flushes subnormals and rounds upward gets the same tokens, and keeps its settings.
#include <vector>

#include "support/catch.h"
#include "tssample.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

namespace ts {
namespace {

std::vector<int32_t> sample_all(std::vector<float>& logprobs) {
  constexpr int32_t kVocab = 300;
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CPU;
  config.vocab_size = kVocab;
  config.max_rows_per_request = 200;
  ts_sampler* sampler = nullptr;
  REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
  const uint64_t id = 1;
  const int32_t slot = 0;
  ts_request_params params = TS_REQUEST_PARAMS_INIT;
  params.temperature = 0.7f;
  params.top_p = 0.93f;
  params.min_p = 0.001f;
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = 1;
  step.rows_per_request = 200;
  step.request_ids = &id;
  step.slots = &slot;
  step.params = &params;
  REQUIRE(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK);
  // Subnormal fp16 logits beside ordinary ones: with flushing they would be zeros, and tie.
  std::vector<uint16_t> logits(200 * kVocab);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<uint16_t>((i * 2654435761u >> 7) % (i % 3 == 0 ? 0x4200u : 0x0400u));
  }
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = 1;
  rows.rows_per_request = 200;
  rows.logits = logits.data();
  rows.logits_type = TS_FP16;
  rows.slots = &slot;
  std::vector<int32_t> tokens(200);
  logprobs.assign(200, 0.0f);
  ts_sample_out out{};
  out.struct_size = sizeof(out);
  out.tokens = tokens.data();
  out.logprobs = logprobs.data();
  REQUIRE(ts_sampler_sample(sampler, &rows, &out, nullptr) == TS_OK);
  ts_sampler_destroy(sampler);
  return tokens;
}

}  // namespace

TEST_CASE("the host's flush-to-zero and rounding mode do not reach a token") {
  std::vector<float> usual_logprobs, odd_logprobs;
  const std::vector<int32_t> usual = sample_all(usual_logprobs);
  const unsigned before = _mm_getcsr();
  const unsigned odd_setting = before | 0x8040u | 0x4000u;  // flush to zero, subnormals are zero, round upward
  _mm_setcsr(odd_setting);
  const std::vector<int32_t> odd = sample_all(odd_logprobs);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK((after & ~0x3Fu) == (odd_setting & ~0x3Fu));  // but for the sticky exception bits
  CHECK(odd == usual);
  CHECK(odd_logprobs == usual_logprobs);
}

}  // namespace ts
#endif
