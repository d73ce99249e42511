// SPDX-License-Identifier: Apache-2.0
// Sampled frequencies against exact probabilities. Fixed seeds; each test states its sample size. Significance 1e-6:
// a right sampler fails a test by chance once in a million seeds, and no seed here was chosen after looking.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/catch.h"
#include "support/chi_square.h"
#include "support/rows.h"

namespace ts::test {
namespace {

constexpr double kSignificance = 1e-6;

// Counts of each token over n_requests seeds x 1024 positions of one row.
std::vector<long> counts_of(const std::vector<float>& row, ts_request_params p, int32_t n_requests, uint64_t first_seed,
                            int64_t first_position = 0) {
  const auto vocab = static_cast<int32_t>(row.size());
  Sampler sampler(vocab, 64, 1024);
  std::vector<std::vector<float>> rows(1024, row);
  Batch batch;
  batch.vocab = vocab;
  batch.rows_per_request = 1024;
  batch.logits = pack(rows, TS_FP32, vocab);
  batch.positions = {first_position};
  batch.positions_type = TS_INT64;
  std::vector<long> counts(row.size());
  for (int32_t r = 0; r < n_requests; ++r) {
    p.seed = first_seed + static_cast<uint64_t>(r);
    batch.params = {p};
    batch.request_ids = {static_cast<uint64_t>(r) + 1};
    for (const int32_t token : sampler.tokens(batch)) ++counts[static_cast<size_t>(token)];
  }
  return counts;
}

// Probabilities after the filters, by a full sort in long double.
std::vector<double> probabilities_of(const std::vector<float>& row, const ts_request_params& p) {
  std::vector<size_t> order(row.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  std::vector<long double> w;
  for (const size_t id : order) {
    w.push_back(
        std::exp((static_cast<long double>(row[id]) - static_cast<long double>(row[order[0]])) / p.temperature));
  }
  size_t n = order.size();
  if (p.top_k > 0) n = std::min(n, static_cast<size_t>(p.top_k));
  long double total = 0, before = 0;
  for (size_t i = 0; i < n; ++i) total += w[i];
  size_t kept = 0;
  while (kept < n && before < static_cast<long double>(p.top_p) * total) before += w[kept++];
  if (p.top_p < 1) n = kept;
  while (n > 1 && w[n - 1] < static_cast<long double>(p.min_p)) --n;
  total = 0;
  for (size_t i = 0; i < n; ++i) total += w[i];
  std::vector<double> probabilities(row.size(), 0.0);
  for (size_t i = 0; i < n; ++i) probabilities[order[i]] = static_cast<double>(w[i] / total);
  return probabilities;
}

}  // namespace

TEST_CASE("the chi-square function gives table values and sees a wrong distribution") {
  // Critical values of Abramowitz and Stegun, table 26.8.
  CHECK(chi_square_p_value(3.84146, 1) == Approx(0.05).epsilon(1e-4));
  CHECK(chi_square_p_value(18.3070, 10) == Approx(0.05).epsilon(1e-4));
  CHECK(chi_square_p_value(124.342, 100) == Approx(0.05).epsilon(1e-4));
  CHECK(chi_square_p_value(10.828, 1) == Approx(0.001).epsilon(1e-3));
  CHECK(chi_square_p_value(0.554300, 5) == Approx(0.99).epsilon(1e-4));
  CHECK(chi_square_of({1000, 1000, 1000}, {1. / 3, 1. / 3, 1. / 3}) == Approx(1.0));
  CHECK(chi_square_of({1000, 1000, 1300}, {1. / 3, 1. / 3, 1. / 3}) < 1e-9);
  CHECK(chi_square_of({5, 0}, {1.0, 0.0}) == 1.0);
  CHECK(chi_square_of({5, 1}, {1.0, 0.0}) == 0.0);
  CHECK(independence_of({{500, 500}, {500, 500}}) == Approx(1.0));
  CHECK(independence_of({{600, 400}, {400, 600}}) < 1e-9);
}

TEST_CASE("every way of sampling has the exact distribution") {
  // 262,144 draws each: 256 seeds x 1,024 positions.
  Random random(100);
  std::vector<float> small = {2.0f, 1.0f, 0.5f, 0.0f, -1.0f, 1.0f, 3.0f};
  std::vector<float> medium = synthetic_row(random, 300);
  const std::vector<ts_request_params> ways = {params(1.0f),
                                               params(0.5f),
                                               params(2.0f),
                                               params(1.0f, 4),
                                               params(1.0f, 0, 0.8f),
                                               params(1.5f, 5, 0.85f),
                                               params(1.0f, 0, 1.0f, 0.1f),
                                               params(1.3f, 0, 0.9f, 0.05f),
                                               params(2.0f, 40),
                                               params(2.0f, 0, 0.95f),
                                               params(2.5f, 60, 0.97f, 0.01f)};
  uint64_t seed = 0;  // sequential seeds from 0, as callers use them
  for (const std::vector<float>& row : {small, medium}) {
    for (const ts_request_params& way : ways) {
      const double p = chi_square_of(counts_of(row, way, 256, seed), probabilities_of(row, way));
      INFO("V " << row.size() << " T " << way.temperature << " k " << way.top_k << " p " << way.top_p);
      CHECK(p > kSignificance);
      seed += 256;
    }
  }
}

TEST_CASE("a wrong temperature or a wrong filter is seen") {
  // The power of the tests above: 65,536 draws tell T = 1 from T = 1.05.
  const std::vector<float> row = {2.0f, 1.0f, 0.5f, 0.0f, -1.0f, 1.0f, 3.0f};
  CHECK(chi_square_of(counts_of(row, params(1.0f), 64, 5), probabilities_of(row, params(1.05f))) < kSignificance);
  CHECK(chi_square_of(counts_of(row, params(1.0f, 4), 64, 5), probabilities_of(row, params(1.0f, 3))) < kSignificance);
}

TEST_CASE("top_p .8 is neither .78 nor .82") {
  // 65,536 draws each of a row that falls by e^-0.01 from id to id: the first n ids have (1 - e^-n/100) / (1 - e^-10) of
  // the probability, so .8 keeps 161 ids, of which the last one comes up some 165 times, and .82 gives 2.4% to others.
  std::vector<float> row(1000);
  for (size_t id = 0; id < row.size(); ++id) row[id] = -0.01f * static_cast<float>(id);
  const std::vector<std::pair<float, size_t>> kept = {{0.78f, 152}, {0.8f, 161}, {0.82f, 172}};
  for (const auto& [used, n_kept] : kept) {
    const std::vector<long> counts = counts_of(row, params(1.0f, 0, used), 64, 30000);
    INFO("top_p " << used);
    CHECK(counts[n_kept - 1] > 0);
    CHECK(std::accumulate(counts.begin(), counts.begin() + static_cast<long>(n_kept), 0L) == 65536);
    for (const auto& [claimed, _] : kept) {
      const double p = chi_square_of(counts, probabilities_of(row, params(1.0f, 0, claimed)));
      INFO("against " << claimed << ": " << p);
      CHECK((p > kSignificance) == (claimed == used));
    }
  }
}

TEST_CASE("positions beyond 2^32 and random seeds are as good as small ones") {
  // 65,536 draws each.
  Random random(101);
  const std::vector<float> row = {1.0f, 0.0f, 2.0f, 0.5f};
  for (int i = 0; i < 4; ++i) {
    const auto position = static_cast<int64_t>(random() >> 2);
    const std::vector<long> counts = counts_of(row, params(1.0f), 64, random(), position);
    CHECK(chi_square_of(counts, probabilities_of(row, params(1.0f))) > kSignificance);
  }
}

TEST_CASE("A7 seeds, positions and neighbouring ids are independent; the same seed and prompt give the same tokens") {
  // 262,144 pairs for each table, rows of 8 equal logits.
  const std::vector<float> row(8, 0.0f);
  Sampler sampler(8, 64, 1024);
  std::vector<std::vector<float>> rows(1024, row);
  Batch batch;
  batch.vocab = 8;
  batch.rows_per_request = 1024;
  batch.logits = pack(rows, TS_FP32, 8);
  std::vector<std::vector<long>> seeds(8, std::vector<long>(8)), positions = seeds;
  std::vector<int32_t> before;
  for (uint64_t seed = 0; seed < 257; ++seed) {
    batch.params = {params(1.0f, 0, 1.0f, 0.0f, seed)};
    batch.request_ids = {seed + 1};
    const std::vector<int32_t> tokens = sampler.tokens(batch);
    batch.request_ids = {seed + 100000};
    CHECK(sampler.tokens(batch) == tokens);
    for (size_t i = 0; i < 1024; ++i) {
      if (seed > 0) ++seeds[static_cast<size_t>(before[i])][static_cast<size_t>(tokens[i])];
      if (i > 0) ++positions[static_cast<size_t>(tokens[i - 1])][static_cast<size_t>(tokens[i])];
    }
    before = tokens;
  }
  CHECK(independence_of(seeds) > kSignificance);
  CHECK(independence_of(positions) > kSignificance);
}

TEST_CASE("A7 ids whose noise comes from one Philox block or word are independent") {
  // 65,536 draws a pair. The odds of two ids are e^1.5 only if their two Gumbels are independent: equal noise would
  // make the first win always, opposite noise change the odds.
  for (const size_t first : {size_t{0}, size_t{1}, size_t{6}, size_t{7}, size_t{63}}) {
    for (const size_t gap : {size_t{1}, size_t{2}, size_t{8}}) {
      std::vector<float> row(80, -HUGE_VALF);
      row[first] = 1.5f;
      row[first + gap] = 0.0f;
      INFO("ids " << first << " and " << first + gap);
      CHECK(chi_square_of(counts_of(row, params(1.0f), 64, 7000), probabilities_of(row, params(1.0f))) > kSignificance);
    }
  }
}

TEST_CASE("tokens of a flat row are uniform, and uniform over the places in a block") {
  // 262,144 draws: 262 expected for each of 1,001 ids.
  const std::vector<float> row(1001, -7.0f);
  const std::vector<long> counts = counts_of(row, params(1.0f), 256, 20000);
  CHECK(chi_square_of(counts, std::vector<double>(1001, 1.0 / 1001)) > kSignificance);
  for (const size_t block : {size_t{2}, size_t{8}, size_t{32}, size_t{128}}) {
    std::vector<long> places(block);
    std::vector<double> shares(block);
    for (size_t id = 0; id < 1001; ++id) {
      places[id % block] += counts[id];
      shares[id % block] += 1.0 / 1001;
    }
    CHECK(chi_square_of(places, shares) > kSignificance);
  }
}

TEST_CASE("B9 top_p on a flat row is uniform over the kept set") {
  // 100,352 draws each: 98 seeds x 1,024 positions.
  const std::vector<float> row(4096, 0.5f);
  for (const float top_p : {0.1f, 0.3f, 0.5f}) {
    const ts_request_params way = params(1.0f, 0, top_p);
    const std::vector<long> counts = counts_of(row, way, 98, 40);
    const auto kept = static_cast<size_t>(std::ceil(static_cast<double>(top_p) * 4096));
    std::vector<double> uniform(4096, 0.0);
    for (size_t i = 0; i < kept; ++i) uniform[i] = 1.0 / static_cast<double>(kept);
    CHECK(chi_square_of(counts, uniform) > kSignificance);
    CHECK(static_cast<double>(counts[0]) / 100352 < 0.004);  // reject-and-fall-back samplers: 43%, 6%, 0.5%
  }
}

TEST_CASE("A1 the tail beyond 24-bit uniforms is reached as often as it should be") {
  // One id at 0, 262,144 ids at -20.5. Each draw hits the tail with 262144 e^-20.5 / (1 + ...) = 3.277e-4: 100,352
  // draws expect 32.9 hits, sigma 5.7. Samplers with fp32 uniforms give 0.
  const int32_t vocab = 262145;
  Sampler sampler(vocab, 4, 49);
  std::vector<float> values(static_cast<size_t>(vocab), -20.5f);
  values[0] = 0.0f;
  std::vector<std::vector<float>> rows(49, values);
  Batch batch;
  batch.vocab = vocab;
  batch.rows_per_request = 49;
  batch.logits = pack(rows, TS_BF16, vocab);
  long hits = 0;
  std::vector<long> thirds(3);
  for (uint64_t seed = 0; seed < 2048; ++seed) {
    batch.params = {params(1.0f, 0, 1.0f, 0.0f, seed)};
    batch.request_ids = {seed};
    for (const int32_t token : sampler.tokens(batch)) {
      if (token == 0) continue;
      ++hits;
      ++thirds[static_cast<size_t>((token - 1) / 87382)];
    }
  }
  const double mass = 262144 * std::exp(-20.5);
  const double expected = 100352 * mass / (1 + mass);
  CHECK(std::fabs(static_cast<double>(hits) - expected) < 4 * std::sqrt(expected));
  for (const long third : thirds) CHECK(third > 0);
}

TEST_CASE("ids of probability 6e-7 come up as often as they should") {
  // 4,194,304 draws; 16 ids that share 1e-5: 42 hits expected, within 4 sigma = 26.
  std::vector<float> row(17, static_cast<float>(std::log(1e-5 / 16)));
  row[0] = 0.0f;
  const std::vector<long> counts = counts_of(row, params(1.0f), 4096, 900);
  const double expected = 4096.0 * 1024 * 1e-5;
  const double hits = 4096.0 * 1024 - static_cast<double>(counts[0]);
  CHECK(std::fabs(hits - expected) < 4 * std::sqrt(expected));
}

TEST_CASE("E4 verified chains have the marginals of plain sampling for any draft") {
  // 200,000 requests of 3 rows each way; drafts: the likeliest id, a fixed unlikely one, which filters drop, or any id.
  const ts_request_params way = GENERATE(params(), params(1.0f, 3), params(1.0f, 0, 0.7f), params(1.0f, 0, 1.0f, 0.2f),
                                         params(1.5f, 3, 0.95f, 0.3f));
  INFO("T " << way.temperature << " k " << way.top_k << " p " << way.top_p << " min_p " << way.min_p);
  const std::vector<std::vector<float>> chain = {
      {1.0f, 0.0f, 2.0f, 0.5f}, {0.0f, 0.3f, 0.6f, -2.0f}, {2.0f, 2.0f, 0.0f, 1.0f}};
  constexpr int32_t kRequests = 1000;
  Sampler sampler(4, kRequests, 3);
  std::vector<std::vector<float>> rows;
  for (int32_t r = 0; r < kRequests; ++r) rows.insert(rows.end(), chain.begin(), chain.end());
  Batch batch;
  batch.vocab = 4;
  batch.rows_per_request = 3;
  batch.logits = pack(rows, TS_FP32, 4);
  batch.params.assign(kRequests, way);
  Random random(104);
  std::vector<long> counts[3] = {std::vector<long>(4), std::vector<long>(4), std::vector<long>(4)};
  long accepted_likely = 0, n_likely = 0;
  for (uint64_t call = 0; call < 200; ++call) {
    batch.request_ids.clear();
    std::vector<int32_t> candidates(3 * kRequests);
    for (int32_t r = 0; r < kRequests; ++r) {
      batch.request_ids.push_back(call * kRequests + static_cast<uint64_t>(r));
      batch.params[static_cast<size_t>(r)].seed = batch.request_ids.back();
      candidates[static_cast<size_t>(3 * r + 1)] = r % 3 == 0 ? 2 : r % 3 == 1 ? 1 : pick(random, 4);
      candidates[static_cast<size_t>(3 * r + 2)] = r % 3 == 0 ? 2 : pick(random, 4);
    }
    sampler.prepare(batch);
    const Verified got = sampler.verify(batch, candidates);
    for (int32_t r = 0; r < kRequests; ++r) {
      if (r % 3 == 0) {
        ++n_likely;
        accepted_likely += got.accept_length[static_cast<size_t>(r)] > 1 ? 1 : 0;
      }
      for (int32_t j = 0; j < got.accept_length[static_cast<size_t>(r)]; ++j) {
        ++counts[j][static_cast<size_t>(got.predict[static_cast<size_t>(3 * r + j)])];
      }
    }
  }
  for (size_t j = 0; j < 3; ++j) CHECK(chi_square_of(counts[j], probabilities_of(chain[j], way)) > kSignificance);
  // A draft is accepted as often as the target samples it.
  const double p = probabilities_of(chain[0], way)[2];
  const double n = static_cast<double>(n_likely);
  CHECK(std::fabs(static_cast<double>(accepted_likely) - n * p) < 5 * std::sqrt(n * p * (1 - p)));
}

}  // namespace ts::test
