// SPDX-License-Identifier: Apache-2.0
// Log-probability, rank and size of the kept set of the chosen tokens, where asked for.
//
// Method: integer weights at temperature 1 relative to the row's maximum, which the stream has found (weight_sum.cuh), summed
// by n_slices blocks a row with integer atomics; the row's last block takes the logarithm. Bytes: the logits once more. Floor
// on an H200: bytes / 4.3 TB/s, after the kernel in front; its weights need the maximum, so they cannot be summed by the pass
// that finds it.
// Measured (H200, V 128256, bf16, 512 rows, commit 467a096, before the weights' two roundings an id):
// 72 us for log-probabilities alone, of 32 that reading takes. Not measured since.
#pragma once

#include "contract/order.h"
#include "cuda/block.cuh"
#include "cuda/ptx.cuh"
#include "cuda/row_context.cuh"
#include "cuda/tiles.cuh"
#include "cuda/weight_sum.cuh"

namespace ts::cuda {

struct ReportShared {
  ReduceShared reduce;
  TileBuffer tiles;
};

constexpr float kLog2E = 0x1.715476p+0f;

// kCounts: ranks and kept sizes too, not log-probabilities alone.
template <class Type, bool kCounts>
__global__ void __launch_bounds__(kThreads, 4)
    report_kernel(const Call call, const RowPick* picks, RowTotals* totals, const Outputs out) {
  wait_for_predecessor();
  release_successor();
  __shared__ ReportShared shared;
  const int64_t row_index = blockIdx.x / call.n_slices;
  const int32_t slice = blockIdx.x % call.n_slices;
  const RowPick pick = picks[row_index];
  RowTotals& total = totals[row_index];
  const bool behind = out.chains.candidates != nullptr && out.chains.accept_index[row_index] < 0;
  if (behind || (pick.flags & kRowEmpty) != 0) {
    if (slice == 0 && threadIdx.x == 0) {
      if (out.logprobs != nullptr) out.logprobs[row_index] = __int_as_float(0x7FC00000);
      if (out.ranks != nullptr) out.ranks[row_index] = 0;
      if (out.n_kept != nullptr) out.n_kept[row_index] = 0;
    }
    return;
  }
  const RowSource<Type> source(call, row_index, slice, call.n_slices);
  const Tiles<Type> tiles(source, shared.tiles);
  tiles.start();

  // The token's own logit. Why + 0: the maximum that -0 is compared with is +0.
  float token_logits[kGroup];
  source.load(static_cast<int32_t>(pick.token / kGroup)).clean(token_logits);
  const float token_logit = logit_at(token_logits, pick.token % kGroup);

  unsigned long long mass = 0;
  uint32_t n_above = 0;
  uint32_t n_kept = 0;
  uint32_t flags = 0;
  tiles.walk_ahead(flags, [&](int32_t first, const auto& raw) {
#pragma unroll
    for (int i = 0; i < kTileGroups<Type>; ++i) {
      float logits[kGroup];
      raw(i).unpack(logits);
      const float top = raw(i).stored_top();
      if (!(top <= kFloatMax)) raw(i).clean(logits);
      mass += sum_of_weights(logits, top, pick.max, kLog2E);
      if constexpr (kCounts) {
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          const uint32_t id = static_cast<uint32_t>((first + i * kThreads) * kGroup + j);
          n_above += logits[j] > token_logit ? 1u : 0u;
          n_kept += logits[j] > kMinusInf && order_key(logits[j], id) >= pick.last_key &&
                            logits[j] - pick.max >= pick.min_distance
                        ? 1u
                        : 0u;
        }
      }
    }
  });
  mass = block_reduce(mass, shared.reduce.as<unsigned long long>(), Add{});
  if (kCounts) {
    n_above = block_reduce(n_above, shared.reduce.as<uint32_t>(), Add{});
    n_kept = block_reduce(n_kept, shared.reduce.as<uint32_t>(), Add{});
  }
  if (threadIdx.x >= 32) return;
  if (call.n_slices > 1) {
    if (threadIdx.x == 0) {
      atomicAdd(&total.mass, mass);
      if (kCounts) {
        atomicAdd(&total.n_above, n_above);
        atomicAdd(&total.n_kept, n_kept);
      }
    }
    if (!last_warp(&total.arrivals, static_cast<uint32_t>(call.n_slices))) return;
  }
  if (threadIdx.x != 0) return;
  if (call.n_slices > 1) {
    // Read, and clear for the next call.
    mass = atomicExch(&total.mass, 0ull);
    if (kCounts) {
      n_above = atomicExch(&total.n_above, 0u);
      n_kept = atomicExch(&total.n_kept, 0u);
    }
  }
  if (out.logprobs != nullptr) {
    const double distance = static_cast<double>(token_logit + 0.0f) - static_cast<double>(pick.max);
    const double sum = static_cast<double>(static_cast<int64_t>(mass)) / static_cast<double>(kWeightOne);
    out.logprobs[row_index] = static_cast<float>(distance - ln(sum));
  }
  if (kCounts && out.ranks != nullptr) out.ranks[row_index] = static_cast<int32_t>(n_above) + 1;
  if (kCounts && out.n_kept != nullptr) {
    bool slot_in_pool;
    const bool greedy = (row_context(call, row_index, slot_in_pool).state.needs & kNeedSample) == 0;
    out.n_kept[row_index] = greedy ? 1 : static_cast<int32_t>(n_kept);
  }
}

}  // namespace ts::cuda
