// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime, with errors as exceptions and memory that frees itself.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace ts::cuda {

// Throws Error(TS_ERROR_CUDA) with the runtime's text and `what` unless the call succeeded.
void check(cudaError_t error, const char* what);

// GPUs that a sampler can be created on; 0 without driver or GPU. Creates no context.
int32_t n_devices();

// Makes a device current for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(int32_t ordinal);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
};

// Whether work that is enqueued on the stream goes into a capture.
bool is_capturing(cudaStream_t stream);

// Device memory, zeroed.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t n_bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// Pinned host memory that the device can address, zeroed.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(size_t n_bytes);
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  template <class T>
  T* on_device() const {
    return static_cast<T*>(device_data_);
  }

 private:
  void* data_ = nullptr;
  void* device_data_ = nullptr;
};

}  // namespace ts::cuda
