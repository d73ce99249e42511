// SPDX-License-Identifier: Apache-2.0
// The pass over a slice of a row, in tiles of kThreads x kTileGroups groups, in three ways: for greedy rows, for plain
// rows (noise against a winning bound), for filtered rows (a list above a rising floor).
#pragma once

#include "cuda/finish.cuh"
#include "cuda/row_source.cuh"

namespace ts::cuda {

struct SampleShared {
  ListShared list;
  CutShared cut;
  ReduceShared reduce;
  uint64_t keys[kThreads];
  uint64_t floor_key;
  float best_logit;
  uint32_t flag;
};

template <class Type>
constexpr int kTileGroups = 32 / (sizeof(typename Type::Element) * 4);  // 64 bytes a thread and tile

// A scored candidate and its logit.
struct Winner {
  Scored scored = no_score();
  float logit = kMinusInf;
};

__device__ inline Winner better(const Winner& a, const Winner& b) {
  return better(a.scored, b.scored).id == a.scored.id ? a : b;
}

// What a thread gathers over its groups.
struct ThreadPick {
  Top top{kMinusInf, kNoId};
  Winner winner;
  float mass = 0.0f;
  uint32_t flags = 0;
};

// A thread's groups of one tile.
template <class Type>
struct Tile {
  Raw<Type> raw[kTileGroups<Type>];
  int32_t first;

