// SPDX-License-Identifier: Apache-2.0
// Blocks that work on one row: a cluster, which is resident together by guarantee of its launch and whose blocks read each
// other's shared memory, or a block alone. Below compute capability 9.0 there is no other.
#pragma once

#include <cooperative_groups.h>

#include "cuda/block.cuh"

namespace ts::cuda {

// Blocks of the cluster; 1 in a launch without clusters.
__device__ inline uint32_t cluster_size() {
#if __CUDA_ARCH__ >= 900
  return cooperative_groups::this_cluster().num_blocks();
#else
  return 1;
#endif
}

class Team {
 public:
  // The whole cluster, or the block alone.
  __device__ explicit Team(bool alone) : size_(1), rank_(0) {
#if __CUDA_ARCH__ >= 900
    if (!alone) {
      size_ = cluster_size();
      rank_ = cooperative_groups::this_cluster().block_rank();
    }
#endif
  }
  __device__ uint32_t size() const { return size_; }
  __device__ uint32_t rank() const { return rank_; }

  // A barrier for all threads; shared memory written before is seen after.
  __device__ void sync() const {
#if __CUDA_ARCH__ >= 900
    if (size_ > 1) {
      cooperative_groups::this_cluster().sync();
      return;
    }
#endif
    __syncthreads();
  }
  // The same object of another block.
  template <class T>
  __device__ T* at(T* local, uint32_t rank) const {
#if __CUDA_ARCH__ >= 900
    if (size_ > 1) return cooperative_groups::this_cluster().map_shared_rank(local, rank);
#endif
    return local;
  }

 private:
  uint32_t size_;
  uint32_t rank_;
};

// Reduces one value a thread over the team; every thread gets the result. All threads.
struct TeamShared {
  ReduceShared reduce;
  alignas(16) unsigned char partial[sizeof(Scored)];
};
template <class T, class Op>
__device__ T team_reduce(T value, const Team& team, TeamShared& shared, Op op) {
  value = block_reduce(value, shared.reduce.as<T>(), op);
  if (team.size() == 1) return value;
  T* partial = reinterpret_cast<T*>(shared.partial);
  if (threadIdx.x == 0) *partial = value;
  team.sync();
  T result = *team.at(partial, 0);
#pragma unroll 1
  for (uint32_t rank = 1; rank < team.size(); ++rank) result = op(result, *team.at(partial, rank));
  team.sync();
  return result;
}

}  // namespace ts::cuda
