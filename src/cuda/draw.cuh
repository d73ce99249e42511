// SPDX-License-Identifier: Apache-2.0
// Deciding fast which ids can win, proving exactly which one does.
//
// Bound: with b = x_ref + g_ref the score of some candidate, an id of logit l and coarse bits c can only reach b if
// c / 65536 <= e^(x - b) (see cpu/draw.cpp), x - b = (l - l_ref) / T - g_ref. In fp32, z = (l - l_ref) * (log2 e / T) -
// g_ref * log2 e has an error below 2^-22 |z| + 1e-5 where it matters (|z| < 64); kSlack covers it, the fp64 rounding
// of scores (2^-49 |x_ref|), and ex2.approx (2^-22 relative).
#pragma once

#include "contract/convert.h"
#include "contract/noise.h"
#include "cuda/block.cuh"

namespace ts::cuda {

constexpr float kSlack = 1e-3f;

// coarse_block() of kCount groups, kStride apart, in lockstep. Why: they share the round keys, and their chains of
// multiplications overlap.
template <int kCount, int kStride>
__device__ void coarse_blocks(const NoiseKey& key, uint32_t first, PhiloxBlock (&blocks)[kCount]) {
  uint32_t k0 = static_cast<uint32_t>(key.seed);
  uint32_t k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma unroll
  for (int b = 0; b < kCount; ++b) {
    blocks[b] = {{first + static_cast<uint32_t>(b * kStride), static_cast<uint32_t>(key.position),
                  static_cast<uint32_t>(key.position >> 32), static_cast<uint32_t>(key.purpose) * 2u}};
  }
#pragma unroll
  for (int round = 0; round < 10; ++round) {
#pragma unroll
    for (int b = 0; b < kCount; ++b) blocks[b] = philox_round(blocks[b], k0, k1);
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
}

__device__ inline float exp2_approx(float z) {
  float p;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(z));
  return p;
}

class WinBound {
 public:
  // Nothing is known: everything may win.
  __device__ WinBound() : reference_(0.0f), factor_(0.0f), offset_(200.0f) {}

  // A scored candidate.
  __device__ WinBound(const Scored& best, double inv_temperature, float log2e_over_t) {
    const double x = static_cast<double>(best.logit) * inv_temperature;
    const double g = best.score - x;
    reference_ = best.logit;
    factor_ = log2e_over_t;
    offset_ = static_cast<float>(-g * 1.4426950408889634 + fabs(x) * 0x1p-49) + kSlack;
  }

  __device__ bool may_win(float logit, uint32_t coarse) const {
    const float z = (logit - reference_) * factor_ + offset_;
    return static_cast<float>(coarse) < 65537.0f * exp2_approx(z);
  }

 private:
  friend class GroupBound;
  float reference_;
  float factor_;
  float offset_;
};

// The same test for the eight ids of a group at once, a little looser and seven instructions an id.
//
// With u = (z + 16) / 16 held in [0, 1], 2^(16 u) is the number that coarse bits must be below; 16 u written into a
// float's exponent and mantissa is 2^(16 u) or more, because 2^x is convex. One unit in the last of 14 mantissa bits
// covers the rounding of that, and 2^-21 of the terms of z the rounding of the sum.
class GroupBound {
 public:
  __device__ GroupBound() : scale_(0.0f), shift_(2.0f) {}
  __device__ explicit GroupBound(const WinBound& bound) {
    const float at_reference = bound.reference_ * bound.factor_;
    scale_ = bound.factor_ * 0.0625f;
    const float slack = (fabsf(at_reference) + fabsf(bound.offset_) + 64.0f) * 0x1p-21f;
    shift_ = (16.0f + bound.offset_ + slack - at_reference) * 0.0625f;
    if (!(fabsf(shift_) < 1e30f)) {
      scale_ = 0.0f;
      shift_ = 2.0f;
    }
  }

  __device__ bool any_may_win(const float (&logits)[kCoarsePerBlock], const PhiloxBlock& block) const {
    bool any = false;
#pragma unroll
    for (int j = 0; j < kCoarsePerBlock; ++j) {
      const float u = __saturatef(__fmaf_rn(logits[j], scale_, shift_));
      const float placed = __fmaf_rn(u, 262144.0f, 8388608.0f + 127.0f * 16384.0f + 1.0f);
      const float limit = __uint_as_float(__float_as_uint(placed) << 9);
      // A coarse value as float: 2^23 + coarse, less 2^23.
      const uint32_t bits = __byte_perm(block.w[j / 2], 0x4B00u, j % 2 == 0 ? 0x5410u : 0x5432u);
      any |= __uint_as_float(bits) - 8388608.0f < limit;
    }
    return any;
  }

 private:
  float scale_;
  float shift_;
};

__device__ inline Scored score_of(float logit, uint32_t id, uint32_t coarse, double inv_temperature,
                                  const NoiseKey& key) {
  return {static_cast<double>(logit) * inv_temperature + gumbel(uniform_bits(key, id, coarse)), id, logit};
}

__device__ inline Scored score_of(float logit, uint32_t id, double inv_temperature, const NoiseKey& key) {
  const uint32_t coarse = coarse_bits(coarse_block(key, id / kCoarsePerBlock), id);
  return score_of(logit, id, coarse, inv_temperature, key);
}

// The logit and id of an order key.
__device__ inline float logit_of(uint64_t order) {
  const uint32_t key = static_cast<uint32_t>(order >> 32);
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}
__device__ inline uint32_t id_of(uint64_t order) { return ~static_cast<uint32_t>(order); }

}  // namespace ts::cuda
