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
  const uint32_t exponent = (h >> 10) & 0x1Fu;
  const uint32_t mantissa = h & 0x3FFu;
  if (exponent == 0x1Fu) return bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  // Why: a subnormal fp16 is mantissa * 2^-24, exact in fp32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return bit_cast<float>(sign | bit_cast<uint32_t>(magnitude));
}

// The logit as it counts: NaN as -inf, +inf as FLT_MAX, each raising its flag.
TS_HD float clean_logit(float logit, uint32_t& flags) {
  const uint32_t magnitude = bit_cast<uint32_t>(logit) & 0x7FFFFFFFu;
  if (magnitude < 0x7F800000u) return logit;
  if (magnitude > 0x7F800000u) {
    flags |= kRowNan;
    return kMinusInf;
  }
  if (logit < 0) return logit;
  flags |= kRowInf;
  return kFloatMax;
}

}  // namespace ts
