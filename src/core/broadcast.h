// SPDX-License-Identifier: Apache-2.0
// Outputs on their way from rank 0 to the other ranks of a tensor-parallel group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/nccl.h"
#include "tssample.h"

namespace ts {

// The output arrays that a call was asked for.
class OutputArrays {
 public:
  OutputArrays(const ts_sample_out& out, const ts_rows& rows);
  OutputArrays(const ts_verify_out& out, const ts_rows& rows);

  struct Array {
    void* data;
    size_t n_bytes;
  };
  const Array* begin() const { return arrays_; }
  const Array* end() const { return arrays_ + n_; }

 private:
  // Nothing for NULL. Every element of every output has four bytes.
  void add(void* data, int64_t n_elements);

  Array arrays_[7];
  int32_t n_ = 0;
};

class Broadcast {
 public:
  Broadcast() = default;  // off
  // A complete ts_broadcast. Finds NCCL if it is needed and checks the communicator. Throws Error.
  explicit Broadcast(const ts_broadcast& broadcast);

  bool on() const { return broadcast_.n_ranks > 1; }
  // Enqueues the sending of all arrays. Throws Error with the status of what failed.
  void send(const OutputArrays& arrays, ts_stream stream) const;

 private:
  ts_broadcast broadcast_{};
  Nccl nccl_;
};

}  // namespace ts
