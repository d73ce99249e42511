// SPDX-License-Identifier: Apache-2.0
// What a pool slot holds: a request's parameters in the form that the kernels use.
#pragma once

#include <cstdint>

#include "tssample.h"

namespace ts {

// What a request asks of its route, as bits.
constexpr uint32_t kNeedSample = 1;  // a temperature of at least 1e-6: noise is drawn
constexpr uint32_t kNeedTopK = 2;
constexpr uint32_t kNeedTopP = 4;
constexpr uint32_t kNeedMinP = 8;

constexpr int32_t kTopKOff = INT32_MAX;
constexpr uint64_t kTopPOff = uint64_t{1} << 32;

// All numbers that the contract rounds "once, on the host" are rounded here. Every backend reads this one layout;
// the padding is for the state that later features keep by slot. All zero is greedy.
struct alignas(128) RequestState {
  double inv_temperature;  // 1 / T
  uint64_t seed;           // the request's own, or derived from the sampler's seed and the request id
  uint64_t top_p_fixed;    // round(top_p * 2^32), kTopPOff when off
  float log2e_over_t;      // log2(e) / T
  float min_p_threshold;   // T * ln(min_p), -inf when off: kept are d >= this
  int32_t top_k;           // >= 1, kTopKOff when off
  uint32_t needs;          // kNeed* bits; 0 is greedy
};
static_assert(sizeof(RequestState) == 128, "one slot is one 128-byte line");

// Checks parameters and derives the state from them. `name` and `index` say in the error message whose they are.
RequestState make_request_state(const ts_request_params& params, uint64_t request_id, uint64_t sampler_seed,
                                int32_t vocab_size, const char* name, int32_t index);

}  // namespace ts
