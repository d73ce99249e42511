// SPDX-License-Identifier: Apache-2.0
// Integer weights: exp((l - l_max) / T) in units of 2^-39, and the masses summed from them.
//
// A sum of weights is exact in uint64 for fewer than 2^22 ids, whatever the order of its terms: over tiles, blocks,
// shards and devices it comes out the same.
// Error, measured by tests/unit/test_weight.cpp: the polynomial is within 1.5e-7 relative of 2^f; a weight is within
// 1.5e-7 + 1.4e-7 * |z| relative of exp((l - l_max) / T), and at most one unit (2^-39) below it.
#pragma once

#include "hd.h"

namespace ts {

constexpr int kWeightBits = 39;
constexpr uint64_t kWeightOne = uint64_t{1} << kWeightBits;

// 2^f for 0 <= f <= 1: a degree-5 minimax polynomial for the relative error with P(0) = 1. Its values are in [1, 2), as
// tests/unit/test_weight.cpp shows of every float from 1/2 to 1, so the contract's "kept in [1, 2)" asks for nothing.
TS_HD float exp2_fraction(float f) {
  float p = 0x1.e974fap-10f;
  p = fma_rn(p, f, 0x1.277856p-7f);
  p = fma_rn(p, f, 0x1.c91cdep-5f);
  p = fma_rn(p, f, 0x1.ebdb5ap-3f);
  p = fma_rn(p, f, 0x1.62e4bap-1f);
  return fma_rn(p, f, 1.0f);
}

// The weight of a candidate d = l - l_max <= 0 below the maximum (d may be -inf), with log2e_over_t = log2(e) / T.
TS_HD uint64_t weight(float d, float log2e_over_t) {
  // Why: at z = -40 and below the weight is 0, so -40 stands for them all. z is never positive; a minimum of the bits
  // of |z| vectorises.
  const uint32_t magnitude = bit_cast<uint32_t>(d * log2e_over_t) & 0x7FFFFFFFu;
  const float z = -bit_cast<float>(magnitude < 0x42200000u ? magnitude : 0x42200000u);
#if defined(__CUDA_ARCH__)
  // Why: rounded down at 1.5 * 2^23, the sum's last bits are floor(z); conversions would take a slow pipe.
  const float shifted = __fadd_rd(z, 12582912.0f);
  const int32_t n = bit_cast<int32_t>(shifted) - 0x4B400000;
  const float p = exp2_fraction(z - (shifted - 12582912.0f));
#else
  // Why: |z| <= 40, so truncation toward zero and back is exact; floor is one lower for a negative fraction.
  const int32_t truncated = static_cast<int32_t>(z);
  const int32_t n = truncated - static_cast<int32_t>(static_cast<float>(truncated) > z);
  const float p = exp2_fraction(z - static_cast<float>(n));
#endif
  const uint64_t mantissa = (bit_cast<uint32_t>(p) & 0x7FFFFFu) | 0x800000u;
  return (mantissa << 16) >> -n;
}

// top_p as the integer round(p * 2^32), for 0 <= p < 1.
TS_HD uint64_t top_p_to_fixed(float top_p) {
  return static_cast<uint64_t>(static_cast<double>(top_p) * 4294967296.0 + 0.5);
}

// floor(p * total): candidate i stays while the mass in front of it is below this. p_fixed <= 2^32.
TS_HD uint64_t mass_limit(uint64_t p_fixed, uint64_t total) {
  // Why: p_fixed may be 2^32 itself, so shift by 31 here and one more on the other side; total is below 2^61.
  return mul_high(p_fixed << 31, total << 1);
}

}  // namespace ts
