// SPDX-License-Identifier: Apache-2.0
// The exact kernel: one block for each row that the stream left open, over the whole row, as the CPU backend does it.
//
// Method: up to five passes for each cut (cut.cuh), one for the total, one for the draw. Rows that are not open cost
// their block's launch. Bytes: up to 12 reads of an open row, mostly from L2.
#pragma once

#include "cuda/finish.cuh"
#include "cuda/row_context.cuh"
#include "cuda/row_source.cuh"

namespace ts::cuda {

struct ExactShared {
  CutShared cut;
  ReduceShared reduce;
};

template <class Type>
__global__ void __launch_bounds__(kThreads) exact_kernel(const Call call, RowPick* picks, const Outputs out) {
  __shared__ ExactShared shared;
  const int64_t row_index = blockIdx.x;
  RowPick& pick = picks[row_index];
  if (pick.open == 0) return;
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RequestState& state = row.state;
  row.max = pick.max;
  const RowSource<Type> source(call, row_index, 0, 1);
  uint64_t last_key = 0;

  // visit(logit, id) for each candidate that is not after last_key.
  const auto for_each_candidate = [&](auto visit) {
    for (int32_t group = threadIdx.x; group < source.end_group; group += kThreads) {
      float logits[kGroup];
      uint32_t flags = 0;
      source.clean(source.load(group), group, logits, flags);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const uint32_t id = static_cast<uint32_t>(group * kGroup + j);
        if (logits[j] > kMinusInf && order_key(logits[j], id) >= last_key) visit(logits[j], id);
      }
    }
  };
  if ((state.needs & kNeedTopK) != 0) {
    const auto count = [&](auto visit) {
      for_each_candidate([&](float logit, uint32_t id) { visit(order_key(logit, id), uint64_t{1}); });
    };
    const Cut cut = block_cut(count, static_cast<uint64_t>(state.top_k), shared.cut);
    if (cut.reached) last_key = cut.key;
  }
  if ((state.needs & kNeedTopP) != 0) {
    unsigned long long mine = 0;
    for_each_candidate([&](float logit, uint32_t) { mine += weight(logit - row.max, state.log2e_over_t); });
    const uint64_t total = block_reduce(mine, shared.reduce.as<unsigned long long>(), Add{});
    const uint64_t limit = mass_limit(state.top_p_fixed, total);
    const auto weigh = [&](auto visit) {
      for_each_candidate(
          [&](float logit, uint32_t id) { visit(order_key(logit, id), weight(logit - row.max, state.log2e_over_t)); });
    };
    last_key = block_cut(weigh, limit > 0 ? limit : 1, shared.cut).key;
  }
  const float min_distance = (state.needs & kNeedMinP) != 0 ? state.min_p_threshold : kMinusInf;
  Scored best = no_score();
  WinBound bound;
  for_each_candidate([&](float logit, uint32_t id) {
    if (!(logit - row.max >= min_distance)) return;
    const uint32_t coarse = coarse_bits(coarse_block(row.key, id / kCoarsePerBlock), id);
    if (!bound.may_win(logit, coarse)) return;
    const Scored scored = {exact_score(logit, id, coarse, state.inv_temperature, row.key), id};
    if (better(scored, best).id == best.id) return;
    best = scored;
    bound = WinBound(logit, scored.score, state.inv_temperature, state.log2e_over_t);
  });
  best = block_reduce(best, shared.reduce.as<Scored>(), Better{});
  if (threadIdx.x == 0) {
    pick.last_key = last_key;
    pick.token = best.id;
    pick.open = 0;
    out.tokens[row_index] = static_cast<int32_t>(best.id);
  }
}

}  // namespace ts::cuda
