// SPDX-License-Identifier: Apache-2.0
// What the CPU backend alone promises: it ignores device ordinals, and outputs over inputs, which are forbidden, are no
// reason to read outside of the pool: slots are read once, before anything is written.
#include <cstdint>
#include <vector>

#include "support/catch.h"
#include "support/sampler.h"

namespace ts::test {
namespace {

constexpr int32_t kVocab = 1 << 20;  // a token taken for a slot lies far outside of the pool
constexpr int32_t kRequests = 3;

// Two greedy requests around one that keeps two ids; every row peaks at its last ids.
struct Step {
  ts_sampler* sampler = nullptr;
  std::vector<float> logits = std::vector<float>(size_t{kRequests} * 2 * kVocab, 0.0f);
  ts_rows rows{};

  explicit Step(int32_t rows_per_request) {
    ts_config config{};
    config.struct_size = sizeof(config);
    config.device = TS_DEVICE_CPU;
    config.vocab_size = kVocab;
    config.n_slots = kRequests;
    REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
    for (size_t r = 0; r < size_t{kRequests} * 2; ++r) {
      logits[(r + 1) * kVocab - 1] = 9.0f;
      logits[(r + 1) * kVocab - 2] = 8.0f;
    }
    const uint64_t ids[kRequests] = {1, 2, 3};
    const int32_t slots[kRequests] = {0, 1, 2};
    const ts_request_params two[kRequests] = {params(0.0f), params(1.0f, 2), params(0.0f)};
    const ts_step step = {sizeof(step), kRequests, rows_per_request, TS_INT32, ids, slots, two, 0, 0};
    REQUIRE(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK);
    rows.struct_size = sizeof(rows);
    rows.n_requests = kRequests;
    rows.logits = logits.data();
  }
  ~Step() { ts_sampler_destroy(sampler); }
};

}  // namespace

TEST_CASE("a CPU sampler ignores the device ordinal, but not a negative one") {
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CPU;
  config.vocab_size = 8;
  ts_sampler* sampler = nullptr;
  for (const int32_t ordinal : {1, INT32_MAX}) {
    config.device_ordinal = ordinal;
    CHECK(ts_sampler_create(&config, &sampler) == TS_OK);
    ts_sampler_destroy(sampler);
  }
  config.device_ordinal = -1;
  CHECK(ts_sampler_create(&config, &sampler) == TS_ERROR_INVALID_ARGUMENT);
  CHECK_THAT(ts_last_error(), says("ts_config.device_ordinal = -1"));
}

TEST_CASE("sample with tokens over its slots reads the slots before") {
  Step step(1);
  std::vector<int32_t> memory(5), kept(kRequests, -1);
  for (const size_t shift : {0, 1, 2}) {
    INFO("shift " << shift);
    memory = {0, 1, 2, -1, -1};  // with shift 1 the token of request r lies where the slot of r + 1 did
    step.rows.slots = memory.data();
    const ts_sample_out out = {sizeof(out), 0, memory.data() + shift, nullptr, nullptr, kept.data(), nullptr, nullptr};
    REQUIRE(ts_sampler_sample(step.sampler, &step.rows, &out, nullptr) == TS_OK);
    CHECK(kept == std::vector<int32_t>{1, 2, 1});
    CHECK(memory[shift] == kVocab - 1);
  }
}

TEST_CASE("verify with its outputs over its slots reads the slots before") {
  Step step(2);
  std::vector<int32_t> kept(kRequests * 2, -1);
  const std::vector<int32_t> candidates = {0, kVocab - 1, 0, 0, 0, kVocab - 1};
  std::vector<int32_t> memory(8), index(kRequests * 2), length(kRequests);
  for (const size_t shift : {0, 1, 2}) {
    INFO("shift " << shift);
    memory = {0, 1, 2, -1, -1, -1, -1, -1};
    step.rows.slots = memory.data();
    const ts_draft draft = {sizeof(draft), 0, candidates.data(), 0};
    const ts_verify_out out = {sizeof(out), 0,       memory.data() + shift, index.data(), length.data(),
                               nullptr,     nullptr, kept.data(),           nullptr,      nullptr};
    REQUIRE(ts_sampler_verify(step.sampler, &step.rows, &draft, &out, nullptr) == TS_OK);
    CHECK(kept == std::vector<int32_t>{1, 1, 2, 0, 1, 1});
    CHECK(length == std::vector<int32_t>{2, 1, 2});
  }
}

}  // namespace ts::test
