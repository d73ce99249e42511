// SPDX-License-Identifier: Apache-2.0
// Kernels of the GPU tests.
#include "gpu/kernels.h"

namespace ts::gpu {
namespace {

__global__ void advance_kernel(int64_t* positions, int32_t n, int64_t by) {
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < n; i += static_cast<int32_t>(blockDim.x)) positions[i] += by;
}

__global__ void rotate_kernel(int32_t* slots, int32_t n) {
  const int32_t first = slots[0];
  for (int32_t i = 0; i + 1 < n; ++i) slots[i] = slots[i + 1];
  slots[n - 1] = first;
}

__global__ void produce_kernel(uint16_t* logits, const uint16_t* from, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) logits[i] = from[i];
}

__global__ void occupy_kernel(const volatile int32_t* stop, volatile int32_t* n_running) {
  extern __shared__ unsigned char taken[];
  taken[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    atomicAdd_system(const_cast<int32_t*>(n_running), 1);
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (*stop == 0 && now - begin < 20000000000ull);
  }
  __syncthreads();
}

}  // namespace

void launch_advance(int64_t* positions, int32_t n, int64_t by, cudaStream_t stream) {
  advance_kernel<<<1, 128, 0, stream>>>(positions, n, by);
}

void launch_rotate(int32_t* slots, int32_t n, cudaStream_t stream) { rotate_kernel<<<1, 1, 0, stream>>>(slots, n); }

void launch_produce(uint16_t* logits, const uint16_t* from, int64_t n, cudaStream_t stream) {
  produce_kernel<<<64, 256, 0, stream>>>(logits, from, n);
}

void launch_occupy(int32_t n_blocks, const volatile int32_t* stop, volatile int32_t* n_running, cudaStream_t stream) {
  int n_bytes = 0;  // all that an SM gives a block, so that no other block with shared memory fits beside it
  cudaDeviceGetAttribute(&n_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaFuncSetAttribute(occupy_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, n_bytes);
  occupy_kernel<<<static_cast<unsigned>(n_blocks), 1024, static_cast<size_t>(n_bytes), stream>>>(stop, n_running);
}

}  // namespace ts::gpu
