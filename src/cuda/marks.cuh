// SPDX-License-Identifier: Apache-2.0
// The sampling kernel's marks, sample_shared().marked: groups that reach the floor, and the list made of them at the end.
#pragma once

#include "cuda/list.cuh"

namespace ts::cuda {

// Marks the groups whose largest logit reaches the floor. All lanes of a warp.
// Why marks: few groups do, but nearly every warp has one; listed at once, all its lanes would wait.
__device__ inline void mark(float top, int32_t group, float floor_logit, uint64_t floor_key) {
  SampleShared& shared = sample_shared();
  bool above = top >= floor_logit && top > kMinusInf;
  if (!__any_sync(0xFFFFFFFFu, above)) return;
  // Ties with the floor count by their ids.
  above = above && order_key(top, static_cast<uint32_t>(group * kGroup)) >= floor_key;
  const uint32_t votes = __ballot_sync(0xFFFFFFFFu, above);
  const int leader = max(__ffs(static_cast<int>(votes)) - 1, 0);
  const auto lane = static_cast<int>(threadIdx.x % 32);
  uint32_t at = 0;
  if (lane == leader) at = atomicAdd(&shared.n_marked, static_cast<uint32_t>(__popc(votes)));
  at = __shfl_sync(0xFFFFFFFFu, at, leader) + __popc(votes & ((1u << lane) - 1));
  if (above && at < kMaxMarked) shared.marked[at] = static_cast<uint32_t>(group);
}

__device__ inline float logit_of_floor(uint64_t floor_key) { return floor_key != 0 ? logit_of(floor_key) : kMinusInf; }

// Lists the ids of the marked groups that are not below the floor. Returns the floor, which rises when they are too many
// for the list or the marks; at least `goal` ids stay above it. All threads; ends with a barrier.
template <class Type>
__device__ __noinline__ uint64_t list_marked(RowSource<Type> source, uint64_t floor_key, int32_t goal) {
  SampleShared& shared = sample_shared();
#pragma unroll 1
  while (true) {
    __syncthreads();
    const uint32_t n_marked = min(shared.n_marked, kMaxMarked);
    const bool lost = shared.n_marked > kMaxMarked;
    uint32_t count;
#pragma unroll 1
    while (true) {
      if (threadIdx.x == 0) shared.list.count = 0;
      __syncthreads();
#pragma unroll 2
      for (uint32_t i = threadIdx.x; i < n_marked; i += kThreads) {
        const uint32_t group = shared.marked[i];
        float logits[kGroup];
        source.load(static_cast<int32_t>(group)).clean(logits);
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          const uint64_t key = order_key(logits[j], group * kGroup + j);
          if (logits[j] > kMinusInf && key >= floor_key) push(shared.list, key);
        }
      }
      __syncthreads();
      count = shared.list.count;
      __syncthreads();
      if (count <= kListCapacity) break;
      floor_key = nth_key(kListCapacity, goal);
    }
    if (!lost) return floor_key;
    // Raise the floor by what was marked, and mark the slice again.
    floor_key = nth_key(static_cast<int32_t>(count), goal);
    __syncthreads();
    if (threadIdx.x == 0) shared.n_marked = 0;
    __syncthreads();
    const float floor_logit = logit_of_floor(floor_key);
#pragma unroll 1
    for (int32_t begin = source.first_group; begin < source.end_group; begin += kThreads) {
      const int32_t group = begin + static_cast<int32_t>(threadIdx.x);
      uint32_t flags = 0;
      const float top = group < source.end_group ? source.load(group).top(flags) : kMinusInf;
      mark(top, group, floor_logit, floor_key);
    }
  }
}

}  // namespace ts::cuda
