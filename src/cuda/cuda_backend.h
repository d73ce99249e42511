// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: enqueues kernels; never synchronises or loads after its construction, and allocates only to make
// a graph.
#pragma once

#include <memory>

#include "core/backend.h"

namespace ts::cuda {

std::unique_ptr<Backend> make_cuda_backend(const ts_config& config);

}  // namespace ts::cuda
