// SPDX-License-Identifier: Apache-2.0
// The exact kernel: the rows that the stream left open, a block each, or some blocks each where they are few.
//
// Method: top-p is decided by the row's contenders, winners of ever smaller sets: one pass sums the row's fp32 mass and what
// is in front of them, or integer masses where those are too near the limit. If none of them is kept, one pass finds the best
// of what is in front of the last, and so on. Where the cut itself is wanted: one pass adds measures into 2048 bins of width
// 1/32 below the maximum, which finds the bin that the cut falls into; one lists that bin's candidates, on which block_cut
// goes on (if they are too many, over the row); one more draws.
// Bytes: 1 to 5 reads of an open row, mostly from L2. Open rows come from a list: none, no work.
// Why not clusters: beside a kernel that holds most of the multiprocessors a cluster may not find room (FAULTS.md D5), and
// they were no faster here; where the caller allows them, few rows go to the cluster kernel and never come here.
// Measured (H200, V 128256, bf16, 512 real rows with top-p .9, 84 to 98 of them open, ncu): 28 us alone, commit bf4c8d6.
#pragma once

#include "cuda/exact_row.cuh"
#include "cuda/ptx.cuh"
#include "cuda/verify.cuh"

namespace ts::cuda {

// The contenders of a row whose fronts are to be summed.
__device__ inline Places unknown_contenders(const RowPick& pick) {
  Places places;
  uint32_t n = 0;
#pragma unroll
  for (uint32_t i = 0; i < kMaxContenders; ++i) {
    if (i >= pick.n_contenders || pick.before[i] != kUnknownMass) continue;
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) {
      if (p == n) places.logits[p] = pick.logits[i], places.ids[p] = pick.contenders[i];
    }
    ++n;
  }
  return places;
}

// The winner of a row with top-p, from its contenders and masses. Gives up after a few tries: known is then false.
constexpr uint32_t kMaxDraws = 4;
template <class Type>
__device__ uint32_t winner_of_contenders(const ExactRow<Type>& exact, const RowContext& row, const RowPick& pick,
                                         uint32_t n_contenders, Masses masses, float min_distance, bool& known) {
  // A thread adds a group's terms by three levels, the block its threads' sums by nine, and the parts are five more.
  const auto n_ids = static_cast<float>(row.vocab);
  const float error = mass_error(row.max * row.state.log2e_over_t, n_ids / (kExactThreads * kGroup) + 32.0f, n_ids);
  known = false;
  float logit = 0.0f;
  uint32_t token = 0;
  uint64_t last_key = 0;
  uint32_t n_unknown = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < n_contenders + kMaxDraws; ++i) {
    float front = 0.0f;
    MassLimits before{kUnknownMass, kUnknownMass};
    if (i < n_contenders) {
      logit = pick.logits[i];
      token = pick.contenders[i];
      before.low = before.high = pick.before[i];
      if (before.low == kUnknownMass) {
#pragma unroll
        for (uint32_t p = 0; p < kMaxUnknown; ++p) front = p == n_unknown ? masses.before[p] : front;
        ++n_unknown;
      }
    } else {
      const Scored next = exact.draw(last_key, min_distance);
      logit = next.logit;
      token = next.id;
      masses = exact.masses(logit, token);
      front = masses.before[0];
    }
    MassLimits limits{};
    const bool usable = masses.total < 1e9f && error < 0.01f;
    if (usable) {
      limits = limits_of(masses.total, error, row.state.top_p_fixed);
      if (before.low == kUnknownMass) before = limits_of(front, error, kTopPOff);
    }
    if (!usable || (before.high > limits.low && before.low < limits.high)) {
      // Too near the limit.
      exact.exact_masses(logit, token, limits.low, before.low);
      limits.low = limits.high = cut_limit(row.state.top_p_fixed, limits.low);
      before.high = before.low;
    }
    known = before.high <= limits.low && before.low < limits.high;
    if (known) break;
    last_key = order_key(logit, token) + 1;
  }
  return token;
}

