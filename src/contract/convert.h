// SPDX-License-Identifier: Apache-2.0
// Exact conversion of a logit to fp32, and what non-finite logits count as.
#pragma once

#include "hd.h"

namespace ts {

constexpr float kMinusInf = -__builtin_huge_valf();
constexpr float kFloatMax = 3.402823466e+38f;

// Row flags, the values of TS_ROW_* in tssample.h.
constexpr uint32_t kRowNan = 1;
constexpr uint32_t kRowInf = 2;
constexpr uint32_t kRowEmpty = 4;

TS_HD float bf16_to_float(uint16_t h) { return bit_cast<float>(static_cast<uint32_t>(h) << 16); }

TS_HD float fp16_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7FFFu;
  // Why: shifted into place, the fp16 exponent is 112 too small; the product is exact, for subnormals too.
  const uint32_t finite = bit_cast<uint32_t>(bit_cast<float>(magnitude << 13) * 0x1p112f);
  const uint32_t special = 0x7F800000u | magnitude << 13;
  return bit_cast<float>(sign | (magnitude < 0x7C00u ? finite : special));
}

// The logit as it counts: NaN as -inf, +inf as FLT_MAX, each raising its flag.
TS_HD float clean_logit(float logit, uint32_t& flags) {
  const uint32_t bits = bit_cast<uint32_t>(logit);
  const uint32_t is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const uint32_t is_inf = bits == 0x7F800000u;
  flags |= is_nan * kRowNan + is_inf * kRowInf;
  // Why: without a branch loops over logits vectorise; the pattern below +inf is FLT_MAX, the topmost one of -inf
  // becomes every NaN's.
  return bit_cast<float>(is_nan != 0 ? 0xFF800000u : bits - is_inf);
}

}  // namespace ts
