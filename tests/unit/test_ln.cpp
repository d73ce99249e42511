// SPDX-License-Identifier: Apache-2.0
// The contract's logarithms against long double: the largest errors, printed, and bounds on them.
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <random>

#include "contract/ln.h"
#include "support/catch.h"

namespace ts::test {
namespace {

// A search of 5e8 arguments found 2.0259 ulp for ln (x = 0x1.68e88fd971265p-1: ln 2 and ln m cancel there), and adding
// up the roundings gives 2.4. ln_one_minus also rounds 1 - v for v >= 1/4.
constexpr double kLnBound = 2.4;
constexpr double kLnOneMinusSmallBound = 2;
constexpr double kLnOneMinusBound = 4;

// Whether long double can judge an fp64 result (x86: 64-bit mantissa).
bool extended_or_skip() {
  if (LDBL_MANT_DIG >= 64) return true;
  WARN("skipped: long double has no more than " << LDBL_MANT_DIG << " bits here");
  return false;
}

// The largest error seen, in units in the last place of the exact value, and where.
struct UlpError {
  double max = 0;
  double at = 0;

  void add(double at_x, double result, long double exact) {
    if (exact == 0) {
      if (result != 0) *this = {HUGE_VAL, at_x};
      return;
    }
    const int exponent = std::ilogb(exact);
    const double error = std::abs(
        static_cast<double>(std::ldexp(static_cast<long double>(result) - exact, DBL_MANT_DIG - 1 - exponent)));
    if (!(error <= max)) *this = {error, at_x};
  }
};

double with_exponent(uint64_t fraction, int exponent) {
  return bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52 | (fraction & 0xFFFFFFFFFFFFFu));
}

// A random number of a random binade in [low, low + count).
double random_binade(std::mt19937_64& rng, int low, uint64_t count) {
  const int exponent = low + static_cast<int>(rng() % count);
  return with_exponent(rng(), exponent);
}

}  // namespace

TEST_CASE("ln: error in units in the last place", "[ln]") {
  if (!extended_or_skip()) return;
  std::mt19937_64 rng(1);
  UlpError grid, random, near_one, full_range;
  // All binades that the contract reaches, densely.
  for (int e = -66; e <= 23; ++e) {
    for (int i = 0; i < 4000; ++i) {
      const double x = with_exponent(static_cast<uint64_t>(i) * (uint64_t{1} << 52) / 4000, e);
      grid.add(x, ln(x), std::log(static_cast<long double>(x)));
    }
  }
  for (int i = 0; i < 1000000; ++i) {
    const double x = random_binade(rng, -66, 90);
    random.add(x, ln(x), std::log(static_cast<long double>(x)));
  }
  // Both sides of 1, at every distance, and both sides of the binade cuts at sqrt(1/2) and sqrt(2).
  for (int i = 0; i < 1000000; ++i) {
    const uint64_t one = bit_cast<uint64_t>(1.0), distance = rng() >> (12 + i / 2 % 51);
    const double x = bit_cast<double>(i % 2 == 0 ? one + distance : one - distance);
    near_one.add(x, ln(x), std::log(static_cast<long double>(x)));
  }
  for (const double cut : {std::sqrt(0.5), std::sqrt(2.0)}) {
    for (int64_t i = -50000; i <= 50000; ++i) {
      const double x = bit_cast<double>(bit_cast<int64_t>(cut) + i);
      near_one.add(x, ln(x), std::log(static_cast<long double>(x)));
    }
  }
  for (int i = 0; i < 300000; ++i) {
    const double x = random_binade(rng, -1022, 2046);
    full_range.add(x, ln(x), std::log(static_cast<long double>(x)));
  }
  // Where ln 2 cancels most of ln m: the worst place.
  UlpError cancelling;
  for (const double x : {0x1.68e88fd971265p-1, 0x1.6a094aab3891dp-1, 0x1.6a08e0cb78c49p-1}) {
    cancelling.add(x, ln(x), std::log(static_cast<long double>(x)));
  }
  for (int i = 0; i < 1000000; ++i) {
    const double x = 0.6 + (std::sqrt(0.5) - 0.6) * (static_cast<double>(rng() >> 11) * 0x1p-53);
    cancelling.add(x, ln(x), std::log(static_cast<long double>(x)));
  }
  std::printf(
      "ln: max error in ulp: grid %.4f, random %.4f, near 1 and cuts %.4f, below sqrt(1/2) %.4f (x = %a), all "
      "normals %.4f\n",
      grid.max, random.max, near_one.max, cancelling.max, cancelling.at, full_range.max);
  CHECK(grid.max < kLnBound);
  CHECK(random.max < kLnBound);
  CHECK(near_one.max < kLnBound);
  CHECK(cancelling.max < kLnBound);
  CHECK(full_range.max < kLnBound);
}

