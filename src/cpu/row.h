// SPDX-License-Identifier: Apache-2.0
// One row of logits, converted, cleaned and masked: contract section 1, steps 1 and 2.
#pragma once

#include <cstdint>

#include "cpu/scan.h"
#include "tssample.h"

namespace ts {

struct Row {
  const float* logits;     // [vocab]; -inf where the id is no candidate
  const float* chunk_max;  // [n_chunks(vocab)], the largest logit of each chunk
  int32_t vocab;
  int32_t n_candidates;  // ids above -inf
  float max;             // the largest logit, -inf when there is no candidate
  uint32_t first;        // the first candidate of the order; 0 when there is none
  uint32_t flags;        // TS_ROW_*
};

// Reads row `index` of `rows` into `logits` and `chunk_max` and describes it.
Row load_row(const ts_rows& rows, int64_t index, float* logits, float* chunk_max);

}  // namespace ts
