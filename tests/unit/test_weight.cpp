// SPDX-License-Identifier: Apache-2.0
// Integer weights and masses: error bounds against long double, monotony, edges, and 128-bit arithmetic.
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <random>

#include "contract/weight.h"
#include "support/catch.h"

namespace ts::test {
namespace {

bool extended_or_skip() {
  if (LDBL_MANT_DIG >= 64) return true;
  WARN("skipped: long double has no more than " << LDBL_MANT_DIG << " bits here");
  return false;
}

__extension__ typedef unsigned __int128 Uint128;

constexpr float kLog2E = 0x1.715476p+0f;

float random_float(std::mt19937_64& rng, float low, float high) {
  return low + (high - low) * (static_cast<float>(rng() >> 40) * 0x1p-24f);
}

}  // namespace

TEST_CASE("exp2_fraction: all multiples of 2^-24", "[weight]") {
  double max_error = 0;
  float at = 0;
  int64_t n_outside = 0, n_decreasing = 0;
  float previous = 1.0f;
  for (int32_t i = 0; i <= 1 << 24; ++i) {
    const float f = static_cast<float>(i) * 0x1p-24f;
    const float p = exp2_fraction(f);
    n_outside += !(p >= 1.0f && p < 2.0f);
    n_decreasing += p < previous;
    previous = p;
    // Why exp2 and not exp2l: its error is 1e-9 of the bound, and the loop is short.
    const double exact = std::exp2(static_cast<double>(f));
    const double error = std::abs(static_cast<double>(p) - exact) / exact;
    if (error > max_error) {
      max_error = error;
      at = f;
    }
  }
  std::printf("exp2_fraction: max relative error %.4e (f = %a), %lld steps down\n", max_error, static_cast<double>(at),
              static_cast<long long>(n_decreasing));
  CHECK(n_outside == 0);
  CHECK(n_decreasing == 0);
  CHECK(exp2_fraction(0.0f) == 1.0f);
  CHECK(max_error < 1.5e-7);
}

TEST_CASE("exp2_fraction: between multiples of 2^-24", "[weight]") {
  if (!extended_or_skip()) return;
  std::mt19937_64 rng(1);
  double max_error = 0;
  for (int i = 0; i < 1000000; ++i) {
    const uint32_t exponent = 126 - static_cast<uint32_t>(rng() % 30);
    const float f = bit_cast<float>(exponent << 23 | static_cast<uint32_t>(rng() & 0x7FFFFF));
    const long double exact = std::exp2(static_cast<long double>(f));
    max_error = std::max(max_error, static_cast<double>(std::abs(exp2_fraction(f) - exact) / exact));
  }
  std::printf("exp2_fraction: max relative error off the grid %.4e\n", max_error);
  CHECK(max_error < 1.5e-7);
}

TEST_CASE("weight: edges", "[weight]") {
  const float minus_inf = -HUGE_VALF;
  for (const float factor : {1.0f, kLog2E, 1e-6f, 1.44e6f, FLT_MIN}) {
    CHECK(weight(0.0f, factor) == kWeightOne);
    CHECK(weight(-0.0f, factor) == kWeightOne);
    CHECK(weight(minus_inf, factor) == 0);
  }
  CHECK(weight(minus_inf, 0.0f) == 0);
  CHECK(weight(-FLT_MAX, 1.0f) == 0);
  CHECK(weight(-FLT_MAX, FLT_MAX) == 0);
  CHECK(weight(std::nextafter(-40.0f, -50.0f), 1.0f) == 0);
  CHECK(weight(-40.0f, 1.0f) == 0);
  CHECK(weight(std::nextafter(-39.0f, -50.0f), 1.0f) == 0);
  for (int n = 0; n <= 39; ++n) CHECK(weight(static_cast<float>(-n), 1.0f) == kWeightOne >> n);
  // Just below 0 the fraction rounds to 1, where the polynomial is 2 - 2^-22.
  CHECK(weight(-FLT_TRUE_MIN, 1.0f) == kWeightOne - (uint64_t{1} << 16));
  CHECK(weight(-0x1p-30f, 1.0f) == kWeightOne - (uint64_t{1} << 16));
}

TEST_CASE("weight: grows with d", "[weight]") {
  // Every float of z in (-2, -0], then a walk from -41 up to -1 in small steps.
  int64_t n_decreasing = 0;
  uint64_t previous = 0;
  const uint32_t from = bit_cast<uint32_t>(-2.0f), to = bit_cast<uint32_t>(-0x1p-27f);
  for (uint32_t bits = from; bits >= to; --bits) {
    const uint64_t w = weight(bit_cast<float>(bits), 1.0f);
    n_decreasing += w < previous;
    previous = w;
  }
  CHECK(previous <= kWeightOne);
  previous = 0;
  for (float z = -41.0f; z < -1.0f; z += 0x1p-18f) {
    const uint64_t w = weight(z, 1.0f);
    n_decreasing += w < previous;
    previous = w;
  }
  std::mt19937_64 rng(2);
  for (int i = 0; i < 2000000; ++i) {
    const float factor = kLog2E * std::exp2(random_float(rng, -20, 20));
    const float d = random_float(rng, -41, 0) / factor;
    n_decreasing += weight(std::nextafter(d, -HUGE_VALF), factor) > weight(d, factor);
  }
  CHECK(n_decreasing == 0);
}

// weight.h: within 1.5e-7 + 1.4e-7 |z| relative of exp((l - l_max) / T), and at most one unit below it.
TEST_CASE("weight: error bound", "[weight]") {
  if (!extended_or_skip()) return;
  std::mt19937_64 rng(3);
  double max_share = 0, max_below_units = 0;
  int64_t n_outside = 0;
  for (int i = 0; i < 3000000; ++i) {
    const float temperature = i % 3 == 0 ? 1.0f : std::exp2(random_float(rng, -19.9f, 19.9f));
    const float factor = static_cast<float>(0x1.71547652b82fep+0 / static_cast<double>(temperature));
    const float scale = std::exp2(random_float(rng, -10, 12));
    const float l_max = scale * random_float(rng, -1.0f, 1.0f);
    const float l = l_max + temperature * random_float(rng, -28.2f, 0.0f);
    if (l > l_max) continue;
    const float d = l - l_max;
    const long double exact_d = static_cast<long double>(l) - static_cast<long double>(l_max);
    const long double z = exact_d * 1.44269504088896340735992468100189214L / static_cast<long double>(temperature);
    if (z < -41) continue;
    const long double exact = std::exp2(z) * static_cast<long double>(kWeightOne);
    const long double error = static_cast<long double>(weight(d, factor)) - exact;
    const long double bound = (1.5e-7L + 1.4e-7L * std::abs(z)) * exact;
    n_outside += error > bound || error < -bound - 1;
    // How much of the relative bound is used where units do not matter.
    if (z > -12) max_share = std::max(max_share, static_cast<double>(std::abs(error) / bound));
    max_below_units = std::max(max_below_units, static_cast<double>(-error - bound));
  }
  std::printf("weight: uses %.3f of its relative bound, at most %.3f units below it\n", max_share, max_below_units);
  CHECK(n_outside == 0);
}

TEST_CASE("top_p_to_fixed: against 128-bit integers", "[weight]") {
  std::mt19937_64 rng(4);
  const auto exact = [](float p) {
    // round(mantissa * 2^(exponent - 150 + 32)), halves up.
    const uint32_t bits = bit_cast<uint32_t>(p);
    const int field = static_cast<int>(bits >> 23);
    const Uint128 mantissa = field == 0 ? bits & 0x7FFFFFu : (bits & 0x7FFFFFu) | 0x800000u;
    const int shift = 118 - std::max(field, 1);  // right
    if (shift <= 0) return static_cast<uint64_t>(mantissa << -shift);
    if (shift > 64) return uint64_t{0};
    return static_cast<uint64_t>((mantissa + (static_cast<Uint128>(1) << (shift - 1))) >> shift);
  };
  int n_wrong = 0;
  for (const float p :
       {0.0f, FLT_TRUE_MIN, FLT_MIN, 0x1p-34f, 0x1p-33f, 0x1.8p-33f, 0x1p-32f, 0.5f, 0.9f, 0x1.fffffep-1f}) {
    n_wrong += top_p_to_fixed(p) != exact(p);
  }
  for (int i = 0; i < 1000000; ++i) {
    const float p = bit_cast<float>(static_cast<uint32_t>(rng() % bit_cast<uint32_t>(1.0f)));
    n_wrong += top_p_to_fixed(p) != exact(p);
  }
  uint64_t previous = 0;
  for (uint32_t bits = bit_cast<uint32_t>(0x1p-33f); bits < bit_cast<uint32_t>(1.0f); bits += 97) {
    n_wrong += top_p_to_fixed(bit_cast<float>(bits)) < previous;
    previous = top_p_to_fixed(bit_cast<float>(bits));
  }
  CHECK(n_wrong == 0);
  CHECK(top_p_to_fixed(0x1.fffffep-1f) == (uint64_t{1} << 32) - 256);
}

TEST_CASE("mass_limit: against 128-bit integers", "[weight]") {
  std::mt19937_64 rng(5);
  int n_wrong = 0;
  const auto check = [&](uint64_t p, uint64_t total) {
    const Uint128 exact = (static_cast<Uint128>(p) * total) >> 32;
    n_wrong += static_cast<Uint128>(mass_limit(p, total)) != exact;
  };
  constexpr uint64_t kOne = uint64_t{1} << 32, kMaxTotal = (uint64_t{1} << 61) - 1;
  for (const uint64_t p : {uint64_t{0}, uint64_t{1}, kOne / 2, kOne - 256, kOne - 1, kOne}) {
    for (const uint64_t total : {uint64_t{0}, uint64_t{1}, kWeightOne, kWeightOne + 1, kMaxTotal - 1, kMaxTotal}) {
      check(p, total);
    }
  }
  for (int i = 0; i < 1000000; ++i) {
    const uint64_t p = rng() % (kOne + 1);
    check(p, (rng() >> 3) >> (rng() % 61));
  }
  CHECK(n_wrong == 0);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t total = rng() >> 3;
    CHECK(mass_limit(kOne, total) == total);
  }
}

}  // namespace ts::test
