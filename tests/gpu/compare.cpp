// SPDX-License-Identifier: Apache-2.0
// CUDA against CPU, bit for bit: tokens, log-probabilities, ranks, kept sizes and flags of the same calls on both
// backends. Prints the number of rows compared and of mismatches, and ends with 1 if there is one.
// Usage: compare [--real FILE.bf16] [--rows N] [--large N]
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tssample.h"

namespace {

long n_rows_compared = 0;
long n_mismatches = 0;

void check(bool ok, const char* what) {
  if (ok) return;
  std::printf("FAILED: %s (%s) %s\n", what, ts_last_error(), cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}

struct Case {
  int32_t vocab = 0;
  int32_t n_valid = 0;
  int32_t type = TS_FP32;
  int32_t n_requests = 0;
  int32_t rows_per_request = 1;
  int64_t row_stride = 0;
  std::vector<unsigned char> logits;  // with `lead` bytes in front
  size_t lead = 0;
  std::vector<ts_request_params> params;
  std::vector<int64_t> positions;
  std::vector<int32_t> mask;
  int32_t mask_words = 0;
  bool plain_outputs = false;  // tokens alone
  bool verify = false;
  std::vector<int32_t> candidates;
};

struct Results {
  std::vector<int32_t> tokens, ranks, n_kept, accept_index, accept_length;
  std::vector<uint32_t> logprob_bits, flags;
  bool operator==(const Results& o) const {
    return tokens == o.tokens && ranks == o.ranks && n_kept == o.n_kept && accept_index == o.accept_index &&
           accept_length == o.accept_length && logprob_bits == o.logprob_bits && flags == o.flags;
  }
};

// Memory of a device, with the same calls for both.
class Memory {
 public:
  explicit Memory(bool cuda) : cuda_(cuda) {}
  ~Memory() {
    for (void* p : all_) {
      if (cuda_) {
        cudaFree(p);
      } else {
        std::free(p);
      }
    }
  }
  void* put(const void* data, size_t n) {
    void* p = nullptr;
    if (cuda_) {
      check(cudaMalloc(&p, n + 64) == cudaSuccess, "cudaMalloc");
      check(cudaMemcpy(p, data, n, cudaMemcpyHostToDevice) == cudaSuccess, "cudaMemcpy");
    } else {
      p = std::malloc(n + 64);
      std::memcpy(p, data, n);
    }
    all_.push_back(p);
    return p;
  }
  template <class T>
  T* put(const std::vector<T>& v) {
    return v.empty() ? nullptr : static_cast<T*>(put(v.data(), v.size() * sizeof(T)));
  }
  template <class T>
  void get(std::vector<T>& out, const void* p) {
    if (cuda_) {
      check(cudaMemcpy(out.data(), p, out.size() * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess, "read back");
    } else {
      std::memcpy(out.data(), p, out.size() * sizeof(T));
    }
  }

 private:
  bool cuda_;
  std::vector<void*> all_;
};

uint64_t next_id = 1;

Results run(ts_sampler* sampler, const Case& c, uint64_t first_id) {
  const bool cuda = ts_sampler_device(sampler) == TS_DEVICE_CUDA;
  Memory memory(cuda);
  const size_t n = static_cast<size_t>(c.n_requests) * static_cast<size_t>(c.rows_per_request);
  std::vector<uint64_t> ids(static_cast<size_t>(c.n_requests));
  std::vector<int64_t> slots(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = first_id + i;
    slots[i] = static_cast<int64_t>((i * 7 + 3) % 1021);  // distinct for up to 1021 requests
  }
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = c.n_requests;
  step.rows_per_request = c.rows_per_request;
  step.slots_type = TS_INT64;
  step.request_ids = ids.data();
  step.slots = slots.data();
  step.params = c.params.data();
  check(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK, "prepare_step");
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = c.n_requests;
  rows.rows_per_request = c.rows_per_request;
  rows.vocab = c.vocab;
  rows.n_valid = c.n_valid;
  rows.logits = static_cast<unsigned char*>(memory.put(c.logits)) + c.lead;
  rows.logits_type = c.type;
  rows.row_stride = c.row_stride;
  rows.slots = memory.put(slots);
  rows.slots_type = TS_INT64;
  rows.positions = memory.put(c.positions);
  rows.positions_type = TS_INT64;
  rows.allow_mask = memory.put(c.mask);
  rows.mask_words = c.mask_words;
  const std::vector<int32_t> poison(n, -77);
  Results results;
  int32_t* tokens = memory.put(poison);
  int32_t* ranks = memory.put(poison);
  int32_t* kept = memory.put(poison);
  int32_t* logprobs = memory.put(poison);
  int32_t* flags = memory.put(poison);
  int32_t* accept_index = memory.put(poison);
  int32_t* accept_length = memory.put(poison);
  if (c.verify) {
    ts_draft draft{};
    draft.struct_size = sizeof(draft);
    draft.candidates = memory.put(c.candidates);
    ts_verify_out out{};
    out.struct_size = sizeof(out);
    out.predict = tokens;
    out.accept_index = accept_index;
    out.accept_length = accept_length;
    if (!c.plain_outputs) {
      out.logprobs = reinterpret_cast<float*>(logprobs);
      out.ranks = ranks;
      out.n_kept = kept;
      out.row_flags = reinterpret_cast<uint32_t*>(flags);
    }
    check(ts_sampler_verify(sampler, &rows, &draft, &out, nullptr) == TS_OK, "verify");
  } else {
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = tokens;
    if (!c.plain_outputs) {
      out.logprobs = reinterpret_cast<float*>(logprobs);
      out.ranks = ranks;
      out.n_kept = kept;
      out.row_flags = reinterpret_cast<uint32_t*>(flags);
    }
    check(ts_sampler_sample(sampler, &rows, &out, nullptr) == TS_OK, "sample");
  }
  if (cuda) check(cudaDeviceSynchronize() == cudaSuccess, "synchronize");
  for (auto* v : {&results.tokens, &results.ranks, &results.n_kept, &results.accept_index}) v->resize(n);
  results.accept_length.resize(n);
  results.logprob_bits.resize(n);
  results.flags.resize(n);
  memory.get(results.tokens, tokens);
  memory.get(results.ranks, ranks);
  memory.get(results.n_kept, kept);
  memory.get(results.logprob_bits, logprobs);
  memory.get(results.flags, flags);
  memory.get(results.accept_index, accept_index);
  memory.get(results.accept_length, accept_length);
  return results;
}

void compare(ts_sampler* cpu, ts_sampler* cuda, const Case& c, const std::string& name) {
  const uint64_t first_id = next_id;
  next_id += 4096;
  const Results a = run(cpu, c, first_id);
  const Results b = run(cuda, c, first_id);
  n_rows_compared += static_cast<long>(a.tokens.size());
  if (a == b) return;
  long bad = 0;
  for (size_t i = 0; i < a.tokens.size(); ++i) {
    const bool same = a.tokens[i] == b.tokens[i] && a.ranks[i] == b.ranks[i] && a.n_kept[i] == b.n_kept[i] &&
                      a.logprob_bits[i] == b.logprob_bits[i] && a.flags[i] == b.flags[i] &&
                      a.accept_index[i] == b.accept_index[i] && a.accept_length[i] == b.accept_length[i];
    if (same) continue;
    if (++bad == 1 && n_mismatches < 40) {
      const ts_request_params& p = c.params[i / static_cast<size_t>(c.rows_per_request)];
      std::printf(
          "%s row %zu of %zu V=%d type=%d T=%g k=%d p=%g m=%g route=%s: token %d/%d rank %d/%d kept %d/%d "
          "logprob %08x/%08x flags %u/%u index %d/%d length %d/%d (cpu/cuda)\n",
          name.c_str(), i, a.tokens.size(), c.vocab, c.type, p.temperature, p.top_k, p.top_p, p.min_p,
          ts_sampler_step_route(cuda), a.tokens[i], b.tokens[i], a.ranks[i], b.ranks[i], a.n_kept[i], b.n_kept[i],
          a.logprob_bits[i], b.logprob_bits[i], a.flags[i], b.flags[i], a.accept_index[i], b.accept_index[i],
          a.accept_length[i], b.accept_length[i]);
    }
  }
  n_mismatches += bad;
}

using Random = std::mt19937_64;

float uniform(Random& random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}
int pick(Random& random, int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); }

ts_request_params random_params(Random& random, int vocab, int kind) {
  ts_request_params p = TS_REQUEST_PARAMS_INIT;
  p.flags = TS_PARAMS_SEEDED;
  p.seed = random();
  const float temperatures[] = {0.0f, 1e-6f, 1e-5f, 0.1f, 0.7f, 1.0f, 1.0f, 1.5f, 5.0f, 1e4f};
  p.temperature = kind == 0 ? 0.0f : temperatures[1 + pick(random, 9)];
  const int ks[] = {1, 2, 5, 20, 50, 100, 128, 129, 500, 1000, 1024, 1025, 4000, vocab - 1, vocab / 2};
  const float ps[] = {0.0f, 1e-7f, 1e-3f, 0.1f, 0.3f, 0.5f, 0.8f, 0.9f, 0.95f, 0.99f, 0.9999f};
  if (kind == 2 || kind == 4) p.top_k = ks[pick(random, 15)];
  if (kind == 3 || kind == 4) p.top_p = ps[pick(random, 11)];
  if (pick(random, 4) == 0) p.min_p = uniform(random, 0.0f, 0.3f);
  return p;
}

uint16_t to_bf16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// Rough rounding is enough: both backends see the same bits.
uint16_t to_fp16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const int e = static_cast<int>(bits >> 23 & 0xFFu) - 127;
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (e > 15) return static_cast<uint16_t>(sign | 0x7C00u);
  if (e < -14) return static_cast<uint16_t>(sign | (e < -25 ? 0u : 0x400u >> (-14 - e)));
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(e + 15) << 10 | (bits >> 13 & 0x3FFu));
}

