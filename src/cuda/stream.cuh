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
  Scored winner;   // of what was drained
  WinBound bound;  // the winner's
  uint32_t flag;
};

template <class Type>
constexpr int kTileGroups = 32 / (sizeof(typename Type::Element) * 4);  // 64 bytes a thread and tile

// What a thread gathers over its groups.
struct ThreadPick {
  float top = kMinusInf;
  int32_t top_group = 0;  // the first group with it
  float mass = 0.0f;
  uint32_t flags = 0;

  __device__ void raise(float group_top, int32_t group) {
    if (group_top > top) {
      top = group_top;
      top_group = group;
    }
  }
};

// The largest logit of a thread and its first id.
template <class Type>
__device__ Top top_of(const RowSource<Type>& source, const ThreadPick& mine) {
  if (!(mine.top > kMinusInf)) return {kMinusInf, kNoId};
  float logits[kGroup];
  uint32_t flags = 0;
  source.clean(source.load(mine.top_group), mine.top_group, logits, flags);
  int at = 0;
#pragma unroll
  for (int j = kGroup - 1; j >= 0; --j) at = logits[j] == mine.top ? j : at;
  return {mine.top, static_cast<uint32_t>(mine.top_group * kGroup + at)};
}

template <class Type>
constexpr int32_t kTileStep = kThreads* kTileGroups<Type>;

// Where the part of the walk ends that a step at `begin` belongs to.
template <class Type>
__device__ int32_t end_of(const RowSource<Type>& source, int32_t begin) {
  return begin < source.whole_end ? source.whole_end : source.end_group;
}

// The thread's maximum over the slice's first tile, for seeding bounds.
template <class Type>
__device__ Top seed_of(const RowSource<Type>& source) {
  ThreadPick seed;
#pragma unroll
  for (int i = 0; i < kTileGroups<Type>; ++i) {
    const int32_t group = source.first_group + i * kThreads + static_cast<int32_t>(threadIdx.x);
    if (group >= source.end_group) continue;
    float logits[kGroup];
    seed.raise(source.clean(source.load(group), group, logits, seed.flags), group);
  }
  return top_of(source, seed);
}

// Walks a thread's groups of a slice. visit(first, raws) is called with kTileGroups groups kThreads apart that lie
// before whole_end, or hold -inf; visit_one(group) with each other group; end_window(begin, n_groups) after every kWindow
// tiles and after what is left, by all threads together.
template <int kWindow, class Type, class Visit, class VisitOne, class EndWindow>
__device__ void walk(const RowSource<Type>& source, const Visit& visit, const VisitOne& visit_one,
                     const EndWindow& end_window) {
  constexpr int kGroups = kTileGroups<Type>;
  int32_t begin = source.first_group;
  int32_t window = begin;
  for (; begin + kTileStep<Type> <= source.whole_end; begin += kTileStep<Type>) {
    const int32_t first = begin + static_cast<int32_t>(threadIdx.x);
    Raw<Type> raw[kGroups];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) raw[i] = source.load_whole(first + i * kThreads);
    visit(first, raw);
    if constexpr (kWindow == 1) {
      end_window(begin, kGroups);
    } else if (begin + kTileStep<Type> - window == kWindow * kTileStep<Type>) {
      end_window(window, kWindow * kGroups);
      window = begin + kTileStep<Type>;
    }
  }
  if (begin < source.whole_end) {
    const int32_t first = begin + static_cast<int32_t>(threadIdx.x);
    Raw<Type> raw[kGroups];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const int32_t group = first + i * kThreads;
      raw[i] = group < source.whole_end ? source.load_whole(group) : RowSource<Type>::nothing();
    }
    visit(first, raw);
    if constexpr (kWindow == 1) end_window(begin, kGroups);
    begin += kTileStep<Type>;
  }
  if (kWindow > 1 && window < source.whole_end) end_window(window, (begin - window) / kThreads);
#pragma unroll 1
  for (begin = source.whole_end; begin < source.end_group; begin += kThreads) {
    const int32_t group = begin + static_cast<int32_t>(threadIdx.x);
    if (group < source.end_group) visit_one(group);
    end_window(begin, 1);
  }
}

