// SPDX-License-Identifier: Apache-2.0
// Tuning by compute capability: one table, looked up once when a sampler is created.
#pragma once

#include <cstdint>

namespace ts::cuda {

struct Tuning {
  int32_t min_capability;  // major * 10 + minor; the last row that is not above the device's applies
  int32_t blocks_per_sm;   // blocks of the sampling kernel that a step should fill a multiprocessor with
};

constexpr Tuning kTunings[] = {
    {80, 4},
    {90, 4},
};

constexpr Tuning tuning_of(int32_t capability) {
  Tuning best = kTunings[0];
  for (const Tuning& tuning : kTunings) {
    if (tuning.min_capability <= capability) best = tuning;
  }
  return best;
}

}  // namespace ts::cuda
