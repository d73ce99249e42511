// SPDX-License-Identifier: Apache-2.0
// The end of a row whose token is known, and verification: the last of a request's rows to come to its end judges the
// request's drafted chain against the rows' tokens. Contract section 5.
//
// Method: rows of a request are counted as they end, in whichever kernel; the warp that ends the last one takes a row a lane.
// Bytes: a few words a row. Floor: an atomic and two reads from L2 behind the last row, about 1 us; not measured.
// Why no kernel of its own: it would be a launch more, and the report kernel would read rows behind a chain's end.
#pragma once

#include "contract/convert.h"
#include "cuda/block.cuh"

namespace ts::cuda {

// By one warp, with all that the rows left visible to it.
__device__ inline void judge_chain(const RowPick* picks, uint32_t request, int32_t rows_per_request,
                                   const Outputs& out) {
  const Chains& chains = out.chains;
  const int32_t* candidates = chains.candidates + request * chains.candidates_stride;
  const int64_t first = static_cast<int64_t>(request) * rows_per_request;
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  int32_t length = 0;
  int32_t n_bad_rows = 0;
  bool open = true;
#pragma unroll 1
  for (int32_t begin = 0; begin < rows_per_request; begin += 32) {
    const int32_t j = begin + lane;
    const int64_t i = first + j;
    int32_t token = -1;
    uint32_t flags = 0;
    bool ends = false;
    if (open && j < rows_per_request) {
      token = static_cast<int32_t>(picks[i].token);
      flags = picks[i].flags;
      ends = j + 1 == rows_per_request || (flags & kRowEmpty) != 0 || candidates[j + 1] != token;
    }
    const uint32_t ended = __ballot_sync(0xFFFFFFFFu, ends);
    const uint32_t counted = open ? ended ^ (ended - 1) : 0;  // the lanes up to the first that ends the chain
    const bool mine = (counted >> lane & 1) != 0;
    n_bad_rows += __popc(__ballot_sync(0xFFFFFFFFu, mine && flags != 0));
    length += __popc(counted);
    open = open && ended == 0;
    if (j >= rows_per_request) continue;
    out.tokens[i] = mine ? token : -1;
    chains.accept_index[i] = mine ? static_cast<int32_t>(i) : -1;
    if (out.row_flags != nullptr) out.row_flags[i] = mine ? flags : 0;
  }
  if (lane != 0) return;
  chains.accept_length[request] = length;
  if (out.n_bad_rows != nullptr && n_bad_rows != 0) atomicAdd(out.n_bad_rows, static_cast<uint32_t>(n_bad_rows));
}

// A row's pick is complete: writes its outputs, or counts it for its request. By one warp, whose first lane wrote the pick;
// that lane gives what it wrote, for the stores need not wait for a read of it.
__device__ inline void end_row(const Call& call, RowPick* picks, int64_t row_index, uint32_t token, uint32_t flags,
                               const Outputs& out) {
  if (out.chains.candidates == nullptr) {
    if (threadIdx.x % 32 != 0) return;
    out.tokens[row_index] = static_cast<int32_t>(token);
    if (out.row_flags != nullptr) out.row_flags[row_index] = flags;
    if (out.n_bad_rows != nullptr && flags != 0) atomicAdd(out.n_bad_rows, 1u);
    return;
  }
  const auto n = static_cast<uint32_t>(call.rows_per_request);
  const uint32_t request = static_cast<uint32_t>(row_index) / n;
  if (last_warp(&picks[request * n].ended_rows, n)) judge_chain(picks, request, static_cast<int32_t>(n), out);
}

}  // namespace ts::cuda
