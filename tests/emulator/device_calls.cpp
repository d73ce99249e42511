// SPDX-License-Identifier: Apache-2.0
// The calls of the CUDA runtime that tests of the host's side do without: about the device, its kernels and its memory.
#include <cuda_runtime_api.h>

#include <cstring>

extern "C" {

// Of compute capability 9.0, and small, so that a few rows fill it.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = 9; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
    case cudaDevAttrMultiProcessorCount: *value = 12; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; return cudaSuccess;
    default: return cudaErrorInvalidValue;
  }
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* n, const void*, const cudaLaunchConfig_t*) {
  *n = 1;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind) {
  std::memcpy(to, from, n);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** data, size_t n) { return cudaHostAlloc(data, n, 0); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {
  *free = *all = size_t{8} << 30;
  return cudaSuccess;
}

}  // extern "C"
