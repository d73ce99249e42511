// SPDX-License-Identifier: Apache-2.0
// Log-probability and rank.
#include "cpu/logprob.h"

#include "contract/ln.h"
#include "contract/weight.h"
#include "cpu/scan.h"

namespace ts {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;  // log2(e) rounded to fp32: the factor of temperature 1

}  // namespace

float raw_logprob(const Row& row, uint32_t id) {
  const double distance = static_cast<double>(row.logits[id]) - static_cast<double>(row.max);
  const uint64_t total = sum_weights(row.logits, row.vocab, row.max, kLog2E);
  const double mass = static_cast<double>(static_cast<int64_t>(total)) / static_cast<double>(kWeightOne);
  return static_cast<float>(distance - ln(mass));
}

int32_t rank_of(const Row& row, uint32_t id) { return 1 + count_above(row.logits, row.vocab, row.logits[id]); }

}  // namespace ts
