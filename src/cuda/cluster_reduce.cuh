// SPDX-License-Identifier: Apache-2.0
// Reductions over the blocks of a cluster, through their shared memory.
#pragma once

#include <cooperative_groups.h>

#include "cuda/block.cuh"

namespace ts::cuda {

constexpr int32_t kMaxClusterThreads = 512;
constexpr int32_t kMaxClusterSize = 16;
constexpr size_t kMaxReduced = 32;  // bytes of a value

struct ClusterReduceShared {
  alignas(16) unsigned char warps[kMaxClusterThreads / 32][kMaxReduced];
  alignas(16) unsigned char blocks[2][kMaxClusterSize][kMaxReduced];
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ inline uint32_t cluster_size() { return cooperative_groups::this_cluster().num_blocks(); }
__device__ inline uint32_t cluster_rank() { return cooperative_groups::this_cluster().block_rank(); }

// Says that this block runs, and waits for the others to. Between the two lies what needs none of them. Why: the shared
// memory of a block that has not begun must not be written.
__device__ inline void cluster_begin() { cooperative_groups::this_cluster().barrier_arrive(); }
__device__ inline void cluster_wait_begun() { cooperative_groups::this_cluster().barrier_wait(); }

// Reduces one value a thread of all the cluster's blocks, with an associative, commutative operation of which `nothing` is
// the neutral element; every thread gets the result. round: 0, 1, ... in turn. A barrier of the cluster inside: a kernel ends
// with one of these, or touches no other block's shared memory after it.
// Why two sets of `blocks`: a block may write for the next round while another still reads this one's.
template <class T, class Op>
__device__ __forceinline__ T cluster_reduce(ClusterReduceShared& shared, uint32_t round, T value, T nothing, Op op) {
  static_assert(sizeof(T) <= kMaxReduced, "raise kMaxReduced");
  const auto cluster = cooperative_groups::this_cluster();
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t n_blocks = cluster.num_blocks();
  auto& blocks = shared.blocks[round % 2];
  value = warp_reduce(value, op);
  if (lane == 0) *reinterpret_cast<T*>(shared.warps[threadIdx.x / 32]) = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = warp_reduce(lane < blockDim.x / 32 ? *reinterpret_cast<const T*>(shared.warps[lane]) : nothing, op);
    if (lane < n_blocks) {
      *reinterpret_cast<T*>(cluster.map_shared_rank(&blocks[cluster.block_rank()][0], static_cast<int>(lane))) = value;
    }
  }
  cluster.barrier_arrive();
  cluster.barrier_wait();
  return warp_reduce(lane < n_blocks ? *reinterpret_cast<const T*>(blocks[lane]) : nothing, op);
}

#endif

}  // namespace ts::cuda
