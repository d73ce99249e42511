// SPDX-License-Identifier: Apache-2.0
// Cases for the comparison of the backends: a step's rows and everything that a call takes. Each is made from a number
// alone, so that a case that differs can be made again by itself.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gpu/calls.h"

namespace ts::gpu {

using Random = std::mt19937_64;

struct Case {
  std::string name;  // section and number
  uint64_t first_id = 0;
  int32_t vocab = 0;
  int32_t n_valid = 0;
  int32_t type = TS_FP32;
  int32_t n_requests = 0;
  int32_t rows_per_request = 1;
  int64_t row_stride = 0;             // elements
  std::vector<unsigned char> logits;  // with `lead` bytes in front
  size_t lead = 0;
  std::vector<ts_request_params> params;
  std::vector<int64_t> positions;  // empty: absent
  std::vector<int32_t> mask;
  int32_t mask_words = 0;
  Asked asked = kEverything;
  std::vector<int32_t> candidates;
  std::vector<const char*> kinds;  // of each row

  size_t n_rows() const { return static_cast<size_t>(n_requests) * static_cast<size_t>(rows_per_request); }
  size_t element() const { return type == TS_FP32 ? 4 : 2; }
  size_t row_bytes() const { return static_cast<size_t>(row_stride) * element(); }
};

// One setting (of 200, say) of all rows of a file of bf16 rows.
Case real_case(const std::vector<unsigned char>& rows, int32_t vocab, int64_t number);
// Vocabularies of 1 to 5,000 in batches of up to 1,200 rows, and of 40,001 to 262,144 in batches of up to 32.
Case small_case(int64_t number);
Case large_case(int64_t number);

// One of the kinds of a request's parameters: 0 greedy, 1 plain, 2 top_k, 3 top_p, 4 both. min_p: a third has it too.
ts_request_params random_params(Random& random, int32_t vocab, int kind, bool min_p);
// Nothing but tokens, log-probabilities alone, everything, or anything.
Asked random_asked(Random& random);
uint16_t to_bf16(float v);

inline int32_t pick(Random& random, int64_t n) { return static_cast<int32_t>(random() % static_cast<uint64_t>(n)); }

}  // namespace ts::gpu
