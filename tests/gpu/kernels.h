// SPDX-License-Identifier: Apache-2.0
// Kernels of the GPU tests: what an engine does on the device between two calls, and a neighbour that takes its SMs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ts::gpu {

// positions[i] += by.
void launch_advance(int64_t* positions, int32_t n, int64_t by, cudaStream_t stream);
// What the first place held goes to the last, the others one place to the front.
void launch_rotate(int32_t* slots, int32_t n, cudaStream_t stream);
// The last kernel of a model: writes logits right in front of the call that reads them.
void launch_produce(uint16_t* logits, const uint16_t* from, int64_t n, cudaStream_t stream);
// n_blocks blocks that each fill an SM until *stop (mapped host memory) is set, or for 20 seconds.
void launch_occupy(int32_t n_blocks, const volatile int32_t* stop, volatile int32_t* n_running, cudaStream_t stream);

}  // namespace ts::gpu
