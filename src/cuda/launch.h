// SPDX-License-Identifier: Apache-2.0
// Launchers of the kernels, as the host sees them: launch_* append to the list of a call, enqueue_* enqueue at once.
#pragma once

#include "cuda/call.h"
#include "cuda/device.h"
#include "cuda/launch_list.h"
#include "cuda/tuning.h"

namespace ts::cuda {

struct OwnersByValue;

// Which of the sampling kernel's ways a route needs; greedy rows stand on any.
enum class Ways {
  kGreedy,
  kNoise,  // rows without filters
  kTop,    // rows with top-k
  kBoth,   // rows with top-p or min-p, without top-k
  kAll,
};

void launch_sample(LaunchList& list, int32_t logits_type, Ways ways, const Call& call, int64_t n_rows, RowPick* picks,
                   SlicePick* slices, uint64_t* lists, const Outputs& out);
// What clusters of the cluster kernel a device can run.
struct ClusterLimits {
  int32_t max_size;  // 0: none
  int32_t n_sm;
  size_t shared_bytes;  // of a block
  ClusterTuning tuning;
};
// Blocks to a row with which the cluster kernel can sample so many rows; 0: it cannot.
int32_t cluster_size_for(const ClusterLimits& limits, int32_t logits_type, int32_t vocab, int64_t n_rows);
void launch_cluster(LaunchList& list, const ClusterLimits& limits, int32_t logits_type, const Call& call,
                    int64_t n_rows, int32_t cluster_size, RowPick* picks, const Outputs& out);

void launch_exact(LaunchList& list, int32_t logits_type, const Call& call, int32_t n_blocks, RowPick* picks,
                  float* partials, const Outputs& out);
void launch_report(LaunchList& list, int32_t logits_type, const Call& call, int64_t n_rows, const RowPick* picks,
                   RowTotals* totals, const Outputs& out);

// copied: a word of pinned host memory by its device address; becomes `sequence` when the kernel runs.
void launch_write_slots(LaunchList& list, const int32_t* slots, const RequestState* states, int32_t n,
                        RequestState* pool, volatile uint64_t* copied, uint64_t sequence);
// The owners are copied before it returns, so a capture keeps them.
void enqueue_owners(const OwnersByValue& owners, RequestState* pool, bool programmatic, cudaStream_t stream);

// Load kernels onto the current device and set their attributes, so that no later launch has to.
void load_sample_kernels();
void load_exact_kernels();
void load_report_kernels();
void load_write_slots_kernels();
// The same for the cluster kernel, if the device has clusters.
ClusterLimits load_cluster_kernels(int32_t device, const ClusterTuning& tuning, int32_t n_sm);

}  // namespace ts::cuda
