// SPDX-License-Identifier: Apache-2.0
// Log-probability, rank and size of the kept set of the chosen tokens, where asked for.
//
// Method: integer weights at temperature 1 relative to the row's maximum, which the stream has found, summed by
// n_slices blocks a row with integer atomics; the row's last block takes the logarithm. Bytes: the logits once more.
#pragma once

#include "contract/order.h"
#include "contract/weight.h"
#include "cuda/block.cuh"
#include "cuda/row_context.cuh"
#include "cuda/row_source.cuh"

namespace ts::cuda {

struct ReportShared {
  ReduceShared reduce;
  uint32_t flag;
};

constexpr float kLog2E = 0x1.715476p+0f;

template <class Type>
__global__ void __launch_bounds__(kThreads)
    report_kernel(const Call call, const RowPick* picks, RowTotals* totals, const Outputs out) {
  __shared__ ReportShared shared;
  const int64_t row_index = blockIdx.x / call.n_slices;
  const int32_t slice = blockIdx.x % call.n_slices;
  const RowPick pick = picks[row_index];
  RowTotals& total = totals[row_index];
  if ((pick.flags & kRowEmpty) != 0) {
    if (slice == 0 && threadIdx.x == 0) {
      if (out.logprobs != nullptr) out.logprobs[row_index] = __int_as_float(0x7FC00000);
      if (out.ranks != nullptr) out.ranks[row_index] = 0;
      if (out.n_kept != nullptr) out.n_kept[row_index] = 0;
    }
    return;
  }
  bool slot_in_pool;
  const RowContext row = row_context(call, row_index, slot_in_pool);
  const bool greedy = (row.state.needs & kNeedSample) == 0;
  const RowSource<Type> source(call, row_index, slice, call.n_slices);

  // The token's own logit, cleaned as in the stream.
  const RowSource<Type> whole(call, row_index, 0, 1);
  const int32_t token_group = static_cast<int32_t>(pick.token / kGroup);
  float token_logits[kGroup];
  uint32_t flags = 0;
  whole.clean(whole.load(token_group), token_group, token_logits, flags);
  float token_logit = token_logits[0];
#pragma unroll
  for (int j = 1; j < kGroup; ++j) {
    if (pick.token % kGroup == j) token_logit = token_logits[j];
  }

  unsigned long long mass = 0;
  uint32_t n_above = 0;
  uint32_t n_kept = 0;
  for (int32_t group = source.first_group + threadIdx.x; group < source.end_group; group += kThreads) {
    float logits[kGroup];
    source.clean(source.load(group), group, logits, flags);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const uint32_t id = static_cast<uint32_t>(group * kGroup + j);
      if (out.logprobs != nullptr) mass += weight(logits[j] - pick.max, kLog2E);
      n_above += logits[j] > token_logit ? 1u : 0u;
      n_kept += logits[j] > kMinusInf && order_key(logits[j], id) >= pick.last_key &&
                        logits[j] - pick.max >= pick.min_distance
                    ? 1u
                    : 0u;
    }
  }
  mass = block_reduce(mass, shared.reduce.as<unsigned long long>(), Add{});
  n_above = block_reduce(n_above, shared.reduce.as<uint32_t>(), Add{});
  n_kept = block_reduce(n_kept, shared.reduce.as<uint32_t>(), Add{});
  if (threadIdx.x == 0) {
    atomicAdd(&total.mass, mass);
    atomicAdd(&total.n_above, n_above);
    atomicAdd(&total.n_kept, n_kept);
  }
  if (!last_to_arrive(&total.arrivals, static_cast<uint32_t>(call.n_slices), &shared.flag)) return;
  if (threadIdx.x == 0) {
    // Read and clear for the next call.
    mass = atomicExch(&total.mass, 0ull);
    n_above = atomicExch(&total.n_above, 0u);
    n_kept = atomicExch(&total.n_kept, 0u);
    if (out.logprobs != nullptr) {
      const double distance = static_cast<double>(token_logit) - static_cast<double>(pick.max);
      const double sum = static_cast<double>(static_cast<int64_t>(mass)) / static_cast<double>(kWeightOne);
      out.logprobs[row_index] = static_cast<float>(distance - ln(sum));
    }
    if (out.ranks != nullptr) out.ranks[row_index] = static_cast<int32_t>(n_above) + 1;
    if (out.n_kept != nullptr) out.n_kept[row_index] = greedy ? 1 : static_cast<int32_t>(n_kept);
  }
}

}  // namespace ts::cuda
