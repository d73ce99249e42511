// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10: the published vectors, its structure as a bijection, and avalanche.
#include <random>
#include <set>
#include <tuple>

#include "contract/philox.h"
#include "support/catch.h"

namespace ts::test {
namespace {

PhiloxBlock random_block(std::mt19937_64& rng) {
  const uint64_t a = rng(), b = rng();
  return {{static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b),
           static_cast<uint32_t>(b >> 32)}};
}

// The multiplier's inverse modulo 2^32, by Newton's iteration.
uint32_t inverse(uint32_t odd) {
  uint32_t x = odd;
  for (int i = 0; i < 5; ++i) x *= 2u - odd * x;
  return x;
}

// Philox run backwards, written from the paper's description of one round.
PhiloxBlock decrypt(PhiloxBlock block, PhiloxKey key) {
  for (int round = 9; round >= 0; --round) {
    const uint32_t k0 = key.k[0] + 0x9E3779B9u * static_cast<uint32_t>(round);
    const uint32_t k1 = key.k[1] + 0xBB67AE85u * static_cast<uint32_t>(round);
    const uint32_t c0 = block.w[3] * inverse(0xD2511F53u);
    const uint32_t c2 = block.w[1] * inverse(0xCD9E8D57u);
    const uint32_t high0 = static_cast<uint32_t>((uint64_t{0xD2511F53u} * c0) >> 32);
    const uint32_t high1 = static_cast<uint32_t>((uint64_t{0xCD9E8D57u} * c2) >> 32);
    block = {{c0, block.w[0] ^ high1 ^ k0, c2, block.w[2] ^ high0 ^ k1}};
  }
  return block;
}

void check_block(PhiloxBlock counter, PhiloxKey key, PhiloxBlock expected) {
  const PhiloxBlock block = philox4x32_10(counter, key);
  for (int i = 0; i < 4; ++i) CHECK(block.w[i] == expected.w[i]);
}

}  // namespace

// Source: Random123, tests/kat_vectors, "philox4x32 10".
TEST_CASE("philox: published vectors", "[philox]") {
  check_block({{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  check_block({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, {{0xffffffff, 0xffffffff}},
              {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  check_block({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}},
              {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST_CASE("philox: a bijection of the counter", "[philox]") {
  std::mt19937_64 rng(1);
  int n_wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    const PhiloxBlock counter = random_block(rng);
    const uint64_t k = rng();
    const PhiloxKey key{{static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32)}};
    const PhiloxBlock back = decrypt(philox4x32_10(counter, key), key);
    for (int w = 0; w < 4; ++w) n_wrong += back.w[w] != counter.w[w];
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("philox: every counter and key bit changes half of the output", "[philox]") {
  std::mt19937_64 rng(2);
  constexpr int kTrials = 2000;
  for (int bit = 0; bit < 192; ++bit) {
    int64_t n_changed = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const PhiloxBlock counter = random_block(rng);
      const uint64_t k = rng();
      const PhiloxKey key{{static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32)}};
      PhiloxBlock other_counter = counter;
      PhiloxKey other_key = key;
      uint32_t& word = bit < 128 ? other_counter.w[bit / 32] : other_key.k[(bit - 128) / 32];
      word ^= 1u << (bit % 32);
      const PhiloxBlock a = philox4x32_10(counter, key), b = philox4x32_10(other_counter, other_key);
      for (int w = 0; w < 4; ++w) n_changed += __builtin_popcount(a.w[w] ^ b.w[w]);
    }
    // Binomial: mean 64 per trial, variance 32 per trial; 5 sigma.
    INFO("bit " << bit);
    CHECK(std::abs(static_cast<double>(n_changed) - 64.0 * kTrials) < 5 * std::sqrt(32.0 * kTrials));
  }
}

TEST_CASE("philox: consecutive counters give distinct blocks", "[philox]") {
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>> seen;
  constexpr uint32_t kBlocks = 50000;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    const PhiloxBlock b = philox4x32_10({{i, 0, 0, 0}}, {{1, 0}});
    seen.insert({b.w[0], b.w[1], b.w[2], b.w[3]});
  }
  CHECK(seen.size() == kBlocks);
}

}  // namespace ts::test
