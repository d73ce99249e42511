// SPDX-License-Identifier: Apache-2.0
// A sample or verify call with all its outputs in one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tssample.h"

namespace ts::gpu {

// All outputs of a call in one block of 32-bit words, so that one copy reads them and one comparison compares them.
// kAcceptLength has a word a request, kBadRows one word in all (added to the poison).
enum { kTokens, kRanks, kKept, kLogprobs, kFlags, kAcceptIndex, kAcceptLength, kBadRows, kNumOutputs };
constexpr int32_t kPoison = static_cast<int32_t>(0xA5A5A5A5u);

struct Results {
  explicit Results(size_t rows) : n_rows(rows), words(rows * kNumOutputs, kPoison) {}
  int32_t at(int output, size_t row) const { return words[static_cast<size_t>(output) * n_rows + row]; }
  int32_t& at(int output, size_t row) { return words[static_cast<size_t>(output) * n_rows + row]; }
  size_t n_rows;
  std::vector<int32_t> words;
};

// sample, or verify when there are candidates. block: host or device memory of kNumOutputs arrays, n words apart.
// tokens_alone: ranks, kept sizes, log-probabilities and flags are not asked for.
ts_status call(ts_sampler* sampler, const ts_rows& rows, const int32_t* candidates, int32_t* block, size_t n,
               bool tokens_alone, ts_stream stream);

}  // namespace ts::gpu
