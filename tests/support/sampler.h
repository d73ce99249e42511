// SPDX-License-Identifier: Apache-2.0
// The C API for tests: vectors in, vectors out, on the device that TS_TEST_DEVICE names (cpu, the default, or cuda).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/device_memory.h"
#include "tssample.h"

namespace ts::test {

// Temperature 1, no filter, seed 0 given as the request's own; change what a test is about.
ts_request_params params(float temperature = 1.0f, int32_t top_k = 0, float top_p = 1.0f, float min_p = 0.0f,
                         uint64_t seed = 0);

// Logits of rows in one of the three types. shift: elements that the first row lies behind an aligned address.
struct Logits {
  int32_t type = TS_FP32;
  std::vector<unsigned char> bytes;  // from the first row's first element
  int64_t row_stride = 0;            // elements; 0: packed
  int32_t shift = 0;

  static Logits fp32(const std::vector<float>& values);
  static Logits bf16(const std::vector<uint16_t>& bits);
  static Logits fp16(const std::vector<uint16_t>& bits);
};

// Everything that a sample or verify call takes.
struct Batch {
  int32_t vocab = 0;
  int32_t rows_per_request = 1;
  Logits logits;
  std::vector<int64_t> slots;         // one a request; empty: 0, 1, 2, ...
  std::vector<uint64_t> request_ids;  // empty: 1000 + slot
  std::vector<ts_request_params> params;
  std::vector<int64_t> positions;  // empty: absent
  int32_t slots_type = TS_INT32;
  int32_t positions_type = TS_INT32;
  std::vector<int32_t> allow_mask;  // [rows, mask_words]; empty: absent
  int32_t mask_words = 0;
  int32_t n_valid = 0;
};

struct Sampled {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<int32_t> ranks;
  std::vector<int32_t> n_kept;
  std::vector<uint32_t> flags;
};

struct Verified {
  std::vector<int32_t> predict;
  std::vector<int32_t> accept_index;
  std::vector<int32_t> accept_length;
  std::vector<float> logprobs;
  std::vector<int32_t> ranks;
  std::vector<int32_t> n_kept;
  std::vector<uint32_t> flags;
};

// A sampler; every call throws std::runtime_error with status and message when it fails.
class Sampler {
 public:
  explicit Sampler(int32_t vocab_size, int32_t n_slots = 1024, int32_t max_rows_per_request = 8,
                   int32_t invalid_token = 0, uint64_t seed = 0);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void prepare(const Batch& batch);
  // With the step prepared before; all outputs asked for, poisoned first.
  Sampled sample(const Batch& batch);
  // candidates: [requests, rows_per_request].
  Verified verify(const Batch& batch, const std::vector<int32_t>& candidates);
  // prepare and sample.
  Sampled run(const Batch& batch);
  // Tokens alone, without asking for anything else: the call that engines make.
  std::vector<int32_t> tokens(const Batch& batch);
  std::string route() const;
  ts_sampler* handle() { return sampler_; }

 private:
  ts_sampler* sampler_ = nullptr;
};

// Sets an environment variable for its lifetime; nullptr unsets it.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value);
  ~ScopedEnvironment();

 private:
  std::string name_;
  std::string before_;
  bool had_ = false;
};

}  // namespace ts::test
