// SPDX-License-Identifier: Apache-2.0
// The one order of candidates: logit descending, then id ascending. Every "top" is a prefix of it.
#pragma once

#include "hd.h"

namespace ts {

// A 32-bit key that orders as the logit does; -0 and +0 are equal. Logits are finite or -inf.
TS_HD uint32_t logit_key(float logit) {
  const uint32_t bits = bit_cast<uint32_t>(logit + 0.0f);  // Why: -0 + 0 is +0.
  return (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
}

// A place in the order: larger keys come first. Distinct for distinct ids.
TS_HD uint64_t order_key(float logit, uint32_t id) {
  return static_cast<uint64_t>(logit_key(logit)) << 32 | static_cast<uint32_t>(~id);
}

}  // namespace ts
