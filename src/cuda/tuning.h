// SPDX-License-Identifier: Apache-2.0
// Tuning by compute capability: one table, looked up once when a sampler is created. Sizes that kernels are compiled with
// (threads, tiles, lists) are constants beside their kernels, the same on all.
#pragma once

#include <cstdint>

namespace ts::cuda {

// The cluster kernel: rows few enough are kept in shared memory.
struct ClusterTuning {
  int64_t max_rows = 0;           // of a call; 0: no clusters
  int32_t max_size = 0;           // blocks a row
  int32_t min_groups = 0;         // of 8 ids, in a row that more blocks do not share
  int32_t groups_per_thread = 0;  // where multiprocessors have a block each
  int32_t min_threads = 0;
  int32_t max_threads = 0;
  int32_t crowded_threads = 0;  // where blocks share multiprocessors
  int32_t blocks_per_sm = 0;    // of so many threads
};

struct Tuning {
  int32_t min_capability;  // major * 10 + minor; the last row that is not above the device's applies
  // Few rows are shared by so many blocks a multiprocessor, and by at most so many a row:
  int32_t greedy_blocks_per_sm;
  int32_t blocks_per_sm;    // rows with noise or lists
  int32_t max_slices;       // rows with noise
  int32_t max_list_slices;  // rows with lists
  int32_t min_slice_ids;
  int32_t exact_blocks_per_sm;
  ClusterTuning cluster;
};

constexpr Tuning kTunings[] = {
    {80, 2, 1, 32, 16, 2048, 2, {}},
    {90, 2, 1, 32, 16, 2048, 2, {33, 16, 512, 2, 128, 512, 256, 4}},
};

constexpr Tuning tuning_of(int32_t capability) {
  Tuning best = kTunings[0];
  for (const Tuning& tuning : kTunings) {
    if (tuning.min_capability <= capability) best = tuning;
  }
  return best;
}

}  // namespace ts::cuda
