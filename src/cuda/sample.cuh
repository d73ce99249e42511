// SPDX-License-Identifier: Apache-2.0
// The sampling kernel: one pass over the logits, one token a row.
//
// Method: a row is read by n_slices blocks in tiles of 256 threads x kTileGroups groups of 8 ids. A greedy row tracks
// its maximum. A plain row draws the coarse noise of every group and lists the few ids that can still win against the
// best score of a seed tile (WinBound); a filtered row draws no noise, but lists what is above a rising floor and sums
// fp32 masses. The row's last block merges the slices and finishes (finish.cuh). What cannot be proven stays open.
// Bytes: the logits once. Floor on an H200: bytes / 4.3 TB/s. Order and ties: contract/order.h.
// Limits: ids below 2^22; offsets are 64-bit. Rows not aligned to 16 bytes are read by element.
#pragma once

#include "cuda/stream.cuh"

namespace ts::cuda {

enum class Mode { kGreedy, kNoise, kList };

template <class Type, bool kNoise, bool kList>
__global__ void __launch_bounds__(kThreads, 4)
    sample_kernel(const Call call, RowPick* picks, SlicePick* slice_picks, uint64_t* lists, const Outputs out) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  SampleShared& shared = *reinterpret_cast<SampleShared*>(shared_bytes);
  const int64_t row_index = blockIdx.x / call.n_slices;
  const int32_t slice = blockIdx.x % call.n_slices;
  const RowSource<Type> source(call, row_index, slice, call.n_slices);
  source.prefetch(kTileStep<Type>);
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RequestState& state = row.state;
  // Choose the row's way.
  Mode mode = Mode::kGreedy;
  bool open = false;
  int32_t goal = max(kListGoal / call.n_slices, 64);
  const bool top_p_alone = (state.needs & (kNeedTopK | kNeedTopP)) == kNeedTopP;
  if ((state.needs & (kNeedTopK | kNeedTopP | kNeedMinP)) != 0) {
    if ((state.needs & kNeedTopK) != 0) goal = state.top_k;
    // Long lists, and cuts that the token does not need, are the exact kernel's.
    open = goal > kListGoal || (top_p_alone && call.exact_cut);
    if (!open) mode = Mode::kList;
  } else if ((state.needs & kNeedSample) != 0) {
    mode = Mode::kNoise;
  }

  if (threadIdx.x == 0) shared.list.count = 0;
  __syncthreads();
  ThreadPick mine;
  ListedSlice listed{0, 0.0f};
  const bool with_mass = top_p_alone && mode == Mode::kList;
  if (kList && mode == Mode::kList) {
    listed = stream_list(source, row, goal, with_mass, shared, mine);
  } else if (kNoise && mode == Mode::kNoise) {
    stream_noise(source, row, shared, mine);
  } else {
    stream_greedy(source, mine);
  }

  // The slice's answer.
  Top top = block_reduce(top_of(source, mine), shared.reduce.as<Top>(), Higher{});
  uint32_t flags = block_reduce(mine.flags, shared.reduce.as<uint32_t>(), Or{});
  Scored best = no_score();
  if (kNoise && mode == Mode::kNoise) best = shared.winner;
  uint64_t floor_key = listed.floor_key;
  float mass = 0.0f;
  if (with_mass) mass = block_reduce(mine.mass, shared.reduce.as<float>(), Add{});
  int32_t n_list = mode == Mode::kList ? static_cast<int32_t>(shared.list.count) : 0;
  RowPick& pick = picks[row_index];