std::vector<float> random_row(Random& random, int vocab) {
  std::vector<float> row(static_cast<size_t>(vocab));
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::exponential_distribution<float> raise(0.25f);
  const int kind = pick(random, 9);
  for (float& l : row) {
    switch (kind) {
      case 0: l = normal(random) + (pick(random, 1024) == 0 ? raise(random) : 0.0f); break;
      case 1: l = 1.25f; break;
      case 2: l = normal(random) * 0.01f; break;
      case 3: l = static_cast<float>(pick(random, 5)); break;
      case 4: l = pick(random, 3) == 0 ? normal(random) : -HUGE_VALF; break;
      case 5: l = normal(random) * 20.0f; break;
      case 6: l = pick(random, 50) == 0 ? NAN : (pick(random, 2000) == 0 ? HUGE_VALF : normal(random)); break;
      case 7: l = -static_cast<float>(&l - row.data()) * 0.001f; break;
      default: l = static_cast<float>(&l - row.data()) * 0.001f; break;
    }
  }
  if (pick(random, 30) == 0) row.assign(row.size(), pick(random, 2) ? NAN : -HUGE_VALF);
  if (pick(random, 10) == 0) row[static_cast<size_t>(pick(random, vocab))] = 65504.0f;
  return row;
}

Case random_case(Random& random, int vocab, int n_requests) {
  Case c;
  c.vocab = vocab;
  c.n_requests = n_requests;
  c.rows_per_request = 1 + pick(random, 4);
  c.type = pick(random, 3);
  c.row_stride = vocab + (pick(random, 3) == 0 ? pick(random, 70) : 0);
  if (pick(random, 3) == 0) c.n_valid = 1 + pick(random, vocab);
  const size_t element = c.type == TS_FP32 ? 4 : 2;
  c.lead = static_cast<size_t>(pick(random, 3) == 0 ? pick(random, 8) : 0) * element;
  const size_t n = static_cast<size_t>(c.n_requests) * static_cast<size_t>(c.rows_per_request);
  c.logits.assign(c.lead + n * static_cast<size_t>(c.row_stride) * element, 0x7F);
  for (size_t r = 0; r < n; ++r) {
    const std::vector<float> row = random_row(random, vocab);
    unsigned char* at = c.logits.data() + c.lead + r * static_cast<size_t>(c.row_stride) * element;
    for (size_t i = 0; i < row.size(); ++i) {
      const uint16_t half = c.type == TS_BF16 ? to_bf16(row[i]) : to_fp16(row[i]);
      std::memcpy(at + i * element, c.type == TS_FP32 ? static_cast<const void*>(&row[i]) : &half, element);
    }
  }
  const int kind = pick(random, 7);  // 5, 6: mixed
  for (int r = 0; r < n_requests; ++r) {
    c.params.push_back(random_params(random, vocab, kind < 5 ? (pick(random, 8) == 0 ? 0 : kind) : pick(random, 5)));
    c.positions.push_back(static_cast<int64_t>(random() >> (1 + pick(random, 60))));
  }
  if (pick(random, 3) == 0) c.positions.clear();
  if (pick(random, 3) == 0) {
    c.mask_words = 1 + pick(random, (vocab + 31) / 32 + 2);
    for (size_t i = 0; i < n * static_cast<size_t>(c.mask_words); ++i) {
      c.mask.push_back(static_cast<int32_t>(pick(random, 3) == 0 ? 0xFFFFFFFFu : random()));
    }
  }
  c.plain_outputs = pick(random, 2) == 0;
  c.verify = pick(random, 4) == 0;
  if (c.verify) {
    for (size_t i = 0; i < n; ++i) c.candidates.push_back(pick(random, 2) ? pick(random, vocab) : pick(random, 4) - 1);
  }
  return c;
}

