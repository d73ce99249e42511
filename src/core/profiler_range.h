// SPDX-License-Identifier: Apache-2.0
// A call's time as a range that profilers show (NVTX). Nothing in builds without CUDA; a test of a pointer where no
// profiler is attached.
#pragma once

namespace ts {

#if defined(TSSAMPLE_WITH_CUDA)
// Looks for a profiler, once in a process: not thereafter in a call that has to be fast.
void find_profiler();

class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};
#else
inline void find_profiler() {}

struct ProfilerRange {
  explicit ProfilerRange(const char*) {}
  ~ProfilerRange() {}  // Why written out: a variable without use would be a warning.
};
#endif

}  // namespace ts
