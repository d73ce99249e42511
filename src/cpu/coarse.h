// SPDX-License-Identifier: Apache-2.0
// The draw's inner loops, over chunks of consecutive ids, written so that compilers vectorise them.
#pragma once

#include <cstdint>

#include "contract/noise.h"

namespace ts {

constexpr int32_t kCoarseChunk = 512;

// Coarse bits of ids begin .. begin + kCoarseChunk - 1; begin is a multiple of kCoarseChunk.
void coarse_chunk(const NoiseKey& key, uint32_t begin, uint16_t* coarse);

// The largest of n logits.
float max_of(const float* logits, int32_t n);

// The places i < n, ascending, whose logit is above far_logit or whose coarse bits are 0. Returns how many.
int32_t select_live(const float* logits, const uint16_t* coarse, int32_t n, float far_logit, uint32_t* live);

}  // namespace ts
