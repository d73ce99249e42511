// SPDX-License-Identifier: Apache-2.0
// Deciding top-p by approximate masses, with their proven error.
#pragma once

#include "contract/weight.h"

namespace ts::cuda {

// The relative error of an fp32 sum of exp2_approx, so many terms a thread, against the sum of integer weights.
__device__ inline float mass_error(float terms_of_thread) { return 4e-5f + 1.2e-7f * terms_of_thread; }

// A row's approximate mass, in units of the largest candidate's weight, and its relative error.
struct ApproximateMass {
  float value;
  float error;
};

// What top-p keeps lies between these: less than `low` in front is surely kept, `high` or more surely not.
struct MassLimits {
  uint64_t low;
  uint64_t high;
};

// The limit of top-p where the total is known: the first candidate always stays.
__device__ inline uint64_t cut_limit(uint64_t top_p_fixed, uint64_t total) {
  const uint64_t limit = mass_limit(top_p_fixed, total);
  return limit > 0 ? limit : 1;
}

__device__ inline bool usable(ApproximateMass mass) { return mass.value < 1e9f; }

__device__ inline MassLimits limits_of(ApproximateMass mass, uint64_t top_p_fixed) {
  const double limit =
      static_cast<double>(mass.value) * static_cast<double>(kWeightOne) * (static_cast<double>(top_p_fixed) * 0x1p-32);
  return {static_cast<uint64_t>(limit * (1.0 - mass.error)), static_cast<uint64_t>(limit * (1.0 + mass.error)) + 2};
}

enum class Open : uint32_t {
  kNo,
  kAll,     // nothing is known but the maximum
  kWinner,  // the unfiltered winner and the mass are known, not whether top-p keeps it
};

}  // namespace ts::cuda
