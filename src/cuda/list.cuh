// SPDX-License-Identifier: Apache-2.0
// The sampling kernel's list, sample_shared().list: order keys of candidates, down to a floor that every missing candidate
// lies below.
#pragma once

#include "cuda/draw.cuh"
#include "cuda/sample_shared.cuh"

namespace ts::cuda {

__device__ inline bool push(ListShared& list, uint64_t key) {
  const uint32_t at = atomicAdd(&list.count, 1u);
  if (at >= kListCapacity) return false;
  list.entries[at] = key;
  return true;
}

// The least of the warps' per_warp-th largest keys, one a thread: at least 8 * per_warp threads reach it. *floor is all
// ones before; a barrier must follow. Equal keys may only be those of threads without a candidate.
static __device__ __noinline__ void bound_below(uint64_t key, int32_t per_warp, unsigned long long* floor) {
  const auto high = static_cast<uint32_t>(key >> 32);
  const auto low = static_cast<uint32_t>(key);
  int32_t n_above = 0;
#pragma unroll 4
  for (int lane = 0; lane < 32; ++lane) {
    const uint64_t other =
        static_cast<uint64_t>(__shfl_sync(0xFFFFFFFFu, high, lane)) << 32 | __shfl_sync(0xFFFFFFFFu, low, lane);
    n_above += other > key || (other == key && lane < static_cast<int>(threadIdx.x % 32)) ? 1 : 0;
  }
  if (n_above == per_warp - 1) atomicMin(floor, static_cast<unsigned long long>(key));
}

// Sorts the first n entries, n <= kSortable, into the contract's order: largest key first. All threads.
// Method: bitonic sort (Batcher 1968) of the next power of two, padded with 0; 55 steps of two pairs a thread at most.
constexpr int32_t kSortable = 1024;
static __device__ __noinline__ void sort_list(int32_t n) {
  ListShared& list = sample_shared().list;
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
static __device__ __noinline__ uint64_t nth_key(int32_t n, int32_t goal) {
  ListShared& list = sample_shared().list;
  if (n <= kSortable) {
    sort_list(n);
    return list.entries[goal - 1];
  }
  const auto for_each = [&](auto visit) {
    for (int32_t i = threadIdx.x; i < n; i += kThreads) visit(list.entries[i], uint64_t{1});
  };
  return block_cut(for_each, static_cast<uint64_t>(goal), sample_shared().cut).key;
}

// A key that at least 8 * per_warp of the first n entries reach (n >= kThreads). All threads.
static __device__ uint64_t bound_of_largest(int32_t n, int32_t per_warp) {
  const ListShared& list = sample_shared().list;
  CutShared& shared = sample_shared().cut;
  uint64_t most = 0;
  for (int32_t i = threadIdx.x; i < n; i += kThreads) most = list.entries[i] > most ? list.entries[i] : most;
  __syncthreads();
  if (threadIdx.x == 0) shared.before = ~0ull;
  __syncthreads();
  bound_below(most, per_warp, &shared.before);
  __syncthreads();
  const uint64_t bound = shared.before;
  __syncthreads();
  return bound;
}

// The k-th largest of the first n entries (n >= k >= 1); what is surely below it may be dropped, and n with it. All
// threads. Method: the threads' largest entries bound it from below; the few that reach the bound are ranked by counting.
static __device__ void keep_from(int32_t n, uint64_t floor);
constexpr int32_t kCountable = 512;
static __device__ __noinline__ uint64_t kth_key(int32_t& n, int32_t k) {
  ListShared& list = sample_shared().list;
  CutShared& shared = sample_shared().cut;
  const int32_t per_warp = (k + 7) / 8;
  if (n > kThreads && per_warp <= 32) {
    keep_from(n, bound_of_largest(n, per_warp));
    n = static_cast<int32_t>(list.count);
    __syncthreads();
  }
  if (n > kCountable) return nth_key(n, k);
  for (int32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t entry = list.entries[i];
    int32_t n_above = 0;
#pragma unroll 4
    for (int32_t other = 0; other < n; ++other) n_above += list.entries[other] > entry ? 1 : 0;
    if (n_above == k - 1) shared.before = entry;
  }
  __syncthreads();
  const uint64_t key = shared.before;
  __syncthreads();
  return key;
}

// Makes the list one of at most `most` of the largest of its first n entries, at least `goal` (<= most) if there were as
// many; returns its floor. All threads.
static __device__ __noinline__ uint64_t thin(int32_t& n, int32_t goal, int32_t most) {
  ListShared& list = sample_shared().list;
  uint64_t floor = 0;
  const int32_t per_warp = (min(max(goal, most / 8), most) + 7) / 8;
  if (per_warp <= 32) {
    floor = bound_of_largest(n, per_warp);
    keep_from(n, floor);
    n = static_cast<int32_t>(list.count);
    __syncthreads();
  }
  if (n > most) {
    floor = nth_key(n, most);
    keep_from(n, floor);
    n = most;
  }
  return floor;
}

// Drops entries below `floor` of the first n, in place; count becomes what is left. All threads.
static __device__ __noinline__ void keep_from(int32_t n, uint64_t floor) {
  ListShared& list = sample_shared().list;
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
