// SPDX-License-Identifier: Apache-2.0
// Promises of the header that no other test would miss: defaults, repeated slots, the stride of drafts.
#include "support/catch.h"
#include "support/device_memory.h"
#include "support/sampler.h"

namespace ts::test {
namespace {

constexpr int32_t kVocab = 8;

// Two greedy requests of three rows each, whose largest logits are at kPeaks.
constexpr int32_t kPeaks[6] = {3, 1, 7, 0, 5, 2};
struct Chains {
  Sampler sampler{kVocab};
  SharedVector<int32_t> slots = {0, 1};
  SharedVector<float> logits = SharedVector<float>(6 * kVocab, 0.0f);
  SharedVector<int32_t> first = SharedVector<int32_t>(6, -77), second = SharedVector<int32_t>(6, -77),
                        length = SharedVector<int32_t>(2, -77);
  ts_rows rows{};

  // temperature: the first request's; the second is greedy.
  explicit Chains(float temperature = 0.0f) {
    for (size_t row = 0; row < 6; ++row) logits[row * kVocab + static_cast<size_t>(kPeaks[row])] = 9.0f;
    Batch batch;
    batch.vocab = kVocab;
    batch.rows_per_request = 3;
    batch.params = {params(temperature), params(0.0f)};
    sampler.prepare(batch);
    rows.struct_size = sizeof(rows);
    rows.n_requests = 2;
    rows.logits = logits.data();
    rows.slots = slots.data();
  }

  SharedVector<int32_t> tokens() {
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = first.data();
    REQUIRE(ts_sampler_sample(sampler.handle(), &rows, &out, nullptr) == TS_OK);
    synchronize();
    return first;
  }
};

}  // namespace

TEST_CASE("rows_per_request 0 is as prepared") {
  Chains chains;
  CHECK(chains.tokens() == SharedVector<int32_t>(kPeaks, kPeaks + 6));
}

TEST_CASE("drafts are found by candidates_stride") {
  Chains chains;
  // Five words a request: the last committed token, two drafts, and what is none.
  SharedVector<int32_t> drafts = {0, 3, 1, 6, 6, 0, 0, 4, 6, 6};
  ts_draft draft{};
  draft.struct_size = sizeof(draft);
  draft.candidates = drafts.data();
  draft.candidates_stride = 5;
  ts_verify_out out{};
  out.struct_size = sizeof(out);
  out.predict = chains.first.data();
  out.accept_index = chains.second.data();
  out.accept_length = chains.length.data();
  REQUIRE(ts_sampler_verify(chains.sampler.handle(), &chains.rows, &draft, &out, nullptr) == TS_OK);
  synchronize();
  CHECK(chains.length == SharedVector<int32_t>{3, 2});
  CHECK(chains.first == SharedVector<int32_t>{3, 1, 7, 0, 5, -1});
  CHECK(chains.second == SharedVector<int32_t>{0, 1, 2, 3, 4, -1});
}

TEST_CASE("a slot may stand in the rows more than once") {
  // The first request draws almost evenly from eight ids: its three rows hardly give the peaks.
  Chains chains(1e4f);
  REQUIRE(chains.tokens() != SharedVector<int32_t>(kPeaks, kPeaks + 6));
  chains.slots = {1, 1};
  CHECK(chains.tokens() == SharedVector<int32_t>(kPeaks, kPeaks + 6));
}

TEST_CASE("releasing no slots is nothing to do") {
  Chains chains;
  CHECK(ts_sampler_release_slots(chains.sampler.handle(), nullptr, TS_INT32, 0) == TS_OK);
  CHECK(chains.sampler.route() == "greedy");
}

}  // namespace ts::test
