// SPDX-License-Identifier: Apache-2.0
// The sampling kernel: one pass over the logits, one token a row.
//
// Method: a row is read by n_slices blocks in tiles of 256 threads x kTileGroups groups of 8 ids, in one of four ways:
//   greedy   the largest logit;
//   noise    coarse noise of every group against a rising bound: lists the few groups that may win;
//   top      lists the ids above a floor, for a top-k that the list holds;
//   both     the winner of the whole row and the top, for top-p, min-p and long top-k.
// The row's last block merges the slices and finishes (finish.cuh). What cannot be proven stays open.
// Measured (H200, V 128256, bf16, 512 real rows, read 32 us, commit 467a096): greedy 34, noise 51, top 58, both 75 us.
// Bytes: the logits once. Floor on an H200: bytes / 4.3 TB/s. Order and ties: contract/order.h.
// Limits: ids below 2^22; offsets are 64-bit. Rows not aligned to 16 bytes are read by element.
#pragma once

#include "cuda/finish.cuh"
#include "cuda/ptx.cuh"
#include "cuda/stream.cuh"
#include "cuda/verify.cuh"
#include "cuda/winners.cuh"

namespace ts::cuda {

enum class Way : uint32_t { kGreedy, kNoise, kTop, kBoth };

constexpr int kListLoads = 8;  // of a slice's list that a thread has under way

// How a row is read, and whether it will stay open whatever is read.
struct RowWay {
  Way way;
  int32_t goal;   // entries that its list should hold
  bool promised;  // and must
  bool open;
};

template <bool kNoise, bool kTop, bool kBoth>
__device__ RowWay way_of(const RowState& state, const Call& call) {
  if ((state.needs & kNeedSample) == 0) return {Way::kGreedy, 0, false, false};
  const bool top_k = (state.needs & kNeedTopK) != 0;
  const bool cuts = (state.needs & (kNeedTopK | kNeedTopP)) != 0;
  if (kTop && top_k && state.top_k <= kListGoal) return {Way::kTop, state.top_k, true, false};
  if (kNoise && !cuts && (state.needs & kNeedMinP) == 0) return {Way::kNoise, 0, false, false};
  // A cut that is wanted for itself is the exact kernel's.
  if (kBoth && !(cuts && call.exact_cut != 0)) return {Way::kBoth, max(kListGoal / call.n_slices, 64), false, false};
  return {Way::kGreedy, 0, false, true};
}

// The block's largest logit key and flags, and for a greedy row the first id with it.
struct SliceTop {
  uint32_t key;
  uint32_t id;
  uint32_t flags;
};
template <class Type>
__device__ SliceTop slice_top(const RowSource<Type>& source, const ThreadPick& mine, bool greedy,
                              SampleShared& shared) {
  const uint32_t warp_key = __reduce_max_sync(0xFFFFFFFFu, logit_key(mine.top));
  const uint32_t warp_flags = __reduce_or_sync(0xFFFFFFFFu, mine.flags);
  if (threadIdx.x % 32 == 0) {
    shared.tops[threadIdx.x / 32] = warp_key;
    shared.flags[threadIdx.x / 32] = warp_flags;
  }
  if (threadIdx.x == 0) shared.first = kNoId;
  __syncthreads();
  SliceTop top{0, kNoId, 0};
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) {
    top.key = max(top.key, shared.tops[w]);
    top.flags |= shared.flags[w];
  }
  if (greedy) {
    if (logit_key(mine.top) == top.key) atomicMin(&shared.first, first_id(source, mine));
    __syncthreads();
    top.id = shared.first;
  }
  return top;
}

// Lists what reaches the floor of the lists of a row's slices, of which shared.sizes has the sizes. Returns the list's
// floor, which rises where they are too many; at least kListGoal stay above it then. All threads; barriers at both ends.
static __device__ __noinline__ uint64_t gather_lists(const uint64_t* row_lists, int32_t n_slices, uint64_t floor) {
  SampleShared& shared = sample_shared();
  const int32_t share = kThreads / n_slices;  // threads to a slice
  const int32_t from = threadIdx.x / share;
#pragma unroll 1
  while (true) {
    if (threadIdx.x == 0) shared.list.count = 0;
    __syncthreads();
    const auto size = static_cast<int32_t>(shared.sizes[from]);
#pragma unroll 1
    for (int32_t first = threadIdx.x % share; first < size; first += share * kListLoads) {
      uint64_t keys[kListLoads];
#pragma unroll
      for (int i = 0; i < kListLoads; ++i) {
        const int32_t at = first + i * share;
        keys[i] = at < size ? row_lists[from * kSliceListCapacity + at] : 0;
      }
#pragma unroll
      for (int i = 0; i < kListLoads; ++i) {
        if (keys[i] != 0 && keys[i] >= floor) push(shared.list, keys[i]);
      }
    }
    __syncthreads();
    if (shared.list.count <= kListCapacity) break;
    floor = nth_key(kListCapacity, kListGoal);
  }
  return floor;
}

