// SPDX-License-Identifier: Apache-2.0
// The pool: which request owns each slot and the state it has there. The host's copy is the truth; a device backend
// is told of each slot that changed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/index_array.h"
#include "core/plan.h"
#include "core/request_state.h"

namespace ts {

class Pool {
 public:
  Pool(int32_t n_slots, int32_t max_requests, int32_t vocab_size, uint64_t seed);

  // Checks a whole step and stages its new owners; nothing that the pool holds changes. Throws Error.
  StepNeeds stage(const ts_step& step);
  // Makes the staged step the current one. Cannot fail.
  void commit() noexcept;

  // Forgets owners; all slots are checked first. Returns whether one of them was in the current step.
  bool release(IndexArray slots, int32_t n);
  // No slot is in the current step any more.
  void forget_step() noexcept { ++step_; }

  int32_t n_slots() const { return static_cast<int32_t>(states_.size()); }
  const RequestState& state(int64_t slot) const { return states_[static_cast<size_t>(slot)]; }
  bool in_step(int64_t slot) const { return owners_[static_cast<size_t>(slot)].step == step_; }
  // The staged step's new owners: their slots and what these will hold.
  const std::vector<int32_t>& new_slots() const { return new_slots_; }
  const std::vector<RequestState>& new_states() const { return new_states_; }

 private:
  struct Owner {
    uint64_t request_id = 0;
    uint64_t step = 0;    // the last committed step that had this slot
    uint64_t staged = 0;  // the last staging that had it
    bool owned = false;
  };

  int32_t checked_slot(IndexArray slots, int32_t i, const char* name) const;

  std::vector<RequestState> states_;
  std::vector<Owner> owners_;
  uint64_t step_ = 1;
  uint64_t staging_ = 0;
  int32_t vocab_size_;
  uint64_t seed_;

  // The staged step; sized for the largest one at construction.
  std::vector<int32_t> staged_slots_;
  std::vector<int32_t> new_slots_;
  std::vector<uint64_t> new_ids_;
  std::vector<RequestState> new_states_;
};

}  // namespace ts
