// SPDX-License-Identifier: Apache-2.0
// From a row's list to its token, by one block: the filters and the draw, on the few candidates at the top.
//
// The kept set is a prefix of the order, so a winner of a larger set that is kept is the kept set's winner too: most
// rows need no cut, only the weight in front of their winner. What the list cannot prove stays open for the exact kernel.
#pragma once

#include "cuda/list.cuh"
#include "cuda/mass.cuh"
#include "cuda/row_context.cuh"

namespace ts::cuda {

struct ListOutcome {
  Open open;
  uint32_t token;
  uint64_t last_key;
};

// The best of the list's first n entries that are not below last_key and that min-p keeps.
static __device__ __noinline__ Scored draw_list(int32_t n, uint64_t last_key, float min_distance,
                                                const RowContext& row) {
  const ListShared& list = sample_shared().list;
  ReduceShared& reduce = sample_shared().reduce;
  const float factor = row.state.log2e_over_t;
  const auto kept = [&](uint64_t order) { return order >= last_key && logit_of(order) - row.max >= min_distance; };
  const auto coarse_of = [&](uint64_t order) {
    const uint32_t id = id_of(order);
    return coarse_bits(cold_noise_block(row.key, id / kCoarsePerBlock, 0), id);
  };
  float bound = kNoBound;
  uint32_t first_coarse = 0;
  // Why not for few: scoring them all takes as long as scoring one.
  if (n > 64) {
#pragma unroll 1
    for (int32_t i = threadIdx.x; i < n; i += kThreads) {
      const uint64_t order = list.entries[i];
      const uint32_t coarse = coarse_of(order);
      if (i < kThreads) first_coarse = coarse;
      if (kept(order)) bound = fmaxf(bound, lower_score(logit_of(order), coarse, factor));
    }
    bound = block_reduce(bound, reduce.as<float>(), Max{});
  }
  Scored best = no_score();
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t order = list.entries[i];
    if (!kept(order)) continue;
    const uint32_t coarse = n > 64 && i < kThreads ? first_coarse : coarse_of(order);
    if (!may_win(logit_of(order), coarse, factor, bound)) continue;
    best = better(best, score_of(logit_of(order), id_of(order), coarse, row.state.inv_temperature, row.key));
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
__device__ MassScan scan_masses(int32_t n, int32_t per_thread, const WeightOf& weight_of) {
  CutShared& shared = sample_shared().cut;
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

// A row at its finish: its list holds all candidates with an order key of at least floor_key among its first n entries.
struct ListedRow {
  int32_t n;
  uint64_t floor_key;
  bool exact_cut;  // the cut itself is wanted, not only the token
  const RowContext& row;
  RowPick& pick;  // takes the contenders

  __device__ float min_distance() const {
    return (row.state.needs & kNeedMinP) != 0 ? row.state.min_p_threshold : kMinusInf;
  }
  __device__ uint64_t weight_of(uint64_t order) const {
    return weight(logit_of(order) - row.max, row.state.log2e_over_t);
  }
  // Whether the list has all that min-p keeps.
  __device__ bool has_min_p() const { return floor_key == 0 || logit_of(floor_key) - row.max < min_distance(); }
};

// Weight and number of the entries down to last_key, and of those in front of `order`.
struct FrontSums {
  unsigned long long total;
  unsigned long long before;
  int32_t n_before;
};
struct AddFrontSums {
  __device__ FrontSums operator()(FrontSums a, FrontSums b) const {
    return {a.total + b.total, a.before + b.before, a.n_before + b.n_before};
  }
};
template <>
__device__ inline FrontSums shuffle_xor(FrontSums value, int mask) {
  return {shuffle_xor(value.total, mask), shuffle_xor(value.before, mask), shuffle_xor(value.n_before, mask)};
}
static __device__ __noinline__ FrontSums front_sums(const ListedRow& at, uint64_t last_key, uint64_t order) {
  unsigned long long total = 0;
  unsigned long long before = 0;
  int32_t n_before = 0;
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < at.n; i += kThreads) {
    const uint64_t entry = sample_shared().list.entries[i];
    if (entry < last_key) continue;
    const uint64_t w = at.weight_of(entry);
    total += w;
    if (entry > order) {
      before += w;
      ++n_before;
    }
  }
  return block_reduce(FrontSums{total, before, n_before}, sample_shared().reduce.as<FrontSums>(), AddFrontSums{});
}

// Cuts by top-p, and draws. The list must have all that is left: last_key is what top-k left, or 0 and the list is whole.
static __device__ __noinline__ ListOutcome cut_and_draw(ListedRow at, uint64_t last_key) {
  if (last_key != 0) {
    keep_from(at.n, last_key);
    at.n = static_cast<int32_t>(sample_shared().list.count);
    __syncthreads();
  }
  if (at.n > kSortable) return {Open::kAll, 0, 0};
  sort_list(at.n);
  const auto weight_at = [&](int32_t i) { return at.weight_of(sample_shared().list.entries[i]); };
  const int32_t per_thread = (at.n + kThreads - 1) / kThreads;
  const MassScan scan = scan_masses(at.n, per_thread, weight_at);
  const uint64_t limit = cut_limit(at.row.state.top_p_fixed, scan.total);
  int32_t n_stay = 0;
  uint64_t before = scan.before;
  for (int32_t i = 0; i < per_thread; ++i) {
    const int32_t index = threadIdx.x * per_thread + i;
    if (index >= at.n) break;
    n_stay += before < limit ? 1 : 0;
    before += weight_at(index);
  }
  n_stay = block_reduce(n_stay, sample_shared().reduce.as<int32_t>(), Add{});
  const Scored best = draw_list(n_stay, 0, at.min_distance(), at.row);
  return {Open::kNo, best.id, sample_shared().list.entries[n_stay - 1]};
}

// The row's winner with top-p, from winners of larger sets: what is kept lies before a winner that is not. What is not in the
// list weighs between nothing and as much as the floor, each; winners that this leaves open are the row's contenders.
// last_key: what top-k left, 0: top-k is off. n_best: of shared.best_scores, 0: the winner that is given is of the list.
constexpr uint32_t kMaxTries = 6;
static __device__ __noinline__ ListOutcome winner_in_list(ListedRow at, uint64_t last_key, Scored winner,
                                                          uint32_t n_best) {
  const bool whole = last_key != 0 || at.floor_key == 0;
  uint32_t n_contenders = 0;
  uint32_t n_unknown = 0;
  uint64_t front = 0;    // what is kept lies before it, or is a contender
  bool in_list = whole;  // what is kept is in the list
  uint64_t low = 0;
  uint64_t high = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < kMaxTries && n_contenders < kMaxContenders; ++i) {
    if (i < n_best) {
      winner = sample_shared().best_scores[i];
      if (winner.id == kNoId) continue;
    } else if (i > 0) {
      if (!in_list && front < at.floor_key) break;
      winner = draw_list(at.n, max(last_key, front + 1), at.min_distance(), at.row);
      if (winner.id == kNoId) break;
    }
    const uint64_t order = order_key(winner.logit, winner.id);
    if (order < front) continue;
    front = order;
    if (!(winner.logit - at.row.max >= at.min_distance())) continue;
    const FrontSums sums = front_sums(at, last_key, order);
    if (high == 0) {
      low = high = cut_limit(at.row.state.top_p_fixed, sums.total);
      if (!whole) {
        // Why more: neighbouring weights may be out of order by their last bit.
        const uint64_t most = at.weight_of(at.floor_key);
        const uint64_t missing = static_cast<uint64_t>(at.row.vocab - at.n) * (most + most / 65536 + 1);
        high = cut_limit(at.row.state.top_p_fixed, sums.total + missing);
        in_list = sums.total >= high;
      }
    }
    const bool known = whole || order >= at.floor_key;
    if (known && sums.before < low) {
      if (n_contenders == 0) return {Open::kNo, winner.id, last_key};
    } else if (sums.before >= high) {
      continue;
    }
    if (threadIdx.x == 0) {
      at.pick.contenders[n_contenders] = winner.id;
      at.pick.logits[n_contenders] = winner.logit;
      at.pick.before[n_contenders] = known ? sums.before : kUnknownMass;
      at.pick.n_contenders = n_contenders + 1;
    }
    ++n_contenders;
    n_unknown += known ? 0 : 1;
    if ((known && sums.before < low) || n_unknown == kMaxUnknown) break;
  }
  if (n_contenders != 0) return {Open::kContenders, 0, 0};
  return whole ? cut_and_draw(at, last_key) : ListOutcome{Open::kAll, 0, 0};
}

// A row with a top-k that the list may hold. No winner is known.
__device__ inline ListOutcome finish_top(ListedRow at) {
  const RowState& state = at.row.state;
  uint64_t last_key = 0;
  if (at.n >= state.top_k) {
    last_key = kth_key(at.n, state.top_k);
  } else if (at.floor_key != 0) {
    return {Open::kAll, 0, 0};
  }
  const bool with_top_p = (state.needs & kNeedTopP) != 0;
  if (with_top_p && at.exact_cut) return cut_and_draw(at, last_key);
  const Scored best = draw_list(at.n, last_key, at.min_distance(), at.row);
  if (with_top_p) return winner_in_list(at, last_key, best, 0);
  return {Open::kNo, best.id, last_key};
}

// A row whose best unfiltered scores are known, n_best of them.
__device__ inline ListOutcome finish_winner(ListedRow at, uint32_t n_best) {
  const RowState& state = at.row.state;
  const ListOutcome open{Open::kAll, 0, 0};
  const bool with_top_k = (state.needs & kNeedTopK) != 0;
  if ((state.needs & kNeedTopP) != 0) return with_top_k ? open : winner_in_list(at, 0, no_score(), n_best);
  Scored winner = no_score();
  for (uint32_t i = 0; i < n_best && winner.id == kNoId; ++i) {
    const Scored best = sample_shared().best_scores[i];
    if (best.id != kNoId && best.logit - at.row.max >= at.min_distance()) winner = best;
  }
  if (winner.id == kNoId) {
    // What min-p keeps lies before them all.
    if (!at.has_min_p()) return open;
    winner = draw_list(at.n, 0, at.min_distance(), at.row);
  }
  if (with_top_k) {
    const uint64_t order = order_key(winner.logit, winner.id);
    if (order < at.floor_key || front_sums(at, 0, order).n_before >= state.top_k) return open;
  }
  return {Open::kNo, winner.id, 0};
}

}  // namespace ts::cuda
