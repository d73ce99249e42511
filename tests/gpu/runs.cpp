// SPDX-License-Identifier: Apache-2.0
// Runs of a case and their comparison.
#include "gpu/runs.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ts::gpu {
namespace {

const char* const kRoutes[] = {"greedy",     "plain",       "top_k",       "top_k_top_p",       "top_p",
                               "mixed",      "plain+min_p", "top_k+min_p", "top_k_top_p+min_p", "top_p+min_p",
                               "mixed+min_p"};

std::vector<int64_t> slots_of(const Case& c, int64_t step, int64_t modulus) {
  std::vector<int64_t> slots(static_cast<size_t>(c.n_requests));
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = (static_cast<int64_t>(i) * step + 3) % modulus;
  return slots;
}

ts_status prepare(ts_sampler* sampler, const Case& c, const std::vector<uint64_t>& ids,
                  const std::vector<int64_t>& slots, const std::vector<ts_request_params>& params) {
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = c.n_requests;
  step.rows_per_request = c.rows_per_request;
  step.slots_type = TS_INT64;
  step.request_ids = ids.data();
  step.slots = slots.data();
  step.params = params.data();
  return ts_sampler_prepare_step(sampler, &step, nullptr);
}

std::vector<uint64_t> ids_of(const Case& c, uint64_t first) {
  std::vector<uint64_t> ids(static_cast<size_t>(c.n_requests));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

ts_rows rows_of(const Case& c) {
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = c.n_requests;
  rows.rows_per_request = c.rows_per_request;
  rows.vocab = c.vocab;
  rows.n_valid = c.n_valid;
  rows.logits_type = c.type;
  rows.row_stride = c.row_stride;
  rows.mask_words = c.mask_words;
  rows.slots_type = TS_INT64;
  rows.positions_type = TS_INT64;
  return rows;
}

// Row `row` of `got` against row `wanted_row` of the expected, printing the first few differences. shift: what the
// permutation added to row numbers.
bool same_row(const Case& c, const Results& got, size_t row, const Results& wanted, size_t wanted_row, Asked asked,
              const std::string& how, long n_so_far) {
  const auto rows_per_request = static_cast<size_t>(c.rows_per_request);
  bool same = true;
  for (int output = 0; output < kNumOutputs; ++output) {
    int32_t right = asks_for(asked, output) ? wanted.at(output, wanted_row) : kPoison;
    if (output == kAcceptIndex && right >= 0) {  // a row number of the batch, so it moves with the request
      right += static_cast<int32_t>(row) - static_cast<int32_t>(wanted_row);
    }
    if (output == kAcceptLength || output == kBadRows) continue;  // not one a row
    same &= got.at(output, row) == right;
  }
  const bool lengths = wanted.at(kAcceptLength, 0) != kPoison;
  if (lengths) {
    same &= got.at(kAcceptLength, row / rows_per_request) == wanted.at(kAcceptLength, wanted_row / rows_per_request);
  }
  if (same || n_so_far >= 40) return same;
  const ts_request_params& p = c.params[wanted_row / rows_per_request];
  std::printf("%s %s row %zu of %zu (%s) V=%d n_valid=%d type=%d T=%g k=%d p=%g m=%g seed=%llu: cpu", c.name.c_str(),
              how.c_str(), wanted_row, c.n_rows(), c.kinds[wanted_row], c.vocab, c.n_valid, c.type, p.temperature,
              p.top_k, p.top_p, p.min_p, static_cast<unsigned long long>(p.seed));
  for (int output = 0; output < kBadRows; ++output) std::printf(" %08x", wanted.at(output, wanted_row));
  std::printf(" cuda");
  for (int output = 0; output < kBadRows; ++output) std::printf(" %08x", got.at(output, row));
  std::printf(" (token rank kept logprob flags index length)\n");
  return false;
}

// The counter of bad rows, which a call adds to.
bool same_count(const Case& c, const Results& got, size_t word, int32_t wanted, const std::string& how) {
  if (got.at(kBadRows, word) == wanted) return true;
  std::printf("%s %s: n_bad_rows is %d, %d is right\n", c.name.c_str(), how.c_str(), got.at(kBadRows, word) - kPoison,
              wanted - kPoison);
  return false;
}
int32_t wanted_count(const Results& wanted, Asked asked) {
  return asks_for(asked, kBadRows) ? wanted.at(kBadRows, 0) : kPoison;
}

}  // namespace

Expected run_cpu(ts_sampler* cpu, const Case& c) {
  Expected expected{Results(c.n_rows()), Results(c.n_rows())};
  const std::vector<int64_t> slots = slots_of(c, 7, 1021);
  check(prepare(cpu, c, ids_of(c, c.first_id), slots, c.params) == TS_OK, "prepare_step on the CPU");
  ts_rows rows = rows_of(c);
  rows.logits = c.logits.data() + c.lead;
  rows.slots = slots.data();
  rows.positions = c.positions.empty() ? nullptr : c.positions.data();
  rows.allow_mask = c.mask.empty() ? nullptr : c.mask.data();
  check(call(cpu, rows, nullptr, expected.sampled.words.data(), c.n_rows(), kEverything, nullptr) == TS_OK,
        "sample, CPU");
  if (!c.candidates.empty()) {
    int32_t* block = expected.verified.words.data();
    check(call(cpu, rows, c.candidates.data(), block, c.n_rows(), kEverything, nullptr) == TS_OK, "verify, CPU");
  }
  return expected;
}

// Device addresses.
struct CudaRuns::Arrays {
  unsigned char* logits;
  const void* slots;
  const void* positions;
  const int32_t* mask;
  const int32_t* candidates;
  int32_t slots_type = TS_INT64;
  int32_t positions_type = TS_INT64;
};

CudaRuns::CudaRuns(int32_t vocab, int32_t invalid_token, bool exact_buffers, bool forced)
    : natural_(make_sampler(TS_DEVICE_CUDA, vocab, invalid_token)),
      clusters_(make_sampler(TS_DEVICE_CUDA, vocab, invalid_token, 1024, 8, {0, TS_CONFIG_CLUSTERS})) {
  for (const char* route : kRoutes) {
    if (!forced) break;
    setenv("TSSAMPLE_FORCE_ROUTE", route, 1);
    // Why without graphs: a captured step goes the way of its variant, and the route itself is meant here.
    forced_.push_back({route, make_sampler(TS_DEVICE_CUDA, vocab, invalid_token, 1024, 8, {-1, 0})});
  }
  unsetenv("TSSAMPLE_FORCE_ROUTE");
  for (int i = 0; i < 14; ++i) buffers_.push_back(std::make_unique<Buffer>(exact_buffers));
}

CudaRuns::~CudaRuns() {
  ts_sampler_destroy(natural_);
  ts_sampler_destroy(clusters_);
  for (const Forced& forced : forced_) ts_sampler_destroy(forced.sampler);
}

Results CudaRuns::run(ts_sampler* sampler, const Case& c, const Arrays& arrays, Asked asked, bool verify) {
  Results results(c.n_rows());
  const size_t n_bytes = results.words.size() * 4;
  auto* block = static_cast<int32_t*>(buffers_[0]->put(results.words.data(), n_bytes));
  ts_rows rows = rows_of(c);
  rows.logits = arrays.logits;
  rows.slots = arrays.slots;
  rows.slots_type = arrays.slots_type;
  rows.positions = arrays.positions;
  rows.positions_type = arrays.positions_type;
  rows.allow_mask = arrays.mask;
  const int32_t* candidates = verify ? arrays.candidates : nullptr;
  check(call(sampler, rows, candidates, block, c.n_rows(), asked, nullptr) == TS_OK, "the call");
  check(cudaMemcpy(results.words.data(), block, n_bytes, cudaMemcpyDeviceToHost), "the run");
  return results;
}

void CudaRuns::compare(const Case& c, const Expected& expected, Counts& counts) {
  const std::vector<int64_t> slots = slots_of(c, 7, 1021);
  check(prepare(natural_, c, ids_of(c, c.first_id), slots, c.params) == TS_OK, "prepare_step on the GPU");
  route_ = ts_sampler_step_route(natural_);
  const auto put = [this](size_t i, const auto& v) { return buffers_[i]->put(v.data(), v.size() * sizeof(v[0])); };
  Arrays arrays{};
  arrays.logits = static_cast<unsigned char*>(put(1, c.logits)) + c.lead;
  arrays.slots = put(2, slots);
  arrays.positions = c.positions.empty() ? nullptr : put(3, c.positions);
  arrays.mask = c.mask.empty() ? nullptr : static_cast<const int32_t*>(put(4, c.mask));
  arrays.candidates = c.candidates.empty() ? nullptr : static_cast<const int32_t*>(put(5, c.candidates));
  const Results sampled = run(natural_, c, arrays, c.asked, false);
  for (size_t i = 0; i < c.n_rows(); ++i) {
    counts.mismatches += !same_row(c, sampled, i, expected.sampled, i, c.asked, "sample", counts.mismatches);
  }
  counts.mismatches += !same_count(c, sampled, 0, wanted_count(expected.sampled, c.asked), "sample");
  counts.rows += static_cast<long>(c.n_rows());
  if (arrays.candidates != nullptr) {
    const Results verified = run(natural_, c, arrays, c.asked, true);
    for (size_t i = 0; i < c.n_rows(); ++i) {
      counts.mismatches += !same_row(c, verified, i, expected.verified, i, c.asked, "verify", counts.mismatches);
    }
    counts.mismatches += !same_count(c, verified, 0, wanted_count(expected.verified, c.asked), "verify");
    counts.verified += static_cast<long>(c.n_rows());
  }
  compare_alone(natural_, c, expected, arrays, counts);
  check(prepare(clusters_, c, ids_of(c, c.first_id), slots, c.params) == TS_OK, "prepare_step with clusters");
  const Results clustered = run(clusters_, c, arrays, c.asked, false);
  for (size_t i = 0; i < c.n_rows(); ++i) {
    counts.mismatches += !same_row(c, clustered, i, expected.sampled, i, c.asked, "clusters", counts.mismatches);
  }
  counts.rows += static_cast<long>(c.n_rows());
  compare_alone(clusters_, c, expected, arrays, counts);
  compare_permuted(c, expected, arrays, counts);
  compare_forced(c, expected, arrays, counts);
}

// Every row in a call and a step of its own. The slots are known by now, so these steps write nothing.
void CudaRuns::compare_alone(ts_sampler* sampler, const Case& c, const Expected& expected, const Arrays& arrays,
                             Counts& counts) {
  const auto rows_per_request = static_cast<size_t>(c.rows_per_request);
  const std::vector<int64_t> slots = slots_of(c, 7, 1021);
  std::vector<int64_t> row_slots, row_positions;
  for (size_t i = 0; i < c.n_rows(); ++i) {
    const size_t r = i / rows_per_request;
    row_slots.push_back(slots[r]);
    row_positions.push_back((c.positions.empty() ? 0 : c.positions[r]) + static_cast<int64_t>(i % rows_per_request));
  }
  const auto* device_slots = static_cast<int64_t*>(buffers_[6]->put(row_slots.data(), row_slots.size() * 8));
  const auto* device_positions =
      static_cast<int64_t*>(buffers_[7]->put(row_positions.data(), row_positions.size() * 8));
  Results results(c.n_rows());
  const size_t n_bytes = results.words.size() * 4;
  auto* block = static_cast<int32_t*>(buffers_[0]->put(results.words.data(), n_bytes));
  ts_rows rows = rows_of(c);
  rows.n_requests = 1;
  rows.rows_per_request = 1;
  for (size_t i = 0; i < c.n_rows(); ++i) {
    const uint64_t id = c.first_id + i / rows_per_request;
    ts_step step{};
    step.struct_size = sizeof(step);
    step.n_requests = 1;
    step.slots_type = TS_INT64;
    step.request_ids = &id;
    step.slots = &row_slots[i];
    check(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK, "prepare_step of a row alone");
    rows.logits = arrays.logits + i * c.row_bytes();
    rows.slots = device_slots + i;
    rows.positions = device_positions + i;
    rows.allow_mask = arrays.mask == nullptr ? nullptr : arrays.mask + i * static_cast<size_t>(c.mask_words);
    check(call(sampler, rows, nullptr, block + i, c.n_rows(), c.asked, nullptr) == TS_OK, "a row alone");
  }
  check(cudaMemcpy(results.words.data(), block, n_bytes, cudaMemcpyDeviceToHost), "the rows alone");
  for (size_t i = 0; i < c.n_rows(); ++i) {
    counts.mismatches += !same_row(c, results, i, expected.sampled, i, c.asked, "alone", counts.mismatches);
    const bool counted = asks_for(c.asked, kBadRows) && expected.sampled.at(kFlags, i) != 0;
    counts.mismatches += !same_count(c, results, i, kPoison + (counted ? 1 : 0), "alone");
  }
  counts.alone += static_cast<long>(c.n_rows());
}

// The requests in another order, as new requests in other slots, with narrow index arrays where they fit, and with the
// outputs that the other runs do not ask for.
void CudaRuns::compare_permuted(const Case& c, const Expected& expected, const Arrays& arrays, Counts& counts) {
  const auto n = static_cast<size_t>(c.n_requests);
  const auto rows_per_request = static_cast<size_t>(c.rows_per_request);
  std::vector<size_t> from(n);
  std::iota(from.begin(), from.end(), size_t{0});
  Random random(c.first_id + 1);
  std::shuffle(from.begin(), from.end(), random);
  const std::vector<int64_t> slots = slots_of(c, 11, 1019);
  const size_t request_bytes = rows_per_request * c.row_bytes();
  const size_t mask_words = rows_per_request * static_cast<size_t>(c.mask_words);
  auto* logits = static_cast<unsigned char*>(buffers_[8]->get(n * request_bytes));
  auto* mask = static_cast<int32_t*>(buffers_[9]->get(n * mask_words * 4));
  std::vector<ts_request_params> params;
  std::vector<int64_t> positions;
  std::vector<int32_t> narrow_slots, narrow_positions, candidates;
  bool narrow = true;
  for (size_t r = 0; r < n; ++r) {
    check(cudaMemcpyAsync(logits + r * request_bytes, arrays.logits + from[r] * request_bytes, request_bytes,
                          cudaMemcpyDeviceToDevice, nullptr),
          "permute");
    if (arrays.mask != nullptr) {
      check(cudaMemcpyAsync(mask + r * mask_words, arrays.mask + from[r] * mask_words, mask_words * 4,
                            cudaMemcpyDeviceToDevice, nullptr),
            "permute");
    }
    params.push_back(c.params[from[r]]);
    narrow_slots.push_back(static_cast<int32_t>(slots[r]));
    positions.push_back(c.positions.empty() ? 0 : c.positions[from[r]]);
    narrow_positions.push_back(static_cast<int32_t>(positions.back()));
    narrow &= narrow_positions.back() == positions.back();
    for (size_t j = 0; j < rows_per_request && !c.candidates.empty(); ++j) {
      candidates.push_back(c.candidates[from[r] * rows_per_request + j]);
    }
  }
  Arrays permuted{};
  permuted.logits = logits;
  permuted.slots = buffers_[10]->put(narrow_slots.data(), n * 4);
  permuted.slots_type = TS_INT32;
  permuted.positions_type = narrow ? TS_INT32 : TS_INT64;
  permuted.positions =
      narrow ? buffers_[11]->put(narrow_positions.data(), n * 4) : buffers_[12]->put(positions.data(), n * 8);
  permuted.mask = arrays.mask == nullptr ? nullptr : mask;
  permuted.candidates = static_cast<const int32_t*>(buffers_[13]->put(candidates.data(), candidates.size() * 4));
  check(prepare(natural_, c, ids_of(c, c.first_id + 8192), slots, params) == TS_OK, "prepare_step, permuted");
  for (const bool verify : {false, true}) {
    if (verify && c.candidates.empty()) continue;
    const Results got = run(natural_, c, permuted, kEverything & ~c.asked, verify);
    for (size_t i = 0; i < c.n_rows(); ++i) {
      const size_t source = from[i / rows_per_request] * rows_per_request + i % rows_per_request;
      counts.mismatches +=
          !same_row(c, got, i, verify ? expected.verified : expected.sampled, source, kEverything & ~c.asked,
                    verify ? "permuted verify" : "permuted", counts.mismatches);
    }
    const int32_t count = wanted_count(verify ? expected.verified : expected.sampled, kEverything & ~c.asked);
    counts.mismatches += !same_count(c, got, 0, count, "permuted");
  }
  counts.permuted += static_cast<long>(c.n_rows());
}

// Every route that takes the step. The natural one and "mixed+min_p" must.
void CudaRuns::compare_forced(const Case& c, const Expected& expected, const Arrays& arrays, Counts& counts) {
  const std::vector<int64_t> slots = slots_of(c, 7, 1021);
  Asked asked = c.asked;
  for (const Forced& forced : forced_) {
    const ts_status status = prepare(forced.sampler, c, ids_of(c, c.first_id), slots, c.params);
    const bool must = forced.route == route_ || forced.route == "mixed+min_p";
    check(status == TS_OK || (status == TS_ERROR_UNSUPPORTED && !must), "prepare_step on a forced route");
    if (status != TS_OK) continue;
    check(ts_sampler_step_route(forced.sampler) == forced.route, "the forced route is taken");
    asked = kEverything & ~asked;
    const bool verify = !c.candidates.empty();
    const Results got = run(forced.sampler, c, arrays, asked, verify);
    for (size_t i = 0; i < c.n_rows(); ++i) {
      counts.mismatches += !same_row(c, got, i, verify ? expected.verified : expected.sampled, i, asked,
                                     "forced " + forced.route, counts.mismatches);
    }
    const int32_t count = wanted_count(verify ? expected.verified : expected.sampled, asked);
    counts.mismatches += !same_count(c, got, 0, count, "forced " + forced.route);
    counts.forced += static_cast<long>(c.n_rows());
  }
}

}  // namespace ts::gpu
