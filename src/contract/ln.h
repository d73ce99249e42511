// SPDX-License-Identifier: Apache-2.0
// The contract's natural logarithms in fp64, built of + - * / fma alone, so that every backend returns the same bits.
//
// Method: ln(1 + f) = 2 atanh(s), s = f / (2 + f); atanh by a degree-7 minimax polynomial in s^2 (fitted for
// |s| <= 3 - 2 sqrt(2), error below 2e-18 relative), summed pairwise to keep the chain short.
// Error, by tests/unit/test_ln.cpp against long double: ln below 2.4 units in the last place (2.1 measured),
// ln_one_minus below 4 (3.1 measured).
#pragma once

#include "hd.h"

namespace ts {

// ln(1 + f) for sqrt(1/2) - 1 <= f <= sqrt(2) - 1.
TS_HD double ln_one_plus_small(double f) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double z2 = z * z;
  const double a = fma_rn(z, 0x1.999999997fdb7p-2, 0x1.5555555555592p-1);
  const double b = fma_rn(z, 0x1.c71c52095d1a0p-3, 0x1.24924941f124fp-2);
  const double c = fma_rn(z, 0x1.39a1bab74c93ep-3, 0x1.74663ee86df76p-3);
  const double d = fma_rn(z2, 0x1.2f056385b8480p-3, c);
  const double r = z * fma_rn(z2 * z2, d, fma_rn(z2, b, a));
  return fma_rn(s, r, s + s);
}

// ln(x) for positive normal x. Other x: unspecified, never a trap.
TS_HD double ln(double x) {
  // Split x = m * 2^e with sqrt(1/2) <= m < sqrt(2).
  const uint64_t bits = bit_cast<uint64_t>(x);
  const int64_t e = static_cast<int64_t>(bits - 0x3FE6A09E667F3BCDu) >> 52;
  const double m = bit_cast<double>(bits - (static_cast<uint64_t>(e) << 52));
  const double ln_m = ln_one_plus_small(m - 1.0);
  return fma_rn(static_cast<double>(e), 0x1.62e42fefa39efp-1, ln_m);
}

// ln(1 - v) for 0 < v <= 1/2, accurate for v down to the smallest normal.
TS_HD double ln_one_minus(double v) { return v < 0.25 ? ln_one_plus_small(-v) : ln(1.0 - v); }

}  // namespace ts
