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

TS_HD PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter.w[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter.w[2];
    counter = {{static_cast<uint32_t>(p1 >> 32) ^ counter.w[1] ^ key.k[0], static_cast<uint32_t>(p1),
                static_cast<uint32_t>(p0 >> 32) ^ counter.w[3] ^ key.k[1], static_cast<uint32_t>(p0)}};
    key.k[0] += 0x9E3779B9u;
    key.k[1] += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace ts
