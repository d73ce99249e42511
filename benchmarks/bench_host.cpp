// SPDX-License-Identifier: Apache-2.0
// What calls cost outside a caller's graph: host time of create, the first call, prepare_step, sample and verify, and the
// time a call takes when many are enqueued one after the other, with the sampler's own graphs and without. Prints a table.
// Usage: bench_host [--commit NAME]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "tssample.h"

namespace {

using ts::bench::check;

constexpr int32_t kVocab = 128256;
constexpr int kCalls = 200;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Kind {
  const char* name;
  int32_t top_k;
  float top_p;
  bool logprobs;
};
constexpr Kind kKinds[] = {
    {"plain", 0, 1.0f, false}, {"top_k", 50, 1.0f, false}, {"top_p", 0, 0.9f, false}, {"plain+logprob", 0, 1.0f, true}};

struct Arrays {
  uint16_t* logits;
  int32_t* slots;
  int32_t* tokens;
  float* logprobs;
};

void time_steps(int32_t max_graphs, int32_t n_requests, const Arrays& arrays, cudaStream_t stream) {
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CUDA;
  config.vocab_size = kVocab;
  config.max_graphs = max_graphs;
  const double begin = now_us();
  ts_sampler* sampler = nullptr;
  check(ts_sampler_create(&config, &sampler), "create");
  const double created = now_us();
  std::vector<uint64_t> ids(static_cast<size_t>(n_requests));
  std::vector<int32_t> slots(ids.size());
  std::vector<ts_request_params> params(ids.size());
  uint64_t next_id = 1;
  double first = 0;
  const auto prepare = [&](const Kind& kind, bool fresh) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (fresh) ids[i] = next_id++;
      slots[i] = static_cast<int32_t>(i);
      params[i] = TS_REQUEST_PARAMS_INIT;
      params[i].top_k = kind.top_k;
      params[i].top_p = kind.top_p;
    }
    ts_step step{};
    step.struct_size = sizeof(step);
    step.n_requests = n_requests;
    step.request_ids = ids.data();
    step.slots = slots.data();
    step.params = params.data();
    const double start = now_us();
    check(ts_sampler_prepare_step(sampler, &step, stream), "prepare_step");
    return now_us() - start;
  };
  for (const Kind& kind : kKinds) {
    std::vector<double> fresh, known, host;
    for (int i = 0; i < 50; ++i) {
      fresh.push_back(prepare(kind, true));
      known.push_back(prepare(kind, false));
      check(cudaStreamSynchronize(stream), "prepare");
    }
    ts_rows rows{};
    rows.struct_size = sizeof(rows);
    rows.n_requests = n_requests;
    rows.logits = arrays.logits;
    rows.logits_type = TS_BF16;
    rows.slots = arrays.slots;
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = arrays.tokens;
    out.logprobs = kind.logprobs ? arrays.logprobs : nullptr;
    const auto sample = [&] {
      const double start = now_us();
      check(ts_sampler_sample(sampler, &rows, &out, stream), "sample");
      return now_us() - start;
    };
    const double start = sample();
    if (first == 0) first = start;
    check(cudaStreamSynchronize(stream), "first call");
    // Why in small runs: a full queue would make the host wait.
    for (int i = 0; i < kCalls; ++i) {
      host.push_back(sample());
      if (i % 20 == 19) check(cudaStreamSynchronize(stream), "calls");
    }
    cudaEvent_t from, to;
    check(cudaEventCreate(&from), "event");
    check(cudaEventCreate(&to), "event");
    check(cudaEventRecord(from, stream), "record");
    for (int i = 0; i < kCalls; ++i) sample();
    check(cudaEventRecord(to, stream), "record");
    check(cudaEventSynchronize(to), "calls");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from, to), "elapsed");
    std::printf("| %s | %d | %s | %.1f | %.1f | %.1f | %.1f |\n", max_graphs < 0 ? "launches" : "own graphs",
                n_requests, kind.name, median(host), static_cast<double>(ms) * 1000.0 / kCalls, median(known),
                median(fresh));
    cudaEventDestroy(from);
    cudaEventDestroy(to);
  }
  std::printf("| %s | %d | create %.0f us, first sample() %.0f us | | | | |\n",
              max_graphs < 0 ? "launches" : "own graphs", n_requests, created - begin, first);
  ts_sampler_destroy(sampler);
}

}  // namespace

int main(int argc, char** argv) {
  std::string commit = "unknown";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--commit") == 0) commit = argv[i + 1];
  }
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "properties");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  Arrays arrays{};
  check(cudaMalloc(reinterpret_cast<void**>(&arrays.logits), size_t{256} * kVocab * 2), "logits");
  check(cudaMemset(arrays.logits, 0x3F, size_t{256} * kVocab * 2), "logits");
  check(cudaMalloc(reinterpret_cast<void**>(&arrays.slots), 1024), "slots");
  check(cudaMalloc(reinterpret_cast<void**>(&arrays.tokens), 1024), "tokens");
  check(cudaMalloc(reinterpret_cast<void**>(&arrays.logprobs), 1024), "logprobs");
  std::vector<int32_t> identity(256);
  for (int32_t i = 0; i < 256; ++i) identity[static_cast<size_t>(i)] = i;
  check(cudaMemcpy(arrays.slots, identity.data(), 1024, cudaMemcpyHostToDevice), "slots");
  std::printf("%s, commit %s, us: medians\n\n", properties.name, commit.c_str());
  std::printf("| way | requests | step | host of sample() | eager call | prepare_step, known | prepare_step, new |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const int32_t n_requests : {1, 256}) {
    for (const int32_t max_graphs : {-1, 0}) time_steps(max_graphs, n_requests, arrays, stream);
  }
  return 0;
}
