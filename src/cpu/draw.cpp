// SPDX-License-Identifier: Apache-2.0
// The draw, lazily: 16 coarse bits of noise rule out almost every id; the few others get their exact score.
//
// Why it is exact: with b the best score so far, an id of scaled logit x can only score b or more if its Gumbel noise
// is at least x's distance t = b - x; g = -ln(-ln(1 - v)) <= -ln v, so only if v <= e^-t, and v >= coarse / 65536.
// An id is therefore skipped when coarse / 65536 > e^-t. kSlack covers every rounding: of x, of b and of their
// difference (each within 2^-53 of its magnitude), of g (5.5e-15 absolute) and of the exponential (relative 1e-6).
#include "cpu/draw.h"

#include <cmath>

#include "contract/convert.h"
#include "contract/order.h"
#include "contract/weight.h"
#include "cpu/scan.h"

namespace ts {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kSlack = 1e-9;

// The smallest coarse value that cannot win at x against b; 65536 when all can.
uint32_t coarse_limit(double x, double b) {
  const double t = b - x - 0x1p-51 * (std::fabs(x) + std::fabs(b)) - kSlack;
  if (!(t > 0)) return 65536;
  if (t > 12.0) return 1;
  const double z = -t * kLog2E;
  const auto n = static_cast<int64_t>(z) - 1;
  const double power =
      exp2_fraction(static_cast<float>(z - static_cast<double>(n))) * bit_cast<double>((n + 1023) << 52);
  return static_cast<uint32_t>(65536.0 * 1.00001 * power) + 1;
}

class Best {
 public:
  Best(const NoiseKey& key, double inv_temperature) : key_(key), inv_temperature_(inv_temperature) {}

  // Looks at a candidate whose coarse bits are known. Ids may come in any order.
  void offer(float logit, uint32_t id, uint32_t coarse) {
    const double x = static_cast<double>(logit) * inv_temperature_;
    if (some_ && coarse >= coarse_limit(x, score_)) return;
    const double score = x + gumbel(uniform_bits(key_, id, coarse));
    if (!some_ || score > score_ || (score == score_ && id < id_)) {
      some_ = true;
      score_ = score;
      id_ = id;
    }
  }
  uint32_t id() const { return id_; }
  // A logit at or below which only ids with coarse bits 0 can still win.
  float far_logit() const {
    const double x = score_ - 12.0 - 0x1p-50 * std::fabs(score_) - kSlack;
    const double logit = x / inv_temperature_;
    const double far = logit - 0x1p-22 * std::fabs(logit) - 1e-37;
    return far > -static_cast<double>(kFloatMax) ? static_cast<float>(far) : kMinusInf;
  }

 private:
  const NoiseKey& key_;
  double inv_temperature_;
  double score_ = 0;
  uint32_t id_ = 0;
  bool some_ = false;
};

}  // namespace

uint32_t draw(const Row& row, const Kept& kept, double inv_temperature, const NoiseKey& key) {
  const auto stays = [&](float logit, uint32_t id) {
    return logit > kMinusInf && order_key(logit, id) >= kept.last_key && logit - row.max >= kept.min_distance;
  };
  Best best(key, inv_temperature);
  // Start from the first candidate, which is always kept: a good bound before the scan.
  best.offer(row.max, row.first, coarse_bits(coarse_block(key, row.first / kCoarsePerBlock), row.first));

  uint16_t coarse[kChunk];
  uint32_t live[kChunk];
  for (int32_t c = 0; c < n_chunks(row.vocab); ++c) {
    const float chunk_max = row.chunk_max[c];
    if (logit_key(chunk_max) < kept.last_key >> 32 || chunk_max - row.max < kept.min_distance) continue;
    const auto begin = static_cast<uint32_t>(c * kChunk);
    coarse_chunk(key, begin, coarse);
    const int32_t n_live = select_live(row.logits + begin, coarse, chunk_size(row.vocab, c), best.far_logit(), live);
    for (int32_t i = 0; i < n_live; ++i) {
      const uint32_t id = begin + live[i];
      const float logit = row.logits[id];
      if (id != row.first && stays(logit, id)) best.offer(logit, id, coarse[live[i]]);
    }
  }
  return best.id();
}

}  // namespace ts
