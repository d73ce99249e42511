// SPDX-License-Identifier: Apache-2.0
// Launching the exact kernel.
#include "cuda/exact.cuh"
#include "cuda/launch.h"

namespace ts::cuda {
namespace {

using Kernel = void (*)(Call, RowPick*, float*, Outputs);

Kernel kernel_for(int32_t logits_type) {
  switch (logits_type) {
    case TS_FP32: return exact_kernel<Fp32>;
    case TS_BF16: return exact_kernel<Bf16>;
    default: return exact_kernel<Fp16>;
  }
}

}  // namespace

void launch_exact(LaunchList& list, int32_t logits_type, const Call& call, int32_t n_blocks, RowPick* picks,
                  float* partials, const Outputs& out) {
  const LaunchShape shape{dim3(static_cast<unsigned>(n_blocks)), dim3(kExactThreads), sizeof(ExactShared)};
  list.add("launch of exact_kernel", kernel_for(logits_type), shape, call, picks, partials, out);
}

void load_exact_kernels() {
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    check(cudaFuncSetAttribute(kernel_for(type), cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(ExactShared)),
          "cudaFuncSetAttribute(exact_kernel)");
  }
}

}  // namespace ts::cuda
