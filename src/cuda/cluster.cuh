// SPDX-License-Identifier: Apache-2.0
// The cluster kernel: few rows without top-k, each by the blocks of one cluster, which keep it in their shared memory.
//
// Method: one pass over the logits finds the largest, draws the coarse noise and bounds the best score from below; the few ids
// that reach the bound are scored exactly. What is kept is a prefix of the order, so a winner that is kept is the row's token;
// if it is not, what is in front of it is drawn from again. Whether it is: the exact weight of what is in front.
// Bytes: the logits once. Floor on an H200: bytes / 4.3 TB/s. Measured (V 128256, bf16, top-p .9, clusters of
// 16, commit 467a096): 1 row 12 us, 8 rows 16, 32 rows 35, where sample and exact kernels take 24, 35 and 48.
// Order and ties: contract/order.h. Needs compute capability 9.0; the launch guarantees that a
// cluster's blocks are resident together, so they may wait for each other.
#pragma once

#include "contract/order.h"
#include "cuda/cluster_reduce.cuh"
#include "cuda/draw.cuh"
#include "cuda/mass.cuh"
#include "cuda/ptx.cuh"
#include "cuda/tiles.cuh"
#include "cuda/verify.cuh"

namespace ts::cuda {

struct ClusterShared {
  ClusterReduceShared reduce;
  RowContext row;
  bool slot_in_pool;
  alignas(16) uint4 groups[1];  // what a Slice keeps
};

// Bytes of dynamic shared memory for blocks that keep so many groups of 8 ids.
constexpr size_t cluster_shared_bytes(int32_t n_groups, size_t element_bytes) {
  return sizeof(ClusterShared) + static_cast<size_t>(n_groups) * (kGroup * element_bytes + 8);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// What is known of a row after its first look.
struct First {
  uint32_t top_key;
  uint32_t flags;
  int32_t bound;  // ordered(): a lower bound of the best score
};
struct JoinFirst {};
__device__ inline First warp_reduce(First value, JoinFirst) {
  return {__reduce_max_sync(0xFFFFFFFFu, value.top_key), __reduce_or_sync(0xFFFFFFFFu, value.flags),
          __reduce_max_sync(0xFFFFFFFFu, value.bound)};
}

// The weight of all candidates, and of those in front of one.
struct Front {
  unsigned long long total;
  unsigned long long before;
};
struct AddFronts {
  __device__ Front operator()(Front a, Front b) const { return {a.total + b.total, a.before + b.before}; }
};
template <>
__device__ inline Front shuffle_xor(Front value, int mask) {
  return {shuffle_xor(value.total, mask), shuffle_xor(value.before, mask)};
}

// A block's slice of the row, in its shared memory. Each thread looks at its own groups alone, so no barriers are needed.
template <class Type>
struct Slice {
  static constexpr int kWords = Raw<Type>::kWords;
  RowSource<Type> source;
  int32_t n;  // groups
  uint4* words;
  float* tops;      // largest logits
  uint32_t* least;  // least coarse halves

  __device__ Slice(const RowSource<Type>& from, ClusterShared& shared)
      : source(from), n(from.end_group - from.first_group), words(shared.groups) {
    tops = reinterpret_cast<float*>(words + n * kWords);
    least = reinterpret_cast<uint32_t*>(tops + n);
  }

  // Sends for the groups that are whole.
  __device__ void start() const {
#pragma unroll 1
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < source.whole_end - source.first_group;
         i += static_cast<int32_t>(blockDim.x)) {
      const uint4* from = reinterpret_cast<const uint4*>(source.row) + int64_t{source.first_group + i} * kWords;
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        copy_async(shared_address(words + w * n + i), from + w, 0);
      }
    }
    commit_copies();
  }

  __device__ Raw<Type> raw(int32_t i) const {
    Raw<Type> raw;
#pragma unroll
    for (int w = 0; w < kWords; ++w) raw.words[w] = words[w * n + i];
    return raw;
  }

  // Waits for what start() has sent for, and reads the rest. Returns the flags of the rest.
  __device__ uint32_t finish() const {
    uint32_t flags = 0;
#pragma unroll 1
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < n; i += static_cast<int32_t>(blockDim.x)) {
      if (source.first_group + i < source.whole_end) continue;
      const Checked<Type> checked = load_checked(source, source.first_group + i);
      flags |= checked.flags;
#pragma unroll
      for (int w = 0; w < kWords; ++w) words[w * n + i] = checked.raw.words[w];
    }
    wait_for_copies<0>();
    return flags;
  }

  // visit(i, group, top) for each of the thread's groups.
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
#pragma unroll 1
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < n; i += static_cast<int32_t>(blockDim.x)) {
      visit(i, source.first_group + i, tops[i]);
    }
  }

  __device__ void unpack(int32_t i, float (&logits)[kGroup]) const {
    const Raw<Type> mine = raw(i);
    mine.unpack(logits);
    if (!(mine.stored_top() <= kFloatMax)) mine.clean(logits);
  }
};

