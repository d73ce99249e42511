// SPDX-License-Identifier: Apache-2.0
// The exact cut, by one block: the CPU backend's radix descent, over any source of (order key, measure) pairs.
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

// The cut and the mass up to and with it.
struct Cut {
  uint64_t key;
  uint64_t through;
  bool reached;  // false: all of the source together stays below the limit
};

// for_each(visit) must call visit(order_key, measure) once for each element, over the block's threads; every thread
// must call block_cut. Finds the last element with less than `limit` (>= 1) in front of it.
template <class ForEach>
__device__ Cut block_cut(const ForEach& for_each, uint64_t limit, CutShared& shared) {
  constexpr int kShift[] = {53, 42, 32, 11, 0};
  constexpr int kWidth[] = {11, 11, 10, 11, 11};
  uint64_t prefix = 0;
  uint64_t prefix_mask = 0;
  uint64_t before = 0;
  uint64_t last_bin_mass = 0;
#pragma unroll 1
  for (int level = 0; level < 5; ++level) {
    const int shift = kShift[level];
    const uint32_t bin_mask = (1u << kWidth[level]) - 1;
    for (int32_t i = threadIdx.x; i < kBins; i += blockDim.x) shared.bins[i] = 0;
    __syncthreads();
    for_each([&](uint64_t key, uint64_t measure) {
      if ((key & prefix_mask) == prefix && measure != 0) {
        atomicAdd(&shared.bins[key >> shift & bin_mask], static_cast<unsigned long long>(measure));
      }
    });
    __syncthreads();
    // Each thread sums its run of bins, counted from the top; a scan over threads finds the run, then the bin.
    const int32_t per_thread = kBins / blockDim.x;
    unsigned long long mine = 0;
    for (int32_t i = 0; i < per_thread; ++i) mine += shared.bins[kBins - 1 - (threadIdx.x * per_thread + i)];
    unsigned long long inclusive = mine;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const unsigned long long lower = __shfl_up_sync(0xFFFFFFFFu, inclusive, offset);
      if (threadIdx.x % 32 >= offset) inclusive += lower;
    }
    if (threadIdx.x % 32 == 31) shared.scan[threadIdx.x / 32] = inclusive;
    if (threadIdx.x == 0) shared.bin = 0xFFFFFFFFu;
    __syncthreads();
    unsigned long long front = before + inclusive - mine;
    for (uint32_t w = 0; w < threadIdx.x / 32; ++w) front += shared.scan[w];
    if (front < limit && front + mine >= limit) {
      int32_t i = 0;
      while (front + shared.bins[kBins - 1 - (threadIdx.x * per_thread + i)] < limit) {
        front += shared.bins[kBins - 1 - (threadIdx.x * per_thread + i)];
        ++i;
      }
      shared.bin = kBins - 1 - (threadIdx.x * per_thread + i);
      shared.before = front;
    }
    __syncthreads();
    const uint32_t bin = shared.bin;
    if (bin == 0xFFFFFFFFu) return {0, 0, false};  // only on the first level
    before = shared.before;
    last_bin_mass = shared.bins[bin];
    prefix |= static_cast<uint64_t>(bin) << shift;
    prefix_mask |= static_cast<uint64_t>(bin_mask) << shift;
    __syncthreads();
  }
  // Why the or: order keys carry ~id in 32 bits, ids have 22, so the ten bits between are all set.
  return {prefix | uint64_t{0x3FF} << 22, before + last_bin_mass, true};
}

}  // namespace ts::cuda
