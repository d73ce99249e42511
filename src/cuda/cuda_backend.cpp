// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend owns, and the order of its launches.
#include "cuda/cuda_backend.h"

#include <algorithm>

#include "core/error.h"
#include "cuda/device.h"
#include "cuda/graph_cache.h"
#include "cuda/launch.h"
#include "cuda/slot_staging.h"
#include "cuda/tuning.h"

namespace ts::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(const ts_config& config, int32_t n_sm, int32_t capability)
      : config_(config),
        n_sm_(n_sm),
        tuning_(tuning_of(capability)),
        programmatic_{capability >= 90, (config.flags & TS_CONFIG_PROGRAMMATIC_LAUNCH) != 0},
        max_rows_(static_cast<int64_t>(config.max_requests) * config.max_rows_per_request),
        pool_(static_cast<size_t>(config.n_slots) * sizeof(RequestState)),
        picks_(static_cast<size_t>(max_rows_) * sizeof(RowPick)),
        totals_(static_cast<size_t>(max_rows_) * sizeof(RowTotals)),
        open_rows_(sizeof(OpenRows) + static_cast<size_t>(max_rows_) * sizeof(uint32_t)),
        slices_(static_cast<size_t>(max_sliced_blocks()) * sizeof(SlicePick)),
        lists_(static_cast<size_t>(max_sliced_blocks()) * kSliceListCapacity * sizeof(uint64_t)),
        staging_(config.max_requests, programmatic_.supported),
        graphs_(config.max_graphs) {
    load_sample_kernels();
    load_exact_kernels();
    load_report_kernels();
    load_write_slots_kernels();
    if ((config.flags & TS_CONFIG_CLUSTERS) != 0) {
      cluster_ = load_cluster_kernels(config.device_ordinal, tuning_.cluster, n_sm);
    }
    warm_up();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  int32_t device() const override { return TS_DEVICE_CUDA; }

  void write_slots(const std::vector<int32_t>& slots, const std::vector<RequestState>& states,
                   ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    staging_.write(slots, states, pool_.as<RequestState>(), is_capturing(stream), stream);
  }

  void sample(const Step& step, const ts_rows& rows, const ts_sample_out& out, ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    LaunchList list(programmatic_);
    const bool graph = takes_graph(stream);
    add_rows(list, rows, way_of(step.plan, graph),
             {out.tokens, out.logprobs, out.ranks, out.n_kept, out.row_flags, out.n_bad_rows, {}});
    run(list, graph, stream);
  }

  void verify(const Step& step, const ts_rows& rows, const ts_draft& draft, const ts_verify_out& out,
              ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    LaunchList list(programmatic_);
    const bool graph = takes_graph(stream);
    add_rows(list, rows, way_of(step.plan, graph),
             {out.predict,
              out.logprobs,
              out.ranks,
              out.n_kept,
              out.row_flags,
              out.n_bad_rows,
              {draft.candidates, draft.candidates_stride, out.accept_index, out.accept_length}});
    run(list, graph, stream);
  }

  Broadcast make_broadcast(const ts_broadcast& broadcast) override {
    const DeviceScope scope(config_.device_ordinal);
    return Broadcast(broadcast);
  }

  void send(const Broadcast& broadcast, const OutputArrays& arrays, ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    broadcast.send(arrays, stream);
  }

 private:
  // Runs every kernel that looks at rows, on one row of one id. Why: the driver gives a kernel what it needs (local
  // memory, say) at its first launch, and may wait for other kernels to end before.
  void warm_up() const {
    Call call{};
    call.logits = lists_.as<void>();
    call.row_stride = call.vocab = call.n_valid = call.rows_per_request = call.n_slices = 1;
    call.slots = totals_.as<void>();
    call.states = pool_.as<RequestState>();
    call.n_slots = config_.n_slots;
    call.open_rows = open_rows_.as<OpenRows>();
    Outputs out{};
    out.tokens = lists_.as<int32_t>() + 4;
    out.logprobs = lists_.as<float>() + 5;
    for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
      if (cluster_.max_size > 0) {
        LaunchList list(programmatic_);
        launch_cluster(list, cluster_, type, call, 1, cluster_.max_size, picks_.as<RowPick>(), out);
        enqueue(list, nullptr);
      }
      for (const Ways ways : {Ways::kGreedy, Ways::kNoise, Ways::kTop, Ways::kBoth, Ways::kAll}) {
        LaunchList list(programmatic_);
        launch_sample(list, type, ways, call, 1, picks_.as<RowPick>(), slices_.as<SlicePick>(), lists_.as<uint64_t>(),
                      out);
        enqueue(list, nullptr);
      }
      for (int32_t* ranks : {static_cast<int32_t*>(nullptr), lists_.as<int32_t>() + 6}) {
        LaunchList list(programmatic_);
        out.ranks = ranks;
        launch_exact(list, type, call, 1, picks_.as<RowPick>(), lists_.as<float>(), out);
        launch_report(list, type, call, 1, picks_.as<RowPick>(), totals_.as<RowTotals>(), out);
        enqueue(list, nullptr);
      }
    }
  }

  // Blocks of a call whose rows are shared: what slices_for gives, times the rows, is at most this.
  int64_t max_sliced_blocks() const {
    return int64_t{n_sm_} * std::max(tuning_.greedy_blocks_per_sm, tuning_.blocks_per_sm);
  }

  int32_t slices_for(int64_t n_rows, int32_t vocab, Ways ways) const {
    const int64_t per_sm = ways == Ways::kGreedy ? tuning_.greedy_blocks_per_sm : tuning_.blocks_per_sm;
    const bool lists = ways != Ways::kGreedy && ways != Ways::kNoise;
    const int64_t most = std::min({n_sm_ * per_sm / n_rows, (int64_t{vocab} - 1) / tuning_.min_slice_ids + 1,
                                   int64_t{lists ? tuning_.max_list_slices : tuning_.max_slices}});
    int32_t n = 1;
    while (n * 2 <= most) n *= 2;
    return n;
  }

  static Ways ways_of(const Plan& plan) {
    switch (plan.route) {
      case Route::kGreedy: return Ways::kGreedy;
      case Route::kPlain: return plan.min_p ? Ways::kBoth : Ways::kNoise;
      case Route::kTopP: return Ways::kBoth;
      case Route::kTopK:
      case Route::kTopKTopP: return Ways::kTop;
      default: return Ways::kAll;
    }
  }

  // The way that a step goes. Why its variant's: so few graphs serve all steps, and those that were made ahead are the
  // ones that steps find.
  Plan way_of(const Plan& plan, bool graph) const { return graph && !plan.forced ? variant_plan(plan) : plan; }

  bool takes_graph(cudaStream_t stream) const { return graphs_.enabled() && !is_capturing(stream); }

  void run(const LaunchList& list, bool graph, cudaStream_t stream) {
    if (graph) {
      graphs_.launch(list, stream);
    } else {
      enqueue(list, stream);
    }
  }

  void add_rows(LaunchList& list, const ts_rows& rows, const Plan& plan, const Outputs& out) {
    const int64_t n_rows = static_cast<int64_t>(rows.n_requests) * rows.rows_per_request;
    Call call{};
    call.logits = rows.logits;
    call.row_stride = rows.row_stride;
    call.vocab = rows.vocab;
    call.n_valid = rows.n_valid;
    call.slots = rows.slots;
    call.slots_are_64 = rows.slots_type == TS_INT64;
    call.positions = rows.positions;
    call.positions_are_64 = rows.positions_type == TS_INT64;
    call.allow_mask = rows.allow_mask;
    call.mask_stride = rows.mask_stride;
    call.mask_words = rows.mask_words;
    call.rows_per_request = rows.rows_per_request;
    call.states = pool_.as<RequestState>();
    call.n_slots = config_.n_slots;
    call.features = plan.features();
    call.invalid_token = static_cast<uint32_t>(config_.invalid_token);
    const Ways ways = ways_of(plan);
    call.n_slices = slices_for(n_rows, rows.vocab, ways);
    call.open_rows = open_rows_.as<OpenRows>();
    call.exact_cut = out.n_kept != nullptr ? 1 : 0;
    // Why not where the cut itself is wanted: the cluster kernel finds the token without it.
    const bool clusters = ways == Ways::kBoth && call.exact_cut == 0;
    const int32_t cluster_size = clusters ? cluster_size_for(cluster_, rows.logits_type, rows.vocab, n_rows) : 0;
    if (cluster_size > 0) {
      launch_cluster(list, cluster_, rows.logits_type, call, n_rows, cluster_size, picks_.as<RowPick>(), out);
    } else {
      launch_sample(list, rows.logits_type, ways, call, n_rows, picks_.as<RowPick>(), slices_.as<SlicePick>(),
                    lists_.as<uint64_t>(), out);
    }
    if (cluster_size == 0 && (call.features & (kNeedTopK | kNeedTopP | kNeedMinP)) != 0) {
      launch_exact(
          list, rows.logits_type, call,
          static_cast<int32_t>(std::min<int64_t>(n_rows * kMaxParts, int64_t{n_sm_} * tuning_.exact_blocks_per_sm)),
          picks_.as<RowPick>(), lists_.as<float>(), out);
    }
    if (out.logprobs != nullptr || out.ranks != nullptr || out.n_kept != nullptr) {
      launch_report(list, rows.logits_type, call, n_rows, picks_.as<RowPick>(), totals_.as<RowTotals>(), out);
    }
  }

  ts_config config_;
  int32_t n_sm_;
  Tuning tuning_;
  ProgrammaticLaunch programmatic_;
  ClusterLimits cluster_{};
  int64_t max_rows_;
  DeviceBuffer pool_;
  DeviceBuffer picks_;
  DeviceBuffer totals_;
  DeviceBuffer open_rows_;
  DeviceBuffer slices_;
  DeviceBuffer lists_;
  SlotStaging staging_;
  GraphCache graphs_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const ts_config& config) {
  if (config.device_ordinal >= n_devices()) {
    throw Error(TS_ERROR_DEVICE, "ts_config.device_ordinal = %d: there are %d CUDA devices", config.device_ordinal,
                n_devices());
  }
  const DeviceScope scope(config.device_ordinal);
  int major = 0, minor = 0, n_sm = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, config.device_ordinal), "compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, config.device_ordinal), "compute capability");
  check(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, config.device_ordinal), "multiprocessors");
  return std::make_unique<CudaBackend>(config, n_sm, major * 10 + minor);
}

}  // namespace ts::cuda
