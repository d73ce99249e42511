// SPDX-License-Identifier: Apache-2.0
// Launching the sampling kernel: its instances by logits type and ways.
#include <cstddef>

#include "cuda/launch.h"
#include "cuda/sample.cuh"

namespace ts::cuda {
namespace {

using Kernel = void (*)(Call, RowPick*, SlicePick*, uint64_t*, Outputs);

template <class Type>
Kernel kernel_for(Ways ways) {
  switch (ways) {
    case Ways::kGreedy: return sample_kernel<Type, false, false, false>;
    case Ways::kNoise: return sample_kernel<Type, true, false, false>;
    case Ways::kTop: return sample_kernel<Type, false, true, false>;
    case Ways::kBoth: return sample_kernel<Type, false, false, true>;
    default: return sample_kernel<Type, true, true, true>;
  }
}

Kernel kernel_for(int32_t logits_type, Ways ways) {
  switch (logits_type) {
    case TS_FP32: return kernel_for<Fp32>(ways);
    case TS_BF16: return kernel_for<Bf16>(ways);
    default: return kernel_for<Fp16>(ways);
  }
}

size_t shared_bytes(Ways ways) {
  return ways == Ways::kGreedy || ways == Ways::kNoise ? offsetof(SampleShared, marked) : sizeof(SampleShared);
}

}  // namespace

void launch_sample(LaunchList& list, int32_t logits_type, Ways ways, const Call& call, int64_t n_rows, RowPick* picks,
                   SlicePick* slices, uint64_t* lists, const Outputs& out) {
  const LaunchShape shape{dim3(static_cast<unsigned>(n_rows * call.n_slices)), dim3(kThreads),
                          static_cast<uint32_t>(shared_bytes(ways))};
  list.add("launch of sample_kernel", kernel_for(logits_type, ways), shape, call, picks, slices, lists, out);
}

void load_sample_kernels() {
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    for (const Ways ways : {Ways::kGreedy, Ways::kNoise, Ways::kTop, Ways::kBoth, Ways::kAll}) {
      check(cudaFuncSetAttribute(kernel_for(type, ways), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes(ways))),
            "cudaFuncSetAttribute(sample_kernel)");
    }
  }
}

}  // namespace ts::cuda
