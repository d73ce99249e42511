// SPDX-License-Identifier: Apache-2.0
// fp32 masses of a row, by which the exact kernel decides top-p.
#pragma once

#include "cuda/draw.cuh"
#include "cuda/exact_walk.cuh"

namespace ts::cuda {

// fp32 masses, in units of the maximum's weight: of the row, and in front of its contenders of unknown mass.
struct Masses {
  float total;
  float before[kMaxUnknown];
};
struct AddMasses {
  __device__ Masses operator()(Masses a, const Masses& b) const {
    a.total += b.total;
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) a.before[p] += b.before[p];
    return a;
  }
};
template <>
__device__ inline Masses shuffle_xor(Masses value, int mask) {
  value.total = shuffle_xor(value.total, mask);
#pragma unroll
  for (uint32_t p = 0; p < kMaxUnknown; ++p) value.before[p] = shuffle_xor(value.before[p], mask);
  return value;
}

// Candidates whose fronts are summed; by default nothing is in front.
struct Places {
  float logits[kMaxUnknown];
  uint32_t ids[kMaxUnknown];

  __device__ Places() {
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) logits[p] = -kMinusInf, ids[p] = 0;
  }
};

// The masses of a slice, after start(). A NaN or an infinity in it makes them NaN or infinite.
template <class Type>
__device__ __noinline__ Masses sum_masses(RowSource<Type> source, float max, float factor, Places places,
                                          ExactShared& shared) {
  // Ids of the same logit are in front in groups before a place's own: there the limit is the logit, else the next float.
  float above[kMaxUnknown];
  float least = -kMinusInf;
#pragma unroll
  for (uint32_t p = 0; p < kMaxUnknown; ++p) {
    places.logits[p] += 0.0f;
    above[p] = places.logits[p] < -kMinusInf ? from_ordered(ordered(places.logits[p]) + 1) : places.logits[p];
    least = fminf(least, places.logits[p]);
  }
  const float offset = -(max * factor);
  Masses sum{};
  for_each_raw(source, shared, [&](const Raw<Type>& raw, int32_t group, float top) {
    float logits[kGroup];
    raw.unpack(logits);
    float terms[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) terms[j] = exp2_approx(__fmaf_rn(logits[j], factor, offset));
    sum.total += ((terms[0] + terms[1]) + (terms[2] + terms[3])) + ((terms[4] + terms[5]) + (terms[6] + terms[7]));
    if (!(top >= least)) return;
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) {
      const auto own_group = static_cast<int32_t>(places.ids[p] / kGroup);
      const float limit = group < own_group ? places.logits[p] : above[p];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sum.before[p] += logits[j] >= limit ? terms[j] : 0.0f;
      if (group == own_group) {
#pragma unroll 1
        for (uint32_t j = 0; j < places.ids[p] % kGroup; ++j) {
          sum.before[p] += logit_at(logits, j) == places.logits[p] ? logit_at(terms, j) : 0.0f;
        }
      }
    }
  });
  return block_reduce(sum, shared.reduce.as<Masses>(), AddMasses{});
}

}  // namespace ts::cuda
