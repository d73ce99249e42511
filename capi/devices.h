// SPDX-License-Identifier: Apache-2.0
// Which backends this build has, and which this machine can use.
#pragma once

#include <cstdint>
#include <memory>

#include "core/backend.h"

namespace ts {

uint32_t built_devices();      // bits TS_DEVICE_*
int32_t n_cuda_devices();      // 0 in a build without CUDA
int32_t choose_auto_device();  // TS_DEVICE_CPU or TS_DEVICE_CUDA

// A backend for a complete configuration. Throws Error.
std::unique_ptr<Backend> make_backend(const ts_config& config);

}  // namespace ts
