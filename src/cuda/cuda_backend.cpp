// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend owns, and the order of its launches.
#include "cuda/cuda_backend.h"

#include <algorithm>

#include "core/error.h"
#include "cuda/chains.h"
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
        programmatic_{capability >= 90, (config.flags & TS_CONFIG_PROGRAMMATIC_LAUNCH) != 0},
        target_blocks_(static_cast<int64_t>(n_sm) * tuning_of(capability).blocks_per_sm),
        max_rows_(static_cast<int64_t>(config.max_requests) * config.max_rows_per_request),
        pool_(static_cast<size_t>(config.n_slots) * sizeof(RequestState)),
        picks_(static_cast<size_t>(max_rows_) * sizeof(RowPick)),
        totals_(static_cast<size_t>(max_rows_) * sizeof(RowTotals)),
        slices_(static_cast<size_t>(sliced_rows()) * kMaxSlices * sizeof(SlicePick)),
        lists_(static_cast<size_t>(sliced_rows()) * kRowListCapacity * sizeof(uint64_t)),
        staging_(config.max_requests, programmatic_.supported),
        graphs_(config.max_graphs) {
    load_kernels();
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
    add_rows(list, rows, features_of(step.plan),
             {out.tokens, out.logprobs, out.ranks, out.n_kept, out.row_flags, out.n_bad_rows});
    run(list, stream);
  }

  void verify(const Step& step, const ts_rows& rows, const ts_draft& draft, const ts_verify_out& out,
              ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    LaunchList list(programmatic_);
    Outputs results{out.predict, out.logprobs, out.ranks, out.n_kept, out.row_flags, nullptr};
    add_rows(list, rows, features_of(step.plan), results);
    // Why only now: rows behind a chain's end do not count.
    results.n_bad_rows = out.n_bad_rows;
    launch_verify(list,
                  {draft.candidates, draft.candidates_stride, rows.n_requests, rows.rows_per_request, out.predict,
                   out.accept_index, out.accept_length},
                  picks_.as<RowPick>(), results);
    run(list, stream);
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
  // Rows are shared by several blocks only when there are at most so many.
  int64_t sliced_rows() const { return std::min(max_rows_, target_blocks_ / 2); }

  int32_t slices_for(int64_t n_rows, int32_t vocab) const {
    if (n_rows > sliced_rows()) return 1;
    const int64_t wanted = (target_blocks_ + n_rows - 1) / n_rows;
    const int64_t useful = (static_cast<int64_t>(vocab) + 2047) / 2048;
    int32_t n = 1;
    while (n < kMaxSlices && n * 2 <= wanted && n * 2 <= useful) n *= 2;
    return n;
  }

  // What the kernels look at. Why the variant's: so few graphs serve all steps, and those that were made ahead are the
  // ones that steps find.
  uint32_t features_of(const Plan& plan) const {
    return graphs_.enabled() && !plan.forced ? variant_features(plan) : plan.features();
  }

  void run(const LaunchList& list, cudaStream_t stream) {
    if (graphs_.enabled() && !is_capturing(stream)) {
      graphs_.launch(list, stream);
    } else {
      enqueue(list, stream);
    }
  }

  void add_rows(LaunchList& list, const ts_rows& rows, uint32_t features, const Outputs& out) {
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
    call.features = features;
    call.invalid_token = static_cast<uint32_t>(config_.invalid_token);
    call.n_slices = slices_for(n_rows, rows.vocab);
    call.exact_cut = out.n_kept != nullptr ? 1 : 0;
    const uint32_t filters = call.features & (kNeedTopK | kNeedTopP | kNeedMinP);
    // Why: on a mixed route, and beside min-p, rows without a filter may stand.
    const bool noise = (call.features & kNeedSample) != 0;
    launch_sample(list, rows.logits_type, {noise, filters != 0}, call, n_rows, picks_.as<RowPick>(),
                  slices_.as<SlicePick>(), lists_.as<uint64_t>(), out);
    if (filters != 0) launch_exact(list, rows.logits_type, call, n_rows, picks_.as<RowPick>(), out);
    if (out.logprobs != nullptr || out.ranks != nullptr || out.n_kept != nullptr) {
      launch_report(list, rows.logits_type, call, n_rows, picks_.as<RowPick>(), totals_.as<RowTotals>(), out);
    }
  }

  ts_config config_;
  ProgrammaticLaunch programmatic_;
  int64_t target_blocks_;
  int64_t max_rows_;
  DeviceBuffer pool_;
  DeviceBuffer picks_;
  DeviceBuffer totals_;
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
