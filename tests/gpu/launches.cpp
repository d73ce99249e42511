// SPDX-License-Identifier: Apache-2.0
// How calls reach the GPU: the sampler's graphs, the caller's captures, launches one by one, new owners in and out of
// captures, the counter of bad rows, broadcasts. Every answer is compared with the CPU backend's. Ends in a line of
// passed and failed checks, and with 1 if one failed; without a GPU it says skipped and ends with 77.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tssample.h"

namespace {

constexpr int32_t kVocab = 5000;
constexpr int32_t kSlots = 64;
constexpr int32_t kMaxRequests = 48;
constexpr int32_t kRowsPerRequest = 3;
constexpr size_t kMaxRows = size_t{kMaxRequests} * kRowsPerRequest;

int n_passed = 0;
int n_failed = 0;

void expect(bool ok, const std::string& what) {
  ++(ok ? n_passed : n_failed);
  if (!ok) std::printf("FAILED: %s (%s)\n", what.c_str(), ts_last_error());
}

// What must work for the rest to mean anything.
void need(bool ok, const char* what) {
  if (ok) return;
  std::printf("FAILED: %s (%s, %s)\n", what, ts_last_error(), cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}
void need(cudaError_t error, const char* what) { need(error == cudaSuccess, what); }
void need(ts_status status, const char* what) { need(status == TS_OK, what); }

// The arrays of a call, on the host or on the device.
struct Arrays {
  float* logits;  // [kMaxRows, kVocab]
  int32_t* slots;
  int64_t* positions;
  int32_t* candidates;
  int32_t *tokens, *ranks, *index, *length;
  uint32_t* n_bad_rows;
};

template <class T>
void allocate(T*& data, size_t n, bool on_device) {
  void* p = nullptr;
  if (on_device) {
    need(cudaMalloc(&p, n * sizeof(T)), "cudaMalloc");
    need(cudaMemset(p, 0, n * sizeof(T)), "cudaMemset");
  } else {
    p = std::calloc(n, sizeof(T));
  }
  data = static_cast<T*>(p);
}

Arrays allocate_arrays(bool on_device) {
  Arrays a;
  allocate(a.logits, kMaxRows * kVocab, on_device);
  allocate(a.slots, kMaxRequests, on_device);
  allocate(a.positions, kMaxRequests, on_device);
  allocate(a.candidates, kMaxRows, on_device);
  allocate(a.tokens, kMaxRows, on_device);
  allocate(a.ranks, kMaxRows, on_device);
  allocate(a.index, kMaxRows, on_device);
  allocate(a.length, kMaxRequests, on_device);
  allocate(a.n_bad_rows, 1, on_device);
  return a;
}

struct Call {
  bool verify = false;
  bool ranks = false;
  int32_t n_requests = 0;
};

ts_status run(ts_sampler* sampler, const Arrays& a, const Call& call, cudaStream_t stream) {
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = call.n_requests;
  rows.logits = a.logits;
  rows.slots = a.slots;
  rows.positions = a.positions;
  rows.positions_type = TS_INT64;
  if (!call.verify) {
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = a.tokens;
    out.ranks = call.ranks ? a.ranks : nullptr;
    out.n_bad_rows = a.n_bad_rows;
    return ts_sampler_sample(sampler, &rows, &out, stream);
  }
  ts_draft draft{};
  draft.struct_size = sizeof(draft);
  draft.candidates = a.candidates;
  ts_verify_out out{};
  out.struct_size = sizeof(out);
  out.predict = a.tokens;
  out.accept_index = a.index;
  out.accept_length = a.length;
  out.ranks = call.ranks ? a.ranks : nullptr;
  out.n_bad_rows = a.n_bad_rows;
  return ts_sampler_verify(sampler, &rows, &draft, &out, stream);
}

const char* const kVariants[] = {"default", "plain", "top_p", "top_k", "top_k_top_p"};

ts_request_params params_of(const std::string& variant, int32_t request, uint64_t seed) {
  ts_request_params p = TS_REQUEST_PARAMS_INIT;
  p.flags = TS_PARAMS_SEEDED;
  p.seed = seed;
  const bool mixed = variant == "default";
  if (mixed && request % 5 == 4) p.temperature = 0.0f;
  if (variant.find("top_k") == 0 || (mixed && request % 5 == 1)) p.top_k = 20 + request;
  if (variant.find("top_p") != std::string::npos || (mixed && request % 5 == 2)) p.top_p = 0.9f;
  if (mixed && request % 5 == 3) p.min_p = 0.05f;
  return p;
}

// A GPU sampler and the CPU's beside it, with two sets of arrays for each.
class Rig {
 public:
  Rig(int32_t max_graphs, uint64_t flags) {
    ts_config config{};
    config.struct_size = sizeof(config);
    config.vocab_size = kVocab;
    config.n_slots = kSlots;
    config.max_requests = kMaxRequests;
    config.max_graphs = max_graphs;
    config.flags = flags;
    config.device = TS_DEVICE_CPU;
    need(ts_sampler_create(&config, &cpu), "create on the CPU");
    config.device = TS_DEVICE_CUDA;
    need(ts_sampler_create(&config, &gpu), "create on the GPU");
    need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    for (int b = 0; b < 2; ++b) {
      host[b] = allocate_arrays(false);
      device[b] = allocate_arrays(true);
      std::normal_distribution<float> normal(0.0f, 2.5f);
      for (size_t i = 0; i < kMaxRows * kVocab; ++i) host[b].logits[i] = normal(random_);
      for (size_t r = 0; r < kMaxRows; r += 7) host[b].logits[r * kVocab + r] = NAN;
      copy(device[b].logits, host[b].logits, kMaxRows * kVocab);
    }
  }
  ~Rig() {
    ts_sampler_destroy(cpu);
    ts_sampler_destroy(gpu);
    cudaStreamDestroy(stream);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  // New requests in new places, on both.
  void prepare(const std::string& variant, int32_t n_requests) {
    std::vector<uint64_t> ids;
    std::vector<ts_request_params> params;
    slots_.clear();
    for (int32_t i = 0; i < n_requests; ++i) {
      ids.push_back(++last_id_);
      slots_.push_back((i * 5 + static_cast<int32_t>(last_id_ - static_cast<uint64_t>(i))) % kSlots);
      params.push_back(params_of(variant, i, random_()));
    }
    // 5 and 64 have no common divisor, so no slot comes twice.
    ts_step step{};
    step.struct_size = sizeof(step);
    step.n_requests = n_requests;
    step.rows_per_request = kRowsPerRequest;
    step.request_ids = ids.data();
    step.slots = slots_.data();
    step.params = params.data();
    need(ts_sampler_prepare_step(cpu, &step, nullptr), "prepare_step on the CPU");
    need(ts_sampler_prepare_step(gpu, &step, stream), "prepare_step on the GPU");
  }

  // Slots, positions and drafts of the step, in both arrays b; half of the drafts are what is sampled.
  void fill(int b, const Call& call, int64_t position) {
    const auto n = static_cast<size_t>(call.n_requests);
    for (size_t i = 0; i < n; ++i) {
      host[b].slots[i] = slots_[i];
      host[b].positions[i] = position + static_cast<int64_t>(i);
    }
    need(run(cpu, host[b], {false, false, call.n_requests}, nullptr), "sample on the CPU");
    for (size_t r = 0; r < n * kRowsPerRequest; ++r) {
      const bool right = r % kRowsPerRequest > 0 && random_() % 2 == 0;
      host[b].candidates[r] = right ? host[b].tokens[r - 1] : 1;
    }
    copy(device[b].slots, host[b].slots, n);
    copy(device[b].positions, host[b].positions, n);
    copy(device[b].candidates, host[b].candidates, n * kRowsPerRequest);
  }

  // Whether the GPU's results of a call are the CPU's.
  bool same(int b, const Call& call) {
    need(cudaStreamSynchronize(stream), "synchronise");
    *host[b].n_bad_rows = 0;
    need(run(cpu, host[b], call, nullptr), "call on the CPU");
    const auto n = static_cast<size_t>(call.n_requests);
    bool all = equal(host[b].tokens, device[b].tokens, n * kRowsPerRequest);
    if (call.ranks) all &= equal(host[b].ranks, device[b].ranks, n * kRowsPerRequest);
    if (call.verify) all &= equal(host[b].index, device[b].index, n * kRowsPerRequest);
    if (call.verify) all &= equal(host[b].length, device[b].length, n);
    return all;
  }
  // The counter of b counted the call once more than it was cleared.
  bool counted(int b) { return equal(host[b].n_bad_rows, device[b].n_bad_rows, 1); }
  void clear_counter(int b) { need(cudaMemsetAsync(device[b].n_bad_rows, 0, 4, stream), "cudaMemsetAsync"); }

  template <class T>
  static void copy(T* to, const T* from, size_t n) {
    need(cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyDefault), "cudaMemcpy");
  }
  template <class T>
  static bool equal(const T* a, const T* b, size_t n) {
    std::vector<T> copied(n);
    copy(copied.data(), b, n);
    return std::memcmp(a, copied.data(), n * sizeof(T)) == 0;
  }

  ts_sampler* cpu = nullptr;
  ts_sampler* gpu = nullptr;
  cudaStream_t stream = nullptr;
  Arrays host[2];
  Arrays device[2];

 private:
  std::mt19937_64 random_{7};
  std::vector<int32_t> slots_;
  uint64_t last_id_ = 0;
};

// Every kind of step and call, with new arrays and batch sizes all the time.
void check_steps(int32_t max_graphs, uint64_t flags) {
  Rig rig(max_graphs, flags);
  int64_t position = 0;
  for (int round = 0; round < 60; ++round) {
    const char* variant = kVariants[round % 5];
    const Call call{round % 3 == 1, round % 4 == 2, 1 + round * 11 % kMaxRequests};
    rig.prepare(variant, call.n_requests);
    for (int b = 0; b < 2; ++b) {
      rig.fill(b, call, position += 100);
      rig.clear_counter(b);
      need(run(rig.gpu, rig.device[b], call, rig.stream), "call on the GPU");
      const std::string name = std::string(variant) + ", graphs " + std::to_string(max_graphs) + ", flags " +
                               std::to_string(flags) + ", " + std::to_string(call.n_requests) + " requests" +
                               (call.verify ? ", verify" : "");
      expect(rig.same(b, call), name);
      expect(rig.counted(b), name + ": n_bad_rows");
    }
  }
}

// Graphs made ahead of the first step, then a hundred calls at advancing positions.
void check_ahead() {
  Rig rig(0, 0);
  const Call call{false, false, 9};
  rig.prepare("plain", call.n_requests);
  rig.fill(0, call, 0);
  for (const char* variant : kVariants) {
    need(ts_sampler_prepare_capture(rig.gpu, call.n_requests, kRowsPerRequest, variant, rig.stream), "prepare_capture");
    need(run(rig.gpu, rig.device[0], call, rig.stream), "call ahead");
  }
  need(ts_sampler_reset_capture(rig.gpu, rig.stream), "reset_capture");
  for (int i = 0; i < 100; ++i) {
    rig.prepare(kVariants[i % 5], call.n_requests);
    rig.fill(i % 2, call, i);
    need(run(rig.gpu, rig.device[i % 2], call, rig.stream), "call");
    expect(rig.same(i % 2, call), "replay " + std::to_string(i) + " of graphs made ahead");
  }
}

cudaGraphExec_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  need(cudaStreamEndCapture(stream, &graph), "end of the capture");
  need(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  need(cudaGraphDestroy(graph), "destroy");
  return exec;
}

// The caller's own captures: the sampler's first call is in one. Replays follow slots, positions and owners.
void check_captures(bool verify, uint64_t flags) {
  for (const char* variant : kVariants) {
    Rig rig(0, flags);
    const Call call{verify, true, 7};
    const std::string name = verify ? std::string("verify_") + variant : variant;
    need(ts_sampler_prepare_capture(rig.gpu, call.n_requests, kRowsPerRequest, name.c_str(), rig.stream), "variant");
    need(cudaStreamBeginCapture(rig.stream, cudaStreamCaptureModeGlobal), "begin of the capture");
    need(run(rig.gpu, rig.device[0], call, rig.stream), "call in a capture");
    cudaGraphExec_t exec = end_capture(rig.stream);
    need(ts_sampler_reset_capture(rig.gpu, rig.stream), "reset_capture");
    for (int i = 0; i < 100; ++i) {
      if (i % 10 == 0) rig.prepare(variant, call.n_requests);
      expect(ts_sampler_step_variant(rig.gpu, verify ? TS_CALL_VERIFY : TS_CALL_SAMPLE) == name, name + ": its name");
      rig.fill(0, call, i * 3);
      need(cudaGraphLaunch(exec, rig.stream), "replay");
      expect(rig.same(0, call), name + ", captured, replay " + std::to_string(i));
    }
    need(cudaGraphExecDestroy(exec), "destroy");
  }
}

// New owners while the stream is captured: written by each replay.
void check_owners_in_capture() {
  Rig rig(0, 0);
  const Call call{false, false, 40};
  need(cudaStreamBeginCapture(rig.stream, cudaStreamCaptureModeGlobal), "begin of the capture");
  rig.prepare("top_k", call.n_requests);
  cudaGraphExec_t exec = end_capture(rig.stream);
  need(cudaGraphLaunch(exec, rig.stream), "replay");
  rig.fill(0, call, 5);
  need(run(rig.gpu, rig.device[0], call, rig.stream), "call");
  expect(rig.same(0, call), "owners that a capture wrote");
  need(cudaGraphExecDestroy(exec), "destroy");
}

void sleep_on_stream(void*) { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

// Many steps with new owners behind a stream that is held up: none waits, and the last owners count.
void check_busy_ring() {
  Rig rig(0, 0);
  const Call call{false, false, kMaxRequests};
  need(cudaLaunchHostFunc(rig.stream, sleep_on_stream, nullptr), "host function");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 12; ++i) rig.prepare("default", call.n_requests);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  expect(took.count() < 0.15, "12 steps with new owners took " + std::to_string(took.count()) + " s");
  need(cudaStreamSynchronize(rig.stream), "synchronise");
  rig.fill(0, call, 1);
  need(run(rig.gpu, rig.device[0], call, rig.stream), "call");
  expect(rig.same(0, call), "owners behind a busy ring");
  // And the ring is free again.
  for (int i = 0; i < 9; ++i) {
    rig.prepare("top_p", call.n_requests);
    rig.fill(0, call, i);
    need(run(rig.gpu, rig.device[0], call, rig.stream), "call");
    expect(rig.same(0, call), "owners through the ring again");
  }
}

struct Wire {
  int32_t* tokens;  // DEVICE: rank 0's
  int n_calls = 0;
};

ts_status receive(void* user, void* data, size_t n_bytes, ts_stream stream) {
  Wire& wire = *static_cast<Wire*>(user);
  ++wire.n_calls;
  const cudaError_t error = cudaMemcpyAsync(data, wire.tokens, n_bytes, cudaMemcpyDeviceToDevice, stream);
  return error == cudaSuccess ? TS_OK : TS_ERROR_CUDA;
}

// A callback that puts rank 0's tokens in place, behind a graph and in a capture.
void check_broadcast() {
  Rig rig(0, 0);
  const Call call{false, false, 6};
  Wire wire{rig.device[1].tokens};
  ts_broadcast broadcast{};
  broadcast.struct_size = sizeof(broadcast);
  broadcast.n_ranks = 2;
  broadcast.rank = 1;
  broadcast.callback = receive;
  broadcast.user = &wire;
  std::vector<int32_t> sent(kMaxRows, 77);
  Rig::copy(wire.tokens, sent.data(), kMaxRows);
  need(ts_sampler_set_broadcast(rig.gpu, &broadcast), "set_broadcast");
  rig.prepare("plain", call.n_requests);
  rig.fill(0, call, 3);
  for (int i = 0; i < 2; ++i) need(run(rig.gpu, rig.device[0], call, rig.stream), "call");
  need(cudaStreamSynchronize(rig.stream), "synchronise");
  expect(wire.n_calls == 2, "the callback is called once an array");
  expect(Rig::equal(sent.data(), rig.device[0].tokens, 6 * kRowsPerRequest), "broadcast behind a graph");
  need(cudaStreamBeginCapture(rig.stream, cudaStreamCaptureModeGlobal), "begin of the capture");
  need(run(rig.gpu, rig.device[0], call, rig.stream), "call in a capture");
  cudaGraphExec_t exec = end_capture(rig.stream);
  sent.assign(kMaxRows, 88);
  Rig::copy(wire.tokens, sent.data(), kMaxRows);
  need(cudaGraphLaunch(exec, rig.stream), "replay");
  need(cudaStreamSynchronize(rig.stream), "synchronise");
  expect(Rig::equal(sent.data(), rig.device[0].tokens, 6 * kRowsPerRequest), "broadcast in a capture");
  need(cudaGraphExecDestroy(exec), "destroy");
}

// The default stream, with and without graphs.
void check_default_stream() {
  for (const int32_t max_graphs : {0, -1}) {
    Rig rig(max_graphs, 0);
    const Call call{true, true, 5};
    need(cudaStreamDestroy(rig.stream), "destroy");
    rig.stream = nullptr;
    rig.prepare("default", call.n_requests);
    rig.fill(0, call, 9);
    need(run(rig.gpu, rig.device[0], call, nullptr), "call");
    expect(rig.same(0, call), "the default stream, graphs " + std::to_string(max_graphs));
    need(cudaStreamCreate(&rig.stream), "stream");
  }
}

}  // namespace

int main() {
  ts_capabilities capabilities{};
  capabilities.struct_size = sizeof(capabilities);
  need(ts_get_capabilities(&capabilities), "capabilities");
  if (capabilities.n_cuda_devices == 0) {
    std::printf("skipped: no GPU\n");
    return 77;
  }
  for (const bool verify : {false, true}) {
    for (const uint64_t flags : {uint64_t{0}, uint64_t{TS_CONFIG_PROGRAMMATIC_LAUNCH}, uint64_t{TS_CONFIG_CLUSTERS}})
      check_captures(verify, flags);
  }
  for (const int32_t max_graphs : {0, -1, 1}) {
    for (const uint64_t flags : {uint64_t{0}, uint64_t{TS_CONFIG_PROGRAMMATIC_LAUNCH}, uint64_t{TS_CONFIG_CLUSTERS}})
      check_steps(max_graphs, flags);
  }
  check_ahead();
  check_owners_in_capture();
  check_busy_ring();
  check_broadcast();
  check_default_stream();
  std::printf("launches: %d passed, %d failed\n", n_passed, n_failed);
  return n_failed == 0 ? 0 : 1;
}
