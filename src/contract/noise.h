// SPDX-License-Identifier: Apache-2.0
// Gumbel noise that belongs to (seed, position, token id) alone, drawn lazily in two parts.
//
// Source of the Gumbel-max trick: Gumbel 1954; Maddison, Tarlow, Minka, "A* sampling", NeurIPS 2014.
// Error of gumbel(), measured by tests/unit/test_noise.cpp against long double: below 1e-15 absolute where |g| < 8,
// below 5.5e-15 elsewhere.
#pragma once

#include "ln.h"
#include "philox.h"

namespace ts {

// What a draw is for; no two uses share numbers.
enum class Purpose : uint32_t { kTarget = 0, kIndependentDraft = 1, kAccept = 2, kResidual = 3 };

constexpr int kCoarsePerBlock = 8;  // ids that share a level-0 Philox block

struct NoiseKey {
  uint64_t seed;
  uint64_t position;
  Purpose purpose;
};

TS_HD PhiloxBlock noise_block(const NoiseKey& key, uint32_t index, uint32_t level) {
  const PhiloxBlock counter{{index, static_cast<uint32_t>(key.position), static_cast<uint32_t>(key.position >> 32),
                             static_cast<uint32_t>(key.purpose) * 2u + level}};
  return philox4x32_10(counter, {{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)}});
}

// Level 0: the block with the coarse halves of ids 8 * group .. 8 * group + 7.
TS_HD PhiloxBlock coarse_block(const NoiseKey& key, uint32_t group) { return noise_block(key, group, 0); }

// The top 16 bits of id's uniform, out of its group's block.
TS_HD uint32_t coarse_bits(const PhiloxBlock& block, uint32_t id) {
  const uint32_t half = id % kCoarsePerBlock;
  return (block.w[half / 2] >> (16 * (half % 2))) & 0xFFFFu;
}

// Level 1: the other 48 bits of id's uniform.
TS_HD uint64_t uniform_bits(const NoiseKey& key, uint32_t id, uint32_t coarse) {
  const PhiloxBlock fine = noise_block(key, id, 1);
  return static_cast<uint64_t>(coarse) << 48 | static_cast<uint64_t>(fine.w[0] & 0xFFFFu) << 32 | fine.w[1];
}

// An unsigned below 2^63 to fp64, rounded to nearest.
TS_HD double to_double(uint64_t u) { return static_cast<double>(static_cast<int64_t>(u)); }

// g = -ln(-ln(1 - v)) with v = (u + 1/2) / 2^64.
TS_HD double gumbel(uint64_t u) {
  // Why: 1 - v of a v above one half is the exact integer complement; below it the logarithm of 1 - v keeps v's bits.
  const double e =
      (u >> 63) == 0 ? -ln_one_minus((to_double(u) + 0.5) * 0x1p-64) : -ln((to_double(~u) + 0.5) * 0x1p-64);
  return -ln(e);
}

}  // namespace ts
