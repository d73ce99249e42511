// SPDX-License-Identifier: Apache-2.0
// Device handling.
#include "cuda/device.h"

#include <cstring>

#include "core/error.h"

namespace ts::cuda {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // Why: a launch error would otherwise be reported again by the next call.
  if (error == cudaErrorMemoryAllocation) throw Error(TS_ERROR_OUT_OF_MEMORY, "%s: out of device memory", what);
  throw Error(TS_ERROR_CUDA, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

int32_t n_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

DeviceScope::DeviceScope(int32_t ordinal) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != ordinal) check(cudaSetDevice(ordinal), "cudaSetDevice");
}

DeviceScope::~DeviceScope() { cudaSetDevice(before_); }

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

DeviceBuffer::DeviceBuffer(size_t n_bytes) {
  check(cudaMalloc(&data_, n_bytes), "cudaMalloc");
  const cudaError_t error = cudaMemset(data_, 0, n_bytes);
  if (error != cudaSuccess) {
    cudaFree(data_);
    check(error, "cudaMemset");
  }
}

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

PinnedBuffer::PinnedBuffer(size_t n_bytes) {
  check(cudaHostAlloc(&data_, n_bytes, cudaHostAllocMapped), "cudaHostAlloc");
  std::memset(data_, 0, n_bytes);
  const cudaError_t error = cudaHostGetDevicePointer(&device_data_, data_, 0);
  if (error != cudaSuccess) {
    cudaFreeHost(data_);
    check(error, "cudaHostGetDevicePointer");
  }
}

PinnedBuffer::~PinnedBuffer() { cudaFreeHost(data_); }

}  // namespace ts::cuda
