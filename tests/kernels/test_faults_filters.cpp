// SPDX-License-Identifier: Apache-2.0
// FAULTS.md B: filters. Kept sets are seen through n_kept and through the tokens of many positions.
#include <algorithm>
#include <cmath>
#include <set>

#include "support/catch.h"
#include "support/rows.h"

namespace ts::test {
namespace {

struct KeptSet {
  int32_t n_kept;
  std::set<int32_t> tokens;
};

// One row sampled at n positions, with as many rows of the same logits in a call.
KeptSet kept_set(const std::vector<float>& row, const ts_request_params& p, int32_t n = 512, int32_t type = TS_FP32) {
  const auto vocab = static_cast<int32_t>(row.size());
  Sampler sampler(vocab, 4, 1024);
  std::vector<std::vector<float>> rows(static_cast<size_t>(n), row);
  Batch batch;
  batch.vocab = vocab;
  batch.rows_per_request = n;
  batch.logits = pack(rows, type, vocab);
  batch.params = {p};
  const Sampled got = sampler.run(batch);
  KeptSet kept{got.n_kept[0], {}};
  for (size_t i = 0; i < got.tokens.size(); ++i) {
    kept.tokens.insert(got.tokens[i]);
    CHECK(got.n_kept[i] == kept.n_kept);
  }
  return kept;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> row;
  for (const double p : probabilities) row.push_back(p > 0 ? static_cast<float>(std::log(p)) : -HUGE_VALF);
  return row;
}

// The first n ids of the order: logit descending, id ascending.
std::set<int32_t> first_of_order(const std::vector<float>& row, int32_t n) {
  std::vector<int32_t> ids(row.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)]; });
  return {ids.begin(), ids.begin() + std::min<std::ptrdiff_t>(n, static_cast<std::ptrdiff_t>(ids.size()))};
}

bool within(const std::set<int32_t>& tokens, const std::set<int32_t>& allowed) {
  return std::includes(allowed.begin(), allowed.end(), tokens.begin(), tokens.end());
}

}  // namespace

TEST_CASE("B1 top_k keeps exactly k, the lower id on ties, at every batch size") {
  for (const int32_t n : {1, 2, 7, 33, 1024}) {
    const KeptSet kept = kept_set({1, 2, 2, 2, 3}, params(5.0f, 3), n);
    CHECK(kept.n_kept == 3);
    CHECK(within(kept.tokens, {4, 1, 2}));
    if (n == 1024) CHECK(kept.tokens == std::set<int32_t>{4, 1, 2});
  }
  // The kind: ties at the k-th place anywhere in rows of any width and type.
  Random random(1);
  for (const int32_t vocab : {31, 32, 33, 1023}) {
    for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
      std::vector<float> row(static_cast<size_t>(vocab));
      for (float& logit : row) logit = static_cast<float>(pick(random, 3));
      for (const int32_t k : {1, 5, vocab / 2, vocab - 1}) {
        const KeptSet kept = kept_set(row, params(1e4f, k), 512, type);
        CHECK(kept.n_kept == k);
        CHECK(within(kept.tokens, first_of_order(row, k)));
      }
    }
  }
}

TEST_CASE("B2 a third token of equal probability is never returned by top_k 2") {
  const KeptSet kept = kept_set(logs({.4, .3, .3, 0}), params(1.0f, 2), 1024);
  CHECK(kept.n_kept == 2);
  CHECK(kept.tokens == std::set<int32_t>{0, 1});
}

TEST_CASE("B3 the token that crosses top_p is kept") {
  CHECK(kept_set(logs({.5, .41, .09}), params(1.0f, 0, .9f), 1024).tokens == std::set<int32_t>{0, 1});
  CHECK(kept_set(logs({.4, .3, .2, .1}), params(1.0f, 0, .8f), 1024).tokens == std::set<int32_t>{0, 1, 2});
  CHECK(kept_set(logs({.5, .35, .10, .05}), params(1.0f, 0, .9f), 1024).tokens == std::set<int32_t>{0, 1, 2});
  CHECK(kept_set(logs({.5, .41, .09}), params(1.0f, 0, .9f)).n_kept == 2);
  CHECK(kept_set(logs({.6, .4}), params(1.0f, 0, .9f), 1024).tokens == std::set<int32_t>{0, 1});
  // p is p * 2^32 rounded: of 4096 equal shares of 2^20 / 2^32, the second is kept if p rounds above the first.
  const std::vector<float> equal(4096, 0.0f);
  for (const float more : {-0.25f, 0.0f, 0.375f}) {
    CHECK(kept_set(equal, params(1.0f, 0, std::ldexp(1048576.0f + more, -32)), 4).n_kept == 1);
  }
  for (const float more : {0.625f, 1.0f, 1.375f}) {
    CHECK(kept_set(equal, params(1.0f, 0, std::ldexp(1048576.0f + more, -32)), 4).n_kept == 2);
  }
}

