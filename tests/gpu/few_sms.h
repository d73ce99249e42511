// SPDX-License-Identifier: Apache-2.0
// FAULTS.md D5: a stream whose work may use a few SMs only.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace ts::gpu {

// A stream of a green context of at least n_sm SMs, as few as the device allows; kept until the process ends. nullptr
// when the driver has none, and why.
cudaStream_t make_small_stream(int n_sm, int* n_sm_given, std::string* why);

}  // namespace ts::gpu
