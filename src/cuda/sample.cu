// SPDX-License-Identifier: Apache-2.0
// Launching the sampling kernel: its instances by logits type and ways.
#include "cuda/launch.h"
#include "cuda/sample.cuh"

namespace ts::cuda {
namespace {

using Kernel = void (*)(Call, RowPick*, SlicePick*, uint64_t*, Outputs);

template <class Type>
Kernel kernel_for(Ways ways) {
  if (ways.noise) return ways.list ? sample_kernel<Type, true, true> : sample_kernel<Type, true, false>;
  return ways.list ? sample_kernel<Type, false, true> : sample_kernel<Type, false, false>;
}

Kernel kernel_for(int32_t logits_type, Ways ways) {
  switch (logits_type) {
    case TS_FP32: return kernel_for<Fp32>(ways);
    case TS_BF16: return kernel_for<Bf16>(ways);
    default: return kernel_for<Fp16>(ways);
  }
}

}  // namespace

void launch_sample(LaunchList& list, int32_t logits_type, Ways ways, const Call& call, int64_t n_rows, RowPick* picks,
                   SlicePick* slices, uint64_t* lists, const Outputs& out) {
  const LaunchShape shape{dim3(static_cast<unsigned>(n_rows * call.n_slices)), dim3(kThreads), sizeof(SampleShared)};
  list.add("launch of sample_kernel", kernel_for(logits_type, ways), shape, call, picks, slices, lists, out);
}

void load_sample_kernels() {
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    for (const bool noise : {false, true}) {
      for (const bool list : {false, true}) {
        check(cudaFuncSetAttribute(kernel_for(type, {noise, list}), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   sizeof(SampleShared)),
              "cudaFuncSetAttribute(sample_kernel)");
      }
    }
  }
}

}  // namespace ts::cuda