ts_sampler* make(int32_t device, int32_t vocab, int32_t invalid_token) {
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = device;
  config.vocab_size = vocab;
  config.invalid_token = invalid_token;
  ts_sampler* sampler = nullptr;
  check(ts_sampler_create(&config, &sampler) == TS_OK, "create");
  return sampler;
}

void compare_real(const char* file, int n_settings) {
  constexpr int32_t kVocab = 128256;
  std::ifstream in(file, std::ios::binary);
  check(in.good(), "the real rows' file");
  Case c;
  c.logits.assign(std::istreambuf_iterator<char>(in), {});
  c.vocab = kVocab;
  c.type = TS_BF16;
  c.n_requests = static_cast<int32_t>(c.logits.size() / 2 / kVocab);
  ts_sampler* cpu = make(TS_DEVICE_CPU, kVocab, 5);
  ts_sampler* cuda = make(TS_DEVICE_CUDA, kVocab, 5);
  Random random(1);
  for (int s = 0; s < n_settings; ++s) {
    c.params.clear();
    c.positions.clear();
    const int kind = s % 6;
    for (int r = 0; r < c.n_requests; ++r) {
      if (kind == 5 || r == 0) {
        c.params.push_back(random_params(random, kVocab, kind == 5 ? pick(random, 5) : kind));
      } else {
        c.params.push_back(c.params[0]);
        c.params.back().seed += static_cast<uint64_t>(r);
      }
      c.positions.push_back(pick(random, 100000));
    }
    c.plain_outputs = s % 2 == 0;
    compare(cpu, cuda, c, "real");
  }
  ts_sampler_destroy(cpu);
  ts_sampler_destroy(cuda);
}

}  // namespace