// The weight of what is in front of `order`, and of all candidates where that is not known.
template <class Type>
__device__ __forceinline__ Front front_of(const Slice<Type>& slice, bool known, uint64_t order, float max,
                                          float factor) {
  Front sum{0, 0};
  const float least = known ? logit_of(order) : kMinusInf;
  slice.for_each([&](int32_t i, int32_t group, float top) {
    if (!(top >= least)) return;
    float logits[kGroup];
    slice.unpack(i, logits);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const uint64_t w = weight(logits[j] - max, factor);
      sum.total += w;
      sum.before += order_key(logits[j], static_cast<uint32_t>(group * kGroup + j)) > order ? w : 0;
    }
  });
  return sum;
}

// The first id with the largest logit, as a score.
template <class Type>
__device__ __forceinline__ Scored first_of_largest(const Slice<Type>& slice, float max) {
  Scored first = no_score();
  slice.for_each([&](int32_t i, int32_t group, float top) {
    if (top != max) return;
    float logits[kGroup];
    slice.unpack(i, logits);
    int at = 0;
#pragma unroll
    for (int j = kGroup - 1; j >= 0; --j) at = logits[j] == max ? j : at;
    first = better(first, Scored{max, static_cast<uint32_t>(group * kGroup + at), max});
  });
  return first;
}

// What may win of a row: its candidates with an order key of at least last_key, by min-p.
struct Remaining {
  uint64_t last_key;
  float least;  // logit of last_key
  float min_distance;
  float max;

  __device__ bool may_have(float top) const { return top >= least && top > kMinusInf && top - max >= min_distance; }
  __device__ bool has(float logit, uint32_t id) const { return may_have(logit) && order_key(logit, id) >= last_key; }
};

// A bound from below of the best score of what is left in the thread's groups.
template <class Type>
__device__ __forceinline__ float bound_of(const Slice<Type>& slice, const Remaining& left, const RowContext& row) {
  const float factor = row.state.log2e_over_t;
  float lower = kNoBound;
  slice.for_each([&](int32_t i, int32_t group, float top) {
    if (!left.may_have(top) || !may_win(top, slice.least[i], factor, lower)) return;
    const PhiloxBlock block = cold_noise_block(row.key, static_cast<uint32_t>(group), 0);
    float logits[kGroup];
    slice.unpack(i, logits);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if (!left.has(logits[j], static_cast<uint32_t>(group * kGroup + j))) continue;
      lower = fmaxf(lower, lower_score(logits[j], coarse_bits(block, j), factor));
    }
  });
  return lower;
}

// The best of what is left in the thread's groups and reaches the bound.
template <class Type>
__device__ __forceinline__ Scored best_of(const Slice<Type>& slice, const Remaining& left, const RowContext& row,
                                          float bound) {
  const float factor = row.state.log2e_over_t;
  Scored best = no_score();
  slice.for_each([&](int32_t i, int32_t group, float top) {
    if (!left.may_have(top) || !may_win(top, slice.least[i], factor, bound)) return;
    const PhiloxBlock block = cold_noise_block(row.key, static_cast<uint32_t>(group), 0);
    float logits[kGroup];
    slice.unpack(i, logits);
    uint32_t may = 0;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const bool has = left.has(logits[j], static_cast<uint32_t>(group * kGroup + j));
      may |= has && may_win(logits[j], coarse_bits(block, j), factor, bound) ? 1u << j : 0u;
    }
#pragma unroll 1
    while (may != 0) {
      const uint32_t j = static_cast<uint32_t>(__ffs(static_cast<int>(may))) - 1;
      may &= may - 1;
      best = better(best, score_of(logit_at(logits, j), static_cast<uint32_t>(group) * kGroup + j, coarse_at(block, j),
                                   row.state.inv_temperature, row.key));
    }
  });
  return best;
}

