// SPDX-License-Identifier: Apache-2.0
// The two ways of new owners: a ring of pinned buffers, or kernel parameters.
#include "cuda/slot_staging.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cuda/launch.h"

namespace ts::cuda {
namespace {

// Room for a step of `capacity` new owners, so that each entry of the ring is aligned for RequestState.
size_t bytes_of_entry(int32_t capacity) {
  const size_t n_bytes = static_cast<size_t>(capacity) * (sizeof(RequestState) + sizeof(int32_t));
  return (n_bytes + alignof(RequestState) - 1) / alignof(RequestState) * alignof(RequestState);
}

}  // namespace

SlotStaging::SlotStaging(int32_t capacity, bool programmatic)
    : programmatic_(programmatic),
      entry_bytes_(bytes_of_entry(capacity)),
      pinned_(entry_bytes_ * kStagingDepth),
      copied_(sizeof(uint64_t) * kStagingDepth),
      device_(entry_bytes_ * kStagingDepth) {}

void SlotStaging::write(const std::vector<int32_t>& slots, const std::vector<RequestState>& states, RequestState* pool,
                        bool capturing, cudaStream_t stream) {
  // Why not the ring in a capture: a replay would copy what the entry then holds.
  if (capturing || !next_is_free()) {
    write_by_value(slots, states, pool, stream);
  } else {
    write_through_ring(slots, states, pool, stream);
  }
}

bool SlotStaging::next_is_free() const {
  const bool is_free = copied_.as<const volatile uint64_t>()[next_] == issued_[next_];
  // Why: what the host writes next must not come before this reading.
  std::atomic_thread_fence(std::memory_order_acquire);
  return is_free;
}

void SlotStaging::write_through_ring(const std::vector<int32_t>& slots, const std::vector<RequestState>& states,
                                     RequestState* pool, cudaStream_t stream) {
  const size_t n = slots.size();
  const size_t states_bytes = n * sizeof(RequestState);
  const size_t slots_bytes = n * sizeof(int32_t);
  const size_t entry = next_;
  unsigned char* host = pinned_.as<unsigned char>() + entry * entry_bytes_;
  unsigned char* device = device_.as<unsigned char>() + entry * entry_bytes_;
  std::memcpy(host, states.data(), states_bytes);
  std::memcpy(host + states_bytes, slots.data(), slots_bytes);
  // Why before the copy: should the kernel's launch fail, the entry stays busy and is never reused under a copy.
  issued_[entry] = ++sequence_;
  next_ = (entry + 1) % kStagingDepth;
  check(cudaMemcpyAsync(device, host, states_bytes + slots_bytes, cudaMemcpyHostToDevice, stream),
        "copy of new owners");
  // Why not programmatic: its predecessor is the copy.
  LaunchList list({false, false});
  launch_write_slots(list, reinterpret_cast<const int32_t*>(device + states_bytes),
                     reinterpret_cast<const RequestState*>(device), static_cast<int32_t>(n), pool,
                     copied_.on_device<uint64_t>() + entry, issued_[entry]);
  enqueue(list, stream);
}

void SlotStaging::write_by_value(const std::vector<int32_t>& slots, const std::vector<RequestState>& states,
                                 RequestState* pool, cudaStream_t stream) {
  OwnersByValue& owners = by_value_;
  for (size_t first = 0; first < slots.size(); first += OwnersByValue::kCapacity) {
    const size_t n = std::min(slots.size() - first, static_cast<size_t>(OwnersByValue::kCapacity));
    owners.n = static_cast<int32_t>(n);
    std::memcpy(owners.slots, slots.data() + first, n * sizeof(int32_t));
    std::memcpy(owners.states, states.data() + first, n * sizeof(RequestState));
    enqueue_owners(owners, pool, programmatic_ && first > 0, stream);
  }
}

}  // namespace ts::cuda
