// SPDX-License-Identifier: Apache-2.0
// The reference, step by step as the contract numbers them.
#include "support/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace ts::test {
namespace {

__extension__ using Wide = unsigned __int128;
using Words = std::array<uint32_t, 4>;

// Philox4x32-10 from the paper's figure: (counter, key) to four words.
Words random_words(Words c, uint32_t key0, uint32_t key1) {
  for (int r = 0; r < 10; ++r) {
    const uint64_t a = static_cast<uint64_t>(c[0]) * 3528531795u;
    const uint64_t b = static_cast<uint64_t>(c[2]) * 3449720151u;
    const Words next = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(b & 0xFFFFFFFFu),
                        static_cast<uint32_t>(a >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(a & 0xFFFFFFFFu)};
    c = next;
    key0 += 2654435769u;
    key1 += 3144134277u;
  }
  return c;
}

// Section 3, purpose 0 (target): the 64-bit uniform of an id.
uint64_t uniform_of(uint64_t seed, uint64_t position, uint32_t id) {
  const auto low = static_cast<uint32_t>(seed);
  const auto high = static_cast<uint32_t>(seed >> 32);
  const auto position_low = static_cast<uint32_t>(position);
  const auto position_high = static_cast<uint32_t>(position >> 32);
  const Words coarse = random_words({id / 8, position_low, position_high, 0}, low, high);
  const uint32_t word = coarse[(id % 8) / 2];
  const uint64_t top16 = id % 2 == 0 ? word & 0xFFFFu : word >> 16;
  const Words fine = random_words({id, position_low, position_high, 1}, low, high);
  return top16 << 48 | static_cast<uint64_t>(fine[0] & 0xFFFFu) << 32 | fine[1];
}

// v = (u + 1/2) / 2^64, E = -ln(1 - v), g = -ln E. A long double holds u + 1/2 or its complement exactly enough.
long double gumbel_of(uint64_t u) {
  const long double scale = std::ldexp(1.0L, -64);
  const long double e = u < (uint64_t{1} << 63) ? -std::log1p(-((static_cast<long double>(u) + 0.5L) * scale))
                                                : -std::log((static_cast<long double>(~u) + 0.5L) * scale);
  return -std::log(e);
}

// What the contract's fp64 gumbel may be off by: an ulp of its own and the few of its two logarithms.
long double gumbel_error(long double g) { return 1e-15L + 4.5e-16L * std::fabs(g); }

// Section 2: the integer weight of a candidate d below the maximum.
uint64_t weight_of(float d, float factor) {
  const float z = d * factor;
  if (!(z >= -40.0f)) return 0;
  const float n = std::floor(z);
  const float f = z - n;
  float p = 0x1.e974fap-10f;
  for (const float coefficient : {0x1.277856p-7f, 0x1.c91cdep-5f, 0x1.ebdb5ap-3f, 0x1.62e4bap-1f, 1.0f}) {
    p = std::fma(p, f, coefficient);
  }
  const float below_two = std::nextafter(2.0f, 1.0f);
  p = std::min(p, below_two);
  const auto mantissa = static_cast<uint64_t>(std::ldexp(p, 23));  // 24 bits, exact
  return (mantissa << 16) >> static_cast<int>(-n);
}

struct Candidate {
  float logit;
  int32_t id;
};

}  // namespace