  if (call.n_slices > 1) {
    const int32_t share = kRowListCapacity / call.n_slices;
    SlicePick* slices = slice_picks + row_index * call.n_slices;
    uint64_t* row_lists = lists + row_index * kRowListCapacity;
    if (kList && n_list > share) {
      floor_key = nth_key(shared.list, n_list, share, shared.cut);
      keep_from(shared.list, n_list, floor_key);
      n_list = share;
    }
    for (int32_t i = threadIdx.x; i < n_list; i += kThreads) row_lists[slice * share + i] = shared.list.entries[i];
    if (threadIdx.x == 0) {
      slices[slice] = {best.score,
                       floor_key,
                       top.logit,
                       mass,
                       listed.reference,
                       best.id,
                       top.id,
                       flags,
                       static_cast<uint32_t>(n_list)};
    }
    if (!last_to_arrive(&pick.arrivals, static_cast<uint32_t>(call.n_slices), &shared.flag)) return;

    // Merge, each warp for itself: one lane a slice. Without lists the first warp is enough.
    const int32_t lane = threadIdx.x % 32;
    if (mode != Mode::kList && threadIdx.x >= 32) return;
    top = {kMinusInf, kNoId};
    best = no_score();
    flags = 0;
    mass = 0.0f;
    floor_key = 0;
    uint64_t slice_floor = 0;
    SlicePick one{};
    if (lane < call.n_slices) {
      one = slices[lane];
      top = {one.max, one.first};
      best = {one.score, one.id, kMinusInf};
      flags = one.flags;
      slice_floor = one.floor_key;
    }
    top = warp_reduce(top, Higher{});
    if (kNoise) best = warp_reduce(best, Better{});
    flags = warp_reduce(flags, Or{});
    if (kList && mode == Mode::kList) {
      floor_key = warp_reduce(static_cast<unsigned long long>(slice_floor),
                              [](unsigned long long a, unsigned long long b) { return a > b ? a : b; });
      mass = lane < call.n_slices ? one.mass * exp2_approx((one.reference - top.logit) * state.log2e_over_t) : 0.0f;
      mass = warp_reduce(mass, Add{});
      // All slices' entries at once: their loads must not wait for one another.
      if (threadIdx.x == 0) shared.list.count = 0;
      if (threadIdx.x < call.n_slices) shared.keys[threadIdx.x] = one.n_list;
      __syncthreads();
#pragma unroll 4
      for (int32_t i = threadIdx.x; i < kRowListCapacity; i += kThreads) {
        const uint64_t key = static_cast<uint32_t>(i % share) < shared.keys[i / share] ? row_lists[i] : 0;
        if (key >= floor_key && key != 0) push(shared.list, key);
      }
      __syncthreads();
      n_list = static_cast<int32_t>(shared.list.count);
    }
  } else if (with_mass) {
    mass *= exp2_approx((listed.reference - top.logit) * state.log2e_over_t);
  }

  // The row's answer.
  uint32_t token = call.invalid_token;
  uint64_t last_key = 0;
  if (!slot_in_pool || top.id == kNoId) {
    flags |= kRowEmpty;
    open = false;
  } else if (mode == Mode::kGreedy) {
    token = top.id;
  } else if (kNoise && mode == Mode::kNoise) {
    token = best.id;
  } else if (kList) {
    row.max = top.logit;
    const float per_thread = static_cast<float>(call.vocab) / (kThreads * call.n_slices) + 64.0f;
    const ListOutcome outcome = finish_list(shared.list, n_list, floor_key, {mass, 4e-5f + 1.2e-7f * per_thread},
                                            call.exact_cut != 0, row, shared.cut, shared.reduce);
    open = outcome.open;
    token = outcome.token;
    last_key = outcome.last_key;
  }
  if (threadIdx.x == 0) {
    pick.last_key = last_key;
    pick.min_distance = (state.needs & kNeedMinP) != 0 ? state.min_p_threshold : kMinusInf;
    pick.max = top.logit;
    pick.token = token;
    pick.flags = flags;
    pick.open = open ? 1u : 0u;
    if (!open) out.tokens[row_index] = static_cast<int32_t>(token);
    if (out.row_flags != nullptr) out.row_flags[row_index] = flags;
  }
}

}  // namespace ts::cuda
