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

struct RowContext {
  RequestState state;  // needs already limited to the route's features
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
  if (slot_in_pool) {
    row.state = call.states[slot];
    row.state.needs &= call.features;
  }
  const uint64_t offset =
      call.positions == nullptr ? 0 : static_cast<uint64_t>(index_at(call.positions, call.positions_are_64, request));
  row.key = {row.state.seed, offset + static_cast<uint64_t>(j), Purpose::kTarget};
  row.max = kMinusInf;
  row.vocab = call.vocab;
  return row;
}

}  // namespace ts::cuda