// The row's winner, as the head of this file says. bounded: `bound` is one of all candidates. All threads of the cluster.
template <class Type>
__device__ __forceinline__ uint32_t winner_of_row(const Slice<Type>& slice, const RowContext& row, float max,
                                                  float bound, bool bounded, ClusterReduceShared& shared,
                                                  uint32_t round) {
  const bool with_top_p = (row.state.needs & kNeedTopP) != 0;
  Remaining left{0, kMinusInf, (row.state.needs & kNeedMinP) != 0 ? row.state.min_p_threshold : kMinusInf, max};
  uint64_t limit = 0;  // of top-p; 0: not known
#pragma unroll 1
  while (true) {
    if (!bounded) {
      bound =
          from_ordered(cluster_reduce(shared, round++, ordered(bound_of(slice, left, row)), ordered(kNoBound), Max{}));
    }
    bounded = false;
    const Scored winner = cluster_reduce(shared, round++, best_of(slice, left, row, bound), no_score(), Better{});
    if (!with_top_p) return winner.id;
    const uint64_t order = order_key(winner.logit, winner.id);
    const Front front = cluster_reduce(shared, round++, front_of(slice, limit != 0, order, max, row.state.log2e_over_t),
                                       Front{}, AddFronts{});
    if (limit == 0) limit = cut_limit(row.state.top_p_fixed, front.total);
    if (front.before < limit) return winner.id;
    left.last_key = order + 1;
    left.least = winner.logit;
  }
}

#endif

template <class Type>
__global__ void __launch_bounds__(kMaxClusterThreads, 2)
    cluster_kernel(const Call call, RowPick* picks, const Outputs out) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  wait_for_predecessor();
  release_successor();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  ClusterShared& shared = *reinterpret_cast<ClusterShared*>(shared_bytes);
  const auto n_blocks = static_cast<int32_t>(cluster_size());
  const auto rank = static_cast<int32_t>(cluster_rank());
  const int64_t row_index = blockIdx.x / static_cast<uint32_t>(n_blocks);
  const Slice<Type> slice(RowSource<Type>(call, row_index, rank, n_blocks), shared);
  cluster_begin();
  // Why the last warp: it has the least to copy.
  if (threadIdx.x == blockDim.x - 32) shared.row = row_context(call, row_index, shared.slot_in_pool);
  slice.start();
  __syncthreads();
  const RowContext& row = shared.row;
  const bool greedy = (row.state.needs & kNeedSample) == 0;
  const bool with_min_p = (row.state.needs & kNeedMinP) != 0;

  First mine{0, slice.finish(), ordered(kNoBound)};
  {
    const float factor = row.state.log2e_over_t;
    const NoiseKey key = row.key;
    float lower = kNoBound;
#pragma unroll 1
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < slice.n; i += static_cast<int32_t>(blockDim.x)) {
      const Raw<Type> raw = slice.raw(i);
      const float top = raw.top(mine.flags);
      slice.tops[i] = top;
      mine.top_key = max(mine.top_key, logit_key(top));
      if (greedy) continue;
      const PhiloxBlock block = coarse_block(key, static_cast<uint32_t>(slice.source.first_group + i));
      const uint32_t least = least_coarse(block);
      slice.least[i] = least;
      if (!with_min_p && may_win(top, least, factor, lower)) {
        lower = fmaxf(lower, lower_score_of_top(raw, top, block, factor));
      }
    }
    mine.bound = ordered(lower);
  }
  cluster_wait_begun();
  const First first = cluster_reduce(shared.reduce, 0, mine, First{0, 0, ordered(kNoBound)}, JoinFirst{});
  const float most = logit_of(static_cast<uint64_t>(first.top_key) << 32);
  uint32_t token = call.invalid_token;
  uint32_t flags = first.flags;
  if (!shared.slot_in_pool || !(most > kMinusInf)) {
    flags |= kRowEmpty;
  } else if (greedy) {
    token = cluster_reduce(shared.reduce, 1, first_of_largest(slice, most), no_score(), Better{}).id;
  } else {
    token = winner_of_row(slice, row, most, from_ordered(first.bound), !with_min_p, shared.reduce, 1);
  }
  if (rank == 0 && threadIdx.x == 0) {
    RowPick& pick = picks[row_index];
    pick.last_key = 0;
    pick.min_distance = with_min_p ? row.state.min_p_threshold : kMinusInf;
    pick.max = most;
    pick.token = token;
    pick.flags = flags;
    pick.open = 0;
  }
  if (rank == 0 && threadIdx.x < 32) end_row(call, picks, row_index, token, flags, out);
#endif
}

}  // namespace ts::cuda