  __device__ Tile(const RowSource<Type>& source, int32_t begin) : first(begin + static_cast<int32_t>(threadIdx.x)) {
#pragma unroll
    for (int i = 0; i < kTileGroups<Type>; ++i) {
      if (group(i) < source.end_group) raw[i] = source.load(group(i));
    }
  }
  __device__ int32_t group(int i) const { return first + i * kThreads; }
};

template <class Type>
constexpr int32_t kTileStep = kThreads* kTileGroups<Type>;

// Raises the thread's maximum to a group's.
__device__ inline void raise_top(float top, const float (&logits)[kGroup], int32_t group, ThreadPick& mine) {
  if (!(top > mine.top.logit)) return;
  int at = 0;
#pragma unroll
  for (int j = kGroup - 1; j >= 0; --j) at = logits[j] == top ? j : at;
  mine.top = {top, static_cast<uint32_t>(group * kGroup + at)};
}

template <class Type>
__device__ void stream_greedy(const RowSource<Type>& source, ThreadPick& mine) {
  for (int32_t begin = source.first_group; begin < source.end_group; begin += kTileStep<Type>) {
    const Tile<Type> tile(source, begin);
#pragma unroll
    for (int i = 0; i < kTileGroups<Type>; ++i) {
      if (tile.group(i) >= source.end_group) continue;
      float logits[kGroup];
      const float top = source.clean(tile.raw[i], tile.group(i), logits, mine.flags);
      raise_top(top, logits, tile.group(i), mine);
    }
  }
}

// The thread's maximum over a tile, for seeding bounds.
template <class Type>
__device__ Top seed_of(const RowSource<Type>& source, const Tile<Type>& tile) {
  ThreadPick seed;
#pragma unroll
  for (int i = 0; i < kTileGroups<Type>; ++i) {
    if (tile.group(i) >= source.end_group) continue;
    float logits[kGroup];
    const float top = source.clean(tile.raw[i], tile.group(i), logits, seed.flags);
    raise_top(top, logits, tile.group(i), seed);
  }
  return seed.top;
}

// Scores every listed id and empties the list. Returns the best of the block, the threads' own included. All threads.
// Why not inlined: it is rare, and the loops around it need the registers.
static __device__ __noinline__ Winner drain(SampleShared& shared, Winner mine, double inv_temperature, NoiseKey key) {
  __syncthreads();
  const int32_t n = min(shared.list.count, static_cast<uint32_t>(kListCapacity));
  for (int32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t order = shared.list.entries[i];
    const float logit = logit_of(order);
    mine = better(mine, {score_of(logit, id_of(order), inv_temperature, key), logit});
  }
  const Scored best = block_reduce(mine.scored, shared.reduce.as<Scored>(), Better{});
  if (threadIdx.x == 0) {
    shared.list.count = 0;
    shared.best_logit = kMinusInf;
  }
  __syncthreads();
  if (best.id != kNoId && best.id == mine.scored.id) shared.best_logit = mine.logit;
  __syncthreads();
  return {best, shared.best_logit};
}

template <class Type>
__device__ void stream_noise(const RowSource<Type>& source, const RowContext& row, SampleShared& shared,
                             ThreadPick& mine) {
  const double inv_temperature = row.state.inv_temperature;
  WinBound bound;
  GroupBound fast;
  const auto drain_list = [&] {
    mine.winner = drain(shared, mine.winner, inv_temperature, row.key);
    if (mine.winner.scored.id != kNoId) {
      bound = WinBound(mine.winner.logit, mine.winner.scored.score, inv_temperature, row.state.log2e_over_t);
      fast = GroupBound(bound);
    }
  };
  for (int32_t begin = source.first_group; begin < source.end_group; begin += kTileStep<Type>) {
    const Tile<Type> tile(source, begin);
    if (begin == source.first_group) {
      const Top seed = seed_of(source, tile);
      if (seed.id != kNoId) push(shared.list, order_key(seed.logit, seed.id));
      drain_list();
    }
    bool careful = false;  // drain before each of the tile's steps, each of which fits into the list
    bool overflow;
    do {
#pragma unroll
      for (int i = 0; i < kTileGroups<Type>; ++i) {
        if (careful) drain_list();
        const int32_t group = tile.group(i);
        if (group >= source.end_group) continue;
        float logits[kGroup];
        const float top = source.clean(tile.raw[i], group, logits, mine.flags);
        raise_top(top, logits, group, mine);
        const PhiloxBlock block = coarse_block(row.key, static_cast<uint32_t>(group));
        if (fast.any_may_win(logits, block)) {
#pragma unroll
          for (int j = 0; j < kGroup; ++j) {
            if (logits[j] > kMinusInf && bound.may_win(logits[j], coarse_bits(block, j))) {
              push(shared.list, order_key(logits[j], static_cast<uint32_t>(group * kGroup + j)));
            }
          }
        }
      }
      __syncthreads();
      const uint32_t count = shared.list.count;
      __syncthreads();
      overflow = count > kListCapacity;
      if (count > kThreads) drain_list();
      careful = overflow;
    } while (overflow);
  }
  drain_list();
}

// A floor from the threads' maxima: the rank-th largest of them, 0 when there are fewer. All threads.
__device__ inline uint64_t seed_floor(Top seed, int32_t rank, SampleShared& shared) {
  const uint64_t key = seed.id != kNoId ? order_key(seed.logit, seed.id) : 0;
  shared.keys[threadIdx.x] = key;
  if (threadIdx.x == 0) shared.floor_key = 0;
  __syncthreads();
  int32_t above = 0;
  for (int32_t i = 0; i < kThreads; ++i) above += shared.keys[i] > key ? 1 : 0;
  if (above == rank - 1 && key != 0) shared.floor_key = key;
  __syncthreads();
  return shared.floor_key;
}

// What a filtered slice leaves: its list in shared memory, complete down to floor_key.
struct ListedSlice {
  uint64_t floor_key;
  float reference;  // of the thread's mass
};

// goal: how many candidates the list must hold before its floor may rise. with_mass: sum fp32 masses too.
template <class Type>
__device__ ListedSlice stream_list(const RowSource<Type>& source, const RowContext& row, int32_t goal, bool with_mass,
                                   SampleShared& shared, ThreadPick& mine) {
  const float factor = row.state.log2e_over_t;
  uint64_t floor_key = 0;
  float reference = 0.0f;
  uint32_t count_before = 0;  // entries before the tile, as every thread saw them between two barriers
  for (int32_t begin = source.first_group; begin < source.end_group; begin += kTileStep<Type>) {
    const Tile<Type> tile(source, begin);
    if (begin == source.first_group) {
      const Top seed = seed_of(source, tile);
      const Top block_top = block_reduce(seed, shared.reduce.as<Top>(), Higher{});
      if (block_top.id != kNoId) reference = block_top.logit;
      // Why: a floor from fewer maxima than the goal would promise too little to a top-k row.
      const int32_t rank = min(goal, kThreads / 2);
      if (rank == goal || (row.state.needs & kNeedTopK) == 0) floor_key = seed_floor(seed, rank, shared);
    }
    bool first_try = true;
    bool again;
    do {
      const float floor_logit = floor_key != 0 ? logit_of(floor_key) : kMinusInf;
#pragma unroll
      for (int i = 0; i < kTileGroups<Type>; ++i) {
        const int32_t group = tile.group(i);
        if (group >= source.end_group) continue;
        float logits[kGroup];
        const float top = source.clean(tile.raw[i], group, logits, mine.flags);
        raise_top(top, logits, group, mine);
        if (with_mass && first_try) {
#pragma unroll
          for (int j = 0; j < kGroup; ++j) mine.mass += exp2_approx((logits[j] - reference) * factor);
        }
        if (top >= floor_logit && top > kMinusInf) {
#pragma unroll
          for (int j = 0; j < kGroup; ++j) {
            const uint64_t key = order_key(logits[j], static_cast<uint32_t>(group * kGroup + j));
            if (logits[j] > kMinusInf && key >= floor_key) push(shared.list, key);
          }
        }
      }
      __syncthreads();
      const uint32_t count = shared.list.count;
      __syncthreads();
      again = count > kListCapacity;
      first_try = false;
      if (again) {
        // Part of the tile was lost: raise the floor and list the tile again.
        floor_key = nth_key(shared.list, kListCapacity, goal, shared.cut);
        keep_from(shared.list, static_cast<int32_t>(count_before), floor_key);
      } else if (count > kListCapacity * 3 / 4) {
        floor_key = nth_key(shared.list, static_cast<int32_t>(count), goal, shared.cut);
        keep_from(shared.list, static_cast<int32_t>(count), floor_key);
      }
      count_before = shared.list.count;
      __syncthreads();
    } while (again);
  }
  return {floor_key, reference};
}

}  // namespace ts::cuda
