// SPDX-License-Identifier: Apache-2.0
// A sample or verify call with all its outputs in one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tssample.h"

namespace ts::gpu {

// All outputs of a call in one block of 32-bit words, so that one copy reads them and one comparison compares them.
// kAcceptLength has a word a request, kBadRows one word in all (added to the poison).
enum { kTokens, kRanks, kKept, kLogprobs, kFlags, kAcceptIndex, kAcceptLength, kBadRows, kNumOutputs };
// Which of the optional outputs a call asks for: a bit each.
using Asked = uint32_t;
constexpr Asked kNothingElse = 0;  // than the tokens
constexpr Asked kLogprobsAlone = 1u << kLogprobs;
constexpr Asked kEverything = 1u << kRanks | 1u << kKept | 1u << kLogprobs | 1u << kFlags | 1u << kBadRows;
constexpr Asked kAsked[] = {kNothingElse, kLogprobsAlone, kEverything};
inline bool asks_for(Asked asked, int output) {
  return (kEverything >> output & 1u) == 0 || (asked >> output & 1u) != 0;
}
std::string to_string(Asked asked);
constexpr int32_t kPoison = static_cast<int32_t>(0xA5A5A5A5u);

struct Results {
  explicit Results(size_t rows) : n_rows(rows), words(rows * kNumOutputs, kPoison) {}
  int32_t at(int output, size_t row) const { return words[static_cast<size_t>(output) * n_rows + row]; }
  int32_t& at(int output, size_t row) { return words[static_cast<size_t>(output) * n_rows + row]; }
  size_t n_rows;
  std::vector<int32_t> words;
};

// sample, or verify when there are candidates. block: host or device memory of kNumOutputs arrays, n words apart.
ts_status call(ts_sampler* sampler, const ts_rows& rows, const int32_t* candidates, int32_t* block, size_t n,
               Asked asked, ts_stream stream);

}  // namespace ts::gpu
