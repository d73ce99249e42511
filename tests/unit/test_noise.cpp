// SPDX-License-Identifier: Apache-2.0
// Gumbel noise: error against long double, order and extremes, its distribution, and which draws share nothing.
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>
#include <vector>

#include "contract/noise.h"
#include "support/catch.h"

namespace ts::test {
namespace {

// -ln(-ln(1 - v)), v = (u + 1/2) / 2^64, where long double holds u exactly.
long double gumbel_extended(uint64_t u) {
  const bool below_half = u < uint64_t{1} << 63;
  const long double part = (static_cast<long double>(below_half ? u : ~u) + 0.5L) * 0x1p-64L;
  return -std::log(below_half ? -std::log1p(-part) : -std::log(part));
}

// A uniform of any size, small ones and ones near 2^64 as likely as the rest.
uint64_t any_uniform(std::mt19937_64& rng) {
  const uint64_t u = rng();
  switch (rng() % 4) {
    case 0: return u >> (rng() % 64);
    case 1: return ~(u >> (rng() % 64));
    default: return u;
  }
}

std::vector<uint64_t> extreme_uniforms() {
  std::vector<uint64_t> all;
  for (int e = 0; e < 64; ++e) {
    for (int64_t i = -3; i <= 3; ++i) {
      const uint64_t u = (uint64_t{1} << e) + static_cast<uint64_t>(i);
      all.push_back(u);
      all.push_back(~u);
    }
  }
  for (uint64_t i = 0; i < 4; ++i) {
    all.push_back(i);
    all.push_back(~i);
  }
  return all;
}

double chi_square(const std::vector<int64_t>& counts, double expected) {
  double sum = 0;
  for (const int64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off;
  }
  return sum / expected;
}

// A 5-sigma band around the mean of a chi-square with many degrees of freedom.
void check_chi_square(const std::vector<int64_t>& counts, double expected, const char* what) {
  const double degrees = static_cast<double>(counts.size()) - 1;
  const double statistic = chi_square(counts, expected);
  std::printf("chi-square of %s: %.1f for %.0f degrees of freedom\n", what, statistic, degrees);
  CHECK(std::abs(statistic - degrees) < 5 * std::sqrt(2 * degrees));
}

uint64_t draw(const NoiseKey& key, uint32_t id) {
  return uniform_bits(key, id, coarse_bits(coarse_block(key, id / kCoarsePerBlock), id));
}

}  // namespace

TEST_CASE("gumbel: error", "[noise]") {
  if (LDBL_MANT_DIG < 64) {
    WARN("skipped: long double has no more than " << LDBL_MANT_DIG << " bits here");
    return;
  }
  std::mt19937_64 rng(1);
  double max_near = 0, max_far = 0, far_at = 0;
  const auto add = [&](uint64_t u) {
    const long double exact = gumbel_extended(u);
    const double error = static_cast<double>(std::abs(static_cast<long double>(gumbel(u)) - exact));
    if (std::abs(exact) < 8) {
      max_near = std::max(max_near, error);
    } else if (error > max_far) {
      max_far = error;
      far_at = static_cast<double>(exact);
    }
  };
  for (int i = 0; i < 1500000; ++i) add(any_uniform(rng));
  for (uint64_t i = 0; i < 500000; ++i) add(i * 36893488147419ULL);
  for (const uint64_t u : extreme_uniforms()) add(u);
  for (uint64_t u = 0; u < 65536; ++u) add(u);
  std::printf("gumbel: max absolute error %.3e where |g| < 8, %.3e elsewhere (g = %.3f)\n", max_near, max_far, far_at);
  CHECK(max_near < 1e-15);
  // Half an ulp of 45 is 3.6e-15; 65 times the rounding error of ln 2 is 1.5e-15.
  CHECK(max_far < 5.5e-15);
}

TEST_CASE("gumbel: finite at the extremes, within known ends", "[noise]") {
  for (const uint64_t u : extreme_uniforms()) CHECK(std::isfinite(gumbel(u)));
  CHECK(gumbel(0) == 0x1.686fc0af622d7p+5);              // 45.05
  CHECK(gumbel(~uint64_t{0}) == -0x1.e7686d3aca577p+1);  // -3.81
  CHECK(gumbel((uint64_t{1} << 63) - 1) == gumbel(uint64_t{1} << 63));
}

TEST_CASE("gumbel: never rises with u", "[noise]") {
  std::mt19937_64 rng(2);
  int64_t n_rising = 0;
  for (int i = 0; i < 1000000; ++i) {
    const uint64_t u = any_uniform(rng);
    const uint64_t step = i % 2 == 0 ? 1 : uint64_t{1} << (rng() % 20);
    if (u + step < u) continue;
    n_rising += gumbel(u + step) > gumbel(u);
  }
  // Fine steps around the places where formulas meet or the binade of a logarithm changes.
  for (const double v : {0.25, 0.5, 1 - std::sqrt(0.5), 1 - std::exp(-1.0), 0.75, 0.125}) {
    const uint64_t centre = static_cast<uint64_t>(std::ldexp(v, 64));
    double previous = HUGE_VAL;
    for (int64_t i = -20000; i <= 20000; ++i) {
      const double g = gumbel(centre + static_cast<uint64_t>(i * 1024));
      n_rising += g > previous;
      previous = g;
    }
  }
  std::printf("gumbel: %lld steps that rise\n", static_cast<long long>(n_rising));
  CHECK(n_rising == 0);
}

TEST_CASE("gumbel: mean and variance of a million draws", "[noise]") {
  constexpr int kDraws = 1000000;
  const NoiseKey key{20240229, 17, Purpose::kTarget};
  double sum = 0, sum_squares = 0;
  const double mean = 0.57721566490153286, variance = std::acos(-1.0) * std::acos(-1.0) / 6;
  for (uint32_t id = 0; id < kDraws; ++id) {
    const double x = gumbel(draw(key, id)) - mean;
    sum += x;
    sum_squares += x * x;
  }
  const double mean_error = sum / kDraws, variance_error = sum_squares / kDraws - variance;
  // The fourth central moment of a Gumbel is 5.4 variance^2.
  const double mean_sigma = std::sqrt(variance / kDraws), variance_sigma = variance * std::sqrt(4.4 / kDraws);
  std::printf("gumbel: mean %+.2f sigma off, variance %+.2f sigma off\n", mean_error / mean_sigma,
              variance_error / variance_sigma);
  CHECK(std::abs(mean_error) < 4 * mean_sigma);
  CHECK(std::abs(variance_error) < 4 * variance_sigma);
}

TEST_CASE("noise: counters are as the contract says", "[noise]") {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 1000; ++i) {
    const uint32_t purpose = static_cast<uint32_t>(rng() % 4);
    const NoiseKey key{rng(), rng() >> (rng() % 64), static_cast<Purpose>(purpose)};
    const uint32_t id = static_cast<uint32_t>(rng() % 4194303);
    const uint32_t low = static_cast<uint32_t>(key.position), high = static_cast<uint32_t>(key.position >> 32);
    const PhiloxKey philox_key{{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)}};
    const PhiloxBlock coarse = philox4x32_10({{id / 8, low, high, purpose * 2}}, philox_key);
    const PhiloxBlock fine = philox4x32_10({{id, low, high, purpose * 2 + 1}}, philox_key);
    uint16_t halfwords[8];
    for (int w = 0; w < 4; ++w) {
      halfwords[2 * w] = static_cast<uint16_t>(coarse.w[w]);
      halfwords[2 * w + 1] = static_cast<uint16_t>(coarse.w[w] >> 16);
    }
    const uint64_t u = draw(key, id);
    CHECK(u >> 48 == halfwords[id % 8]);
    CHECK(((u >> 32) & 0xFFFF) == (fine.w[0] & 0xFFFF));
    CHECK(static_cast<uint32_t>(u) == fine.w[1]);
  }
}

