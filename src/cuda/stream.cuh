// SPDX-License-Identifier: Apache-2.0
// The pass over a slice of a row for any of three ends: the largest logit (greedy); the winner of the whole row (noise
// against a bound); the top of the row (a list above a floor). Barriers inside: only where floors are set.
#pragma once

#include "cuda/marks.cuh"

namespace ts::cuda {

// What a thread gathers over its groups.
struct ThreadPick {
  float top = kMinusInf;
  int32_t top_group = 0;  // the first group with it, where it is asked for
  uint32_t flags = 0;
};

// A greedy row's largest logit.
template <class Type>
__device__ void stream_greedy(const Tiles<Type>& tiles, ThreadPick& mine) {
  tiles.walk(mine.flags, [&](int32_t first, const auto& raw) {
#pragma unroll
    for (int i = 0; i < kTileGroups<Type>; ++i) {
      const float top = raw(i).top(mine.flags);
      if (top > mine.top) {
        mine.top = top;
        mine.top_group = first + i * kThreads;
      }
    }
  });
}

// The first id with a thread's largest logit; kNoId if it has none.
template <class Type>
__device__ uint32_t first_id(const RowSource<Type>& source, const ThreadPick& mine) {
  if (!(mine.top > kMinusInf)) return kNoId;
  float logits[kGroup];
  source.load(mine.top_group).clean(logits);
  int at = 0;
#pragma unroll
  for (int j = kGroup - 1; j >= 0; --j) at = logits[j] == mine.top ? j : at;
  return static_cast<uint32_t>(mine.top_group * kGroup + at);
}

// Of how many of a warp's threads the largest logits seed a floor that need not promise anything.
constexpr int32_t kFloorOfWarp = 8;

// Whether the row wants its best scores, not the best one alone.
__device__ inline bool wants_contenders(const RowState& state) { return (state.needs & kNeedTopP) != 0; }

// The least of the bounds, ordered(), as they are now.
__device__ inline int32_t least_bound() { return least_of_four_now(sample_shared().bounds); }

// The tile at which the floor is raised, by what the threads have seen by then; of a list that need not hold its goal, if
// more groups than this are marked by then.
constexpr uint32_t kMarkedEnough = 220;
constexpr int32_t kRaiseAt = 3;
constexpr uint32_t kLastId = (1u << 22) - 1;

// The noise loop (kNoise), the top of the row (kTop), or both.
//   goal       candidates that the list must hold before its floor may rise
//   promised   every list must hold `goal` candidates, or all there are
// Method: the first tile seeds the bound with its groups' largest logits, and the floor with its threads' largest.
// Leaves the groups that may win in shared.winners, the top in shared.list. Returns the floor: the list is complete down to
// it. All threads; ends with a barrier.
template <bool kNoise, bool kTop, class Type>
__device__ uint64_t stream(const RowSource<Type>& source, const Tiles<Type>& tiles, const RowContext& row, int32_t goal,
                           bool promised, ThreadPick& mine) {
  SampleShared& shared = sample_shared();
  constexpr int kGroups = kTileGroups<Type>;
  constexpr int kPair = 2;  // groups whose noise is drawn together: more would need too many registers
  const float factor = row.state.log2e_over_t;
  uint64_t floor_key = 0;
  float floor_logit = kMinusInf;
  // What min-p surely drops need not be looked at: the best of what it keeps is wanted.
  [[maybe_unused]] float least_logit = kMinusInf;
  [[maybe_unused]] const float min_distance =
      (row.state.needs & kNeedMinP) != 0 ? row.state.min_p_threshold : kMinusInf;
  int32_t n_tiles = 0;
  // Why a bound for each quarter of the threads: the least of them is one of the kTopScores-th best score.
  [[maybe_unused]] int32_t* my_bound = shared.bounds + (kTop ? threadIdx.x / (kThreads / kTopScores) : 0);
  const auto visit = [&](int32_t first, const auto& raw) {
    float tops[kGroups];
    bool special = false;  // a group has a NaN or an infinity
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      tops[i] = raw(i).stored_top();
      special |= !(tops[i] <= kFloatMax);
    }
    if (special) {
#pragma unroll
      for (int i = 0; i < kGroups; ++i) tops[i] = raw(i).top(mine.flags);
    }
    if (kTop && n_tiles <= (promised ? kRaiseAt : 0)) {
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        if (tops[i] > mine.top) mine.top_group = first + i * kThreads;
        mine.top = fmaxf(mine.top, tops[i]);
      }
    }
    float tile_top = tops[0];
#pragma unroll
    for (int i = 1; i < kGroups; ++i) tile_top = fmaxf(tile_top, tops[i]);
    mine.top = fmaxf(mine.top, tile_top);
    const bool seeding = n_tiles == 0;
    const bool raising = kTop && n_tiles == kRaiseAt;
    ++n_tiles;
    if (seeding || raising) {
      if (kNoise && kTop && seeding && min_distance > kMinusInf) {
        const uint32_t most = __reduce_max_sync(0xFFFFFFFFu, logit_key(tile_top));
        if (threadIdx.x % 32 == 0) atomicMax(&shared.seed_top, most);
        __syncthreads();
        // Why less: for what the difference to the maximum is rounded by.
        const float seed_top = logit_of(static_cast<uint64_t>(shared.seed_top) << 32);
        least_logit = seed_top + min_distance - 1e-6f * (fabsf(seed_top) - min_distance);
        if (!(seed_top > kMinusInf)) least_logit = kMinusInf;
      }
      if (kNoise && seeding) {
        PhiloxBlock blocks[kPair];
        coarse_blocks<kPair, kThreads>(row.key, static_cast<uint32_t>(first), blocks);
        float lower = kNoBound;
#pragma unroll
        for (int i = 0; i < kPair; ++i) {
          const float top = !kTop || tops[i] >= least_logit ? tops[i] : kMinusInf;
          lower = fmaxf(lower, lower_score_of_top(raw(i), top, blocks[i], factor));
        }
        const int32_t most = __reduce_max_sync(0xFFFFFFFFu, ordered(lower));
        if (threadIdx.x % 32 == 0) atomicMax(my_bound, most);
      }
      if (kTop && raising) {
        __syncthreads();  // Why: all that the tiles before have marked is counted.
        if (threadIdx.x == 0) shared.raises = shared.n_marked > kMarkedEnough ? 1u : 0u;
      }
      if constexpr (kTop) {
        const int32_t per_warp = promised ? (goal + 7) / 8 : kFloorOfWarp;
        // Why: fewer values than the goal would promise too little.
        if (per_warp <= 32) {
          const auto last_id =
              seeding || promised ? static_cast<uint32_t>(mine.top_group * kGroup + kGroup - 1) : kLastId;
          bound_below(order_key(mine.top, last_id), per_warp, &shared.seed_floors[raising ? 1 : 0]);
        }
      }
      __syncthreads();
      if constexpr (kTop) {
        const uint64_t seeded = shared.seed_floors[raising ? 1 : 0];
        const float seeded_logit = seeded != ~uint64_t{0} ? logit_of(seeded) : kMinusInf;
        // Why above: of equal logits this floor would drop none, the one before did.
        const bool rises = promised || (shared.raises != 0 && seeded_logit > floor_logit);
        if (seeded_logit > kMinusInf && (seeding || rises)) {
          floor_logit = seeded_logit;
          floor_key = seeded;
        }
      }
    }
    if constexpr (kTop) {
      // Why once for the tile: a vote for each group would be waited for.
      if (__any_sync(0xFFFFFFFFu, tile_top >= floor_logit && tile_top > kMinusInf)) {
#pragma unroll
        for (int i = 0; i < kGroups; ++i) mark(tops[i], first + i * kThreads, floor_logit, floor_key);
      }
    }
    if constexpr (kNoise) {
#pragma unroll
      for (int pair = 0; pair < kGroups; pair += kPair) {
        const int32_t first_of_pair = first + pair * kThreads;
        if (first_of_pair - static_cast<int32_t>(threadIdx.x % 32) >= source.end_group) break;
        PhiloxBlock blocks[kPair];
        coarse_blocks<kPair, kThreads>(row.key, static_cast<uint32_t>(first_of_pair), blocks);
        const float bound = from_ordered(kTop ? least_bound() : *const_cast<volatile int32_t*>(my_bound));
#pragma unroll
        for (int i = pair; i < pair + kPair; ++i) {
          if ((!kTop || tops[i] >= least_logit) && may_win(tops[i], least_coarse(blocks[i - pair]), factor, bound)) {
            const float lower = lower_score_of_top(raw(i), tops[i], blocks[i - pair], factor);
            if (lower > bound) atomicMax(my_bound, ordered(lower));
            const uint32_t at = atomicAdd(&shared.n_winners, 1u);
            if (at < kMaxWinners) shared.winners[at] = static_cast<uint32_t>(first + i * kThreads);
          }
        }
      }
    }
  };
  if constexpr (kNoise && reads_ahead<Type>) {
    tiles.walk_ahead(mine.flags, visit);
  } else {
    tiles.walk(mine.flags, visit);
  }
  if constexpr (kTop) floor_key = list_marked(source, floor_key, goal);
  __syncthreads();
  return floor_key;
}

}  // namespace ts::cuda
