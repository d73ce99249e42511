// SPDX-License-Identifier: Apache-2.0
// Tuning by compute capability: one table, looked up once when a sampler is created.
#pragma once

#include <cstdint>

namespace ts::cuda {

struct Tuning {
  int32_t min_capability;  // major * 10 + minor; the last row that is not above the device's applies
  // Few rows are shared by so many blocks a multiprocessor, and by at most so many a row:
  int32_t greedy_blocks_per_sm;
  int32_t blocks_per_sm;    // rows with noise or lists
  int32_t max_slices;       // rows with noise
  int32_t max_list_slices;  // rows with lists
  int64_t cluster_rows;     // calls of up to so many rows take the cluster kernel
};

constexpr Tuning kTunings[] = {
    {80, 2, 1, 32, 16, 0},
    {90, 2, 1, 32, 16, 33},
};

constexpr Tuning tuning_of(int32_t capability) {
  Tuning best = kTunings[0];
  for (const Tuning& tuning : kTunings) {
    if (tuning.min_capability <= capability) best = tuning;
  }
  return best;
}

}  // namespace ts::cuda
