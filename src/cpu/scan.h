// SPDX-License-Identifier: Apache-2.0
// The backend's inner loops over runs of logits, written so that compilers vectorise them.
#pragma once

#include <cstdint>

#include "contract/noise.h"

namespace ts {

// Rows are scanned in chunks of so many ids.
constexpr int32_t kChunk = 256;

inline int32_t n_chunks(int32_t vocab) { return (vocab - 1) / kChunk + 1; }
inline int32_t chunk_size(int32_t vocab, int32_t chunk) {
  return vocab - chunk * kChunk < kChunk ? vocab - chunk * kChunk : kChunk;
}

float max_of(const float* logits, int32_t n);
int32_t count_above(const float* logits, int32_t n, float bound);

// The sum of the weights of n logits; -inf weighs nothing.
uint64_t sum_weights(const float* logits, int32_t n, float max, float log2e_over_t);

// Coarse noise bits of ids begin .. begin + kChunk - 1; begin is a multiple of kChunk.
void coarse_chunk(const NoiseKey& key, uint32_t begin, uint16_t* coarse);

// The places i < n, ascending, whose logit is above far_logit or whose coarse bits are 0. Returns how many.
int32_t select_live(const float* logits, const uint16_t* coarse, int32_t n, float far_logit, uint32_t* live);

}  // namespace ts
