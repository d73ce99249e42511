// SPDX-License-Identifier: Apache-2.0
// Finds cuts by radix descent over the 32-bit logit keys: one histogram of measures over all ids, then smaller ones
// over the ids of the bucket that the cut falls into. Top-k measures ids by 1, top-p by their integer weight; both
// keep an id while the measure in front of it is below a limit.
#include "cpu/filter.h"

#include "contract/convert.h"
#include "contract/order.h"
#include "contract/weight.h"

namespace ts {
namespace {

constexpr int kShifts[] = {21, 10, 0};  // three levels of 11, 11 and 10 bits
constexpr int kBits[] = {11, 11, 10};

struct CountMeasure {
  uint64_t operator()(float) const { return 1; }
};

struct WeightMeasure {
  float max;
  float log2e_over_t;
  uint64_t operator()(float logit) const { return weight(logit - max, log2e_over_t); }
};

// The order key of the last candidate (among those not after `last_key`) with less than `limit` in front of it;
// `last_key` itself when all have. limit >= 1, so the first candidate always stays.
template <class Measure>
uint64_t cut(const Row& row, uint64_t last_key, const Measure& measure, uint64_t limit, uint32_t* ids) {
  int32_t n_ids = 0;
  for (int32_t id = 0; id < row.vocab; ++id) {
    const float logit = row.logits[id];
    ids[n_ids] = static_cast<uint32_t>(id);
    n_ids += logit > kMinusInf && order_key(logit, static_cast<uint32_t>(id)) >= last_key ? 1 : 0;
  }
  uint64_t before = 0;
  for (int level = 0; level < 3; ++level) {
    const uint32_t bucket_mask = (1u << kBits[level]) - 1;
    const auto bucket_of = [&](uint32_t id) { return (logit_key(row.logits[id]) >> kShifts[level]) & bucket_mask; };
    uint64_t sums[1 << 11] = {};
    for (int32_t i = 0; i < n_ids; ++i) sums[bucket_of(ids[i])] += measure(row.logits[ids[i]]);
    // Walk from the largest logits down to the bucket in which the limit is reached, and go on with its ids.
    uint32_t bucket = bucket_mask;
    while (before + sums[bucket] < limit) {
      before += sums[bucket];
      if (bucket-- == 0) return last_key;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < n_ids; ++i) {
      const uint32_t id = ids[i];
      if (bucket_of(id) == bucket) ids[n++] = id;
    }
    n_ids = n;
  }
  // What is left has one logit, so one measure each, and is in id order: the limit is reached after so many of them.
  const uint64_t each = measure(row.logits[ids[0]]);
  const uint64_t n_stay = (limit - before + each - 1) / each;
  return order_key(row.logits[ids[0]], ids[n_stay - 1]);
}

}  // namespace

bool Kept::all() const { return last_key == 0 && min_distance == kMinusInf; }

Kept find_kept(const Row& row, const RequestState& state, uint32_t filters, uint32_t* ids) {
  Kept kept{0, kMinusInf};
  if ((filters & kNeedTopK) != 0 && state.top_k < row.n_candidates) {
    kept.last_key = cut(row, 0, CountMeasure{}, static_cast<uint64_t>(state.top_k), ids);
  }
  if ((filters & kNeedTopP) != 0) {
    const WeightMeasure measure{row.max, state.log2e_over_t};
    uint64_t total = 0;
    for (int32_t id = 0; id < row.vocab; ++id) {
      if (order_key(row.logits[id], static_cast<uint32_t>(id)) >= kept.last_key) total += measure(row.logits[id]);
    }
    const uint64_t limit = mass_limit(state.top_p_fixed, total);
    kept.last_key = cut(row, kept.last_key, measure, limit > 0 ? limit : 1, ids);
  }
  if ((filters & kNeedMinP) != 0) kept.min_distance = state.min_p_threshold;
  return kept;
}

int32_t count_kept(const Row& row, const Kept& kept) {
  int32_t n = 0;
  for (int32_t id = 0; id < row.vocab; ++id) {
    const float logit = row.logits[id];
    n += logit > kMinusInf && order_key(logit, static_cast<uint32_t>(id)) >= kept.last_key &&
                 logit - row.max >= kept.min_distance
             ? 1
             : 0;
  }
  return n;
}

}  // namespace ts
