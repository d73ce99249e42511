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

void launch_report(int32_t logits_type, const Call& call, int64_t n_rows, const RowPick* picks, RowTotals* totals,
                   const Outputs& out, cudaStream_t stream) {
  const auto n_blocks = static_cast<unsigned>(n_rows * call.n_slices);
  kernel_for(logits_type)<<<n_blocks, kThreads, 0, stream>>>(call, picks, totals, out);
  check(cudaGetLastError(), "launch of report_kernel");
}

void load_report_kernels() {
  cudaFuncAttributes attributes;
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    check(cudaFuncGetAttributes(&attributes, kernel_for(type)), "cudaFuncGetAttributes(report_kernel)");
  }
}

}  // namespace ts::cuda