TEST_CASE("noise: no two uses share a block", "[noise]") {
  // All purposes and levels, and neighbours of a key in every bit of seed, position and index.
  std::set<std::array<uint32_t, 4>> seen;
  size_t n_blocks = 0;
  const auto add = [&](uint64_t seed, uint64_t position, uint32_t index) {
    for (uint32_t purpose = 0; purpose < 4; ++purpose) {
      for (uint32_t level = 0; level < 2; ++level) {
        const PhiloxBlock b = noise_block({seed, position, static_cast<Purpose>(purpose)}, index, level);
        seen.insert({b.w[0], b.w[1], b.w[2], b.w[3]});
        ++n_blocks;
      }
    }
  };
  const uint64_t seed = 0x0123456789ABCDEF, position = 0x0000000300000005;
  const uint32_t index = 1234;
  add(seed, position, index);
  for (int bit = 0; bit < 64; ++bit) {
    add(seed ^ uint64_t{1} << bit, position, index);
    add(seed, position ^ uint64_t{1} << bit, index);
    if (bit < 32) add(seed, position, index ^ 1u << bit);
  }
  for (uint64_t p = 100; p < 130; ++p) {
    for (uint32_t i = 2000; i < 2100; ++i) add(seed, p, i);
  }
  CHECK(seen.size() == n_blocks);
}

TEST_CASE("noise: halfwords of neighbours, positions, seeds and purposes are uniform and uncorrelated", "[noise]") {
  constexpr uint32_t kGroups = 1u << 19;
  std::vector<int64_t> counts(65536), pairs(65536), low_bits(65536);
  const NoiseKey key{7, 99, Purpose::kTarget};
  for (uint32_t group = 0; group < kGroups; ++group) {
    const PhiloxBlock block = coarse_block(key, group);
    for (uint32_t i = 0; i < 8; ++i) ++counts[coarse_bits(block, group * 8 + i)];
    // High bytes of two neighbouring ids.
    for (uint32_t i = 0; i < 8; i += 2) ++pairs[(coarse_bits(block, i) >> 8) << 8 | coarse_bits(block, i + 1) >> 8];
  }
  check_chi_square(counts, 8.0 * kGroups / 65536, "coarse bits");
  check_chi_square(pairs, 4.0 * kGroups / 65536, "pairs of neighbours' high bytes");
  std::vector<int64_t> across(65536);
  for (uint32_t i = 0; i < kGroups; ++i) {
    const NoiseKey a{i % 5, i, Purpose::kTarget};
    const NoiseKey b{i % 5 + (i % 3 == 0), i + (i % 3 == 1), i % 3 == 2 ? Purpose::kAccept : Purpose::kTarget};
    ++across[(coarse_bits(coarse_block(a, 3), 24) >> 8) << 8 | coarse_bits(coarse_block(b, 3), 24) >> 8];
    ++low_bits[draw(a, 24) & 0xFFFF];
  }
  check_chi_square(across, static_cast<double>(kGroups) / 65536, "pairs across seed, position and purpose");
  check_chi_square(low_bits, static_cast<double>(kGroups) / 65536, "lowest 16 bits");
}

}  // namespace ts::test
