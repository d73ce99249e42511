// SPDX-License-Identifier: Apache-2.0
// FAULTS.md C10: every argument of sample and verify, wrong once, gives a code and a message that names it, writes
// nothing and changes nothing.
#include <cmath>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/wrong_calls.h"

namespace ts::test {

TEST_CASE("C10 sample and verify: every wrong row argument is named and writes nothing") {
  const std::vector<Wrong> wrongs = {
      {"ts_rows.struct_size", kSize, [](Calls& c) { c.rows.struct_size = 0; }},
      {"ts_rows.struct_size", kSize, [](Calls& c) { c.rows.struct_size = sizeof(ts_rows) - 8; }},
      {"ts_rows.n_requests", kInvalid, [](Calls& c) { c.rows.n_requests = -1; }},
      {"ts_rows.n_requests", kInvalid, [](Calls& c) { c.rows.n_requests = 5; }},
      {"ts_rows.n_requests", kUnprepared, [](Calls& c) { c.rows.n_requests = 4; }},
      {"ts_rows.rows_per_request", kUnprepared, [](Calls& c) { c.rows.rows_per_request = 1; }},
      {"ts_rows.rows_per_request", kInvalid, [](Calls& c) { c.rows.rows_per_request = 5; }},
      {"ts_rows.vocab", kInvalid, [](Calls& c) { c.rows.vocab = Calls::kVocab + 1; }},
      {"ts_rows.vocab", kInvalid, [](Calls& c) { c.rows.vocab = -1; }},
      {"ts_rows.logits", kInvalid, [](Calls& c) { c.rows.logits = nullptr; }},
      {"ts_rows.logits", kInvalid, [](Calls& c) { c.rows.logits = misaligned(c.logits.data()); }},
      {"ts_rows.row_stride", kInvalid, [](Calls& c) { c.rows.row_stride = Calls::kVocab - 1; }},
      {"ts_rows.row_stride", kInvalid, [](Calls& c) { c.rows.row_stride = -Calls::kVocab; }},
      {"ts_rows.row_stride", kInvalid, [](Calls& c) { c.rows.row_stride = INT64_MAX; }},
      {"ts_rows.logits_type", kInvalid, [](Calls& c) { c.rows.logits_type = 3; }},
      {"ts_rows.n_valid", kInvalid, [](Calls& c) { c.rows.n_valid = Calls::kVocab + 1; }},
      {"ts_rows.n_valid", kInvalid, [](Calls& c) { c.rows.n_valid = -1; }},
      {"ts_rows.slots", kInvalid, [](Calls& c) { c.rows.slots = nullptr; }},
      {"ts_rows.slots", kInvalid, [](Calls& c) { c.rows.slots = misaligned(c.slots.data()); }},
      {"ts_rows.slots_type", kInvalid, [](Calls& c) { c.rows.slots_type = -1; }},
      {"ts_rows.positions", kInvalid, [](Calls& c) { c.rows.positions = misaligned(c.positions.data()); }},
      {"ts_rows.positions_type", kInvalid, [](Calls& c) { c.rows.positions_type = 9; }},
      {"ts_rows.allow_mask", kInvalid, [](Calls& c) { c.rows.allow_mask = misaligned(c.mask.data()); }},
      {"ts_rows.mask_words", kInvalid, [](Calls& c) { c.rows.mask_words = -1; }},
      {"ts_rows.mask_stride", kInvalid, [](Calls& c) { c.rows.mask_stride = 2; }},
      {"ts_rows.reserved", kInvalid, [](Calls& c) { c.rows.reserved = 1; }},
  };
  for (const Wrong& wrong : wrongs) {
    check_wrong(wrong, &Calls::sample);
    check_wrong(wrong, &Calls::verify);
  }
  const std::vector<Wrong> sample_wrongs = {
      {"ts_sample_out.struct_size", kSize, [](Calls& c) { c.out.struct_size = 0; }},
      {"ts_sample_out.reserved", kInvalid, [](Calls& c) { c.out.reserved = 1; }},
      {"ts_sample_out.tokens", kInvalid, [](Calls& c) { c.out.tokens = nullptr; }},
      {"ts_sample_out.tokens", kInvalid, [](Calls& c) { c.out.tokens = misaligned(c.out.tokens); }},
      {"ts_sample_out.logprobs", kInvalid, [](Calls& c) { c.out.logprobs = misaligned(c.out.logprobs); }},
      {"ts_sample_out.ranks", kInvalid, [](Calls& c) { c.out.ranks = misaligned(c.out.ranks); }},
      {"ts_sample_out.n_kept", kInvalid, [](Calls& c) { c.out.n_kept = misaligned(c.out.n_kept); }},
      {"ts_sample_out.row_flags", kInvalid, [](Calls& c) { c.out.row_flags = misaligned(c.out.row_flags); }},
      {"ts_sample_out.n_bad_rows", kInvalid, [](Calls& c) { c.out.n_bad_rows = misaligned(c.out.n_bad_rows); }},
  };
  for (const Wrong& wrong : sample_wrongs) check_wrong(wrong, &Calls::sample);
  const std::vector<Wrong> verify_wrongs = {
      {"ts_draft.struct_size", kSize, [](Calls& c) { c.draft.struct_size = 0; }},
      {"ts_draft.reserved", kInvalid, [](Calls& c) { c.draft.reserved = 1; }},
      {"ts_draft.candidates", kInvalid, [](Calls& c) { c.draft.candidates = nullptr; }},
      {"ts_draft.candidates", kInvalid, [](Calls& c) { c.draft.candidates = misaligned(c.draft.candidates); }},
      {"ts_draft.candidates_stride", kInvalid, [](Calls& c) { c.draft.candidates_stride = 1; }},
      {"ts_verify_out.struct_size", kSize, [](Calls& c) { c.verified.struct_size = 12; }},
      {"ts_verify_out.reserved", kInvalid, [](Calls& c) { c.verified.reserved = 1; }},
      {"ts_verify_out.predict", kInvalid, [](Calls& c) { c.verified.predict = nullptr; }},
      {"ts_verify_out.accept_index", kInvalid, [](Calls& c) { c.verified.accept_index = nullptr; }},
      {"ts_verify_out.accept_length", kInvalid, [](Calls& c) { c.verified.accept_length = nullptr; }},
      {"ts_verify_out.logprobs", kInvalid, [](Calls& c) { c.verified.logprobs = misaligned(c.verified.logprobs); }},
      {"ts_verify_out.ranks", kInvalid, [](Calls& c) { c.verified.ranks = misaligned(c.verified.ranks); }},
      {"ts_verify_out.n_kept", kInvalid, [](Calls& c) { c.verified.n_kept = misaligned(c.verified.n_kept); }},
      {"ts_verify_out.row_flags", kInvalid, [](Calls& c) { c.verified.row_flags = misaligned(c.verified.row_flags); }},
      {"ts_verify_out.n_bad_rows", kInvalid,
       [](Calls& c) { c.verified.n_bad_rows = misaligned(c.verified.n_bad_rows); }},
  };
  for (const Wrong& wrong : verify_wrongs) check_wrong(wrong, &Calls::verify);

  Calls calls;  // not prepared
  CHECK(calls.sample() == kUnprepared);
  CHECK(calls.verify() == kUnprepared);
  CHECK(calls.untouched());
  REQUIRE(calls.prepare() == TS_OK);
  CHECK(ts_sampler_sample(nullptr, &calls.rows, &calls.out, nullptr) == kInvalid);
  CHECK(ts_sampler_sample(calls.sampler, nullptr, &calls.out, nullptr) == kInvalid);
  CHECK(ts_sampler_sample(calls.sampler, &calls.rows, nullptr, nullptr) == kInvalid);
  CHECK(ts_sampler_verify(nullptr, &calls.rows, &calls.draft, &calls.verified, nullptr) == kInvalid);
  CHECK(ts_sampler_verify(calls.sampler, &calls.rows, nullptr, &calls.verified, nullptr) == kInvalid);
  CHECK(ts_sampler_verify(calls.sampler, &calls.rows, &calls.draft, nullptr, nullptr) == kInvalid);
  CHECK(calls.untouched());
  // Releasing a slot of the step forgets it.
  REQUIRE(ts_sampler_release_slots(calls.sampler, calls.slots.data(), TS_INT32, 1) == TS_OK);
  CHECK(calls.sample() == kUnprepared);
}

TEST_CASE("C10 sample and verify: wrong entries of device arrays are errors on the CPU and EMPTY rows on a GPU") {
  if (!on_cuda()) {
    const std::vector<Wrong> wrongs = {
        {"ts_rows.slots[1]", kInvalid, [](Calls& c) { c.slots[1] = 8; }},
        {"ts_rows.slots[1]", kInvalid, [](Calls& c) { c.slots[1] = INT32_MIN; }},
        {"ts_rows.slots[2]", kUnprepared, [](Calls& c) { c.slots[2] = 1; }},
        {"ts_rows.positions[2]", kInvalid, [](Calls& c) { c.positions[2] = -1; }},
    };
    for (const Wrong& wrong : wrongs) {
      check_wrong(wrong, &Calls::sample);
      check_wrong(wrong, &Calls::verify);
    }
    return;
  }
  // Nobody but the device sees them there: the request's rows are EMPTY, its neighbours' rows are as ever.
  for (const int32_t slot : {8, 9, -1, INT32_MIN, INT32_MAX}) {
    INFO("slot " << slot);
    Calls calls;
    REQUIRE(calls.prepare() == TS_OK);
    const SharedVector<int32_t> expected = tokens_of(calls);
    calls.slots[1] = slot;
    const SharedVector<int32_t> got = tokens_of(calls);
    for (size_t i = 0; i < Calls::kRows; ++i) {
      const bool empty = i / Calls::kRowsPerRequest == 1;
      CHECK(got[i] == (empty ? 0 : expected[i]));
      CHECK((calls.ints[3][i] == TS_ROW_EMPTY) == empty);
      CHECK(std::isnan(calls.logprobs[i]) == empty);
    }
    calls.poison();
    CHECK(calls.verify() == TS_OK);
    CHECK(calls.ints[5][1] == 1);  // an EMPTY row ends its chain
    CHECK(calls.ints[3][2] == TS_ROW_EMPTY);
    CHECK(calls.ints[0][0] == expected[0]);
    CHECK(calls.ints[0][4] == expected[4]);
  }
}

}  // namespace ts::test
