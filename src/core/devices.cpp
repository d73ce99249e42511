// SPDX-License-Identifier: Apache-2.0
// Choice of the backend.
#include "core/devices.h"

#include "core/error.h"
#include "cpu/cpu_backend.h"
#if defined(TSSAMPLE_WITH_CUDA)
#include "cuda/cuda_backend.h"
#include "cuda/device.h"
#endif

namespace ts {
namespace {

bool cpu_has_fma() {
#if defined(__x86_64__)
  // What -march=x86-64-v3 lets the compiler use; the rest of that level came with these.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
#else
  return true;
#endif
}

}  // namespace

#if defined(TSSAMPLE_WITH_CUDA)
uint32_t built_devices() { return 1u << TS_DEVICE_CPU | 1u << TS_DEVICE_CUDA; }
int32_t n_cuda_devices() { return cuda::n_devices(); }
#else
uint32_t built_devices() { return 1u << TS_DEVICE_CPU; }
int32_t n_cuda_devices() { return 0; }
#endif

int32_t choose_auto_device() { return n_cuda_devices() > 0 ? TS_DEVICE_CUDA : TS_DEVICE_CPU; }

std::unique_ptr<Backend> make_backend(const ts_config& config) {
  // Why first: with a GPU too, the host derives request states with fma instructions.
  if (!cpu_has_fma()) {
    throw Error(TS_ERROR_DEVICE, "this processor has no AVX2 and FMA, which the library needs (x86-64-v3)");
  }
  const int32_t device = config.device == TS_DEVICE_AUTO ? choose_auto_device() : config.device;
  if (device == TS_DEVICE_CUDA) {
#if defined(TSSAMPLE_WITH_CUDA)
    return cuda::make_cuda_backend(config);
#else
    throw Error(TS_ERROR_DEVICE, "ts_config.device = TS_DEVICE_CUDA: this build of the library has no CUDA backend");
#endif
  }
  return std::make_unique<CpuBackend>(config);
}

}  // namespace ts
