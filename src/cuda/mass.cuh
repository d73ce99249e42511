// SPDX-License-Identifier: Apache-2.0
// Deciding top-p without the exact mass of the whole row: what is surely kept, and what surely is not.
#pragma once

#include "contract/weight.h"

namespace ts::cuda {

// A candidate with less than `low` in front is kept, one with `high` or more is not.
struct MassLimits {
  uint64_t low;
  uint64_t high;
};

// The limit of top-p where the total is known: the first candidate always stays.
__device__ inline uint64_t cut_limit(uint64_t top_p_fixed, uint64_t total) {
  const uint64_t limit = mass_limit(top_p_fixed, total);
  return limit > 0 ? limit : 1;
}

// The relative error of an fp32 sum of exp2_approx(l * log2e_over_t - offset), offset = max * log2e_over_t, against the sum
// of integer weights: 1.2e-7 of the offset, which is rounded once for all terms; per term at most 2^-22 for ex2.approx,
// 2^-23 |z| for z, and the weight's own 1.5e-7 + 1.4e-7 |z| (contract/weight.h), |z| <= 40; 2^-23 for each addition that a
// term goes through; and for each id one unit of 2^-39 that its weight may be short of, or is where the weight is 0, of a
// total of at least 1.
__device__ inline float mass_error(float offset, float n_additions, float n_ids) {
  return 1.2e-7f * fabsf(offset) + 1.2e-5f + 1.2e-7f * n_additions + 0x1p-38f * n_ids;
}

// The limits by such a sum, in units of the largest candidate's weight.
__device__ inline MassLimits limits_of(float mass, float error, uint64_t top_p_fixed) {
  const double limit =
      static_cast<double>(mass) * static_cast<double>(kWeightOne) * (static_cast<double>(top_p_fixed) * 0x1p-32);
  return {static_cast<uint64_t>(limit * (1.0 - error)), static_cast<uint64_t>(limit * (1.0 + error)) + 2};
}

enum class Open : uint32_t {
  kNo,
  kAll,         // nothing is known but the maximum
  kContenders,  // the token is the first of the row's contenders that top-p keeps, or else in front of them all
};

}  // namespace ts::cuda
