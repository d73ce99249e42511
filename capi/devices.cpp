// SPDX-License-Identifier: Apache-2.0
// Choice of the backend.
#include "devices.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/error.h"
#include "cpu/cpu_backend.h"
#if defined(TSSAMPLE_WITH_CUDA)
#include "cuda/cuda_backend.h"
#include "cuda/device.h"
#endif

namespace ts {
namespace {

// What -march=x86-64-v3 may use. Why cpuid for the last: not every compiler's builtin knows their names.
bool cpu_is_supported() {
#if defined(__x86_64__)
  unsigned a, b, basic = 0, extended = 0, d;
  __get_cpuid(1, &a, &b, &basic, &d);
  __get_cpuid(0x80000001u, &a, &b, &extended, &d);
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && (basic & bit_MOVBE) != 0 && (basic & bit_F16C) != 0 &&
         (extended & bit_LZCNT) != 0;
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
  if (!cpu_is_supported()) {
    throw Error(TS_ERROR_DEVICE, "this processor is not of x86-64-v3 (AVX2, FMA, BMI, LZCNT), which the library needs");
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