template <class Type>
__device__ void stream_greedy(const RowSource<Type>& source, ThreadPick& mine) {
  walk<1>(
      source,
      [&](int32_t first, const auto& raw) {
#pragma unroll
        for (int i = 0; i < kTileGroups<Type>; ++i) {
          float logits[kGroup];
          mine.raise(source.clean_whole(raw[i], logits, mine.flags), first + i * kThreads);
        }
      },
      [&](int32_t group) {
        float logits[kGroup];
        mine.raise(source.clean(source.load(group), group, logits, mine.flags), group);
      },
      [](int32_t, int) {});
}

// Scores every listed id, keeps the best in shared.winner, and empties the list. All threads.
// Why not inlined: it is rare, and the loops around it need the registers.
static __device__ __noinline__ void drain(SampleShared& shared, double inv_temperature, float log2e_over_t,
                                          NoiseKey key) {
  __syncthreads();
  const int32_t n = min(shared.list.count, static_cast<uint32_t>(kListCapacity));
  Scored mine = no_score();
  for (int32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t order = shared.list.entries[i];
    mine = better(mine, score_of(logit_of(order), id_of(order), inv_temperature, key));
  }
  const Scored best = block_reduce(mine, shared.reduce.as<Scored>(), Better{});
  if (threadIdx.x == 0) {
    shared.list.count = 0;
    if (better(best, shared.winner).id != shared.winner.id) {
      shared.winner = best;
      shared.bound = WinBound(best, inv_temperature, log2e_over_t);
    }
  }
  __syncthreads();
}

// Lists the ids of a group that may win.
__device__ inline void list_group(const float (&logits)[kGroup], int32_t group, const PhiloxBlock& block,
                                  SampleShared& shared) {
  const WinBound bound = shared.bound;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    if (logits[j] > kMinusInf && bound.may_win(logits[j], coarse_bits(block, j))) {
      push(shared.list, order_key(logits[j], static_cast<uint32_t>(group * kGroup + j)));
    }
  }
}

// Tiles between looks at the list: few ids are listed, and a look costs two barriers.
constexpr int kNoiseWindow = 4;

// Leaves the slice's best in shared.winner.
template <class Type>
__device__ void stream_noise(const RowSource<Type>& source, const RowContext& row, SampleShared& shared,
                             ThreadPick& mine) {
  if (threadIdx.x == 0) {
    shared.winner = no_score();
    shared.bound = WinBound();
  }
  const auto drain_list = [&] {
    drain(shared, row.state.inv_temperature, row.state.log2e_over_t, row.key);
    return GroupBound(shared.bound);
  };
  const Top seed = seed_of(source);
  if (seed.id != kNoId) push(shared.list, order_key(seed.logit, seed.id));
  GroupBound fast = drain_list();
  walk<kNoiseWindow>(
      source,
      [&](int32_t first, const auto& raw) {
        constexpr int kGroups = kTileGroups<Type>;
        PhiloxBlock blocks[kGroups];
        coarse_blocks<kGroups, kThreads>(row.key, static_cast<uint32_t>(first), blocks);
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
          float logits[kGroup];
          mine.raise(source.clean_whole(raw[i], logits, mine.flags), first + i * kThreads);
          if (fast.any_may_win(logits, blocks[i])) list_group(logits, first + i * kThreads, blocks[i], shared);
        }
      },
      [&](int32_t group) {
        float logits[kGroup];
        mine.raise(source.clean(source.load(group), group, logits, mine.flags), group);
        list_group(logits, group, coarse_block(row.key, static_cast<uint32_t>(group)), shared);
      },
      [&](int32_t begin, int n_groups) {
        __syncthreads();
        const uint32_t count = shared.list.count;
        __syncthreads();
        if (count <= kThreads) return;
        fast = drain_list();
        if (count <= kListCapacity) return;
      // Part of the tile was lost: list it again, in steps that fit.
#pragma unroll 1
        for (int i = 0; i < n_groups; ++i) {
          const int32_t group = begin + i * kThreads + static_cast<int32_t>(threadIdx.x);
          if (group < end_of(source, begin)) {
            float logits[kGroup];
            source.clean(source.load(group), group, logits, mine.flags);
            list_group(logits, group, coarse_block(row.key, static_cast<uint32_t>(group)), shared);
          }
          fast = drain_list();
        }
      });
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