ReferenceResult reference_sample(const ReferenceRow& row, int32_t invalid_token) {
  ReferenceResult result;
  std::vector<Candidate> candidates;
  const auto vocab = static_cast<int32_t>(row.logits.size());
  const int32_t n_valid = row.n_valid > 0 ? row.n_valid : vocab;
  for (int32_t id = 0; id < vocab; ++id) {
    float logit = row.logits[static_cast<size_t>(id)];
    if (std::isnan(logit)) {
      result.flags |= TS_ROW_NAN;
      continue;
    }
    if (std::isinf(logit) && logit > 0) {
      result.flags |= TS_ROW_INF;
      logit = std::numeric_limits<float>::max();
    }
    if (std::isinf(logit) || id >= n_valid) continue;
    if (!row.mask.empty()) {
      const auto word = static_cast<size_t>(id / 32);
      if (word >= row.mask.size() || (static_cast<uint32_t>(row.mask[word]) >> (id % 32) & 1u) == 0) continue;
    }
    candidates.push_back({logit, id});
  }
  if (candidates.empty()) {
    result.flags |= TS_ROW_EMPTY;
    result.token = invalid_token;
    result.logprob = std::numeric_limits<long double>::quiet_NaN();
    return result;
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  });
  const float top = candidates[0].logit;

  // Filters, each a prefix.
  const ts_request_params& p = row.params;
  size_t n = candidates.size();
  const bool greedy = p.temperature < 1e-6f;
  if (greedy) {
    n = 1;
  } else {
    const double t = p.temperature;
    const auto factor = static_cast<float>(1.4426950408889634073599246810018921374 / t);
    if (p.top_k > 0 && p.top_k < vocab) n = std::min(n, static_cast<size_t>(p.top_k));
    if (p.top_p < 1.0f) {
      uint64_t total = 0;
      for (size_t i = 0; i < n; ++i) total += weight_of(candidates[i].logit - top, factor);
      const uint64_t fixed =
          p.top_p > 0 ? static_cast<uint64_t>(std::floor(std::ldexp(static_cast<long double>(p.top_p), 32) + 0.5L)) : 0;
      const auto limit = static_cast<uint64_t>(static_cast<Wide>(fixed) * total >> 32);
      uint64_t before = 0;
      size_t kept = 0;
      while (kept < n && (kept == 0 || before < limit)) before += weight_of(candidates[kept++].logit - top, factor);
      n = kept;
    }
    if (p.min_p > 0) {
      const auto bound = static_cast<float>(static_cast<long double>(t) * std::log(static_cast<long double>(p.min_p)));
      size_t kept = 0;
      while (kept < n && candidates[kept].logit - top >= bound) ++kept;
      n = kept;
    }
  }
  result.n_kept = static_cast<int32_t>(n);
  for (size_t i = 0; i < n; ++i) result.kept.push_back(candidates[i].id);

  // The draw.
  size_t best_at = 0;
  if (!greedy) {
    // Why fp64: the contract rounds x and x + g to it, and large x make scores of equal logits equal.
    const double inverse = 1.0 / static_cast<double>(p.temperature);
    std::vector<double> high(n);  // the largest that each score may be
    double best = 0, best_low = 0;
    for (size_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(candidates[i].logit) * inverse;
      const long double g = gumbel_of(uniform_of(p.seed, row.position, static_cast<uint32_t>(candidates[i].id)));
      const double score = x + static_cast<double>(g);
      high[i] = x + static_cast<double>(g + gumbel_error(g));
      if (i > 0 && (score < best || (score == best && candidates[i].id > candidates[best_at].id))) continue;
      best = score;
      best_low = x + static_cast<double>(g - gumbel_error(g));
      best_at = i;
    }
    for (size_t i = 0; i < n; ++i) {
      if (i == best_at || high[i] < best_low) continue;
      result.too_close |= high[i] > best_low || candidates[i].id < candidates[best_at].id;
    }
  }
  result.token = candidates[best_at].id;

  // Raw log-probability and rank.
  const float chosen = candidates[best_at].logit;
  uint64_t total = 0;
  for (const Candidate& c : candidates) {
    total += weight_of(c.logit - top, static_cast<float>(1.4426950408889634073599246810018921374L));
    result.rank += c.logit > chosen ? 1 : 0;
  }
  result.rank += 1;
  result.logprob = (static_cast<long double>(chosen) - static_cast<long double>(top)) -
                   std::log(std::ldexp(static_cast<long double>(total), -39));
  return result;
}

ReferenceChain reference_verify(const std::vector<ReferenceRow>& rows, const int32_t* candidates, int32_t first_row,
                                int32_t invalid_token) {
  ReferenceChain chain;
  bool open = true;
  for (size_t j = 0; j < rows.size(); ++j) {
    if (!open) {
      chain.predict.push_back(-1);
      chain.accept_index.push_back(-1);
      chain.ranks.push_back(0);
      chain.n_kept.push_back(0);
      chain.flags.push_back(0);
      chain.logprobs.push_back(std::numeric_limits<long double>::quiet_NaN());
      continue;
    }
    const ReferenceResult r = reference_sample(rows[j], invalid_token);
    chain.too_close |= r.too_close;
    chain.predict.push_back(r.token);
    chain.accept_index.push_back(first_row + static_cast<int32_t>(j));
    chain.ranks.push_back(r.rank);
    chain.n_kept.push_back(r.n_kept);
    chain.flags.push_back(r.flags);
    chain.logprobs.push_back(r.logprob);
    ++chain.accept_length;
    open = (r.flags & TS_ROW_EMPTY) == 0 && j + 1 < rows.size() && candidates[j + 1] == r.token;
  }
  return chain;
}

}  // namespace ts::test
