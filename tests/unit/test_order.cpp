// SPDX-License-Identifier: Apache-2.0
// The order of candidates: logit descending, then id ascending.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

#include "contract/order.h"
#include "support/catch.h"

namespace ts::test {
namespace {

struct Candidate {
  float logit;
  uint32_t id;
};

// The contract's sentence, without bit patterns.
bool comes_first(const Candidate& a, const Candidate& b) {
  if (a.logit != b.logit) return a.logit > b.logit;
  return a.id < b.id;
}

float random_logit(std::mt19937_64& rng) {
  for (;;) {
    const float logit = bit_cast<float>(static_cast<uint32_t>(rng()));
    if (std::isfinite(logit)) return logit;
  }
}

}  // namespace

TEST_CASE("order: keys agree with the order of every pair of special logits", "[order]") {
  const float logits[] = {-HUGE_VALF,
                          -FLT_MAX,
                          -1.0f,
                          -FLT_MIN,
                          -FLT_MIN / 2,
                          -FLT_TRUE_MIN,
                          -0.0f,
                          0.0f,
                          FLT_TRUE_MIN,
                          FLT_MIN / 2,
                          FLT_MIN,
                          1.0f,
                          std::nextafter(1.0f, 2.0f),
                          FLT_MAX};
  const uint32_t ids[] = {0, 1, 7, 8, 128255, (1u << 22) - 2};
  for (const float a : logits) {
    for (const float b : logits) {
      for (const uint32_t i : ids) {
        for (const uint32_t j : ids) {
          INFO(a << " id " << i << ", " << b << " id " << j);
          CHECK((order_key(a, i) > order_key(b, j)) == comes_first({a, i}, {b, j}));
        }
      }
    }
  }
}

TEST_CASE("order: keys agree with the order of random pairs", "[order]") {
  std::mt19937_64 rng(1);
  int n_wrong = 0;
  for (int i = 0; i < 2000000; ++i) {
    const Candidate a{random_logit(rng), static_cast<uint32_t>(rng() >> 42)};
    // A third are ties, a third neighbours.
    const float near = i % 3 == 0 ? a.logit : i % 3 == 1 ? std::nextafter(a.logit, 0.0f) : random_logit(rng);
    const Candidate b{near, static_cast<uint32_t>(rng() >> 42)};
    n_wrong += (order_key(a.logit, a.id) > order_key(b.logit, b.id)) != comes_first(a, b);
    n_wrong += (logit_key(a.logit) > logit_key(b.logit)) != (a.logit > b.logit);
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("order: consecutive floats have increasing keys, signed zeros one", "[order]") {
  CHECK(logit_key(-0.0f) == logit_key(0.0f));
  CHECK(order_key(-0.0f, 3) > order_key(0.0f, 4));
  CHECK(order_key(0.0f, 3) > order_key(-0.0f, 4));
  CHECK(order_key(-FLT_MAX, 1000) > order_key(-HUGE_VALF, 0));
  int n_wrong = 0;
  float logit = -HUGE_VALF;
  uint32_t previous = logit_key(logit);
  // Every float in 4096 after each of many starts.
  for (uint64_t start = 0; start < uint64_t{1} << 32; start += uint64_t{1} << 22) {
    logit = bit_cast<float>(static_cast<uint32_t>(start));
    if (!std::isfinite(logit)) continue;
    previous = logit_key(logit);
    for (int i = 0; i < 4096 && logit < FLT_MAX; ++i) {
      logit = std::nextafter(logit, HUGE_VALF);
      n_wrong += logit_key(logit) <= previous;
      previous = logit_key(logit);
    }
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("order: sorting by key sorts by the rule", "[order]") {
  std::mt19937_64 rng(2);
  std::vector<Candidate> by_key;
  for (uint32_t id = 0; id < 20000; ++id) {
    const float step = static_cast<float>(static_cast<int64_t>(rng() % 400) - 200) * 0.125f;
    by_key.push_back({id % 50 == 0 ? -HUGE_VALF : step * (id % 2 == 0 ? 1.0f : -1.0f), id});
  }
  std::shuffle(by_key.begin(), by_key.end(), rng);
  std::vector<Candidate> by_rule = by_key;
  std::sort(by_key.begin(), by_key.end(),
            [](const Candidate& a, const Candidate& b) { return order_key(a.logit, a.id) > order_key(b.logit, b.id); });
  std::sort(by_rule.begin(), by_rule.end(), comes_first);
  const bool same = std::equal(by_key.begin(), by_key.end(), by_rule.begin(),
                               [](const Candidate& a, const Candidate& b) { return a.id == b.id; });
  CHECK(same);
}

}  // namespace ts::test
