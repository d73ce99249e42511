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

__device__ inline float exp2_approx(float z) {
  float p;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(z));
  return p;
}

class WinBound {
 public:
  // Nothing is known: everything may win.
  __device__ WinBound() : reference_(0.0f), factor_(0.0f), offset_(200.0f), far_(kMinusInf) {}

  // A candidate's logit and its score.
  __device__ WinBound(float logit, double score, double inv_temperature, float log2e_over_t) {
    const double x = static_cast<double>(logit) * inv_temperature;
    const double g = score - x;
    reference_ = logit;
    factor_ = log2e_over_t;
    offset_ = static_cast<float>(-g * 1.4426950408889634 + fabs(x) * 0x1p-49) + kSlack;
    // Below this logit z is under -16.01, where only coarse bits 0 can win. Lowered by what rounding could take.
    const float distance = (-16.02f - offset_) / factor_;
    const float far = reference_ + distance;
    far_ = far - 1e-5f * (fabsf(reference_) + fabsf(distance));
    if (!(far_ > -kFloatMax && far_ < kFloatMax) || !(distance < 0.0f)) far_ = kMinusInf;
  }

  __device__ float far() const { return far_; }
  __device__ bool may_win(float logit, uint32_t coarse) const {
    const float z = (logit - reference_) * factor_ + offset_;
    return static_cast<float>(coarse) < 65537.0f * exp2_approx(z);
  }

 private:
  float reference_;
  float factor_;
  float offset_;
  float far_;
};

// Whether one of a block's eight coarse values is 0.
__device__ inline bool has_zero_half(const PhiloxBlock& block) {
  uint32_t zero = 0;
#pragma unroll
  for (int w = 0; w < 4; ++w) zero |= (block.w[w] - 0x00010001u) & ~block.w[w];
  return (zero & 0x80008000u) != 0;
}

__device__ inline double exact_score(float logit, uint32_t id, uint32_t coarse, double inv_temperature,
                                     const NoiseKey& key) {
  return static_cast<double>(logit) * inv_temperature + gumbel(uniform_bits(key, id, coarse));
}

__device__ inline Scored score_of(float logit, uint32_t id, double inv_temperature, const NoiseKey& key) {
  const uint32_t coarse = coarse_bits(coarse_block(key, id / kCoarsePerBlock), id);
  return {exact_score(logit, id, coarse, inv_temperature, key), id};
}

// The logit and id of an order key.
__device__ inline float logit_of(uint64_t order) {
  const uint32_t key = static_cast<uint32_t>(order >> 32);
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}
__device__ inline uint32_t id_of(uint64_t order) { return ~static_cast<uint32_t>(order); }

}  // namespace ts::cuda
