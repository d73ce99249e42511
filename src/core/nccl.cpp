// SPDX-License-Identifier: Apache-2.0
// Finding NCCL with dlopen, and its errors as exceptions.
#include "core/nccl.h"

#include <dlfcn.h>

#include "core/error.h"

namespace ts {
namespace {

constexpr char kFile[] = "libnccl.so.2";
constexpr int kInt8 = 0;  // ncclInt8

template <class Function>
void find_function(void* library, const char* name, Function*& function) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw Error(TS_ERROR_UNSUPPORTED, "ts_broadcast.nccl_comm: %s has no function %s", kFile, name);
  }
  function = reinterpret_cast<Function*>(symbol);
}

}  // namespace

Nccl Nccl::find() {
  // Why first without loading: the communicator is of the copy that the process already has.
  void* library = dlopen(kFile, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen(kFile, RTLD_NOW);
  if (library == nullptr) {
    throw Error(TS_ERROR_UNSUPPORTED, "ts_broadcast.nccl_comm: %s cannot be loaded (%s)", kFile, dlerror());
  }
  // Why never closed: its functions are kept, and communicators of it live in the process.
  Nccl nccl;
  find_function(library, "ncclGetErrorString", nccl.get_error_string_);
  find_function(library, "ncclCommCount", nccl.comm_count_);
  find_function(library, "ncclCommUserRank", nccl.comm_user_rank_);
  find_function(library, "ncclGroupStart", nccl.group_start_);
  find_function(library, "ncclGroupEnd", nccl.group_end_);
  find_function(library, "ncclBroadcast", nccl.broadcast_);
  return nccl;
}

void Nccl::check(int result, const char* what) const {
  if (result != kSuccess) throw Error(TS_ERROR_CUDA, "%s: %s", what, get_error_string_(result));
}

void Nccl::check_communicator(void* communicator, int n_ranks, int rank) const {
  int count = 0;
  check(comm_count_(communicator, &count), "ncclCommCount");
  if (count != n_ranks) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.n_ranks = %d: nccl_comm has %d ranks", n_ranks, count);
  }
  int user_rank = 0;
  check(comm_user_rank_(communicator, &user_rank), "ncclCommUserRank");
  if (user_rank != rank) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.rank = %d: nccl_comm's rank is %d", rank, user_rank);
  }
}

void Nccl::begin_group() const { check(group_start_(), "ncclGroupStart"); }
int Nccl::end_group() const { return group_end_(); }

int Nccl::broadcast(void* data, size_t n_bytes, void* communicator, ts_stream stream) const {
  return broadcast_(data, data, n_bytes, kInt8, 0, communicator, stream);
}

}  // namespace ts
