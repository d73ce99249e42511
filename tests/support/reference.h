// SPDX-License-Identifier: Apache-2.0
// An independent reference of the sampling contract: noise in long double, a full sort, every id scored. Written from
// the contract's text; shares no code with the library.
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
  long double logprob = 0;    // NaN for an empty row
  std::vector<int32_t> kept;  // ids, in the order
  // Whether an error of gumbel_error() in the noise of some ids could give another token. The scores themselves are
  // added in fp64 as the contract says, so equal scores alone are not close: the lower id wins.
  bool too_close = false;
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
