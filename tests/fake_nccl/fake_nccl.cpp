// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 of one process: the functions that the library takes from NCCL.
#include "fake_nccl.h"

#include <cstring>

namespace {
FakeCommunicator* current = nullptr;
}

extern "C" {

const char* ncclGetErrorString(int result) { return result == 5 ? "fake invalid usage" : "fake error"; }

int ncclCommCount(FakeCommunicator* communicator, int* count) {
  current = communicator;
  *count = communicator->n_ranks;
  return communicator->n_ranks > 0 ? 0 : 5;
}

int ncclCommUserRank(FakeCommunicator* communicator, int* rank) {
  *rank = communicator->rank;
  return 0;
}

int ncclGroupStart() {
  current->in_group = true;
  ++current->n_groups;
  return 0;
}

int ncclGroupEnd() {
  current->in_group = false;
  return current->end_error;
}

int ncclBroadcast(const void* from, void* to, size_t n, int type, int root, FakeCommunicator* communicator,
                  void* stream) {
  if (from != to || type != 0 || root != 0) return 4;
  if (!communicator->in_group) ++communicator->n_outside_group;
  const int i = communicator->n_broadcasts++;
  communicator->n_bytes[i % 8] = n;
  communicator->data[i % 8] = to;
  communicator->stream = stream;
  if (communicator->rank != 0) std::memset(to, communicator->fill, n);
  return i == 1 ? communicator->broadcast_error : 0;
}

}  // extern "C"
