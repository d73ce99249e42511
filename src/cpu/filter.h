// SPDX-License-Identifier: Apache-2.0
// The kept set of a row: contract section 1, steps 7 to 9, exactly. It is a prefix of the order, so a cut describes it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/request_state.h"
#include "cpu/row.h"

namespace ts {

// Kept are the ids whose order_key() is at least last_key and whose distance below the maximum is at least
// min_distance.
struct Kept {
  uint64_t last_key = 0;
  float min_distance;
};

// Memory for the filters on rows of up to vocab_size ids.
struct FilterScratch {
  explicit FilterScratch(int32_t vocab_size);

  std::vector<uint32_t> ids;
  std::vector<uint64_t> measures;  // of the ids
  std::vector<float> maxima;       // of chunks
};

// Applies the filters whose kNeed* bit is set in `filters`.
Kept find_kept(const Row& row, const RequestState& state, uint32_t filters, FilterScratch& scratch);

// The size of the kept set.
int32_t count_kept(const Row& row, const Kept& kept);

}  // namespace ts
