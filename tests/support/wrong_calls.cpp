// SPDX-License-Identifier: Apache-2.0
// Filling in good arguments, and comparing before with after.
#include "support/wrong_calls.h"

#include <cstring>
#include <string>
#include <utility>

#include "support/catch.h"

namespace ts::test {
namespace {

constexpr int32_t kPoison = 0x5A5A5A5A;

}  // namespace

Calls::Calls() {
  config.struct_size = sizeof(config);
  config.device = test_device();
  config.vocab_size = kVocab;
  config.n_slots = 8;
  config.max_requests = 4;
  config.max_rows_per_request = 4;
  REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
  params = {test::params(1.0f), test::params(0.8f, 5), test::params(1.2f, 0, 0.9f), test::params()};
  logits.resize(kRows * kVocab + 1);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 37) % 41) * 0.2f;
  mask.assign(kRows * 3 + 1, -1);
  candidates.assign(kRows + 1, 3);
  for (SharedVector<int32_t>& v : ints) v.assign(kRows + 1, kPoison);
  logprobs.assign(kRows + 1, 0.0f);
  poison();
  step = {sizeof(ts_step), kRequests, kRowsPerRequest, TS_INT32, ids.data(), slots.data(), params.data(), 0, 0};
  rows.struct_size = sizeof(rows);
  rows.n_requests = kRequests;
  rows.rows_per_request = kRowsPerRequest;
  rows.vocab = kVocab;
  rows.logits = logits.data();
  rows.slots = slots.data();
  rows.positions = positions.data();
  rows.positions_type = TS_INT64;
  rows.allow_mask = mask.data();
  out = {sizeof(ts_sample_out),
         0,
         ints[0].data(),
         logprobs.data(),
         ints[1].data(),
         ints[2].data(),
         reinterpret_cast<uint32_t*>(ints[3].data()),
         reinterpret_cast<uint32_t*>(ints[6].data())};
  draft = {sizeof(ts_draft), 0, candidates.data(), 0};
  verified = {sizeof(ts_verify_out),
              0,
              ints[0].data(),
              ints[4].data(),
              ints[5].data(),
              logprobs.data(),
              ints[1].data(),
              ints[2].data(),
              reinterpret_cast<uint32_t*>(ints[3].data()),
              reinterpret_cast<uint32_t*>(ints[6].data())};
}

void Calls::poison() {
  for (SharedVector<int32_t>& v : ints) v.assign(v.size(), kPoison);
  std::memset(logprobs.data(), 0x5A, logprobs.size() * 4);
}

bool Calls::untouched() const {
  for (const SharedVector<int32_t>& v : ints) {
    for (const int32_t value : v) {
      if (value != kPoison) return false;
    }
  }
  for (const float value : logprobs) {
    int32_t bits;
    std::memcpy(&bits, &value, 4);
    if (bits != kPoison) return false;
  }
  return true;
}

SharedVector<int32_t> tokens_of(Calls& good) {
  good.poison();
  REQUIRE(good.sample() == TS_OK);
  return good.ints[0];
}

void check_wrong(const Wrong& wrong, ts_status (Calls::*call)()) {
  INFO(wrong.named);
  Calls calls;
  REQUIRE(calls.prepare() == TS_OK);
  const SharedVector<int32_t> expected = tokens_of(calls);
  Calls good;  // its arrays stay as they are
  calls.poison();
  wrong.spoil(calls);
  CHECK((calls.*call)() == wrong.status);
  CHECK(std::string(ts_last_error()).find(wrong.named) != std::string::npos);
  CHECK(calls.untouched());
  std::swap(calls.sampler, good.sampler);
  CHECK(std::string(ts_sampler_step_route(good.sampler)) == "mixed");
  CHECK(tokens_of(good) == expected);
  CHECK(good.prepare() == TS_OK);
  CHECK(tokens_of(good) == expected);
}

}  // namespace ts::test
