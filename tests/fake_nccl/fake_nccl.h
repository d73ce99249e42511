// SPDX-License-Identifier: Apache-2.0
// The communicator of the fake libnccl.so.2: what its functions shall return, and what they were asked for.
#pragma once

#include <cstddef>

struct FakeCommunicator {
  int n_ranks = 2;
  int rank = 0;
  unsigned char fill = 0;   // what ranks other than 0 receive
  int broadcast_error = 0;  // of the second broadcast of a group
  int end_error = 0;
  // Written by the calls. The functions without a communicator act on the last one that was asked for its count.
  int n_groups = 0;
  bool in_group = false;
  int n_broadcasts = 0;
  int n_outside_group = 0;
  size_t n_bytes[8] = {};
  const void* data[8] = {};
  const void* stream = nullptr;
};