template <class Type, bool kNoise, bool kTop, bool kBoth>
__global__ void __launch_bounds__(kThreads, 4)
    sample_kernel(const Call call, RowPick* picks, SlicePick* slice_picks, uint64_t* lists, const Outputs out) {
  wait_for_predecessor();
  release_successor();
  SampleShared& shared = sample_shared();
  const int64_t row_index = blockIdx.x / call.n_slices;
  const int32_t slice = blockIdx.x % call.n_slices;
  const RowSource<Type> source(call, row_index, slice, call.n_slices);
  const Tiles<Type> tiles(source, shared.tiles);
  if ((kNoise || kBoth) && reads_ahead<Type>) tiles.start();
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RowWay way = way_of<kNoise, kTop, kBoth>(row.state, call);
  if (threadIdx.x == 0) {
    for (int32_t& bound : shared.bounds) bound = ordered(kNoBound);
    shared.n_winners = 0;
    shared.n_scores = 0;
    if (kTop || kBoth) {
      shared.seed_floors[0] = shared.seed_floors[1] = ~0ull;
      shared.seed_top = 0;
      shared.n_marked = 0;
    }
  }
  __syncthreads();
  ThreadPick mine;
  uint64_t floor_key = 0;
  Scored best = no_score();  // of way noise
  uint32_t n_best = 1;       // of shared.best_scores, of way both
  if (kTop && way.way == Way::kTop) {
    floor_key = stream<false, true>(source, tiles, row, way.goal, way.promised, mine);
  } else if (kNoise && way.way == Way::kNoise) {
    stream<true, false>(source, tiles, row, 0, false, mine);
    best = find_winner(source, row.key, row.state.inv_temperature, row.state.log2e_over_t);
  } else if (kBoth && way.way == Way::kBoth) {
    floor_key = stream<true, true>(source, tiles, row, way.goal, false, mine);
    n_best = find_best_scores(source, row.key, row.state.inv_temperature, row.state.log2e_over_t,
                              wants_contenders(row.state) || call.n_slices == 1);
  } else {
    stream_greedy(tiles, mine);
  }
  const bool listed = (kTop || kBoth) && (way.way == Way::kTop || way.way == Way::kBoth);

  // The slice's answer.
  SliceTop top = slice_top(source, mine, way.way == Way::kGreedy, shared);
  int32_t n_list = listed ? static_cast<int32_t>(shared.list.count) : 0;
  RowPick& pick = picks[row_index];

  if (call.n_slices > 1) {
    SlicePick* slices = slice_picks + row_index * call.n_slices;
    uint64_t* row_lists = lists + row_index * call.n_slices * kSliceListCapacity;
    if ((kTop || kBoth) && listed) {
      if (n_list > kSliceListCapacity) floor_key = thin(n_list, way.promised ? way.goal : 0, kSliceListCapacity);
      for (int32_t i = threadIdx.x; i < n_list; i += kThreads) {
        row_lists[slice * kSliceListCapacity + i] = shared.list.entries[i];
      }
    } else if (threadIdx.x >= 32) {
      return;
    }
    SlicePick& told = slices[slice];
    if (threadIdx.x == 0) {
      told.n_best = n_best;
      told.floor_key = floor_key;
      told.top_key = top.key;
      told.first = top.id;
      told.flags = top.flags;
      told.n_list = static_cast<uint32_t>(n_list);
    }
    if (kBoth && way.way == Way::kBoth) {
      if (threadIdx.x < kTopScores) told.best[threadIdx.x] = shared.best_scores[threadIdx.x];
    } else if (kNoise && threadIdx.x == 0) {
      told.best[0] = best;
    }
    const auto n_slices = static_cast<uint32_t>(call.n_slices);
    if (!(listed ? last_to_arrive(&pick.arrivals, n_slices, &shared.flag) : last_warp(&pick.arrivals, n_slices)))
      return;

    // Merge, each warp for itself: one lane a slice.
    const int32_t lane = threadIdx.x % 32;
    const bool mine_too = lane < call.n_slices;
    SlicePick one{};
    if (mine_too) one = slices[lane];
    top.key = __reduce_max_sync(0xFFFFFFFFu, mine_too ? one.top_key : 0u);
    top.id = __reduce_min_sync(0xFFFFFFFFu, mine_too && one.top_key == top.key ? one.first : kNoId);
    top.flags = __reduce_or_sync(0xFFFFFFFFu, one.flags);
    if (kNoise && way.way == Way::kNoise) best = warp_reduce(mine_too ? one.best[0] : no_score(), Better{});
    if (kBoth && way.way == Way::kBoth) {
      if (threadIdx.x < kTopScores) shared.best_scores[threadIdx.x] = no_score();
      if (wants_contenders(row.state)) {
        n_best = __reduce_min_sync(0xFFFFFFFFu, mine_too ? one.n_best : kTopScores);
        const uint32_t n_scores = n_slices * kTopScores;
        if (threadIdx.x < n_scores) {
          shared.scores[threadIdx.x] = slices[threadIdx.x / kTopScores].best[threadIdx.x % kTopScores];
        }
        __syncthreads();
        rank_scores(n_scores);
      } else {
        // The best of what min-p keeps, unless a slice keeps something and has told of something else.
        const float min_distance = (row.state.needs & kNeedMinP) != 0 ? row.state.min_p_threshold : kMinusInf;
        const float max = logit_of(static_cast<uint64_t>(top.key) << 32);
        const bool kept = mine_too && one.best[0].logit - max >= min_distance;
        const bool keeps = mine_too && logit_of(static_cast<uint64_t>(one.top_key) << 32) - max >= min_distance;
        n_best = __any_sync(0xFFFFFFFFu, keeps && !kept) ? 0 : 1;
        best = warp_reduce(kept ? one.best[0] : no_score(), Better{});
        __syncthreads();
        if (threadIdx.x == 0) shared.best_scores[0] = best;
      }
      // A barrier follows, with the list.
    }
    if ((kTop || kBoth) && listed) {
      floor_key = warp_reduce(static_cast<unsigned long long>(one.floor_key), Max{});
      if (threadIdx.x < call.n_slices) shared.sizes[threadIdx.x] = one.n_list;
      floor_key = gather_lists(row_lists, call.n_slices, floor_key);
      n_list = static_cast<int32_t>(shared.list.count);
    }
  }

  // The row's answer.
  row.max = logit_of(static_cast<uint64_t>(top.key) << 32);
  ListOutcome outcome{way.open ? Open::kAll : Open::kNo, call.invalid_token, 0};
  if (!slot_in_pool || !(row.max > kMinusInf)) {
    top.flags |= kRowEmpty;
    outcome.open = Open::kNo;
  } else if (way.open) {
    // Left to the exact kernel.
  } else if ((kTop || kBoth) && listed) {
    const RowContext finished = row;  // Why a copy: what is passed by reference would leave its registers for good.
    const ListedRow at{n_list, floor_key, call.exact_cut != 0, finished, pick};
    if (kBoth && way.way == Way::kBoth) {
      outcome = finish_winner(at, n_best);
    } else {
      outcome = finish_top(at);
    }
  } else {
    outcome.token = way.way == Way::kGreedy ? top.id : best.id;
  }
  if (threadIdx.x == 0) {
    pick.last_key = outcome.last_key;
    pick.min_distance = (row.state.needs & kNeedMinP) != 0 ? row.state.min_p_threshold : kMinusInf;
    pick.max = row.max;
    pick.token = outcome.token;
    pick.flags = top.flags;
    pick.open = static_cast<uint32_t>(outcome.open);
    if (outcome.open != Open::kNo) {
      call.open_rows->rows[atomicAdd(&call.open_rows->n, 1u)] = static_cast<uint32_t>(row_index);
    }
  }
  if (outcome.open == Open::kNo && threadIdx.x < 32) end_row(call, picks, row_index, outcome.token, top.flags, out);
}

}  // namespace ts::cuda
