// SPDX-License-Identifier: Apache-2.0
// CUDA against CPU, bit for bit: tokens, log-probabilities, ranks, kept sizes and flags of the same calls on both
// backends; every case in its batch, permuted, each row alone, and on every forced route that serves it.
// Usage: compare [--real FILE.bf16] [--settings N] [--rows N] [--large N] [--huge 0|1] [--forced 0|1] [--threads N]
//                [--exact 0|1] [--case SECTION:NUMBER]
//   --rows, --large   rows of small and large vocabularies, at least     --case   one case that differed, again
//   --exact           buffers of exactly the arrays' sizes, for memcheck
// Last line: "compare: rows=... verified=... alone=... permuted=... forced=... mismatches=N". Ends with 1 if N > 0.
#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "gpu/huge.h"
#include "gpu/runs.h"

namespace ts::gpu {
namespace {

constexpr int32_t kVocab = 262144;
constexpr int32_t kRealVocab = 128256;
constexpr int32_t kInvalidToken = 5;

struct Options {
  std::string real, one_case;
  long settings = 200, rows = 1000000, large = 20000, threads = 0;
  bool huge = true, exact = false, forced = true;
};

// What was compared, to be printed: a count of zero where one is expected shows.
class Tally {
 public:
  void add(const Case& c, const std::string& route) {
    const auto n = static_cast<long>(c.n_rows());
    const char* types[] = {"fp32", "bf16", "fp16"};
    ++cases_;
    by_["type"][types[c.type]] += n;
    by_["vocabulary"][std::to_string(c.vocab)] += n;
    by_["route"][route] += n;
    by_["extra"]["masked"] += c.mask.empty() ? 0 : n;
    by_["extra"]["padded"] += c.n_valid > 0 && c.n_valid < c.vocab ? n : 0;
    by_["extra"]["strided"] += c.row_stride > c.vocab ? n : 0;
    by_["extra"]["shifted base"] += c.lead > 0 ? n : 0;
    by_["extra"]["without positions"] += c.positions.empty() ? n : 0;
    by_["outputs"][to_string(c.asked)] += n;
    for (size_t i = 0; i < c.n_rows(); ++i) {
      ++by_["kind"][c.kinds[i]];
      const auto* row = reinterpret_cast<const char*>(c.logits.data() + c.lead + i * c.row_bytes());
      distinct_.insert(std::hash<std::string_view>()({row, static_cast<size_t>(c.vocab) * c.element()}));
    }
  }
  void print(const char* section) {
    std::printf("%s: %ld cases, %zu distinct rows of logits\n", section, cases_, distinct_.size());
    for (const auto& [name, counts] : by_) {
      std::printf("  %s:", name.c_str());
      for (const auto& [value, n] : counts) std::printf(" %s=%ld", value.c_str(), n);
      std::printf("\n");
    }
  }

 private:
  long cases_ = 0;
  std::map<std::string, std::map<std::string, long>> by_;
  std::set<size_t> distinct_;
};

// Cases 0, 1, 2, ... until n_cases are done or at least n_rows rows are. Threads make the cases and the CPU's results;
// one at a time has the GPU.
void run_section(const char* name, const std::function<Case(int64_t)>& make, long n_cases, long n_rows, long n_threads,
                 CudaRuns& cuda, Counts& total) {
  std::atomic<long> next{0}, taken{0};
  std::mutex gpu;
  Tally tally;
  Counts counts;
  const auto work = [&] {
    ts_sampler* cpu = make_sampler(TS_DEVICE_CPU, kVocab, kInvalidToken);
    while (taken < n_rows) {
      const long number = next++;
      if (number >= n_cases) break;
      const Case c = make(number);
      taken += static_cast<long>(c.n_rows());
      const Expected expected = run_cpu(cpu, c);
      const std::lock_guard<std::mutex> lock(gpu);
      cuda.compare(c, expected, counts);
      tally.add(c, cuda.last_route());
    }
    ts_sampler_destroy(cpu);
  };
  std::vector<std::thread> threads;
  for (long i = 0; i < n_threads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  tally.print(name);
  std::printf("%s: rows=%ld verified=%ld alone=%ld permuted=%ld forced=%ld mismatches=%ld\n", name, counts.rows,
              counts.verified, counts.alone, counts.permuted, counts.forced, counts.mismatches);
  std::fflush(stdout);
  total.rows += counts.rows;
  total.verified += counts.verified;
  total.alone += counts.alone;
  total.permuted += counts.permuted;
  total.forced += counts.forced;
  total.mismatches += counts.mismatches;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    check(i + 1 < argc, "every option has a value");
    const char* value = argv[i + 1];
    const std::map<std::string, long*> numbers = {{"--settings", &options.settings},
                                                  {"--rows", &options.rows},
                                                  {"--large", &options.large},
                                                  {"--threads", &options.threads}};
    const std::map<std::string, bool*> switches = {
        {"--huge", &options.huge}, {"--exact", &options.exact}, {"--forced", &options.forced}};
    if (const auto number = numbers.find(name); number != numbers.end()) {
      *number->second = std::atol(value);
    } else if (const auto on = switches.find(name); on != switches.end()) {
      *on->second = std::atol(value) != 0;
    } else if (name == "--real") {
      options.real = value;
    } else if (name == "--case") {
      options.one_case = value;
    } else {
      std::printf("compare: unknown option %s\n", name.c_str());
      std::exit(2);
    }
  }
  if (options.threads < 1) options.threads = std::max(1u, std::thread::hardware_concurrency());
  return options;
}

int run(const Options& options) {
  std::vector<unsigned char> real;
  if (!options.real.empty()) {
    std::ifstream in(options.real, std::ios::binary);
    real.assign(std::istreambuf_iterator<char>(in), {});
    check(!real.empty() && real.size() % (2 * kRealVocab) == 0, "the file of real rows");
  }
  const auto make_real = [&](int64_t number) { return real_case(real, kRealVocab, number); };
  CudaRuns cuda(kVocab, kInvalidToken, options.exact, options.forced);
  Counts total;
  bool skipped = false;
  if (!options.one_case.empty()) {
    const size_t colon = options.one_case.find(':');
    const std::string section = options.one_case.substr(0, colon);
    const long number = std::atol(options.one_case.c_str() + colon + 1);
    const auto make = [&](int64_t) {
      return section == "real" ? make_real(number) : section == "small" ? small_case(number) : large_case(number);
    };
    run_section(options.one_case.c_str(), make, 1, 1, 1, cuda, total);
  } else {
    if (!real.empty()) run_section("real", make_real, options.settings, INT32_MAX, options.threads, cuda, total);
    run_section("small", small_case, INT32_MAX, options.rows, options.threads, cuda, total);
    run_section("large", large_case, INT32_MAX, options.large, options.threads, cuda, total);
    if (options.huge) skipped = !compare_huge(total);
  }
  std::printf("compare: rows=%ld verified=%ld alone=%ld permuted=%ld forced=%ld mismatches=%ld\n", total.rows,
              total.verified, total.alone, total.permuted, total.forced, total.mismatches);
  return total.mismatches != 0 || total.rows == 0 ? 1 : skipped ? 77 : 0;
}

}  // namespace
}  // namespace ts::gpu

int main(int argc, char** argv) {
  const ts::gpu::Options options = ts::gpu::parse(argc, argv);
  ts::gpu::skip_without_gpu();
  return ts::gpu::run(options);
}
