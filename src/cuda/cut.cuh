// SPDX-License-Identifier: Apache-2.0
// The exact cut, by a block: the CPU backend's radix descent, over any source of (order key, measure) pairs.
//
// Method: five levels over the 64-bit order key (11, 11, 10 bits of logit, 11, 11 bits of ~id), each one pass over the
// source that adds measures into 2048 bins of shared memory, then a scan from the top for the bin in which the limit is
// reached. Integer sums: exact and independent of the order of the atomics.
#pragma once

#include "contract/order.h"
#include "cuda/block.cuh"

namespace ts::cuda {

constexpr int32_t kBins = 2048;

struct CutShared {
  unsigned long long bins[kBins];
  unsigned long long scan[32];
  uint32_t bin;
  unsigned long long before;
};

// The cut's order key.
struct Cut {
  uint64_t key;
  bool reached;  // false: all of the source together stays below the limit
};

// Adds to a 64-bit bin of shared memory. Why in halves: 32-bit shared atomics are native, 64-bit ones are retry loops.
__device__ inline void add_to_bin(unsigned long long* bin, uint64_t measure) {
  uint32_t* halves = reinterpret_cast<uint32_t*>(bin);
  const auto low = static_cast<uint32_t>(measure);
  const uint32_t before = atomicAdd(halves, low);
  const uint32_t high = static_cast<uint32_t>(measure >> 32) + (before + low < low ? 1u : 0u);
  if (high != 0) atomicAdd(halves + 1, high);
}

// Adds one thread's measures to bins. Why runs: in flat rows neighbours share a bin, and one address takes one addition
// at a time.
class BinAdder {
 public:
  __device__ explicit BinAdder(unsigned long long* bins) : bins_(bins) {}
  __device__ void add(uint32_t bin, uint64_t measure) {
    if (bin != bin_) {
      flush();
      bin_ = bin;
    }
    sum_ += measure;
  }
  __device__ void flush() {
    if (sum_ != 0) add_to_bin(bins_ + bin_, sum_);
    sum_ = 0;
  }

 private:
  unsigned long long* bins_;
  uint32_t bin_ = 0;
  uint64_t sum_ = 0;
};

__device__ inline void clear_bins(CutShared& shared) {
  __syncthreads();
  for (int32_t i = threadIdx.x; i < kBins; i += blockDim.x) shared.bins[i] = 0;
  __syncthreads();
}

// The first bin (bin 0 is the top) whose sum, on `before` and all bins above it, reaches the limit: in shared.bin and
// shared.before, kNoBin if none does. All threads; returns with a barrier.
constexpr uint32_t kNoBin = 0xFFFFFFFFu;
__device__ inline void find_bin(CutShared& shared, uint64_t before, uint64_t limit) {
  __syncthreads();
  const int32_t per_thread = kBins / blockDim.x;
  const int32_t first = threadIdx.x * per_thread;
  unsigned long long mine = 0;
  for (int32_t i = 0; i < per_thread; ++i) mine += shared.bins[first + i];
  unsigned long long inclusive = mine;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned long long lower = __shfl_up_sync(0xFFFFFFFFu, inclusive, offset);
    if (threadIdx.x % 32 >= offset) inclusive += lower;
  }
  if (threadIdx.x % 32 == 31) shared.scan[threadIdx.x / 32] = inclusive;
  if (threadIdx.x == 0) shared.bin = kNoBin;
  __syncthreads();
  unsigned long long front = before + inclusive - mine;
  for (uint32_t w = 0; w < threadIdx.x / 32; ++w) front += shared.scan[w];
  if (front < limit && front + mine >= limit) {
    int32_t i = first;
    while (front + shared.bins[i] < limit) front += shared.bins[i++];
    shared.bin = i;
    shared.before = front;
  }
  __syncthreads();
}

// for_each(visit) must call visit(order_key, measure) once for each element, over the block's threads; every thread
// must call block_cut.
// Finds the last element with less than `limit` (>= 1) in front of it.
template <class ForEach>
__device__ Cut block_cut(const ForEach& for_each, uint64_t limit, CutShared& shared) {
  constexpr int kShift[] = {53, 42, 32, 11, 0};
  constexpr int kWidth[] = {11, 11, 10, 11, 11};
  uint64_t prefix = 0;
  uint64_t prefix_mask = 0;
  uint64_t before = 0;
#pragma unroll 1
  for (int level = 0; level < 5; ++level) {
    const int shift = kShift[level];
    const uint32_t mask = (1u << kWidth[level]) - 1;
    clear_bins(shared);
    BinAdder adder(shared.bins);
    for_each([&](uint64_t key, uint64_t measure) {
      if ((key & prefix_mask) == prefix) adder.add(mask - (static_cast<uint32_t>(key >> shift) & mask), measure);
    });
    adder.flush();
    find_bin(shared, before, limit);
    if (shared.bin == kNoBin) return {0, false};  // only on the first level
    before = shared.before;
    prefix |= static_cast<uint64_t>(mask - shared.bin) << shift;
    prefix_mask |= static_cast<uint64_t>(mask) << shift;
  }
  __syncthreads();
  // Why the or: order keys carry ~id in 32 bits, ids have 22, so the ten bits between are all set.
  return {prefix | uint64_t{0x3FF} << 22, true};
}

}  // namespace ts::cuda
