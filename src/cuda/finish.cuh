// SPDX-License-Identifier: Apache-2.0
// From a row's list to its token, by one block: the filters and the draw, on the few candidates at the top.
//
// A filter is decided here when the list provably holds what it needs; otherwise the row stays open for the exact
// kernel.
#pragma once

#include "contract/weight.h"
#include "cuda/list.cuh"
#include "cuda/row_context.cuh"

namespace ts::cuda {

// A row's approximate mass, in units of the largest candidate's weight, and its relative error.
struct ApproximateMass {
  float value;
  float error;
};

struct ListOutcome {
  bool open;
  uint32_t token;
  uint64_t last_key;
};

// The best of the list's entries that are kept.
__device__ inline Scored draw_list(const ListShared& list, int32_t n, uint64_t last_key, float min_distance,
                                   const RowContext& row, ReduceShared& reduce) {
  Scored best = no_score();
  WinBound bound;
  for (int32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t order = list.entries[i];
    const float logit = logit_of(order);
    if (order < last_key || !(logit - row.max >= min_distance)) continue;
    const uint32_t id = id_of(order);
    const uint32_t coarse = coarse_bits(coarse_block(row.key, id / kCoarsePerBlock), id);
    if (!bound.may_win(logit, coarse)) continue;
    const Scored scored = score_of(logit, id, coarse, row.state.inv_temperature, row.key);
    if (better(scored, best).id == best.id) continue;
    best = scored;
    bound = WinBound(best, row.state.inv_temperature, row.state.log2e_over_t);
  }
  return block_reduce(best, reduce.as<Scored>(), Better{});
}

// Sum of the weights of the list's entries for which take(key) holds.
template <class Take>
__device__ uint64_t list_mass(const ListShared& list, int32_t n, const RowContext& row, const Take& take,
                              ReduceShared& reduce) {
  unsigned long long sum = 0;
  for (int32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t order = list.entries[i];
    if (take(order)) sum += weight(logit_of(order) - row.max, row.state.log2e_over_t);
  }
  return block_reduce(sum, reduce.as<unsigned long long>(), Add{});
}

// All candidates with an order key of at least floor_key are among the first n entries.
__device__ inline ListOutcome finish_list(const ListShared& list, int32_t n, uint64_t floor_key, ApproximateMass mass,
                                          bool exact_cut, const RowContext& row, CutShared& cut_shared,
                                          ReduceShared& reduce) {
  const RequestState& state = row.state;
  const bool complete = floor_key == 0;
  const ListOutcome open{true, 0, 0};
  uint64_t last_key = 0;
  if ((state.needs & kNeedTopK) != 0) {
    if (n >= state.top_k) {
      last_key = nth_key(list, n, state.top_k, cut_shared);
    } else if (!complete) {
      return open;
    }
  }
  const bool bounded = last_key != 0 || complete;  // what is kept so far is in the list
  float min_distance = kMinusInf;
  if ((state.needs & kNeedMinP) != 0) min_distance = state.min_p_threshold;

  if ((state.needs & kNeedTopP) == 0) {
    if (!bounded && !(logit_of(floor_key) - row.max < min_distance)) return open;
    const Scored best = draw_list(list, n, last_key, min_distance, row, reduce);
    return {false, best.id, last_key};
  }

  const auto weigh_kept = [&](auto visit) {
    for (int32_t i = threadIdx.x; i < n; i += kThreads) {
      const uint64_t order = list.entries[i];
      if (order >= last_key) visit(order, weight(logit_of(order) - row.max, state.log2e_over_t));
    }
  };
  const uint64_t in_list = list_mass(
      list, n, row, [&](uint64_t order) { return order >= last_key; }, reduce);
  if (bounded) {
    const uint64_t limit = mass_limit(state.top_p_fixed, in_list);
    last_key = block_cut(weigh_kept, limit > 0 ? limit : 1, cut_shared).key;
    const Scored best = draw_list(list, n, last_key, min_distance, row, reduce);
    return {false, best.id, last_key};
  }
  // The total is known within an error: draw from the larger set, and look whether the smaller one has the winner too.
  if (exact_cut || !(mass.value < 1e9f)) return open;
  const double limit = static_cast<double>(mass.value) * static_cast<double>(kWeightOne) *
                       (static_cast<double>(state.top_p_fixed) * 0x1p-32);
  const uint64_t high = static_cast<uint64_t>(limit * (1.0 + mass.error)) + 2;
  const uint64_t low = static_cast<uint64_t>(limit * (1.0 - mass.error));
  if (in_list < high) return open;
  const uint64_t high_key = block_cut(weigh_kept, high, cut_shared).key;
  const Scored best = draw_list(list, n, high_key, min_distance, row, reduce);
  // Why: the first candidate is always kept, so a winner with nothing in front is right whatever the limit.
  const uint64_t best_key = order_key(best.logit, best.id);
  const uint64_t before = list_mass(
      list, n, row, [&](uint64_t order) { return order > best_key; }, reduce);
  if (before != 0 && before + 2 >= low) return open;
  return {false, best.id, 0};
}

}  // namespace ts::cuda
