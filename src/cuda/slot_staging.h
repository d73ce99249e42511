// SPDX-License-Identifier: Apache-2.0
// New owners on their way to the pool in device memory, without ever waiting for the device.
#pragma once

#include <vector>

#include "cuda/device.h"
#include "cuda/launch_list.h"
#include "cuda/owners.h"

namespace ts::cuda {

// Steps with new owners that may be under way before owners travel by value.
constexpr size_t kStagingDepth = 4;

class SlotStaging {
 public:
  // capacity: most new owners of a step. programmatic: whether the device has programmatic dependent launch.
  SlotStaging(int32_t capacity, bool programmatic);
  SlotStaging(const SlotStaging&) = delete;
  SlotStaging& operator=(const SlotStaging&) = delete;

  // Enqueues the writing of states[i] to pool[slots[i]]. In a capture, and when the ring's next entry is still being
  // copied from, the owners go by value, as parameters of as many kernels as they need.
  void write(const std::vector<int32_t>& slots, const std::vector<RequestState>& states, RequestState* pool,
             bool capturing, cudaStream_t stream);

 private:
  bool next_is_free() const;
  void write_through_ring(const std::vector<int32_t>& slots, const std::vector<RequestState>& states,
                          RequestState* pool, cudaStream_t stream);
  void write_by_value(const std::vector<int32_t>& slots, const std::vector<RequestState>& states, RequestState* pool,
                      cudaStream_t stream);

  bool programmatic_;
  size_t entry_bytes_;
  PinnedBuffer pinned_;
  PinnedBuffer copied_;                  // uint64_t [kStagingDepth]: written by the device, read by the host
  DeviceBuffer device_;                  // Why last: freed first, which waits for what is enqueued.
  uint64_t issued_[kStagingDepth] = {};  // what copied_ will hold when the entry is free
  uint64_t sequence_ = 0;
  size_t next_ = 0;
  OwnersByValue by_value_ = {};
};

}  // namespace ts::cuda
