// SPDX-License-Identifier: Apache-2.0
// The two ways of a broadcast: the caller's communicator, or the caller's function.
#include "core/broadcast.h"

#include "core/error.h"

namespace ts {

OutputArrays::OutputArrays(const ts_sample_out& out, const ts_rows& rows) {
  const int64_t n_rows = int64_t{rows.n_requests} * rows.rows_per_request;
  add(out.tokens, n_rows);
  add(out.logprobs, n_rows);
  add(out.ranks, n_rows);
  add(out.n_kept, n_rows);
  add(out.row_flags, n_rows);
}

OutputArrays::OutputArrays(const ts_verify_out& out, const ts_rows& rows) {
  const int64_t n_rows = int64_t{rows.n_requests} * rows.rows_per_request;
  add(out.predict, n_rows);
  add(out.accept_index, n_rows);
  add(out.accept_length, rows.n_requests);
  add(out.logprobs, n_rows);
  add(out.ranks, n_rows);
  add(out.n_kept, n_rows);
  add(out.row_flags, n_rows);
}

void OutputArrays::add(void* data, int64_t n_elements) {
  if (data != nullptr) arrays_[n_++] = {data, static_cast<size_t>(n_elements) * 4};
}

Broadcast::Broadcast(const ts_broadcast& broadcast) : broadcast_(broadcast) {
  if (!on() || broadcast.nccl_comm == nullptr) return;
  nccl_ = Nccl::find();
  nccl_.check_communicator(broadcast.nccl_comm, broadcast.n_ranks, broadcast.rank);
}

void Broadcast::send(const OutputArrays& arrays, ts_stream stream) const {
  if (broadcast_.callback == nullptr) {
    nccl_.begin_group();
    // Why not thrown at once: a group that was begun must be ended.
    int first_error = Nccl::kSuccess;
    for (const OutputArrays::Array& array : arrays) {
      const int error = nccl_.broadcast(array.data, array.n_bytes, broadcast_.nccl_comm, stream);
      if (first_error == Nccl::kSuccess) first_error = error;
    }
    const int end_error = nccl_.end_group();
    nccl_.check(first_error, "ncclBroadcast");
    nccl_.check(end_error, "ncclGroupEnd");
    return;
  }
  for (const OutputArrays::Array& array : arrays) {
    const ts_status status = broadcast_.callback(broadcast_.user, array.data, array.n_bytes, stream);
    if (status != TS_OK) {
      throw Error(status, "ts_broadcast.callback returned %d for %zu bytes at %p", status, array.n_bytes, array.data);
    }
  }
}

}  // namespace ts
