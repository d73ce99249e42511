// SPDX-License-Identifier: Apache-2.0
// Launchers of the kernels, as the host sees them. Each throws Error when the launch fails.
#pragma once

#include "cuda/call.h"
#include "cuda/device.h"

namespace ts::cuda {

struct Chains;

// Which of the sampling kernel's ways a route needs; greedy rows stand on any.
enum class Ways {
  kGreedy,
  kNoise,  // rows without filters
  kTop,    // rows with top-k
  kBoth,   // rows with top-p or min-p, without top-k
  kAll,
};

void launch_sample(int32_t logits_type, Ways ways, const Call& call, int64_t n_rows, RowPick* picks, SlicePick* slices,
                   uint64_t* lists, const Outputs& out, cudaStream_t stream);
// n_blocks: a multiple of cluster_size.
void launch_exact(int32_t logits_type, const Call& call, int32_t n_blocks, int32_t cluster_size, RowPick* picks,
                  const Outputs& out, cudaStream_t stream);
void launch_report(int32_t logits_type, const Call& call, int64_t n_rows, const RowPick* picks, RowTotals* totals,
                   const Outputs& out, cudaStream_t stream);
void launch_verify(const Chains& chains, const RowPick* picks, const Outputs& results, cudaStream_t stream);
void launch_write_slots(const int32_t* slots, const RequestState* states, int32_t n, RequestState* pool,
                        cudaStream_t stream);

// Loads every kernel onto the current device and sets its attributes, so that no later launch has to.
void load_kernels();

}  // namespace ts::cuda
