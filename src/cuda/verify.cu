// SPDX-License-Identifier: Apache-2.0
// Launching the verification and the slot-writing kernels, and loading of all kernels.
#include "cuda/launch.h"
#include "cuda/verify.cuh"

namespace ts::cuda {

__global__ void write_slots_kernel(const int32_t* slots, const RequestState* states, int32_t n, RequestState* pool) {
  // 16 bytes a thread, 8 threads a slot.
  const int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i / 8 >= n) return;
  reinterpret_cast<uint4*>(pool + slots[i / 8])[i % 8] = reinterpret_cast<const uint4*>(states + i / 8)[i % 8];
}

void launch_verify(const Chains& chains, const RowPick* picks, const Outputs& results, cudaStream_t stream) {
  verify_kernel<<<(chains.n_requests + 127) / 128, 128, 0, stream>>>(chains, picks, results);
  check(cudaGetLastError(), "launch of verify_kernel");
}

void launch_write_slots(const int32_t* slots, const RequestState* states, int32_t n, RequestState* pool,
                        cudaStream_t stream) {
  write_slots_kernel<<<(n * 8 + 127) / 128, 128, 0, stream>>>(slots, states, n, pool);
  check(cudaGetLastError(), "launch of write_slots_kernel");
}

void load_sample_kernels();
void load_exact_kernels();
void load_report_kernels();

void load_kernels() {
  load_sample_kernels();
  load_exact_kernels();
  load_report_kernels();
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, verify_kernel), "cudaFuncGetAttributes(verify_kernel)");
  check(cudaFuncGetAttributes(&attributes, write_slots_kernel), "cudaFuncGetAttributes(write_slots_kernel)");
}

}  // namespace ts::cuda
