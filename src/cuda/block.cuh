// SPDX-License-Identifier: Apache-2.0
// Reductions over a block, with every thread getting the result.
#pragma once

#include <cstdint>

#include "cuda/call.h"
#include "cuda/ptx.cuh"

namespace ts::cuda {

constexpr uint32_t kNoId = 0xFFFFFFFFu;

__device__ inline Scored no_score() {
  return {-__longlong_as_double(0x7FF0000000000000), kNoId, -__int_as_float(0x7F800000)};
}

__device__ inline Scored better(Scored a, Scored b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id) ? a : b;
}

template <class T>
__device__ T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, mask);
}
template <>
__device__ inline Scored shuffle_xor(Scored value, int mask) {
  return {__shfl_xor_sync(0xFFFFFFFFu, value.score, mask), __shfl_xor_sync(0xFFFFFFFFu, value.id, mask),
          __shfl_xor_sync(0xFFFFFFFFu, value.logit, mask)};
}
struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Or {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};
struct Better {
  __device__ Scored operator()(Scored a, Scored b) const { return better(a, b); }
};
// Reduces one value a lane of a warp.
template <class T, class Op>
__device__ T warp_reduce(T value, Op op) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value = op(value, shuffle_xor(value, offset));
  return value;
}

// Reduces one value a thread with an associative, commutative operation; the block's warps must be a power of two.
// `shared` has an entry a warp. Starts and ends with a barrier, so `shared` may be reused at once.
// Why not inlined: as cold.cuh.
template <class T, class Op>
__device__ __noinline__ T block_reduce(T value, T* shared, Op op) {
  value = warp_reduce(value, op);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  const uint32_t n_warps = blockDim.x / 32;
  value = shared[threadIdx.x % n_warps];
#pragma unroll 1
  for (uint32_t offset = n_warps / 2; offset > 0; offset /= 2) {
    value = op(value, shuffle_xor(value, static_cast<int>(offset)));
  }
  __syncthreads();
  return value;
}

// Memory for block_reduce of any of these.
struct ReduceShared {
  alignas(16) unsigned char bytes[32 * sizeof(Scored)];
  template <class T>
  __device__ T* as() {
    return reinterpret_cast<T*>(bytes);
  }
};

// Whether this is the last of `n` blocks to come here; the counter is then 0 again. What the other blocks wrote to
// device memory before is visible to the last one. Why no spin: a block that is not the last just ends.
__device__ inline bool last_to_arrive(uint32_t* arrivals, uint32_t n, uint32_t* shared_flag) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const bool last = arrive(arrivals) == n - 1;
    if (last) *arrivals = 0;
    *shared_flag = last ? 1u : 0u;
  }
  __syncthreads();
  return *shared_flag != 0;
}

// The same for one warp, whose first lane alone has written.
__device__ inline bool last_warp(uint32_t* arrivals, uint32_t n) {
  bool last = false;
  if (threadIdx.x % 32 == 0) {
    last = arrive(arrivals) == n - 1;
    if (last) *arrivals = 0;
  }
  last = __shfl_sync(0xFFFFFFFFu, last, 0);
  __syncwarp();
  return last;
}

}  // namespace ts::cuda
