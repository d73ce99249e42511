// SPDX-License-Identifier: Apache-2.0
// A row's request: its state from the pool, its noise key.
#pragma once

#include "contract/convert.h"
#include "contract/noise.h"
#include "cuda/call.h"

namespace ts::cuda {

constexpr int32_t kThreads = 256;  // of every kernel that looks at rows

__device__ inline int64_t index_at(const void* array, int32_t is_64, int64_t i) {
  return is_64 ? static_cast<const int64_t*>(array)[i] : static_cast<const int32_t*>(array)[i];
}

// What the kernels read of a RequestState.
struct RowState {
  double inv_temperature = 0.0;
  uint64_t top_p_fixed = 0;
  float log2e_over_t = 0.0f;
  float min_p_threshold = 0.0f;
  int32_t top_k = 0;
  uint32_t needs = 0;  // limited to the route's features
};

struct RowContext {
  RowState state;
  NoiseKey key;
  float max;
  int32_t vocab;
};

// A row's request.
__device__ inline RowContext row_context(const Call& call, int64_t row_index, bool& slot_in_pool) {
  RowContext row{};
  const int64_t request = row_index / call.rows_per_request;
  const int64_t j = row_index % call.rows_per_request;
  const int64_t slot = index_at(call.slots, call.slots_are_64, request);
  slot_in_pool = slot >= 0 && slot < call.n_slots;
  uint64_t seed = 0;
  if (slot_in_pool) {
    const RequestState& state = call.states[slot];
    row.state = {state.inv_temperature, state.top_p_fixed, state.log2e_over_t,
                 state.min_p_threshold, state.top_k,       state.needs & call.features};
    seed = state.seed;
  }
  const uint64_t offset =
      call.positions == nullptr ? 0 : static_cast<uint64_t>(index_at(call.positions, call.positions_are_64, request));
  row.key = {seed, offset + static_cast<uint64_t>(j), Purpose::kTarget};
  row.max = kMinusInf;
  row.vocab = call.vocab;
  return row;
}

}  // namespace ts::cuda
