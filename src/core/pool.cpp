// SPDX-License-Identifier: Apache-2.0
// Ownership of slots: check everything, then write only what changed.
#include "core/pool.h"

#include "core/error.h"
#include "core/struct_io.h"

namespace ts {

Pool::Pool(int32_t n_slots, int32_t max_requests, int32_t vocab_size, uint64_t seed)
    : states_(static_cast<size_t>(n_slots)),
      owners_(static_cast<size_t>(n_slots)),
      vocab_size_(vocab_size),
      seed_(seed) {
  staged_slots_.reserve(static_cast<size_t>(max_requests));
  new_slots_.reserve(static_cast<size_t>(max_requests));
  new_ids_.reserve(static_cast<size_t>(max_requests));
  new_states_.reserve(static_cast<size_t>(max_requests));
}

int32_t Pool::checked_slot(IndexArray slots, int32_t i, const char* name) const {
  const int64_t slot = slots[i];
  if (slot < 0 || slot >= n_slots()) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s[%d] = %lld: outside the pool of %d slots", name, i,
                static_cast<long long>(slot), n_slots());
  }
  return static_cast<int32_t>(slot);
}

StepNeeds Pool::stage(const ts_step& step) {
  ++staging_;
  staged_slots_.clear();
  new_slots_.clear();
  new_ids_.clear();
  new_states_.clear();
  StepNeeds needs;
  const IndexArray slots(step.slots, step.slots_type);
  StructArray<ts_request_params> params(step.params, step.params_stride, "ts_step.params", "ts_request_params");
  for (int32_t i = 0; i < step.n_requests; ++i) {
    const int32_t slot = checked_slot(slots, i, "ts_step.slots");
    Owner& owner = owners_[static_cast<size_t>(slot)];
    if (owner.staged == staging_) {
      throw Error(TS_ERROR_INVALID_ARGUMENT, "ts_step.slots[%d] = %d: the slot is already in this step", i, slot);
    }
    owner.staged = staging_;
    staged_slots_.push_back(slot);
    const uint64_t id = step.request_ids[i];
    if (owner.owned && owner.request_id == id) {
      needs.add(states_[static_cast<size_t>(slot)].needs);
      continue;
    }
    if (step.params == nullptr) {
      throw Error(TS_ERROR_INVALID_ARGUMENT, "ts_step.params is NULL, but request %llu (entry %d) is new in slot %d",
                  static_cast<unsigned long long>(id), i, slot);
    }
    new_states_.push_back(make_request_state(params.read(i), id, seed_, vocab_size_, "ts_step.params", i));
    new_slots_.push_back(slot);
    new_ids_.push_back(id);
    needs.add(new_states_.back().needs);
  }
  return needs;
}

void Pool::commit() noexcept {
  ++step_;
  for (const int32_t slot : staged_slots_) owners_[static_cast<size_t>(slot)].step = step_;
  for (size_t i = 0; i < new_slots_.size(); ++i) {
    const auto slot = static_cast<size_t>(new_slots_[i]);
    states_[slot] = new_states_[i];
    owners_[slot].request_id = new_ids_[i];
    owners_[slot].owned = true;
  }
}

bool Pool::release(IndexArray slots, int32_t n) {
  for (int32_t i = 0; i < n; ++i) checked_slot(slots, i, "slots");
  bool had_step_slot = false;
  for (int32_t i = 0; i < n; ++i) {
    const auto slot = static_cast<size_t>(slots[i]);
    had_step_slot |= owners_[slot].step == step_;
    owners_[slot].owned = false;
  }
  return had_step_slot;
}

}  // namespace ts
