// SPDX-License-Identifier: Apache-2.0
// The CPU backend, one row a call, on one thread: microseconds a call, in pairs with the llama.cpp sampler chain of the
// same parameters where its library is given. Every call takes another row and another position.
// Usage: bench_cpu --real ROWS.bf16 [--llama libllama.so] [--calls N]     ROWS: bf16 rows of 128,256 logits
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tssample.h"

namespace {

constexpr int32_t kVocab = 128256;

struct Op {
  const char* name;
  float temperature;
  int32_t top_k;
  float top_p;
  float min_p;
};
constexpr Op kOps[] = {{"greedy", 0.0f, 0, 1.0f, 0.0f},        {"plain", 0.8f, 0, 1.0f, 0.0f},
                       {"top_k 50", 0.8f, 50, 1.0f, 0.0f},     {"top_k 50, top_p .9", 0.8f, 50, 0.9f, 0.0f},
                       {"top_p .9", 0.8f, 0, 0.9f, 0.0f},      {"min_p .05", 0.8f, 0, 1.0f, 0.05f},
                       {"top_p .9, T 1", 1.0f, 0, 0.9f, 0.0f}, {"top_p .9, T 1.5", 1.5f, 0, 0.9f, 0.0f}};

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s\n", what, ts_last_error());
  std::exit(1);
}

// llama.h's sampler chain, by its public interface.
class LlamaChain {
 public:
  LlamaChain(void* library, const Op& op) : library_(library) {
    struct ChainParams {
      bool no_perf;
    };
    chain_ = function<void* (*)(ChainParams)>("llama_sampler_chain_init")({true});
    if (op.temperature <= 0.0f) {
      add(function<void* (*)()>("llama_sampler_init_greedy")());
    } else {
      if (op.top_k > 0) add(function<void* (*)(int32_t)>("llama_sampler_init_top_k")(op.top_k));
      // Its order of filters: the temperature first, as here.
      add(function<void* (*)(float)>("llama_sampler_init_temp")(op.temperature));
      if (op.top_p < 1.0f) add(function<void* (*)(float, size_t)>("llama_sampler_init_top_p")(op.top_p, 1));
      if (op.min_p > 0.0f) add(function<void* (*)(float, size_t)>("llama_sampler_init_min_p")(op.min_p, 1));
      add(function<void* (*)(uint32_t)>("llama_sampler_init_dist")(1234));
    }
    apply_ = function<void (*)(void*, Array*)>("llama_sampler_apply");
    entries_.resize(kVocab);
  }
  ~LlamaChain() { function<void (*)(void*)>("llama_sampler_free")(chain_); }
  LlamaChain(const LlamaChain&) = delete;
  LlamaChain& operator=(const LlamaChain&) = delete;

  // As llama_sampler_sample: fills the candidates from the logits and applies the chain.
  int32_t sample(const float* logits) {
    for (int32_t id = 0; id < kVocab; ++id) entries_[static_cast<size_t>(id)] = {id, logits[id], 0.0f};
    Array array{entries_.data(), entries_.size(), -1, false};
    apply_(chain_, &array);
    return array.data[array.selected].id;
  }

 private:
  struct Entry {
    int32_t id;
    float logit;
    float p;
  };
  struct Array {
    Entry* data;
    size_t size;
    int64_t selected;
    bool sorted;
  };
  template <class Function>
  Function function(const char* name) {
    void* found = dlsym(library_, name);
    if (found == nullptr) {
      std::fprintf(stderr, "libllama has no %s\n", name);
      std::exit(1);
    }
    Function typed;
    std::memcpy(&typed, &found, sizeof(typed));
    return typed;
  }
  void add(void* sampler) { function<void (*)(void*, void*)>("llama_sampler_chain_add")(chain_, sampler); }

  void* library_;
  void* chain_ = nullptr;
  void (*apply_)(void*, Array*) = nullptr;
  std::vector<Entry> entries_;
};

template <class Call>
double microseconds(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::string real, llama;
  int n_calls = 300;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--real") real = argv[i + 1];
    if (option == "--llama") llama = argv[i + 1];
    if (option == "--calls") n_calls = std::atoi(argv[i + 1]);
  }
  std::ifstream in(real, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  const size_t n_rows = bytes.size() / (2 * kVocab);
  if (n_rows == 0) {
    std::fprintf(stderr, "no rows: give --real FILE\n");
    return 1;
  }
  std::vector<uint16_t> bf16(n_rows * kVocab);
  std::memcpy(bf16.data(), bytes.data(), bf16.size() * 2);
  std::vector<float> fp32(bf16.size());
  for (size_t i = 0; i < bf16.size(); ++i) {
    const uint32_t word = static_cast<uint32_t>(bf16[i]) << 16;
    std::memcpy(&fp32[i], &word, 4);
  }
  void* library = llama.empty() ? nullptr : dlopen(llama.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!llama.empty() && library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }

  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CPU;
  config.vocab_size = kVocab;
  ts_sampler* sampler = nullptr;
  check(ts_sampler_create(&config, &sampler) == TS_OK, "create");
  std::printf("# %zu rows, %d calls each, us a call: medians%s\n", n_rows, n_calls, library ? ", in pairs" : "");
  std::printf("| step | bf16 | fp32 | llama.cpp fp32 | ratio |\n|---|---|---|---|---|\n");
  uint64_t id = 0;
  for (const Op& op : kOps) {
    ts_request_params params = TS_REQUEST_PARAMS_INIT;
    params.temperature = op.temperature;
    params.top_k = op.top_k;
    params.top_p = op.top_p;
    params.min_p = op.min_p;
    const int32_t slot = 0;
    ++id;
    ts_step step{};
    step.struct_size = sizeof(step);
    step.n_requests = 1;
    step.request_ids = &id;
    step.slots = &slot;
    step.params = &params;
    check(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK, "prepare_step");
    int32_t token = 0;
    int64_t position = 0;
    const auto sample = [&](const void* logits, int32_t type) {
      ts_rows rows{};
      rows.struct_size = sizeof(rows);
      rows.n_requests = 1;
      rows.logits = logits;
      rows.logits_type = type;
      rows.slots = &slot;
      rows.positions = &position;
      rows.positions_type = TS_INT64;
      ts_sample_out out{};
      out.struct_size = sizeof(out);
      out.tokens = &token;
      check(ts_sampler_sample(sampler, &rows, &out, nullptr) == TS_OK, "sample");
    };
    std::vector<double> ours_bf16, ours_fp32, theirs;
    LlamaChain* chain = library != nullptr ? new LlamaChain(library, op) : nullptr;
    for (int i = 0; i < n_calls; ++i, ++position) {
      const size_t at = static_cast<size_t>(i) % n_rows * kVocab;
      ours_bf16.push_back(microseconds([&] { sample(&bf16[at], TS_BF16); }));
      ours_fp32.push_back(microseconds([&] { sample(&fp32[at], TS_FP32); }));
      if (chain != nullptr) theirs.push_back(microseconds([&] { token = chain->sample(&fp32[at]); }));
    }
    delete chain;
    std::printf("| %s | %.0f | %.0f |", op.name, median(ours_bf16), median(ours_fp32));
    if (theirs.empty()) {
      std::printf(" - | - |\n");
    } else {
      std::printf(" %.0f | %.1f |\n", median(theirs), median(theirs) / median(ours_fp32));
    }
    std::fflush(stdout);
  }
  ts_sampler_destroy(sampler);
  return 0;
}
