// SPDX-License-Identifier: Apache-2.0
// Fails when the compiler or the process breaks what the contract counts on: no contraction, no excess precision, no
// flushing of subnormals, round to nearest, no reassociation, NaN and infinity as IEEE-754 has them.
#include <cfloat>
#include <cmath>
#include <limits>

#include "contract/hd.h"
#include "support/catch.h"

namespace ts::test {
namespace {

// Why: read from volatile memory, so that the arithmetic happens at run time; held in a plain variable, so that the
// optimiser may do to it whatever its flags allow.
template <class T>
T opaque(T value) {
  volatile T stored = value;
  return stored;
}

}  // namespace

TEST_CASE("host: a * b + c has two roundings, fma_rn one", "[host]") {
  // (1 + e)^2 = 1 + 2e + e^2, where e^2 is lost by the first rounding.
  const double d = opaque(1 + 0x1p-27), dc = opaque(-(1 + 0x1p-26));
  CHECK(d * d + dc == 0);
  CHECK(dc + d * d == 0);
  CHECK(d * d - -dc == 0);
  CHECK(fma_rn(d, d, dc) == 0x1p-54);
  const float f = opaque(1 + 0x1p-13f), fc = opaque(-(1 + 0x1p-12f));
  CHECK(f * f + fc == 0);
  CHECK(fc + f * f == 0);
  CHECK(f * f - -fc == 0);
  CHECK(fma_rn(f, f, fc) == 0x1p-26f);
}

TEST_CASE("host: contraction across statements and in loops", "[host]") {
  float a[64], b[64], c[64], result[64];
  for (int i = 0; i < 64; ++i) {
    a[i] = b[i] = opaque(1 + 0x1p-13f);
    c[i] = opaque(-(1 + 0x1p-12f));
  }
  for (int i = 0; i < 64; ++i) {
    const float product = a[i] * b[i];
    result[i] = product + c[i];
  }
  for (int i = 0; i < 64; ++i) CHECK(result[i] == 0);
}

TEST_CASE("host: no excess precision", "[host]") {
  CHECK(FLT_EVAL_METHOD == 0);
  const float one = opaque(1.0f), half_ulp = opaque(0x1p-24f);
  CHECK((one + half_ulp) - one == 0);
  CHECK((one + half_ulp) + half_ulp == 1);
  const float big = opaque(FLT_MAX), ten = opaque(10.0f);
  CHECK(std::isinf(big * ten));
  CHECK(big * ten / ten > big);
  const double done = opaque(1.0), dhalf_ulp = opaque(0x1p-53);
  CHECK((done + dhalf_ulp) - done == 0);
  const double third = opaque(1.0) / opaque(3.0);
  CHECK(bit_cast<uint64_t>(third) == 0x3FD5555555555555);
}

TEST_CASE("host: subnormals are kept, as operands and as results", "[host]") {
  const float min = opaque(FLT_MIN), half = opaque(0.5f), tiny = opaque(FLT_TRUE_MIN);
  CHECK(bit_cast<uint32_t>(min * half) == 0x00400000u);
  CHECK(bit_cast<uint32_t>(tiny + tiny) == 2u);
  CHECK(tiny * opaque(0x1p+126f) == 0x1p-23f);
  CHECK(bit_cast<uint32_t>(tiny + opaque(0.0f)) == 1u);
  CHECK(tiny > opaque(0.0f));
  CHECK(fma_rn(min, half, opaque(0.0f)) == 0x1p-127f);
  const double dmin = opaque(DBL_MIN), dhalf = opaque(0.5);
  CHECK(bit_cast<uint64_t>(dmin * dhalf) == 0x0008000000000000u);
  CHECK(static_cast<double>(tiny) == 0x1p-149);
  CHECK(bit_cast<uint32_t>(static_cast<float>(opaque(0x1p-149))) == 1u);
}

TEST_CASE("host: round to nearest, ties to even", "[host]") {
  for (const double sign : {1.0, -1.0}) {
    const double one = opaque(sign);
    CHECK(one + sign * 0x1p-53 == one);
    CHECK(one + sign * 0x1.8p-53 == sign * (1 + 0x1p-52));
    CHECK(one * opaque(1 + 0x1p-52) + sign * 0x1p-53 == sign * (1 + 0x1p-51));
    CHECK(static_cast<float>(one * opaque(1 + 0x1p-24)) == static_cast<float>(sign));
    CHECK(static_cast<float>(one * opaque(1 + 0x1.8p-24)) == static_cast<float>(sign) * (1 + 0x1p-23f));
  }
  CHECK(static_cast<double>(opaque((int64_t{1} << 53) + 1)) == 0x1p53);
  CHECK(static_cast<double>(opaque((int64_t{1} << 53) + 3)) == 0x1p53 + 4);
}

TEST_CASE("host: no reassociation, no reciprocals, no ignored signs", "[host]") {
  const double big = opaque(0x1p60), small = opaque(1.0);
  CHECK((big + small) - big == 0);
  CHECK((small + big) + -big == 0);
  double sum = 0;
  double terms[8] = {0x1p60, 1, -0x1p60, 1, 1, 1, 1, 1};
  for (double& term : terms) term = opaque(term);
  for (const double term : terms) sum += term;
  CHECK(sum == 5);
  // Several quotients by one divisor: with a reciprocal, the first would be just below 1.
  const double divisor = opaque(49.0);
  const double a = opaque(49.0), b = opaque(98.0), c = opaque(5.0), d = opaque(7.0);
  const double qa = a / divisor, qb = b / divisor, qc = c / divisor, qd = d / divisor;
  CHECK(qa == 1);
  CHECK(qb == 2);
  CHECK(bit_cast<uint64_t>(qc) == bit_cast<uint64_t>(5.0 / 49.0));
  CHECK(bit_cast<uint64_t>(qd) == bit_cast<uint64_t>(7.0 / 49.0));
  const float minus_zero = opaque(-0.0f);
  CHECK(std::signbit(minus_zero));
  CHECK(bit_cast<uint32_t>(minus_zero + 0.0f) == 0u);
  const double zero = opaque(0.0);
  CHECK(bit_cast<uint64_t>(zero * opaque(-1.0)) == 0x8000000000000000u);
}

TEST_CASE("host: NaN and infinity are looked at", "[host]") {
  const float nan = opaque(std::numeric_limits<float>::quiet_NaN()), inf = opaque(HUGE_VALF);
  CHECK(!(nan >= opaque(-40.0f)));
  CHECK(!(nan < opaque(0.0f)));
  CHECK(nan != nan);
  CHECK(!(-inf >= opaque(-40.0f)));
  CHECK(std::isnan(inf * opaque(0.0f)));
  CHECK(std::isnan(inf - inf));
}

}  // namespace ts::test
