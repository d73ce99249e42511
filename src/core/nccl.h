// SPDX-License-Identifier: Apache-2.0
// The few functions of NCCL that a broadcast takes, found at run time: the library is built and linked without it.
#pragma once

#include <cstddef>

#include "tssample.h"

namespace ts {

class Nccl {
 public:
  static constexpr int kSuccess = 0;

  // libnccl.so.2 as the process has it loaded, or else as the loader finds it. Throws Error(TS_ERROR_UNSUPPORTED).
  static Nccl find();

  // Throws Error unless the communicator has n_ranks ranks and this is `rank`.
  void check_communicator(void* communicator, int n_ranks, int rank) const;
  void begin_group() const;
  // These two return NCCL's result, for check() once the group has ended. In place, from rank 0.
  int broadcast(void* data, size_t n_bytes, void* communicator, ts_stream stream) const;
  int end_group() const;
  // Throws Error(TS_ERROR_CUDA) with NCCL's text unless the result is kSuccess.
  void check(int result, const char* what) const;

 private:
  // As nccl.h declares them: ncclResult_t and ncclDataType_t are int, ncclComm_t is a pointer.
  const char* (*get_error_string_)(int result) = nullptr;
  int (*comm_count_)(const void* communicator, int* count) = nullptr;
  int (*comm_user_rank_)(const void* communicator, int* rank) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  int (*broadcast_)(const void* from, void* to, size_t n, int type, int root, void* communicator,
                    ts_stream stream) = nullptr;
};

}  // namespace ts
