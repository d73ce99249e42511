// SPDX-License-Identifier: Apache-2.0
// Log-probability and rank.
#include "cpu/logprob.h"

#include "contract/ln.h"
#include "contract/weight.h"
#include "cpu/simd.h"

namespace ts {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;  // log2(e) rounded to fp32: the factor of temperature 1

TS_SIMD_CLONES uint64_t total_weight(const Row& row) {
  uint64_t total = 0;
  for (int32_t i = 0; i < row.vocab; ++i) total += weight(row.logits[i] - row.max, kLog2E);
  return total;
}

TS_SIMD_CLONES int32_t count_above(const Row& row, float logit) {
  int32_t n = 0;
  for (int32_t i = 0; i < row.vocab; ++i) n += row.logits[i] > logit ? 1 : 0;
  return n;
}

}  // namespace

float raw_logprob(const Row& row, uint32_t id) {
  const double distance = static_cast<double>(row.logits[id]) - static_cast<double>(row.max);
  const double mass = static_cast<double>(static_cast<int64_t>(total_weight(row))) / static_cast<double>(kWeightOne);
  return static_cast<float>(distance - ln(mass));
}

int32_t rank_of(const Row& row, uint32_t id) { return 1 + count_above(row, row.logits[id]); }

}  // namespace ts
