// SPDX-License-Identifier: Apache-2.0
// Times sample and verify on a GPU as CUDA-graph replays over inputs that rotate through more than the L2 cache, beside
// `read` (read_kernel.cuh) and an earlier run. Prints a table and writes JSON; table.py makes RESULTS.md's tables of it.
// Usage: bench_sampler [--real FILE.bf16] [--json OUT] [--earlier JSON] [--rows 1,32,512] [--types bf16,fp32,fp16]
//                      [--data real,synthetic,flat] [--ops plain,top_p] [--flags TS_CONFIG_BITS] [--commit NAME]
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "read_kernel.cuh"
#include "tssample.h"

namespace {

using ts::bench::check;

constexpr int32_t kVocab = 128256;
constexpr int32_t kMaskWords = kVocab / 32;
constexpr size_t kRotation = size_t{256} << 20;
constexpr int kReplays = 15;

bool contains(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

struct Op {
  const char* name;
  bool logprobs, mask;
  int32_t rows_per_request;
  // Parameters of request r.
  ts_request_params (*params)(int32_t r);
};

ts_request_params base() {
  ts_request_params p = TS_REQUEST_PARAMS_INIT;
  return p;
}
ts_request_params greedy(int32_t) {
  ts_request_params p = base();
  p.temperature = 0.0f;
  return p;
}
ts_request_params plain(int32_t) { return base(); }
ts_request_params top_k(int32_t) {
  ts_request_params p = base();
  p.top_k = 50;
  return p;
}
ts_request_params top_k_top_p(int32_t) {
  ts_request_params p = top_k(0);
  p.top_p = 0.9f;
  return p;
}
ts_request_params top_k100_top_p(int32_t) {
  ts_request_params p = top_k_top_p(0);
  p.top_k = 100;
  return p;
}
ts_request_params top_p(int32_t) {
  ts_request_params p = base();
  p.top_p = 0.9f;
  return p;
}
ts_request_params min_p(int32_t) {
  ts_request_params p = base();
  p.min_p = 0.05f;
  return p;
}
ts_request_params mixed(int32_t r) {
  switch (r % 4) {
    case 0: return plain(r);
    case 1: return top_k(r);
    case 2: return top_p(r);
    default: return top_k_top_p(r);
  }
}

// Masked rows may take half of the ids, drawn for each row.
constexpr Op kOps[] = {{"greedy", false, false, 1, greedy},
                       {"plain", false, false, 1, plain},
                       {"top_k", false, false, 1, top_k},
                       {"top_k_top_p", false, false, 1, top_k_top_p},
                       {"top_k100_top_p", false, false, 1, top_k100_top_p},
                       {"top_p", false, false, 1, top_p},
                       {"min_p", false, false, 1, min_p},
                       {"mixed", false, false, 1, mixed},
                       {"plain+logprob", true, false, 1, plain},
                       {"top_p+logprob", true, false, 1, top_p},
                       {"plain+mask", false, true, 1, plain},
                       {"top_p+mask", false, true, 1, top_p},
                       {"verify4", false, false, 4, plain}};

struct Times {
  double median, p5, p95;
};

// Replays a graph of n_calls calls; microseconds a call.
template <class Enqueue>
Times time_graph(cudaStream_t stream, int n_calls, const Enqueue& enqueue) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  for (int i = 0; i < n_calls; ++i) enqueue(i);
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<double> us;
  for (int r = 0; r < kReplays + 2; ++r) {
    check(cudaEventRecord(begin, stream), "record");
    check(cudaGraphLaunch(exec, stream), "launch");
    check(cudaEventRecord(end, stream), "record");
    check(cudaEventSynchronize(end), "replay");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "elapsed");
    if (r >= 2) us.push_back(ms * 1000.0 / n_calls);
  }
  std::sort(us.begin(), us.end());
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return {us[us.size() / 2], us[us.size() / 20], us[us.size() - 1 - us.size() / 20]};
}

uint16_t to_fp16(uint16_t bf16) {
  const uint32_t word = static_cast<uint32_t>(bf16) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return __half_as_ushort(__float2half(value));
}

// The cells of an earlier run's JSON.
class Earlier {
 public:
  explicit Earlier(const std::string& file) {
    if (file.empty()) return;
    std::ifstream in(file);
    const nlohmann::json report = nlohmann::json::parse(in, nullptr, false);
    if (report.is_discarded()) {
      std::fprintf(stderr, "--earlier %s: not an earlier run's JSON\n", file.c_str());
      std::exit(1);
    }
    for (const auto& row : report["rows"]) us_[name(row["data"], row["type"], row["rows"], row["op"])] = row["us"];
  }
  // "", or what the cell took.
  std::string operator()(const std::string& data, const std::string& type, int n_rows, const std::string& op) const {
    const auto found = us_.find(name(data, type, n_rows, op));
    if (found == us_.end()) return "";
    char text[32];
    std::snprintf(text, sizeof(text), "  was %.2f", found->second);
    return text;
  }

