// SPDX-License-Identifier: Apache-2.0
// Launching the report kernel.
#include "cuda/launch.h"
#include "cuda/report.cuh"

namespace ts::cuda {
namespace {

using Kernel = void (*)(Call, const RowPick*, RowTotals*, Outputs);

template <class Type>
Kernel kernel_for(bool counts) {
  return counts ? report_kernel<Type, true> : report_kernel<Type, false>;
}

Kernel kernel_for(int32_t logits_type, bool counts) {
  switch (logits_type) {
    case TS_FP32: return kernel_for<Fp32>(counts);
    case TS_BF16: return kernel_for<Bf16>(counts);
    default: return kernel_for<Fp16>(counts);
  }
}

}  // namespace

void launch_report(LaunchList& list, int32_t logits_type, const Call& call, int64_t n_rows, const RowPick* picks,
                   RowTotals* totals, const Outputs& out) {
  const bool counts = out.ranks != nullptr || out.n_kept != nullptr;
  const LaunchShape shape{dim3(static_cast<unsigned>(n_rows * call.n_slices)), dim3(kThreads)};
  list.add("launch of report_kernel", kernel_for(logits_type, counts), shape, call, picks, totals, out);
}

void load_report_kernels() {
  cudaFuncAttributes attributes;
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    for (const bool counts : {false, true}) {
      check(cudaFuncGetAttributes(&attributes, kernel_for(type, counts)), "cudaFuncGetAttributes(report_kernel)");
    }
  }
}

}  // namespace ts::cuda
