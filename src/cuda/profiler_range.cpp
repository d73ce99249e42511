// SPDX-License-Identifier: Apache-2.0
// Ranges through NVTX 3: headers only. They load a profiler's library if the profiler has named it in the environment,
// and nothing else.
#include "core/profiler_range.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace ts {

void find_profiler() { nvtxInitialize(nullptr); }
ProfilerRange::ProfilerRange(const char* name) { nvtxRangePushA(name); }
ProfilerRange::~ProfilerRange() { nvtxRangePop(); }

}  // namespace ts

#else  // a CUDA toolkit without NVTX

namespace ts {

void find_profiler() {}
ProfilerRange::ProfilerRange(const char*) {}
ProfilerRange::~ProfilerRange() {}

}  // namespace ts
#endif