 private:
  static std::string name(const std::string& data, const std::string& type, int n_rows, const std::string& op) {
    return data + " " + type + " " + std::to_string(n_rows) + " " + op;
  }
  std::map<std::string, double> us_;
};

std::vector<uint16_t> make_rows(const std::string& data, const std::string& real_file) {
  std::vector<uint16_t> rows;
  if (data == "real") {
    std::ifstream in(real_file, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
    rows.resize(bytes.size() / 2);
    std::memcpy(rows.data(), bytes.data(), rows.size() * 2);
    if (rows.empty()) {
      std::fprintf(stderr, "no real rows: give --real FILE\n");
      std::exit(1);
    }
    return rows;
  }
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::exponential_distribution<float> raise(0.25f);
  rows.resize(size_t{64} * kVocab);
  for (uint16_t& bits : rows) {
    float v = data == "flat" ? 1.0f : normal(random) + (random() % 1024 == 0 ? raise(random) : 0.0f);
    uint32_t word;
    std::memcpy(&word, &v, 4);
    bits = static_cast<uint16_t>((word + 0x8000u) >> 16);
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  std::string real, json_file, earlier_file, commit = "unknown";
  uint64_t flags = 0;
  std::string want_rows = "1,8,32,128,256,512", want_types = "bf16,fp32", want_data = "real,synthetic,flat", want_ops;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--real") real = argv[i + 1];
    if (option == "--json") json_file = argv[i + 1];
    if (option == "--rows") want_rows = argv[i + 1];
    if (option == "--types") want_types = argv[i + 1];
    if (option == "--data") want_data = argv[i + 1];
    if (option == "--ops") want_ops = argv[i + 1];
    if (option == "--commit") commit = argv[i + 1];
    if (option == "--earlier") earlier_file = argv[i + 1];
    if (option == "--flags") flags = std::strtoull(argv[i + 1], nullptr, 0);
  }
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "properties");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  nlohmann::json report;
  report["machine"] = properties.name;
  report["commit"] = commit;
  report["flags"] = flags;
  const Earlier earlier(earlier_file);
  std::printf("# %s, commit %s, us a call: median (p5 p95), x = ratio to read\n", properties.name, commit.c_str());

  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CUDA;
  config.vocab_size = kVocab;
  config.flags = flags;
  ts_sampler* sampler = nullptr;
  check(ts_sampler_create(&config, &sampler), "create");
  uint64_t next_id = 1;
  int32_t *tokens, *index, *length, *candidates, *slots, *positions, *read_out, *mask;
  float* logprobs;
  for (int32_t** array : {&tokens, &index, &length, &candidates, &slots, &positions, &read_out}) {
    check(cudaMalloc(array, 4096 * 4), "alloc");
    check(cudaMemset(*array, 0, 4096 * 4), "clear");
  }
  check(cudaMalloc(&logprobs, 4096 * 4), "alloc");
  std::vector<int32_t> identity(1024);
  for (int32_t i = 0; i < 1024; ++i) identity[static_cast<size_t>(i)] = i;
  check(cudaMemcpy(slots, identity.data(), 4096, cudaMemcpyHostToDevice), "slots");

  std::vector<uint32_t> allowed(size_t{512} * kMaskWords);
  std::mt19937 half(11);
  for (uint32_t& word : allowed) word = half();
  check(cudaMalloc(&mask, allowed.size() * 4), "alloc");
  check(cudaMemcpy(mask, allowed.data(), allowed.size() * 4, cudaMemcpyHostToDevice), "mask");

  for (const std::string data : {"real", "synthetic", "flat"}) {
    if (!contains(want_data, data)) continue;
    const std::vector<uint16_t> source = make_rows(data, real);
    for (const std::string type : {"bf16", "fp32", "fp16"}) {
      if (!contains(want_types, type)) continue;
      const size_t element = type == "fp32" ? 4 : 2;
      for (const int n_rows : {1, 8, 32, 128, 256, 512}) {
        if (!contains(want_rows, std::to_string(n_rows))) continue;
        const size_t bytes = static_cast<size_t>(n_rows) * kVocab * element;
        const int n_buffers = static_cast<int>(std::max<size_t>(2, (kRotation + bytes - 1) / bytes));
        const int n_calls = std::max(8, n_buffers);
        std::vector<unsigned char> host(bytes);
        unsigned char* device;
        check(cudaMalloc(&device, bytes * static_cast<size_t>(n_buffers)), "logits");
        for (int b = 0; b < n_buffers; ++b) {
          for (size_t r = 0; r < static_cast<size_t>(n_rows); ++r) {
            const size_t from = (static_cast<size_t>(b) * 31 + r) * kVocab % source.size();
            if (type == "fp16") {
              uint16_t* to = reinterpret_cast<uint16_t*>(host.data()) + r * kVocab;
              for (size_t i = 0; i < kVocab; ++i) to[i] = to_fp16(source[from + i]);
            } else if (type == "bf16") {
              std::memcpy(host.data() + r * kVocab * 2, source.data() + from, kVocab * 2);
            } else {
              uint32_t* to = reinterpret_cast<uint32_t*>(host.data()) + r * kVocab;
              for (size_t i = 0; i < kVocab; ++i) to[i] = static_cast<uint32_t>(source[from + i]) << 16;
            }
          }
          check(cudaMemcpy(device + static_cast<size_t>(b) * bytes, host.data(), bytes, cudaMemcpyHostToDevice),
                "fill");
        }
        const auto logits = [&](int i) { return device + static_cast<size_t>(i % n_buffers) * bytes; };
        int32_t slices = 1;
        while (slices < 64 && n_rows * slices < properties.multiProcessorCount * 6) slices *= 2;
        const Times read = time_graph(stream, n_calls, [&](int i) {
          if (element == 2) {  // fp16 too: what the maximum is does not matter here
            ts::bench::read_kernel<true><<<n_rows * slices, 256, 0, stream>>>(logits(i), kVocab * 2, slices, read_out);
          } else {
            ts::bench::read_kernel<false><<<n_rows * slices, 256, 0, stream>>>(logits(i), kVocab * 4, slices, read_out);
          }
        });
        std::printf("%-9s %s rows %3d  %-14s %8.2f (%.2f %.2f)  %.0f GB/s\n", data.c_str(), type.c_str(), n_rows,
                    "read", read.median, read.p5, read.p95, static_cast<double>(bytes) / read.median * 1e-3);
        for (const Op& op : kOps) {
          if (!want_ops.empty() && !contains(want_ops, op.name)) continue;
          if (n_rows % op.rows_per_request != 0) continue;
          const int32_t n_requests = n_rows / op.rows_per_request;
          std::vector<ts_request_params> params;
          std::vector<uint64_t> ids;
          for (int32_t r = 0; r < n_requests; ++r) {
            params.push_back(op.params(r));
            ids.push_back(next_id++);
          }
          ts_step step{};
          step.struct_size = sizeof(step);
          step.n_requests = n_requests;
          step.rows_per_request = op.rows_per_request;
          step.request_ids = ids.data();
          step.slots = identity.data();
          step.params = params.data();
          check(ts_sampler_prepare_step(sampler, &step, stream), "prepare_step");
          check(cudaStreamSynchronize(stream), "prepare");
          double host_us = 1e9;
          const Times times = time_graph(stream, n_calls, [&](int i) {
            ts_rows rows{};
            rows.struct_size = sizeof(rows);
            rows.n_requests = n_requests;
            rows.logits = logits(i);
            rows.logits_type = type == "bf16" ? TS_BF16 : type == "fp16" ? TS_FP16 : TS_FP32;
            rows.slots = slots;
            rows.positions = positions;
            if (op.mask) rows.allow_mask = mask;
            const auto begin = std::chrono::steady_clock::now();
            if (op.rows_per_request > 1) {
              ts_draft draft{};
              draft.struct_size = sizeof(draft);
              draft.candidates = candidates;
              ts_verify_out out{};
              out.struct_size = sizeof(out);
              out.predict = tokens;
              out.accept_index = index;
              out.accept_length = length;
              check(ts_sampler_verify(sampler, &rows, &draft, &out, stream), "verify");
            } else {
              ts_sample_out out{};
              out.struct_size = sizeof(out);
              out.tokens = tokens;
              if (op.logprobs) out.logprobs = logprobs;
              check(ts_sampler_sample(sampler, &rows, &out, stream), "sample");
            }
            host_us = std::min(
                host_us, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
          });
          std::printf("%-9s %s rows %3d  %-14s %8.2f (%.2f %.2f)  %.0f GB/s  x%.2f  host %.1f%s\n", data.c_str(),
                      type.c_str(), n_rows, op.name, times.median, times.p5, times.p95,
                      static_cast<double>(bytes) / times.median * 1e-3, times.median / read.median, host_us,
                      earlier(data, type, n_rows, op.name).c_str());
          report["rows"].push_back({{"data", data},
                                    {"type", type},
                                    {"rows", n_rows},
                                    {"op", op.name},
                                    {"us", times.median},
                                    {"p5", times.p5},
                                    {"p95", times.p95},
                                    {"bytes", bytes},
                                    {"read_us", read.median},
                                    {"ratio", times.median / read.median},
                                    {"host_us", host_us}});
        }
        std::fflush(stdout);
        check(cudaFree(device), "free");
      }
    }
  }
  ts_sampler_destroy(sampler);
  if (!json_file.empty()) std::ofstream(json_file) << report.dump(1) << "\n";
  return 0;
}
