// SPDX-License-Identifier: Apache-2.0
// A block's list in shared memory: order keys of candidates, and the floor that every missing candidate lies below.
#pragma once

#include "cuda/call.h"
#include "cuda/cut.cuh"
#include "cuda/draw.cuh"
#include "cuda/row_context.cuh"

namespace ts::cuda {

struct ListShared {
  uint64_t entries[kListCapacity];
  uint32_t count;  // may exceed the capacity: then the list is not complete
};

__device__ inline bool push(ListShared& list, uint64_t key) {
  const uint32_t at = atomicAdd(&list.count, 1u);
  if (at >= kListCapacity) return false;
  list.entries[at] = key;
  return true;
}

// The goal-th largest of the first n entries (n >= goal >= 1). All threads.
__device__ inline uint64_t nth_key(const ListShared& list, int32_t n, int32_t goal, CutShared& shared) {
  const auto for_each = [&](auto visit) {
    for (int32_t i = threadIdx.x; i < n; i += kThreads) visit(list.entries[i], uint64_t{1});
  };
  return block_cut(for_each, static_cast<uint64_t>(goal), shared).key;
}

// Drops entries below `floor` of the first n, in place; count becomes what is left. All threads.
__device__ inline void keep_from(ListShared& list, int32_t n, uint64_t floor) {
  __syncthreads();
  if (threadIdx.x == 0) list.count = 0;
  for (int32_t begin = 0; begin < n; begin += kThreads) {
    const int32_t i = begin + threadIdx.x;
    const uint64_t key = i < n ? list.entries[i] : 0;
    __syncthreads();  // Why: what is pushed lands before `begin` plus what this round has read.
    if (i < n && key >= floor) push(list, key);
  }
  __syncthreads();
}

}  // namespace ts::cuda
