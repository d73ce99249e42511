// SPDX-License-Identifier: Apache-2.0
// Sampling and verification, row by row.
#include "cpu/cpu_backend.h"

#include <limits>

#include "contract/convert.h"
#include "core/error.h"
#include "core/index_array.h"
#include "core/pool.h"
#include "cpu/draw.h"
#include "cpu/filter.h"
#include "cpu/logprob.h"
#include "cpu/row.h"

namespace ts {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

CpuBackend::CpuBackend(const ts_config& config)
    : invalid_token_(static_cast<uint32_t>(config.invalid_token)),
      slots_(static_cast<size_t>(config.max_requests)),
      logits_(static_cast<size_t>(config.vocab_size)),
      chunk_max_(static_cast<size_t>(n_chunks(config.vocab_size))),
      filter_scratch_(config.vocab_size) {}

// Checks what lies in device memory, here the host's, before anything is written. Why a copy: outputs that lie over the
// slots, which is forbidden, may then give wrong tokens, but no read outside of the pool.
void CpuBackend::read_slots(const Step& step, const ts_rows& rows) {
  const IndexArray slots(rows.slots, rows.slots_type);
  const IndexArray positions(rows.positions, rows.positions_type);
  for (int32_t i = 0; i < rows.n_requests; ++i) {
    const int64_t slot = slots[i];
    if (slot < 0 || slot >= step.pool.n_slots()) {
      throw Error(TS_ERROR_INVALID_ARGUMENT, "ts_rows.slots[%d] = %lld: outside the pool of %d slots", i,
                  static_cast<long long>(slot), step.pool.n_slots());
    }
    if (!step.capturing && !step.pool.in_step(slot)) {
      throw Error(TS_ERROR_NOT_PREPARED, "ts_rows.slots[%d] = %lld: not in the prepared step", i,
                  static_cast<long long>(slot));
    }
    slots_[static_cast<size_t>(i)] = static_cast<int32_t>(slot);
    if (!positions.null() && positions[i] < 0) {
      throw Error(TS_ERROR_INVALID_ARGUMENT, "ts_rows.positions[%d] = %lld: negative", i,
                  static_cast<long long>(positions[i]));
    }
  }
}

CpuBackend::RowResult CpuBackend::sample_row(const Step& step, const ts_rows& rows, int32_t request, int32_t row_of,
                                             Wanted wanted) {
  const int64_t index = int64_t{request} * rows.rows_per_request + row_of;
  const Row row = load_row(rows, index, logits_.data(), chunk_max_.data());
  RowResult result{invalid_token_, row.flags, kNan, 0, 0};
  if ((row.flags & kRowEmpty) != 0) return result;

  const IndexArray positions(rows.positions, rows.positions_type);
  const RequestState& state = step.pool.state(slots_[static_cast<size_t>(request)]);
  // Why: the route says which filters its rows have; a request's needs are within them by prepare_step.
  const uint32_t needs = state.needs & step.plan.features();
  if ((needs & kNeedSample) == 0) {
    result.token = row.first;
    result.n_kept = 1;
  } else {
    const uint64_t offset = positions.null() ? 0 : static_cast<uint64_t>(positions[request]);
    const NoiseKey key{state.seed, offset + static_cast<uint64_t>(row_of), Purpose::kTarget};
    const Kept kept = find_kept(row, state, needs, filter_scratch_);
    result.token = draw(row, kept, state.inv_temperature, key);
    if (wanted.n_kept) result.n_kept = count_kept(row, kept);
  }
  if (wanted.logprob) result.logprob = raw_logprob(row, result.token);
  if (wanted.rank) result.rank = rank_of(row, result.token);
  return result;
}

void CpuBackend::sample(const Step& step, const ts_rows& rows, const ts_sample_out& out, ts_stream) {
  read_slots(step, rows);
  const Wanted wanted{out.logprobs != nullptr, out.ranks != nullptr, out.n_kept != nullptr};
  uint32_t n_bad_rows = 0;
  for (int32_t request = 0; request < rows.n_requests; ++request) {
    for (int32_t j = 0; j < rows.rows_per_request; ++j) {
      const RowResult result = sample_row(step, rows, request, j, wanted);
      const int64_t i = int64_t{request} * rows.rows_per_request + j;
      out.tokens[i] = static_cast<int32_t>(result.token);
      if (out.logprobs != nullptr) out.logprobs[i] = result.logprob;
      if (out.ranks != nullptr) out.ranks[i] = result.rank;
      if (out.n_kept != nullptr) out.n_kept[i] = result.n_kept;
      if (out.row_flags != nullptr) out.row_flags[i] = result.flags;
      n_bad_rows += result.flags != 0 ? 1u : 0u;
    }
  }
  if (out.n_bad_rows != nullptr) *out.n_bad_rows += n_bad_rows;
}

void CpuBackend::verify(const Step& step, const ts_rows& rows, const ts_draft& draft, const ts_verify_out& out,
                        ts_stream) {
  read_slots(step, rows);
  const Wanted wanted{out.logprobs != nullptr, out.ranks != nullptr, out.n_kept != nullptr};
  uint32_t n_bad_rows = 0;
  for (int32_t request = 0; request < rows.n_requests; ++request) {
    const int32_t* candidates = draft.candidates + request * draft.candidates_stride;
    int32_t length = 0;
    bool open = true;  // all rows so far sampled what was drafted
    for (int32_t j = 0; j < rows.rows_per_request; ++j) {
      const int64_t i = int64_t{request} * rows.rows_per_request + j;
      RowResult result{0, 0, kNan, 0, 0};
      if (open) {
        result = sample_row(step, rows, request, j, wanted);
        ++length;
      }
      out.predict[i] = open ? static_cast<int32_t>(result.token) : -1;
      out.accept_index[i] = open ? static_cast<int32_t>(i) : -1;
      if (out.logprobs != nullptr) out.logprobs[i] = result.logprob;
      if (out.ranks != nullptr) out.ranks[i] = result.rank;
      if (out.n_kept != nullptr) out.n_kept[i] = result.n_kept;
      if (out.row_flags != nullptr) out.row_flags[i] = result.flags;
      n_bad_rows += result.flags != 0 ? 1u : 0u;
      open = open && j + 1 < rows.rows_per_request && (result.flags & kRowEmpty) == 0 &&
             candidates[j + 1] == static_cast<int32_t>(result.token);
    }
    out.accept_length[request] = length;
  }
  if (out.n_bad_rows != nullptr) *out.n_bad_rows += n_bad_rows;
}

Broadcast CpuBackend::make_broadcast(const ts_broadcast& broadcast) {
  if (broadcast.nccl_comm != nullptr) {
    throw Error(TS_ERROR_UNSUPPORTED, "ts_broadcast.nccl_comm: the CPU backend broadcasts through a callback only");
  }
  return Broadcast(broadcast);
}

}  // namespace ts
