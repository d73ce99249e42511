// SPDX-License-Identifier: Apache-2.0
// An independent reference of the sampling contract: long double, a full sort, every id scored. Written from the
// contract's text; shares no code with the library.
#pragma once

#include <cstdint>
#include <vector>

#include "tssample.h"

namespace ts::test {

// A row after conversion to fp32, and what it is sampled with.
struct ReferenceRow {
  std::vector<float> logits;  // all ids of the row
  int32_t n_valid = 0;        // 0: all
  std::vector<int32_t> mask;  // words; empty: all allowed
  ts_request_params params{};
  uint64_t position = 0;
};

struct ReferenceResult {
  int32_t token = 0;
  int32_t n_kept = 0;
  int32_t rank = 0;
  uint32_t flags = 0;
  long double logprob = 0;     // NaN for an empty row
  std::vector<int32_t> kept;   // ids, in the order
  long double margin = 0;      // best score - second best; infinite with one candidate
  long double score_size = 0;  // largest magnitude that the scores were added from
  // Whether fp64 scores could order the two best differently from long double ones.
  bool too_close() const { return margin < 1e-14L + score_size * 4e-16L; }
};

ReferenceResult reference_sample(const ReferenceRow& row, int32_t invalid_token = 0);

struct ReferenceChain {
  std::vector<int32_t> predict, accept_index, ranks, n_kept;
  std::vector<long double> logprobs;
  std::vector<uint32_t> flags;
  int32_t accept_length = 0;
  bool too_close = false;
};

// The chain of one request whose rows begin at row number first_row; candidates has an entry a row.
ReferenceChain reference_verify(const std::vector<ReferenceRow>& rows, const int32_t* candidates, int32_t first_row,
                                int32_t invalid_token = 0);

}  // namespace ts::test
