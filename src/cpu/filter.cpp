// SPDX-License-Identifier: Apache-2.0
// Finds cuts exactly. Both top-k and top-p keep an id while the measure in front of it is below a limit; top-k measures
// every id by 1, top-p by its integer weight. First a floor is found that the cut cannot lie below, then the few ids
// at or above it are gathered, then the cut is found by radix descent over their logit keys.
#include "cpu/filter.h"

#include <algorithm>

#include "contract/convert.h"
#include "contract/order.h"
#include "contract/weight.h"

namespace ts {
namespace {

constexpr int kShifts[] = {21, 10, 0};  // three levels of 11, 11 and 10 bits
constexpr int kBits[] = {11, 11, 10};

// The ids, ascending, of candidates that are not after `last_key` and whose logit is high enough: is_high() holds for
// every logit above one for which it holds.
template <class IsHigh>
int32_t gather(const Row& row, uint64_t last_key, const IsHigh& is_high, uint32_t* ids) {
  int32_t n_ids = 0;
  for (int32_t c = 0; c < n_chunks(row.vocab); ++c) {
    if (!is_high(row.chunk_max[c]) || logit_key(row.chunk_max[c]) < last_key >> 32) continue;
    const int32_t end = c * kChunk + chunk_size(row.vocab, c);
    for (int32_t id = c * kChunk; id < end; ++id) {
      const float logit = row.logits[id];
      // Why integers and no &&: without branches.
      const int32_t taken = int32_t{logit > kMinusInf} & int32_t{is_high(logit)} &
                            int32_t{order_key(logit, static_cast<uint32_t>(id)) >= last_key};
      ids[n_ids] = static_cast<uint32_t>(id);
      n_ids += taken;
    }
  }
  return n_ids;
}

// The order key of the last of the gathered ids that has less than `limit` in front of it. The limit is at least 1 and
// is reached among these ids.
uint64_t cut(const Row& row, uint64_t limit, int32_t n_ids, FilterScratch& scratch) {
  uint32_t* ids = scratch.ids.data();
  uint64_t* measures = scratch.measures.data();
  uint64_t before = 0;
  for (int level = 0; level < 3; ++level) {
    const uint32_t bucket_mask = (1u << kBits[level]) - 1;
    const auto bucket_of = [&](uint32_t id) { return (logit_key(row.logits[id]) >> kShifts[level]) & bucket_mask; };
    uint64_t sums[1 << 11] = {};
    for (int32_t i = 0; i < n_ids; ++i) sums[bucket_of(ids[i])] += measures[i];
    // Walk from the largest logits down to the bucket in which the limit is reached, and go on with its ids.
    uint32_t bucket = bucket_mask;
    while (before + sums[bucket] < limit) before += sums[bucket--];
    int32_t n = 0;
    for (int32_t i = 0; i < n_ids; ++i) {
      if (bucket_of(ids[i]) != bucket) continue;
      ids[n] = ids[i];
      measures[n++] = measures[i];
    }
    n_ids = n;
  }
  // What is left has one logit, so one measure each, and is in id order: the limit is reached after so many of them.
  const uint64_t n_stay = (limit - before + measures[0] - 1) / measures[0];
  return order_key(row.logits[ids[0]], ids[n_stay - 1]);
}

// top_k is below the number of candidates.
uint64_t top_k_cut(const Row& row, int32_t top_k, FilterScratch& scratch) {
  // Why: of n chunks with a maximum of at least m, each has an id of at least m: the k-th largest maximum is a floor.
  float floor = kMinusInf;
  const int32_t n = n_chunks(row.vocab);
  if (top_k <= n) {
    std::copy(row.chunk_max, row.chunk_max + n, scratch.maxima.begin());
    std::nth_element(scratch.maxima.begin(), scratch.maxima.begin() + (top_k - 1), scratch.maxima.begin() + n,
                     [](float a, float b) { return a > b; });
    floor = scratch.maxima[static_cast<size_t>(top_k - 1)];
  }
  const int32_t n_ids = gather(
      row, 0, [&](float logit) { return logit >= floor; }, scratch.ids.data());
  std::fill_n(scratch.measures.begin(), n_ids, uint64_t{1});
  return cut(row, static_cast<uint64_t>(top_k), n_ids, scratch);
}

uint64_t top_p_limit(const RequestState& state, uint64_t total) {
  return std::max<uint64_t>(1, mass_limit(state.top_p_fixed, total));
}

// On the candidates that are not after `last_key`.
uint64_t top_p_cut(const Row& row, const RequestState& state, uint64_t last_key, FilterScratch& scratch) {
  const float factor = state.log2e_over_t;
  uint64_t total = 0;
  float floor_z = -40.0f;  // there and below the weight is 0
  if (last_key == 0) {
    total = sum_weights(row.logits, row.vocab, row.max, factor);
    // Why: a weight at z is at most 2^(39 + z) * (1 + 1e-6). If that is no more than an even share of the mass behind
    // the limit, then all such ids together lie behind it.
    const uint64_t share = (total - top_p_limit(state, total)) / static_cast<uint64_t>(row.vocab);
    if (share > 0) floor_z = static_cast<float>(63 - __builtin_clzll(share) - kWeightBits - 1);
  }
  const auto is_high = [&](float logit) { return (logit - row.max) * factor > floor_z; };
  const int32_t n_ids = gather(row, last_key, is_high, scratch.ids.data());
  for (int32_t i = 0; i < n_ids; ++i) {
    scratch.measures[static_cast<size_t>(i)] =
        weight(row.logits[scratch.ids[static_cast<size_t>(i)]] - row.max, factor);
    if (last_key != 0) total += scratch.measures[static_cast<size_t>(i)];
  }
  return cut(row, top_p_limit(state, total), n_ids, scratch);
}

}  // namespace

FilterScratch::FilterScratch(int32_t vocab_size)
    : ids(static_cast<size_t>(vocab_size)),
      measures(static_cast<size_t>(vocab_size)),
      maxima(static_cast<size_t>(n_chunks(vocab_size))) {}

Kept find_kept(const Row& row, const RequestState& state, uint32_t filters, FilterScratch& scratch) {
  Kept kept{0, kMinusInf};
  if ((filters & kNeedTopK) != 0 && state.top_k < row.n_candidates)
    kept.last_key = top_k_cut(row, state.top_k, scratch);
  if ((filters & kNeedTopP) != 0) kept.last_key = top_p_cut(row, state, kept.last_key, scratch);
  if ((filters & kNeedMinP) != 0) kept.min_distance = state.min_p_threshold;
  return kept;
}

int32_t count_kept(const Row& row, const Kept& kept) {
  int32_t n = 0;
  for (int32_t id = 0; id < row.vocab; ++id) {
    const float logit = row.logits[id];
    const bool stays = (logit > kMinusInf) & (order_key(logit, static_cast<uint32_t>(id)) >= kept.last_key) &
                       (logit - row.max >= kept.min_distance);
    n += stays ? 1 : 0;
  }
  return n;
}

}  // namespace ts
