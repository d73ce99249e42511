// SPDX-License-Identifier: Apache-2.0
// Launching the verification kernel, and loading of all kernels.
#include "cuda/launch.h"
#include "cuda/verify.cuh"

namespace ts::cuda {

void launch_verify(LaunchList& list, const Chains& chains, const RowPick* picks, const Outputs& results) {
  constexpr int32_t kVerifyThreads = 128;
  const LaunchShape shape{dim3(static_cast<unsigned>((chains.n_requests - 1) / kVerifyThreads + 1)),
                          dim3(kVerifyThreads)};
  list.add("launch of verify_kernel", verify_kernel, shape, chains, picks, results);
}

void load_sample_kernels();
void load_exact_kernels();
void load_report_kernels();
void load_write_slots_kernels();

void load_kernels() {
  load_sample_kernels();
  load_exact_kernels();
  load_report_kernels();
  load_write_slots_kernels();
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, verify_kernel), "cudaFuncGetAttributes(verify_kernel)");
}

}  // namespace ts::cuda
