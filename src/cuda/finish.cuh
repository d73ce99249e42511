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

// The best of the list's first n entries that min-p keeps.
__device__ inline Scored draw_list(const ListShared& list, int32_t n, float min_distance, const RowContext& row,
                                   ReduceShared& reduce) {
  Scored best = no_score();
  WinBound bound;
  for (int32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t order = list.entries[i];
    const float logit = logit_of(order);
    if (!(logit - row.max >= min_distance)) continue;
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

// Weights summed in front of and with a run of entries that each thread owns.
struct MassScan {
  uint64_t before;  // of the thread's run
  uint64_t total;
};

// The list's weights, in its order: thread t owns entries [t * per_thread, (t + 1) * per_thread) below n.
template <class WeightOf>
__device__ MassScan scan_masses(int32_t n, int32_t per_thread, const WeightOf& weight_of, CutShared& shared) {
  unsigned long long mine = 0;
  for (int32_t i = 0; i < per_thread; ++i) {
    const int32_t at = threadIdx.x * per_thread + i;
    if (at < n) mine += weight_of(at);
  }
  unsigned long long inclusive = mine;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned long long lower = __shfl_up_sync(0xFFFFFFFFu, inclusive, offset);
    if (threadIdx.x % 32 >= offset) inclusive += lower;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 31) shared.scan[threadIdx.x / 32] = inclusive;
  __syncthreads();
  MassScan scan{inclusive - mine, 0};
  for (uint32_t w = 0; w < kThreads / 32; ++w) {
    if (w < threadIdx.x / 32) scan.before += shared.scan[w];
    scan.total += shared.scan[w];
  }
  __syncthreads();
  return scan;
}

// All candidates with an order key of at least floor_key are among the first n entries.
__device__ inline ListOutcome finish_list(ListShared& list, int32_t n, uint64_t floor_key, ApproximateMass mass,
                                          bool exact_cut, const RowContext& row, CutShared& shared,
                                          ReduceShared& reduce) {
  const RequestState& state = row.state;
  const ListOutcome open{true, 0, 0};
  if (n > kSortable) {
    // More than a sort takes: the largest kSortable will do, and the list is complete down to them.
    floor_key = nth_key(list, n, kSortable, shared);
    keep_from(list, n, floor_key);
    n = kSortable;
  }
  sort_list(list, n);
  const bool whole = floor_key == 0;  // the list is the row
  uint64_t last_key = 0;
  if ((state.needs & kNeedTopK) != 0) {
    if (n >= state.top_k) {
      n = state.top_k;
      last_key = list.entries[n - 1];
    } else if (!whole) {
      return open;
    }
  }
  const bool bounded = last_key != 0 || whole;  // what is kept so far is in the list
  float min_distance = kMinusInf;
  if ((state.needs & kNeedMinP) != 0) min_distance = state.min_p_threshold;

  if ((state.needs & kNeedTopP) == 0) {
    if (!bounded && !(logit_of(floor_key) - row.max < min_distance)) return open;
    const Scored best = draw_list(list, n, min_distance, row, reduce);
    return {false, best.id, last_key};
  }

  const auto weight_at = [&](int32_t i) { return weight(logit_of(list.entries[i]) - row.max, state.log2e_over_t); };
  const int32_t per_thread = (n + kThreads - 1) / kThreads;
  const MassScan scan = scan_masses(n, per_thread, weight_at, shared);
  // The limit is known exactly, or only to lie between low and high.
  uint64_t high, low;
  if (bounded) {
    high = low = max(mass_limit(state.top_p_fixed, scan.total), uint64_t{1});
  } else {
    if (exact_cut || !(mass.value < 1e9f)) return open;
    const double limit = static_cast<double>(mass.value) * static_cast<double>(kWeightOne) *
                         (static_cast<double>(state.top_p_fixed) * 0x1p-32);
    high = static_cast<uint64_t>(limit * (1.0 + mass.error)) + 2;
    low = static_cast<uint64_t>(limit * (1.0 - mass.error));
    if (scan.total < high) return open;
  }
  // The entries with less than `high` in front of them stay; those with less than `low` surely do.
  int32_t n_stay = 0;
  int32_t n_sure = 0;
  uint64_t before = scan.before;
  for (int32_t i = 0; i < per_thread; ++i) {
    const int32_t at = threadIdx.x * per_thread + i;
    if (at >= n) break;
    n_stay += before < high ? 1 : 0;
    n_sure += before < low || at == 0 ? 1 : 0;
    before += weight_at(at);
  }
  n_stay = block_reduce(n_stay, reduce.as<int32_t>(), Add{});
  n_sure = block_reduce(n_sure, reduce.as<int32_t>(), Add{});
  const Scored best = draw_list(list, n_stay, min_distance, row, reduce);
  // Why: a winner of the larger set that is in the smaller one is that one's winner too.
  if (order_key(best.logit, best.id) < list.entries[n_sure - 1]) return open;
  return {false, best.id, bounded ? list.entries[n_stay - 1] : 0};
}

}  // namespace ts::cuda
