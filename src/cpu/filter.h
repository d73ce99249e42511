// SPDX-License-Identifier: Apache-2.0
// The kept set of a row: contract section 1, steps 7 to 9, exactly. It is a prefix of the order, so a cut describes it.
#pragma once

#include <cstdint>

#include "core/request_state.h"
#include "cpu/row.h"

namespace ts {

// Kept are the ids whose order_key() is at least last_key and whose distance below the maximum is at least
// min_distance.
struct Kept {
  uint64_t last_key = 0;
  float min_distance;

  bool all() const;
};

// Applies the filters whose kNeed* bit is set in `filters`. `ids` is scratch of row.vocab entries.
Kept find_kept(const Row& row, const RequestState& state, uint32_t filters, uint32_t* ids);

// The size of the kept set.
int32_t count_kept(const Row& row, const Kept& kept);

}  // namespace ts
