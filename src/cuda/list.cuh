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

// Sorts the first n entries, n <= kSortable, into the contract's order: largest key first. All threads.
// Method: bitonic sort (Batcher 1968) of the next power of two, padded with 0; 55 steps of two pairs a thread at most.
constexpr int32_t kSortable = 1024;
__device__ inline void sort_list(ListShared& list, int32_t n) {
  int32_t size = 2;
  while (size < n) size *= 2;
  __syncthreads();
  for (int32_t i = n + threadIdx.x; i < size; i += kThreads) list.entries[i] = 0;
  for (int32_t run = 2; run <= size; run *= 2) {
    for (int32_t step = run / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int32_t pair = threadIdx.x; pair < size / 2; pair += kThreads) {
        const int32_t low = 2 * pair - (pair & (step - 1));
        const uint64_t a = list.entries[low];
        const uint64_t b = list.entries[low + step];
        const bool descending = (low & run) == 0;
        if ((a < b) == descending) {
          list.entries[low] = b;
          list.entries[low + step] = a;
        }
      }
    }
  }
  __syncthreads();
}

// The goal-th largest of the first n entries (n >= goal >= 1). All threads.
__device__ inline uint64_t nth_key(ListShared& list, int32_t n, int32_t goal, CutShared& shared) {
  if (n <= kSortable) {
    sort_list(list, n);
    return list.entries[goal - 1];
  }
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