int main(int argc, char** argv) {
  std::string real;
  long small = 20000;
  long large = 500;
  int n_settings = 200;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--real") real = argv[i + 1];
    if (option == "--rows") small = std::atol(argv[i + 1]);
    if (option == "--large") large = std::atol(argv[i + 1]);
    if (option == "--settings") n_settings = std::atoi(argv[i + 1]);
  }
  if (!real.empty()) compare_real(real.c_str(), n_settings);
  std::printf("real: %ld rows, %ld mismatches\n", n_rows_compared, n_mismatches);
  std::fflush(stdout);

  Random random(2);
  ts_sampler* cpu = make(TS_DEVICE_CPU, 262144, 0);
  ts_sampler* cuda = make(TS_DEVICE_CUDA, 262144, 0);
  const int vocabs[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 255, 256, 257, 511, 1023, 2047, 2048, 4096, 5000};
  const long after_real = n_rows_compared;
  while (n_rows_compared - after_real < small) {
    compare(cpu, cuda, random_case(random, vocabs[pick(random, 18)], 1 + pick(random, pick(random, 2) ? 8 : 300)),
            "small");
  }
  std::printf("small: %ld rows in all, %ld mismatches\n", n_rows_compared, n_mismatches);
  std::fflush(stdout);
  const int larges[] = {40001, 50257, 128256, 151936, 151937, 201088, 262144};
  const long after_small = n_rows_compared;
  while (n_rows_compared - after_small < large) {
    compare(cpu, cuda, random_case(random, larges[pick(random, 7)], 1 + pick(random, 8)), "large");
  }
  std::printf("compared %ld rows, %ld mismatches\n", n_rows_compared, n_mismatches);
  ts_sampler_destroy(cpu);
  ts_sampler_destroy(cuda);
  return n_mismatches == 0 ? 0 : 1;
}