TEST_CASE("B4 a tiny top_p keeps the first of the order") {
  Random random(4);
  std::vector<float> row(4096);
  for (float& logit : row) logit = 1.0f + 1e-4f * static_cast<float>(pick(random, 50));
  const std::set<int32_t> first = first_of_order(row, 1);
  for (const float p : {0.0f, -1.0f, 1e-30f, 1e-7f}) {
    const KeptSet kept = kept_set(row, params(1.0f, 0, p), 64);
    CHECK(kept.n_kept == 1);
    CHECK(kept.tokens == first);
  }
  const KeptSet some = kept_set(row, params(1.0f, 0, 1e-3f), 64);
  CHECK((some.n_kept == 4 || some.n_kept == 5));  // 4.096 near-equal shares
  CHECK(within(some.tokens, first_of_order(row, 5)));
}

TEST_CASE("B5 top_k of any size is exact or off") {
  Random random(5);
  for (const int32_t vocab : {1500, 50257}) {
    const std::vector<float> row = synthetic_row(random, vocab);
    for (const int32_t k : {1, 128, 129, 1000, 1024, 1025, vocab - 1, vocab, vocab + 1, 9999999, 0, -1, 1 << 30}) {
      const KeptSet kept = kept_set(row, params(2.0f, k), 4);
      const int32_t expected = k > 0 && k < vocab ? k : vocab;
      CHECK(kept.n_kept == expected);
      CHECK(within(kept.tokens, first_of_order(row, expected)));
    }
  }
}

TEST_CASE("B6 top_k applies first, top_p on what it leaves, renormalised") {
  const std::vector<float> row = logs({.35, .25, .20, .05, .03, .03, .03, .03, .03});
  const KeptSet kept = kept_set(row, params(1.0f, 4, .82f), 1024);
  CHECK(kept.n_kept == 3);
  CHECK(kept.tokens == std::set<int32_t>{0, 1, 2});
}

TEST_CASE("B7 top_k 1, top_p, tiny temperature: the first token") {
  Random random(7);
  const std::vector<float> row = synthetic_row(random, 1023);
  const KeptSet kept = kept_set(row, params(.01f, 1, .8f), 64);
  CHECK(kept.n_kept == 1);
  CHECK(kept.tokens == first_of_order(row, 1));
}

TEST_CASE("B8 all logits equal: the first ids") {
  const std::vector<float> row(128256, 1.0f);
  const KeptSet top_k = kept_set(row, params(1.0f, 50), 256);
  CHECK(top_k.n_kept == 50);
  CHECK(*top_k.tokens.rbegin() <= 49);
  const KeptSet top_p = kept_set(row, params(1.0f, 0, .5f), 64);
  CHECK(top_p.n_kept == 64128);
  CHECK(*top_p.tokens.rbegin() < 64128);
  CHECK(*top_p.tokens.rbegin() > 32000);  // and not a smaller part of them: 64 draws reach beyond its middle
}

TEST_CASE("B10 values that differ in the last bit are told apart") {
  std::vector<float> row(64, -1.0f);
  row[10] = 2.0f;
  row[40] = std::nextafter(1.0f, 2.0f);
  row[20] = 1.0f;  // lower id, smaller by one ulp
  CHECK(kept_set(row, params(1.0f, 2), 512).tokens == std::set<int32_t>{10, 40});
  row[20] = row[40];
  CHECK(kept_set(row, params(1.0f, 2), 512).tokens == std::set<int32_t>{10, 20});
  row[20] = -0.0f;
  row[40] = 0.0f;  // equal to -0: the lower id
  row[30] = std::numeric_limits<float>::denorm_min();
  CHECK(kept_set(row, params(1.0f, 2), 512).tokens == std::set<int32_t>{10, 30});
  row[30] = -1.0f;
  CHECK(kept_set(row, params(1.0f, 2), 512).tokens == std::set<int32_t>{10, 20});
}

TEST_CASE("B11 widths that no vector divides, without a read past the row") {
  Random random(11);
  for (const int32_t vocab : {1, 3, 17, 40001, 50257, 151937}) {
    for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
      std::vector<float> row(static_cast<size_t>(vocab));
      for (float& logit : row) logit = -0.001f * static_cast<float>(pick(random, 100));
      row.back() = 30.0f;  // the last id is seen, what pack() puts behind it is not
      const KeptSet kept = kept_set(row, params(1.0f, 5, .9f), 3, type);
      CHECK(kept.n_kept == 1);
      CHECK(kept.tokens == std::set<int32_t>{vocab - 1});
    }
  }
}

TEST_CASE("B12 what is kept stands before what is dropped, for every cut of every row") {
  Random random(12);
  for (int round = 0; round < 60; ++round) {
    const std::vector<float> row = synthetic_row(random, 200 + pick(random, 3000));
    const ts_request_params p =
        params(0.5f + 0.1f * static_cast<float>(pick(random, 20)), pick(random, 2) * pick(random, 300),
               0.05f * static_cast<float>(1 + pick(random, 20)),
               pick(random, 2) * 0.01f * static_cast<float>(pick(random, 20)));
    const KeptSet kept = kept_set(row, p, 256);
    CHECK(kept.n_kept >= 1);
    CHECK(within(kept.tokens, first_of_order(row, kept.n_kept)));
  }
}

}  // namespace ts::test
