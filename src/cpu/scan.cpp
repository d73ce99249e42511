// SPDX-License-Identifier: Apache-2.0
// The inner loops.
#include "cpu/scan.h"

#include "contract/convert.h"
#include "contract/weight.h"
#include "cpu/simd.h"

namespace ts {

TS_SIMD_CLONES void coarse_chunk(const NoiseKey& key, uint32_t begin, uint16_t* coarse) {
  constexpr int kBlocks = kChunk / kCoarsePerBlock;
  uint32_t w0[kBlocks], w1[kBlocks], w2[kBlocks], w3[kBlocks];
  // One Philox block a lane: the rounds of philox4x32_10() with the lanes innermost.
  for (int b = 0; b < kBlocks; ++b) {
    w0[b] = begin / kCoarsePerBlock + static_cast<uint32_t>(b);
    w1[b] = static_cast<uint32_t>(key.position);
    w2[b] = static_cast<uint32_t>(key.position >> 32);
    w3[b] = static_cast<uint32_t>(key.purpose) * 2u;
  }
  uint32_t k0 = static_cast<uint32_t>(key.seed);
  uint32_t k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int b = 0; b < kBlocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * w0[b];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * w2[b];
      w0[b] = static_cast<uint32_t>(p1 >> 32) ^ w1[b] ^ k0;
      w1[b] = static_cast<uint32_t>(p1);
      w2[b] = static_cast<uint32_t>(p0 >> 32) ^ w3[b] ^ k1;
      w3[b] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int b = 0; b < kBlocks; ++b) {
    uint16_t* out = coarse + b * kCoarsePerBlock;
    out[0] = static_cast<uint16_t>(w0[b]);
    out[1] = static_cast<uint16_t>(w0[b] >> 16);
    out[2] = static_cast<uint16_t>(w1[b]);
    out[3] = static_cast<uint16_t>(w1[b] >> 16);
    out[4] = static_cast<uint16_t>(w2[b]);
    out[5] = static_cast<uint16_t>(w2[b] >> 16);
    out[6] = static_cast<uint16_t>(w3[b]);
    out[7] = static_cast<uint16_t>(w3[b] >> 16);
  }
}

TS_SIMD_CLONES float max_of(const float* logits, int32_t n) {
  // Why: compilers do not reorder a maximum of floats; lanes of its own they do vectorise.
  constexpr int32_t kLanes = 32;
  float lanes[kLanes];
  for (float& lane : lanes) lane = kMinusInf;
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int32_t j = 0; j < kLanes; ++j) lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
  }
  float max = kMinusInf;
  for (; i < n; ++i) max = logits[i] > max ? logits[i] : max;
  for (const float lane : lanes) max = lane > max ? lane : max;
  return max;
}

TS_SIMD_CLONES int32_t count_above(const float* logits, int32_t n, float bound) {
  int32_t count = 0;
  for (int32_t i = 0; i < n; ++i) count += logits[i] > bound ? 1 : 0;
  return count;
}

TS_SIMD_CLONES uint64_t sum_weights(const float* logits, int32_t n, float max, float log2e_over_t) {
  uint64_t sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += weight(logits[i] - max, log2e_over_t);
  return sum;
}

TS_SIMD_CLONES int32_t select_live(const float* logits, const uint16_t* coarse, int32_t n, float far_logit,
                                   uint32_t* live) {
  constexpr int32_t kGroup = 64;
  int32_t n_live = 0;
  for (int32_t begin = 0; begin < n; begin += kGroup) {
    const int32_t end = begin + kGroup < n ? begin + kGroup : n;
    int32_t any = 0;
    for (int32_t i = begin; i < end; ++i) any |= (logits[i] > far_logit ? 1 : 0) | (coarse[i] == 0 ? 1 : 0);
    if (any == 0) continue;
    for (int32_t i = begin; i < end; ++i) {
      live[n_live] = static_cast<uint32_t>(i);
      n_live += (logits[i] > far_logit ? 1 : 0) | (coarse[i] == 0 ? 1 : 0);
    }
  }
  return n_live;
}

}  // namespace ts
