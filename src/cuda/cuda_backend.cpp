// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend owns, and the order of its launches.
#include "cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "cuda/chains.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/tuning.h"

namespace ts::cuda {
namespace {

// New owners on their way to the device. Why a ring: a step must not overwrite what an earlier copy still reads.
class SlotStaging {
 public:
  explicit SlotStaging(int32_t capacity)
      : states_bytes_(static_cast<size_t>(capacity) * sizeof(RequestState)),
        bytes_(states_bytes_ + static_cast<size_t>(capacity) * sizeof(int32_t)),
        device_(bytes_ * kDepth) {
    check(cudaMallocHost(&pinned_, bytes_ * kDepth), "cudaMallocHost");
    for (cudaEvent_t& event : events_)
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~SlotStaging() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaFreeHost(pinned_);
  }

  void write(const std::vector<int32_t>& slots, const std::vector<RequestState>& states, RequestState* pool,
             cudaStream_t stream) {
    const size_t n = slots.size();
    cudaEvent_t event = events_[next_];
    // Waits only when kDepth steps with new owners are still under way.
    check(cudaEventSynchronize(event), "cudaEventSynchronize");
    unsigned char* host = static_cast<unsigned char*>(pinned_) + next_ * bytes_;
    unsigned char* device = device_.as<unsigned char>() + next_ * bytes_;
    std::memcpy(host, states.data(), n * sizeof(RequestState));
    std::memcpy(host + n * sizeof(RequestState), slots.data(), n * sizeof(int32_t));
    check(cudaMemcpyAsync(device, host, n * (sizeof(RequestState) + sizeof(int32_t)), cudaMemcpyHostToDevice, stream),
          "copy of new owners");
    launch_write_slots(reinterpret_cast<const int32_t*>(device + n * sizeof(RequestState)),
                       reinterpret_cast<const RequestState*>(device), static_cast<int32_t>(n), pool, stream);
    check(cudaEventRecord(event, stream), "cudaEventRecord");
    next_ = (next_ + 1) % kDepth;
  }

 private:
  static constexpr size_t kDepth = 4;
  size_t states_bytes_;
  size_t bytes_;
  DeviceBuffer device_;
  void* pinned_ = nullptr;
  cudaEvent_t events_[kDepth] = {};
  size_t next_ = 0;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const ts_config& config, int32_t n_sm, Tuning tuning)
      : config_(config),
        n_sm_(n_sm),
        tuning_(tuning),
        max_rows_(static_cast<int64_t>(config.max_requests) * config.max_rows_per_request),
        pool_(static_cast<size_t>(config.n_slots) * sizeof(RequestState)),
        picks_(static_cast<size_t>(max_rows_) * sizeof(RowPick)),
        totals_(static_cast<size_t>(max_rows_) * sizeof(RowTotals)),
        open_rows_(sizeof(OpenRows) + static_cast<size_t>(max_rows_) * sizeof(uint32_t)),
        slices_(static_cast<size_t>(max_sliced_blocks()) * sizeof(SlicePick)),
        lists_(static_cast<size_t>(max_sliced_blocks()) * kSliceListCapacity * sizeof(uint64_t)),
        staging_(config.max_requests) {
    load_kernels();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  int32_t device() const override { return TS_DEVICE_CUDA; }

  void write_slots(const std::vector<int32_t>& slots, const std::vector<RequestState>& states,
                   ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    staging_.write(slots, states, pool_.as<RequestState>(), stream);
  }

  void sample(const Step& step, const ts_rows& rows, const ts_sample_out& out, ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    run_rows(step, rows, {out.tokens, out.logprobs, out.ranks, out.n_kept, out.row_flags}, stream);
  }

  void verify(const Step& step, const ts_rows& rows, const ts_draft& draft, const ts_verify_out& out,
              ts_stream stream) override {
    const DeviceScope scope(config_.device_ordinal);
    const Outputs results{out.predict, out.logprobs, out.ranks, out.n_kept, out.row_flags};
    run_rows(step, rows, results, stream);
    launch_verify({draft.candidates, draft.candidates_stride, rows.n_requests, rows.rows_per_request, out.predict,
                   out.accept_index, out.accept_length},
                  picks_.as<RowPick>(), results, stream);
  }

 private:
  // Blocks of a call whose rows are shared: slices_for gives fewer than twice the rows' share, and at least two a row.
  int64_t max_sliced_blocks() const {
    return 2 * int64_t{n_sm_} * std::max(tuning_.greedy_blocks_per_sm, tuning_.blocks_per_sm);
  }

  int32_t slices_for(int64_t n_rows, int32_t vocab, Ways ways) const {
    const int64_t per_sm = ways == Ways::kGreedy ? tuning_.greedy_blocks_per_sm : tuning_.blocks_per_sm;
    const bool lists = ways != Ways::kGreedy && ways != Ways::kNoise;
    const int64_t most = std::min({n_sm_ * per_sm / n_rows, (static_cast<int64_t>(vocab) + 2047) / 2048,
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

  void run_rows(const Step& step, const ts_rows& rows, const Outputs& out, cudaStream_t stream) {
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
    call.features = step.plan.features();
    call.invalid_token = static_cast<uint32_t>(config_.invalid_token);
    const Ways ways = ways_of(step.plan);
    call.n_slices = slices_for(n_rows, rows.vocab, ways);
    call.open_rows = open_rows_.as<OpenRows>();
    call.exact_cut = out.n_kept != nullptr ? 1 : 0;
    launch_sample(rows.logits_type, ways, call, n_rows, picks_.as<RowPick>(), slices_.as<SlicePick>(),
                  lists_.as<uint64_t>(), out, stream);
    if ((call.features & (kNeedTopK | kNeedTopP | kNeedMinP)) != 0) {
      // Two blocks a multiprocessor.
      const int64_t n_clusters = std::min<int64_t>(n_rows, std::max(1, n_sm_ * 2 / tuning_.cluster_size));
      launch_exact(rows.logits_type, call, static_cast<int32_t>(n_clusters) * tuning_.cluster_size,
                   tuning_.cluster_size, picks_.as<RowPick>(), out, stream);
    }
    if (out.logprobs != nullptr || out.ranks != nullptr || out.n_kept != nullptr) {
      launch_report(rows.logits_type, call, n_rows, picks_.as<RowPick>(), totals_.as<RowTotals>(), out, stream);
    }
  }

  ts_config config_;
  int32_t n_sm_;
  Tuning tuning_;
  int64_t max_rows_;
  DeviceBuffer pool_;
  DeviceBuffer picks_;
  DeviceBuffer totals_;
  DeviceBuffer open_rows_;
  DeviceBuffer slices_;
  DeviceBuffer lists_;
  SlotStaging staging_;
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
  return std::make_unique<CudaBackend>(config, n_sm, tuning_of(major * 10 + minor));
}

}  // namespace ts::cuda
