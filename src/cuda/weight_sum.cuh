// SPDX-License-Identifier: Apache-2.0
// The integer weights of a group's ids, summed: the same integer as eight times weight() of contract/weight.h.
//
// Method: a weight is floor(w * 2^39), w = 2^fraction * 2^floor as a float. Adding 16 rounds it down to units of 2^-19, adding
// 2^-16 the rest of it to units of 2^-39; the bits of both sums count those units from the bits of 16 and of 2^-16, and
// add in 32 bits. Where all of a warp's ids are below 2^-16 of the maximum, most of a real row, the second sum is all.
// Why not weight(): 64-bit shifts and adds took 26 instructions an id in all; this takes 17, 13 far below the maximum.
#pragma once

#include "contract/weight.h"
#include "cuda/row_source.cuh"

namespace ts::cuda {

constexpr uint32_t kUnitsOf19 = 0x41800000u;  // the bits of 16, whose last place is 2^-19
constexpr uint32_t kUnitsOf39 = 0x37800000u;  // the bits of 2^-16, whose last place is 2^-39

// A logit's weight before it is rounded down to units of 2^-39, but for ids of weight 0: those give up to 2^-39.
__device__ inline float unrounded_weight(float logit, float max, float log2e_over_t) {
  const float z = fmaxf((logit - max) * log2e_over_t, -40.0f);
  // The last bits of the sum are floor(z), as in weight(): shifted left they are added to the exponent.
  const float shifted = __fadd_rd(z, 12582912.0f);
  const float p = exp2_fraction(z - (shifted - 12582912.0f));
  return __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
}

// logits, as they count, and the largest of them, `top`, or NaN. All lanes of a warp call it.
__device__ inline uint64_t sum_of_weights(const float (&logits)[kGroup], float top, float max, float log2e_over_t) {
  uint32_t high = 0;
  uint32_t low = 0;
  if (__all_sync(0xFFFFFFFFu, (top - max) * log2e_over_t < -16.0f)) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      low += __float_as_uint(__fadd_rd(unrounded_weight(logits[j], max, log2e_over_t), 0x1p-16f));
    }
  } else {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const float w = unrounded_weight(logits[j], max, log2e_over_t);
      const float floored = __fadd_rd(w, 16.0f);
      high += __float_as_uint(floored);
      low += __float_as_uint(__fadd_rd(w - (floored - 16.0f), 0x1p-16f));
    }
    high -= kGroup * kUnitsOf19;
  }
  low -= kGroup * kUnitsOf39;
  return (uint64_t{high} << 20) + low;
}

}  // namespace ts::cuda
