// SPDX-License-Identifier: Apache-2.0
// Benchmarks give up with a message when a call fails.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "tssample.h"

namespace ts::bench {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

inline void check(ts_status status, const char* what) {
  if (status == TS_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, ts_last_error());
  std::exit(1);
}

}  // namespace ts::bench