// n_parts blocks share a row with contenders; partials: room for a part each.
template <class Type>
__device__ void exact_row(const Call& call, int64_t row_index, int32_t part, int32_t n_parts, Masses* partials,
                          RowPick* picks, const Outputs& out, ExactShared& shared) {
  RowPick& pick = picks[row_index];
  const RowSource<Type> slice(call, row_index, part, n_parts);
  start(slice, shared);
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RowState& state = row.state;
  row.max = pick.max;
  const float min_distance = (state.needs & kNeedMinP) != 0 ? state.min_p_threshold : kMinusInf;
  const bool with_top_k = (state.needs & kNeedTopK) != 0;
  const bool with_top_p = (state.needs & kNeedTopP) != 0;
  const bool contended = pick.open == static_cast<uint32_t>(Open::kContenders);
  Masses masses{};
  if (contended) {
    masses = sum_masses(slice, row.max, state.log2e_over_t, unknown_contenders(pick), shared);
    if (n_parts > 1) {
      if (threadIdx.x == 0) partials[part] = masses;
      if (!last_to_arrive(&pick.arrivals, static_cast<uint32_t>(n_parts), &shared.flag)) return;
      const auto lane = static_cast<int32_t>(threadIdx.x % 32);
      masses = warp_reduce(lane < n_parts ? partials[lane] : Masses{}, AddMasses{});
    }
  } else {
    wait_for_copies<0>();
    if (part != 0) return;
  }
  const ExactRow<Type> exact(call, row_index, row, shared);
  uint64_t last_key = 0;
  uint32_t token = 0;
  bool known = false;
  if (with_top_p && !with_top_k && call.exact_cut == 0) {
    token = winner_of_contenders(exact, row, pick, contended ? pick.n_contenders : 0, masses, min_distance, known);
  }
  if (!known) {
    if (with_top_k) {
      const Cut cut = exact.cut(
          0, [](float) { return uint64_t{1}; }, [&](uint64_t) { return static_cast<uint64_t>(state.top_k); });
      if (cut.reached) last_key = cut.key;
    }
    if (with_top_p) {
      last_key = exact
                     .cut(
                         last_key, [&](float logit) { return weight(logit - row.max, state.log2e_over_t); },
                         [&](uint64_t total) { return cut_limit(state.top_p_fixed, total); })
                     .key;
    }
    token = exact.draw(last_key, min_distance).id;
  }
  if (threadIdx.x == 0) {
    pick.last_key = last_key;
    pick.token = token;
    pick.open = 0;
  }
  if (threadIdx.x < 32) end_row(call, picks, row_index, token, pick.flags, out);
}

// partials: room for the masses of each block.
template <class Type>
__global__ void __launch_bounds__(kExactThreads, 2)
    exact_kernel(const Call call, RowPick* picks, float* partials, const Outputs out) {
  wait_for_predecessor();
  release_successor();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  ExactShared& shared = *reinterpret_cast<ExactShared*>(shared_bytes);
  const auto n_open = static_cast<int32_t>(call.open_rows->n);
  if (n_open == 0) return;
  const auto n_blocks = static_cast<int32_t>(gridDim.x);
  const int32_t n_parts = min(max(n_blocks / n_open, 1), kMaxParts);
  for (int32_t i = static_cast<int32_t>(blockIdx.x); i < n_open * n_parts; i += n_blocks) {
    const int64_t row_index = call.open_rows->rows[i / n_parts];
    exact_row<Type>(call, row_index, i % n_parts, n_parts, reinterpret_cast<Masses*>(partials) + i / n_parts * n_parts,
                    picks, out, shared);
  }
  if (last_to_arrive(&call.open_rows->arrivals, gridDim.x, &shared.flag) && threadIdx.x == 0) call.open_rows->n = 0;
}

}  // namespace ts::cuda
