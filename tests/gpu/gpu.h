// SPDX-License-Identifier: Apache-2.0
// What the GPU test programs share: giving up with a message, and saying "skipped" where there is no GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "tssample.h"

namespace ts::gpu {

constexpr int kSkipped = 77;

inline void check(bool ok, const char* what) {
  if (ok) return;
  std::printf("FAILED: %s (%s) %s\n", what, ts_last_error(), cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAILED: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// Ends the program as skipped when no CUDA sampler can be created. A GPU that the runtime sees and the library does not
// is a failure: its test must not be skipped.
inline void skip_without_gpu() {
  int n_runtime = 0;
  if (cudaGetDeviceCount(&n_runtime) != cudaSuccess) n_runtime = 0;
  ts_capabilities capabilities{};
  capabilities.struct_size = sizeof(capabilities);
  check(ts_get_capabilities(&capabilities) == TS_OK, "ts_get_capabilities");
  check((capabilities.n_cuda_devices > 0) == (n_runtime > 0), "the library and the runtime see the same GPUs");
  if (n_runtime > 0) return;
  std::printf("skipped: no GPU\n");
  std::exit(kSkipped);
}

struct Extras {
  int32_t max_graphs = 0;
  uint64_t flags = 0;
};

inline ts_sampler* make_sampler(int32_t device, int32_t vocab, int32_t invalid_token = 0, int32_t n_slots = 1024,
                                int32_t max_rows_per_request = 8, Extras extras = {}) {
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = device;
  config.vocab_size = vocab;
  config.invalid_token = invalid_token;
  config.n_slots = n_slots;
  config.max_rows_per_request = max_rows_per_request;
  config.flags = extras.flags;
  config.max_graphs = extras.max_graphs;
  ts_sampler* sampler = nullptr;
  check(ts_sampler_create(&config, &sampler) == TS_OK, "ts_sampler_create");
  return sampler;
}

// A device buffer that grows, or with `exact` is made anew in exactly the size asked for, so that memcheck sees a read
// past an array's end.
class Buffer {
 public:
  explicit Buffer(bool exact = false) : exact_(exact) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }
  void* get(size_t n) {
    if (data_ == nullptr || n > size_ || (exact_ && n != size_)) {
      check(cudaFree(data_), "cudaFree");
      data_ = nullptr;
      check(cudaMalloc(&data_, n > 0 ? n : 1), "cudaMalloc");
      size_ = n;
    }
    return data_;
  }
  void* data() const { return data_; }
  size_t size() const { return size_; }
  void* put(const void* host, size_t n) {
    void* device = get(n);
    if (n > 0) check(cudaMemcpy(device, host, n, cudaMemcpyHostToDevice), "copy to the device");
    return device;
  }

 private:
  bool exact_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ts::gpu
