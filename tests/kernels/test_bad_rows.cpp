// SPDX-License-Identifier: Apache-2.0
// The counter of rows with flags: what counts, that it is added to, and that it needs no row_flags. Host memory: CPU
// backend only.
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/catch.h"
#include "support/sampler.h"

namespace ts::test {
namespace {

constexpr int32_t kVocab = 24;
constexpr int32_t kRequests = 5;

// Greedy requests; row r of the step peaks at r + 3.
struct Step {
  ts_sampler* sampler = nullptr;
  uint64_t ids[kRequests] = {1, 2, 3, 4, 5};
  int32_t slots[kRequests] = {0, 1, 2, 3, 4};
  std::vector<float> logits;
  std::vector<int32_t> tokens, index, length;
  std::vector<uint32_t> flags;
  ts_rows rows{};

  Step(int32_t n_requests, int32_t rows_per_request) {
    ts_config config{};
    config.struct_size = sizeof(config);
    config.device = TS_DEVICE_CPU;
    config.vocab_size = kVocab;
    config.n_slots = kRequests;
    REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
    const auto n_rows = static_cast<size_t>(n_requests * rows_per_request);
    logits.assign(n_rows * kVocab, 0.0f);
    for (size_t r = 0; r < n_rows; ++r) logits[r * kVocab + r + 3] = 9.0f;
    tokens.assign(n_rows, -9);
    index = tokens;
    length = tokens;
    flags.assign(n_rows, 99);
    const std::vector<ts_request_params> greedy(kRequests, params(0.0f));
    const ts_step step = {sizeof(step), n_requests, rows_per_request, TS_INT32, ids, slots, greedy.data(), 0, 0};
    REQUIRE(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK);
    rows.struct_size = sizeof(rows);
    rows.n_requests = n_requests;
    rows.rows_per_request = rows_per_request;
    rows.logits = logits.data();
    rows.slots = slots;
  }
  ~Step() { ts_sampler_destroy(sampler); }
  float& logit(size_t row, size_t id) { return logits[row * kVocab + id]; }
};

}  // namespace

TEST_CASE("n_bad_rows: sample adds the rows whose flags are not 0") {
  Step step(kRequests, 1);
  uint32_t count = 100;
  ts_sample_out out = {sizeof(out), 0, step.tokens.data(), nullptr, nullptr, nullptr, nullptr, &count};
  const auto sample = [&] { REQUIRE(ts_sampler_sample(step.sampler, &step.rows, &out, nullptr) == TS_OK); };
  sample();
  CHECK(count == 100);
  step.logit(0, 1) = NAN;
  step.logit(2, 0) = NAN;
  step.logit(2, 23) = HUGE_VALF;  // two flags, one row
  for (size_t i = 0; i < kVocab; ++i) step.logit(4, i) = -HUGE_VALF;
  sample();
  CHECK(count == 103);
  // The same with flags, and the two agree.
  out.row_flags = step.flags.data();
  sample();
  CHECK(count == 106);
  CHECK(step.flags == std::vector<uint32_t>{TS_ROW_NAN, 0, TS_ROW_NAN | TS_ROW_INF, 0, TS_ROW_EMPTY});
  out.n_bad_rows = nullptr;
  sample();
  CHECK(count == 106);
  // No rows: nothing is added.
  out.n_bad_rows = &count;
  step.rows.n_requests = 0;
  sample();
  CHECK(count == 106);
}

TEST_CASE("n_bad_rows: verify counts the rows it emits") {
  Step step(2, 3);
  // Both requests accept one draft and correct the second; the third rows are not emitted.
  const int32_t candidates[6] = {0, 3, 20, 0, 6, 20};
  uint32_t count = 7;
  ts_verify_out out = {
      sizeof(out),       0,     step.tokens.data(), step.index.data(), step.length.data(), nullptr, nullptr, nullptr,
      step.flags.data(), &count};
  const ts_draft draft = {sizeof(draft), 0, candidates, 0};
  const auto verify = [&] { REQUIRE(ts_sampler_verify(step.sampler, &step.rows, &draft, &out, nullptr) == TS_OK); };
  step.logit(2, 0) = NAN;
  step.logit(5, 0) = NAN;
  verify();
  CHECK(step.length[0] == 2);
  CHECK(step.length[1] == 2);
  CHECK(count == 7);
  step.logit(1, 0) = NAN;
  step.logit(3, 0) = NAN;
  verify();
  CHECK(count == 9);
  CHECK(step.flags == std::vector<uint32_t>{0, TS_ROW_NAN, 0, TS_ROW_NAN, 0, 0});
  // An EMPTY row ends its chain and counts.
  for (size_t i = 0; i < kVocab; ++i) step.logit(0, i) = -HUGE_VALF;
  verify();
  CHECK(step.length[0] == 1);
  CHECK(count == 11);
}

}  // namespace ts::test
