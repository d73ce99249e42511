// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, the counter-based generator behind all noise.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
#pragma once

#include "hd.h"

namespace ts {

struct PhiloxKey {
  uint32_t k[2];
};

struct PhiloxBlock {
  uint32_t w[4];
};

constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9u;
constexpr uint32_t kPhiloxKeyStep1 = 0xBB67AE85u;

TS_HD PhiloxBlock philox_round(const PhiloxBlock& c, uint32_t k0, uint32_t k1) {
  const uint64_t p0 = uint64_t{0xD2511F53u} * c.w[0];
  const uint64_t p1 = uint64_t{0xCD9E8D57u} * c.w[2];
  return {{static_cast<uint32_t>(p1 >> 32) ^ c.w[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c.w[3] ^ k1, static_cast<uint32_t>(p0)}};
}

TS_HD PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key.k[0], key.k[1]);
    key.k[0] += kPhiloxKeyStep0;
    key.k[1] += kPhiloxKeyStep1;
  }
  return counter;
}

}  // namespace ts
