// SPDX-License-Identifier: Apache-2.0
// Deciding fast which ids can win, proving exactly which one does.
//
// Let x = l / T and s = x + g be an id's score, both times log2 e here, so in bits. An id with coarse half c has
// c / 65536 <= v < (c + 1) / 65536, so g >= log2((65535 - c) / (c + 1)) (from -ln(1 - v) <= v / (1 - v)) bounds s from
// below, and it can reach a score b only if c / 65536 <= 2^(x - b) (from v < 1 - exp(-e^(x - b))).
// Errors: x in fp32 is off by 2^-23 |x|, ex2.approx and lg2.approx by 2^-22 relative, fp64 scores are rounded by
// 2^-52 |x|. lower_score takes 1e-3 + 2^-19 |s| off its result for all of them: where the bound decides, x - b is
// above -17, so |x| is at most |s| + 64.
#pragma once

#include "contract/convert.h"
#include "contract/noise.h"
#include "cuda/cold.cuh"
#include "cuda/row_source.cuh"

namespace ts::cuda {

// The bound while nothing is known: every candidate may win, whatever its logit.
constexpr float kNoBound = kMinusInf;

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

// coarse_bits() of a place that is not known when compiling. Why so: as logit_at().
__device__ inline uint32_t coarse_at(const PhiloxBlock& block, uint32_t place) {
  uint32_t word = block.w[0];
#pragma unroll
  for (uint32_t w = 1; w < 4; ++w) word = place / 2 == w ? block.w[w] : word;
  return word >> (16 * (place % 2)) & 0xFFFFu;
}

// The least of a group's eight coarse halves.
__device__ inline uint32_t least_coarse(const PhiloxBlock& block) {
  const uint32_t both = __vminu2(__vminu2(block.w[0], block.w[1]), __vminu2(block.w[2], block.w[3]));
  return min(both & 0xFFFFu, both >> 16);
}

// Whether an id can reach the bound. Of a group, its largest logit with its least coarse half stand for all.
__device__ inline bool may_win(float logit, uint32_t coarse, float log2e_over_t, float bound) {
  const float c = __uint_as_float(0x4B000000u | coarse) - 8388608.0f;
  return c < 65537.0f * exp2_approx(__fmaf_rn(logit, log2e_over_t, -bound));
}

// What a score is not below, of which s is approximate; kNoBound where that cannot be said.
__device__ inline float below(float s) {
  const float lower = s - (1e-3f + fabsf(s) * 0x1p-19f);
  return fabsf(lower) < 1e29f ? lower : kNoBound;
}

// What an id's score is not below.
__device__ inline float lower_score(float logit, uint32_t coarse, float log2e_over_t) {
  const float c = static_cast<float>(coarse);
  return below(logit * log2e_over_t + (log2_approx(65535.0f - c) - log2_approx(c + 1.0f)));
}

// lower_score of a group's largest logit, by the least coarse half that it has.
template <class Type>
__device__ __noinline__ float lower_score_of_top(Raw<Type> raw, float top, PhiloxBlock block, float log2e_over_t) {
  if (!(top > kMinusInf)) return kNoBound;
  float logits[kGroup];
  raw.clean(logits);
  uint32_t least = 0xFFFFu;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) least = logits[j] == top ? min(least, coarse_bits(block, j)) : least;
  return lower_score(top, least, log2e_over_t);
}

// Floats as integers in the same order, for atomic maxima.
__device__ inline int32_t ordered(float value) {
  const int32_t bits = __float_as_int(value);
  return bits ^ (bits >> 31 & 0x7FFFFFFF);
}
__device__ inline float from_ordered(int32_t bits) { return __int_as_float(bits ^ (bits >> 31 & 0x7FFFFFFF)); }

// The logit and id of an order key.
__device__ inline float logit_of(uint64_t order) {
  const uint32_t key = static_cast<uint32_t>(order >> 32);
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}
__device__ inline uint32_t id_of(uint64_t order) { return ~static_cast<uint32_t>(order); }

}  // namespace ts::cuda
