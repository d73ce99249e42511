// SPDX-License-Identifier: Apache-2.0
// fp16 and bf16 to fp32 for all 65536 patterns, and the rule for non-finite logits.
#include <cfloat>
#include <cmath>

#include "contract/convert.h"
#include "support/catch.h"

namespace ts::test {
namespace {

// The value of a 16-bit pattern with `fraction_bits` stored fraction bits, by ldexp.
double value_of(uint32_t pattern, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(pattern >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = static_cast<double>(pattern & ((1u << fraction_bits) - 1));
  double magnitude = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = fraction != 0 ? std::nan("") : HUGE_VAL;
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, 1 - bias - fraction_bits);
  } else {
    magnitude = std::ldexp(std::ldexp(1.0, fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  return (pattern & 0x8000u) != 0 ? -magnitude : magnitude;
}

bool same(float converted, uint32_t pattern, double exact) {
  const bool negative = (pattern & 0x8000u) != 0;
  if (std::isnan(exact)) return std::isnan(converted);
  return static_cast<double>(converted) == exact && std::signbit(converted) == negative;
}

struct Cleaned {
  uint32_t bits;
  uint32_t flags;
};

Cleaned clean(uint32_t bits, uint32_t flags = 0) {
  const float logit = clean_logit(bit_cast<float>(bits), flags);
  return {bit_cast<uint32_t>(logit), flags};
}

}  // namespace

TEST_CASE("convert: all fp16 and bf16 patterns", "[convert]") {
  int n_wrong_fp16 = 0, n_wrong_bf16 = 0;
  for (uint32_t pattern = 0; pattern < 65536; ++pattern) {
    n_wrong_fp16 += !same(fp16_to_float(static_cast<uint16_t>(pattern)), pattern, value_of(pattern, 10));
    n_wrong_bf16 += !same(bf16_to_float(static_cast<uint16_t>(pattern)), pattern, value_of(pattern, 7));
  }
  CHECK(n_wrong_fp16 == 0);
  CHECK(n_wrong_bf16 == 0);
}

TEST_CASE("convert: named values", "[convert]") {
  CHECK(fp16_to_float(0x3C00) == 1.0f);
  CHECK(fp16_to_float(0x7BFF) == 65504.0f);
  CHECK(fp16_to_float(0x0001) == 0x1p-24f);
  CHECK(fp16_to_float(0x03FF) == 0x1.ff8p-15f);
  CHECK(fp16_to_float(0xFC00) == -HUGE_VALF);
  CHECK(bf16_to_float(0x3F80) == 1.0f);
  CHECK(bf16_to_float(0x0001) == 0x1p-133f);
  CHECK(kFloatMax == FLT_MAX);
  CHECK(kMinusInf == -HUGE_VALF);
}

TEST_CASE("clean_logit: finite and -inf stay, bit for bit, and raise nothing", "[convert]") {
  int n_wrong = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 997) {
    const uint32_t pattern = static_cast<uint32_t>(bits);
    if ((pattern & 0x7FFFFFFFu) >= 0x7F800000u) continue;
    const Cleaned cleaned = clean(pattern);
    n_wrong += cleaned.bits != pattern || cleaned.flags != 0;
  }
  CHECK(n_wrong == 0);
  for (const uint32_t pattern : {0u, 0x80000000u, 1u, 0x80000001u, 0x7F7FFFFFu, 0xFF7FFFFFu, 0xFF800000u}) {
    CHECK(clean(pattern).bits == pattern);
    CHECK(clean(pattern).flags == 0);
  }
}

TEST_CASE("clean_logit: +inf is FLT_MAX and NaN is -inf, each with its flag", "[convert]") {
  CHECK(clean(0x7F800000u).bits == 0x7F7FFFFFu);
  CHECK(clean(0x7F800000u).flags == kRowInf);
  int n_wrong = 0;
  for (uint32_t fraction = 1; fraction < 1u << 23; fraction += 31) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const Cleaned cleaned = clean(sign | 0x7F800000u | fraction);
      n_wrong += cleaned.bits != 0xFF800000u || cleaned.flags != kRowNan;
    }
  }
  CHECK(n_wrong == 0);
  // Flags gather; they are never cleared.
  CHECK(clean(0x7FC00000u, kRowInf).flags == (kRowNan | kRowInf));
  CHECK(clean(0x3F800000u, kRowEmpty).flags == kRowEmpty);
}

}  // namespace ts::test
