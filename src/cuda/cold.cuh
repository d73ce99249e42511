// SPDX-License-Identifier: Apache-2.0
// The contract's noise for code that runs a few times a row: small instead of fast.
// Why: straight code that runs once waits for its own instructions; at few rows that takes longer than running them.
#pragma once

#include "contract/noise.h"
#include "cuda/block.cuh"

namespace ts::cuda {

static __device__ __noinline__ PhiloxBlock cold_noise_block(NoiseKey key, uint32_t index, uint32_t level) {
  PhiloxBlock block{{index, static_cast<uint32_t>(key.position), static_cast<uint32_t>(key.position >> 32),
                     static_cast<uint32_t>(key.purpose) * 2u + level}};
  uint32_t k0 = static_cast<uint32_t>(key.seed);
  uint32_t k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma unroll 1
  for (int round = 0; round < 10; ++round) {
    block = philox_round(block, k0, k1);
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
  return block;
}

static __device__ __noinline__ double cold_ln(double x) { return ln(x); }

// gumbel() of contract/noise.h, with one logarithm in code.
static __device__ __noinline__ double cold_gumbel(uint64_t u) {
  const bool low = (u >> 63) == 0;
  const double v = (to_double(low ? u : ~u) + 0.5) * 0x1p-64;
  double e;
  if (low && v < 0.25) {
    e = -ln_one_plus_small(-v);
  } else {
    e = -cold_ln(low ? 1.0 - v : v);
  }
  return -cold_ln(e);
}

// An id's exact score.
__device__ inline Scored score_of(float logit, uint32_t id, uint32_t coarse, double inv_temperature,
                                  const NoiseKey& key) {
  const PhiloxBlock fine = cold_noise_block(key, id, 1);
  const uint64_t u = static_cast<uint64_t>(coarse) << 48 | static_cast<uint64_t>(fine.w[0] & 0xFFFFu) << 32 | fine.w[1];
  return {static_cast<double>(logit) * inv_temperature + cold_gumbel(u), id, logit};
}

}  // namespace ts::cuda
