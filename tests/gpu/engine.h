// SPDX-License-Identifier: Apache-2.0
// A small serving engine on both backends: the CUDA sampler works on device arrays that the engine changes on the
// device, the CPU sampler on their mirrors.
#pragma once

#include <string>
#include <vector>

#include "gpu/calls.h"
#include "gpu/gpu.h"

namespace ts::gpu {

struct Shape {
  int32_t n_requests = 6;
  int32_t rows_per_request = 1;
  int32_t vocab = 50257;
  bool verify = false;
  Asked asked = kEverything;
};

constexpr int32_t kNumSteps = 6;
// Steps by what their requests want: 0 a mix with min-p, 1 plain, 2 top_p, 3 top_k, 4 both, 5 greedy; in the order of
// the capture variants.
ts_request_params step_params(int kind, int32_t request, uint64_t seed);

class Engine {
 public:
  // cuda: a sampler of at least this shape, made by the caller.
  Engine(ts_sampler* cuda, const Shape& shape, uint64_t seed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // New requests of a kind in the same slots, on both samplers.
  void new_requests(int kind, cudaStream_t stream);
  ts_status prepare_known();
  // The call, enqueued on the CUDA sampler; on other arrays, of the same contents, with `other`.
  ts_status enqueue(cudaStream_t stream, bool other = false);
  // On the device and in the mirrors.
  void advance(int64_t by, cudaStream_t stream);
  void rotate_slots(cudaStream_t stream);
  void change_logits(cudaStream_t stream);
  // The device's arrays once more, elsewhere, for enqueue with `other`.
  void copy_arrays(cudaStream_t stream);
  void poison(cudaStream_t stream);
  void poison_first(cudaStream_t stream);  // the outputs of enqueue without `other`
  // Waits for the stream and reads what the last call wrote.
  std::vector<int32_t> results(cudaStream_t stream, bool other = false);
  // As results(), but before it waits it enqueues kernels that overwrite the logits and then write them anew.
  std::vector<int32_t> results_and_overwrite(cudaStream_t stream);
  // What the CPU backend writes for the same.
  std::vector<int32_t> expected();
  size_t n_rows() const { return n_; }

 private:
  struct Arrays {
    Buffer logits, slots, positions, candidates, block;
  };
  ts_rows rows_of(const void* logits, const void* slots, const void* positions) const;

  Shape shape_;
  size_t n_;
  ts_sampler* cuda_;
  ts_sampler* cpu_;
  std::vector<uint16_t> logit_sets_[2];
  int set_ = 0;
  std::vector<uint64_t> ids_;
  std::vector<int32_t> slots_;
  std::vector<int64_t> positions_;
  std::vector<int32_t> candidates_;
  Arrays arrays_, others_;
  Buffer device_sets_[2];
};

}  // namespace ts::gpu