// Lists the ids of a group that are not below the floor.
__device__ inline void list_above(const float (&logits)[kGroup], int32_t group, uint64_t floor_key,
                                  SampleShared& shared) {
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    const uint64_t key = order_key(logits[j], static_cast<uint32_t>(group * kGroup + j));
    if (logits[j] > kMinusInf && key >= floor_key) push(shared.list, key);
  }
}

// goal: how many candidates the list must hold before its floor may rise. with_mass: sum fp32 masses too.
template <class Type>
__device__ ListedSlice stream_list(const RowSource<Type>& source, const RowContext& row, int32_t goal, bool with_mass,
                                   SampleShared& shared, ThreadPick& mine) {
  const float factor = row.state.log2e_over_t;
  const Top seed = seed_of(source);
  const Top block_top = block_reduce(seed, shared.reduce.as<Top>(), Higher{});
  const float reference = block_top.id != kNoId ? block_top.logit : 0.0f;
  // Why: a floor from fewer maxima than the goal would promise too little to a top-k row.
  const int32_t rank = min(goal, kThreads / 2);
  uint64_t floor_key = 0;
  if (rank == goal || (row.state.needs & kNeedTopK) == 0) floor_key = seed_floor(seed, rank, shared);
  float floor_logit = floor_key != 0 ? logit_of(floor_key) : kMinusInf;
  uint32_t count_before = 0;  // entries before the tile, as every thread saw them between two barriers
  const auto take = [&](float top, const float(&logits)[kGroup], int32_t group) {
    mine.raise(top, group);
    if (with_mass) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) mine.mass += exp2_approx((logits[j] - reference) * factor);
    }
    if (top >= floor_logit && top > kMinusInf) list_above(logits, group, floor_key, shared);
  };
  walk<1>(
      source,
      [&](int32_t first, const auto& raw) {
#pragma unroll
        for (int i = 0; i < kTileGroups<Type>; ++i) {
          float logits[kGroup];
          const float top = source.clean_whole(raw[i], logits, mine.flags);
          take(top, logits, first + i * kThreads);
        }
      },
      [&](int32_t group) {
        float logits[kGroup];
        const float top = source.clean(source.load(group), group, logits, mine.flags);
        take(top, logits, group);
      },
      [&](int32_t begin, int n_groups) {
        __syncthreads();
        uint32_t count = shared.list.count;
        __syncthreads();
        if (count <= kListCapacity * 3 / 4) {
          count_before = count;
          return;
        }
        while (count > kListCapacity) {
          // Part of the tile was lost: raise the floor and list the tile again.
          floor_key = nth_key(shared.list, kListCapacity, goal, shared.cut);
          keep_from(shared.list, static_cast<int32_t>(count_before), floor_key);
#pragma unroll 1
          for (int i = 0; i < n_groups; ++i) {
            const int32_t group = begin + i * kThreads + static_cast<int32_t>(threadIdx.x);
            if (group >= end_of(source, begin)) continue;
            float logits[kGroup];
            source.clean(source.load(group), group, logits, mine.flags);
            list_above(logits, group, floor_key, shared);
          }
          __syncthreads();
          count = shared.list.count;
          __syncthreads();
        }
        if (count > kListCapacity * 3 / 4) {
          floor_key = nth_key(shared.list, static_cast<int32_t>(count), goal, shared.cut);
          keep_from(shared.list, static_cast<int32_t>(count), floor_key);
        }
        floor_logit = logit_of(floor_key);
        count_before = shared.list.count;
        __syncthreads();
      });
  return {floor_key, reference};
}

}  // namespace ts::cuda
