// SPDX-License-Identifier: Apache-2.0
// A case through the C API on either backend: as it is, request by request alone, permuted, and on forced routes.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/calls.h"
#include "gpu/cases.h"
#include "gpu/gpu.h"

namespace ts::gpu {

// What the specification says.
struct Expected {
  Results sampled, verified;  // verified: poison in cases without candidates
};
Expected run_cpu(ts_sampler* cpu, const Case& c);

struct Counts {
  long rows = 0, verified = 0, alone = 0, permuted = 0, forced = 0, mismatches = 0;
};

// The CUDA side: one sampler that takes the natural route, one that may use clusters too, and one for each forced route, made
// once.
class CudaRuns {
 public:
  CudaRuns(int32_t vocab, int32_t invalid_token, bool exact_buffers, bool forced);
  ~CudaRuns();
  // Compares every run of the case and counts it. One case at a time.
  void compare(const Case& c, const Expected& expected, Counts& counts);
  std::string last_route() const { return route_; }

 private:
  struct Arrays;
  Results run(ts_sampler* sampler, const Case& c, const Arrays& arrays, Asked asked, bool verify);
  void compare_alone(ts_sampler* sampler, const Case& c, const Expected& expected, const Arrays& arrays,
                     Counts& counts);
  void compare_permuted(const Case& c, const Expected& expected, const Arrays& arrays, Counts& counts);
  void compare_forced(const Case& c, const Expected& expected, const Arrays& arrays, Counts& counts);

  ts_sampler* natural_;
  ts_sampler* clusters_;
  struct Forced {
    std::string route;
    ts_sampler* sampler;
  };
  std::vector<Forced> forced_;
  std::string route_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace ts::gpu
