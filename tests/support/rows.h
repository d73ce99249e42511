// SPDX-License-Identifier: Apache-2.0
// Rows of logits for tests: real ones, generated ones, and their conversion between the three types.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/sampler.h"

namespace ts::test {

using Random = std::mt19937_64;

inline int32_t pick(Random& random, int64_t n) { return static_cast<int32_t>(random() % static_cast<uint64_t>(n)); }

// Round to nearest, ties to even; NaN stays NaN.
uint16_t to_bf16(float value);
uint16_t to_fp16(float value);
float from_bf16(uint16_t bits);
float from_fp16(uint16_t bits);

// N(0, 2.5) with one id in 1,024 raised by Exp(mean 4).
std::vector<float> synthetic_row(Random& random, int32_t vocab);
// One of: synthetic, flat, near-flat, tied, many -inf, wide, with NaN and +inf, falling, rising, peaked, empty.
std::vector<float> any_row(Random& random, int32_t vocab);

// Rows in one of the types, `stride` elements apart, and the values that they hold.
Logits pack(std::vector<std::vector<float>>& rows, int32_t type, int64_t stride);

// Vocabulary and bf16 bits of the committed real rows (8), or of TS_LM_DATA's file when it is set.
constexpr int32_t kRealVocab = 128256;
std::vector<uint16_t> real_rows();
std::vector<float> real_row(const std::vector<uint16_t>& rows, size_t index);

}  // namespace ts::test
