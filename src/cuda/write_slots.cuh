// SPDX-License-Identifier: Apache-2.0
// Writing new owners' states into the pool: from the staging buffer in device memory, or out of the kernel's own
// parameters. 16 bytes a thread, 8 threads a slot. Bytes: 132 read and 128 written a slot.
// Floor: a launch, and a copy of the same bytes in front of it. Measured (H200, commit bf4c8d6): prepare_step of 256 new
// requests takes 35 us of host time, of 1 request 6 to 8.
#pragma once

#include "cuda/owners.h"
#include "cuda/ptx.cuh"

namespace ts::cuda {

constexpr int32_t kWriteThreads = 128;
constexpr int32_t kThreadsPerSlot = sizeof(RequestState) / sizeof(uint4);

// Writes `sequence` to *copied, a word of the host's memory: the copy that filled `states` and `slots` lies in front of
// this kernel in the stream, so the host memory that it read is free once the kernel runs.
__global__ void write_slots_kernel(const int32_t* slots, const RequestState* states, int32_t n, RequestState* pool,
                                   volatile uint64_t* copied, uint64_t sequence) {
  wait_for_predecessor();
  const int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) {
    *copied = sequence;
    __threadfence_system();
  }
  const int32_t owner = i / kThreadsPerSlot;
  if (owner >= n) return;
  const int32_t part = i % kThreadsPerSlot;
  reinterpret_cast<uint4*>(pool + slots[owner])[part] = reinterpret_cast<const uint4*>(states + owner)[part];
}

__global__ void write_owners_kernel(const __grid_constant__ OwnersByValue owners, RequestState* pool) {
  wait_for_predecessor();
  const int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const int32_t owner = i / kThreadsPerSlot;
  if (owner >= owners.n) return;
  const int32_t part = i % kThreadsPerSlot;
  reinterpret_cast<uint4*>(pool + owners.slots[owner])[part] =
      reinterpret_cast<const uint4*>(owners.states[owner])[part];
}

}  // namespace ts::cuda