TEST_CASE("ln: exact values and order", "[ln]") {
  CHECK(bit_cast<uint64_t>(ln(1.0)) == 0);
  CHECK(ln(2.0) == 0x1.62e42fefa39efp-1);
  CHECK(ln(0.5) == -0x1.62e42fefa39efp-1);
  CHECK(std::isfinite(ln(DBL_MIN)));
  CHECK(std::isfinite(ln(DBL_MAX)));
  // Never backwards between neighbours, also across the cuts (measured, not proven for all arguments).
  std::mt19937_64 rng(2);
  double backwards = 0;
  const auto check_neighbours = [&](double x) {
    const double a = ln(x), b = ln(std::nextafter(x, HUGE_VAL));
    if (b < a) backwards = std::max(backwards, (a - b) / (std::nextafter(std::abs(a), HUGE_VAL) - std::abs(a)));
  };
  for (int i = 0; i < 1000000; ++i) check_neighbours(random_binade(rng, -66, 90));
  for (int64_t i = -20000; i < 20000; ++i) {
    check_neighbours(bit_cast<double>(bit_cast<int64_t>(std::sqrt(0.5)) + i));
    check_neighbours(bit_cast<double>(bit_cast<int64_t>(std::sqrt(2.0)) + i));
    check_neighbours(bit_cast<double>(bit_cast<int64_t>(1.0) + i));
  }
  std::printf("ln: largest step backwards between neighbours: %.1f ulp\n", backwards);
  CHECK(backwards == 0);
}

TEST_CASE("ln_one_minus: error in units in the last place", "[ln]") {
  if (!extended_or_skip()) return;
  std::mt19937_64 rng(3);
  UlpError small, large, cut;
  for (int i = 0; i < 1000000; ++i) {
    const double v = random_binade(rng, -68, 66);
    small.add(v, ln_one_minus(v), std::log1p(-static_cast<long double>(v)));
  }
  for (int i = 0; i < 1000000; ++i) {
    const double v = with_exponent(rng(), -2);
    large.add(v, ln_one_minus(v), std::log1p(-static_cast<long double>(v)));
  }
  large.add(0.5, ln_one_minus(0.5), std::log1p(-0.5L));
  for (int64_t i = -50000; i <= 50000; ++i) {
    const double v = bit_cast<double>(bit_cast<int64_t>(0.25) + i);
    cut.add(v, ln_one_minus(v), std::log1p(-static_cast<long double>(v)));
  }
  for (int e = -1022; e < -66; ++e) {
    const double v = with_exponent(rng(), e);
    small.add(v, ln_one_minus(v), std::log1p(-static_cast<long double>(v)));
  }
  std::printf("ln_one_minus: max error in ulp: v < 1/4 %.4f (v = %a), v >= 1/4 %.4f (v = %a), around 1/4 %.4f\n",
              small.max, small.at, large.max, large.at, cut.max);
  CHECK(small.max < kLnOneMinusSmallBound);
  CHECK(large.max < kLnOneMinusBound);
  CHECK(cut.max < kLnOneMinusBound);
}

}  // namespace ts::test
