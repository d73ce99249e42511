// SPDX-License-Identifier: Apache-2.0
// Launching the report kernel.
#include "cuda/launch.h"
#include "cuda/report.cuh"

namespace ts::cuda {
namespace {

using Kernel = void (*)(Call, const RowPick*, RowTotals*, Outputs);

Kernel kernel_for(int32_t logits_type) {
  switch (logits_type) {
    case TS_FP32: return report_kernel<Fp32>;
    case TS_BF16: return report_kernel<Bf16>;
    default: return report_kernel<Fp16>;
  }
}

}  // namespace

void launch_report(LaunchList& list, int32_t logits_type, const Call& call, int64_t n_rows, const RowPick* picks,
                   RowTotals* totals, const Outputs& out) {
  const LaunchShape shape{dim3(static_cast<unsigned>(n_rows * call.n_slices)), dim3(kThreads)};
  list.add("launch of report_kernel", kernel_for(logits_type), shape, call, picks, totals, out);
}

void load_report_kernels() {
  cudaFuncAttributes attributes;
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    check(cudaFuncGetAttributes(&attributes, kernel_for(type)), "cudaFuncGetAttributes(report_kernel)");
  }
}

}  // namespace ts::cuda
