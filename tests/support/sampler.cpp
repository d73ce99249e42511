// SPDX-License-Identifier: Apache-2.0
// The C API for tests.
#include "support/sampler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace ts::test {
namespace {

void require(ts_status status, const char* call) {
  if (status == TS_OK) return;
  throw std::runtime_error(std::string(call) + ": " + ts_status_string(status) + ": " + ts_last_error());
}

size_t element_size(int32_t type) { return type == TS_FP32 ? 4 : 2; }

template <class T>
Logits from_elements(int32_t type, const std::vector<T>& values) {
  Logits logits;
  logits.type = type;
  logits.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(logits.bytes.data(), values.data(), logits.bytes.size());
  return logits;
}

DeviceBytes index_bytes(const std::vector<int64_t>& values, int32_t type) {
  if (type == TS_INT64) return DeviceBytes(values.data(), values.size() * 8);
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return DeviceBytes(narrow.data(), narrow.size() * 4);
}

std::vector<int64_t> slots_of(const Batch& batch) {
  if (!batch.slots.empty()) return batch.slots;
  std::vector<int64_t> slots(batch.params.size());
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int64_t>(i);
  return slots;
}

// A batch's arrays on the device and the struct that points at them.
struct DeviceRows {
  DeviceBytes logits, slots, positions, mask;
  ts_rows rows{};

  explicit DeviceRows(const Batch& batch) {
    const std::vector<int64_t> slot_values = slots_of(batch);
    const size_t lead = static_cast<size_t>(batch.logits.shift) * element_size(batch.logits.type);
    if (lead == 0) {
      logits = DeviceBytes(batch.logits.bytes.data(), batch.logits.bytes.size());
    } else {
      std::vector<unsigned char> shifted(lead + batch.logits.bytes.size());
      std::copy(batch.logits.bytes.begin(), batch.logits.bytes.end(),
                shifted.begin() + static_cast<std::ptrdiff_t>(lead));
      logits = DeviceBytes(shifted.data(), shifted.size());
    }
    slots = index_bytes(slot_values, batch.slots_type);
    positions = index_bytes(batch.positions, batch.positions_type);
    mask = DeviceBytes(batch.allow_mask.data(), batch.allow_mask.size() * 4);
    rows.struct_size = sizeof(rows);
    rows.n_requests = static_cast<int32_t>(slot_values.size());
    rows.rows_per_request = batch.rows_per_request;
    rows.vocab = batch.vocab;
    rows.logits = static_cast<unsigned char*>(logits.data()) + lead;
    rows.row_stride = batch.logits.row_stride;
    rows.logits_type = batch.logits.type;
    rows.n_valid = batch.n_valid;
    rows.slots = slots.data();
    rows.slots_type = batch.slots_type;
    rows.positions_type = batch.positions_type;
    rows.positions = batch.positions.empty() ? nullptr : positions.data();
    rows.allow_mask = batch.allow_mask.empty() ? nullptr : static_cast<const int32_t*>(mask.data());
    rows.mask_words = batch.mask_words;
  }
};

// An output array, poisoned so that an entry nobody writes is seen.
template <class T>
struct Output {
  explicit Output(size_t n) : host(n) {
    std::memset(host.data(), 0x5A, n * sizeof(T));
    device = DeviceBytes::guarded(host.data(), n * sizeof(T));
  }
  T* data() { return static_cast<T*>(device.data()); }
  std::vector<T> take() {
    device.read(host.data(), host.size() * sizeof(T));
    return std::move(host);
  }
  std::vector<T> host;
  DeviceBytes device;
};

}  // namespace

ts_request_params params(float temperature, int32_t top_k, float top_p, float min_p, uint64_t seed) {
  ts_request_params p = TS_REQUEST_PARAMS_INIT;
  p.flags = TS_PARAMS_SEEDED;
  p.seed = seed;
  p.temperature = temperature;
  p.top_k = top_k;
  p.top_p = top_p;
  p.min_p = min_p;
  return p;
}

Logits Logits::fp32(const std::vector<float>& values) { return from_elements(TS_FP32, values); }
Logits Logits::bf16(const std::vector<uint16_t>& bits) { return from_elements(TS_BF16, bits); }
Logits Logits::fp16(const std::vector<uint16_t>& bits) { return from_elements(TS_FP16, bits); }

Sampler::Sampler(int32_t vocab_size, int32_t n_slots, int32_t max_rows_per_request, int32_t invalid_token,
                 uint64_t seed) {
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = test_device();
  config.vocab_size = vocab_size;
  config.n_slots = n_slots;
  config.max_rows_per_request = max_rows_per_request;
  config.invalid_token = invalid_token;
  config.seed = seed;
  require(ts_sampler_create(&config, &sampler_), "ts_sampler_create");
}

Sampler::~Sampler() { ts_sampler_destroy(sampler_); }

void Sampler::prepare(const Batch& batch) {
  const std::vector<int64_t> slots = slots_of(batch);
  std::vector<uint64_t> ids = batch.request_ids;
  if (ids.empty()) {
    for (const int64_t slot : slots) ids.push_back(1000 + static_cast<uint64_t>(slot));
  }
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = static_cast<int32_t>(slots.size());
  step.rows_per_request = batch.rows_per_request;
  step.slots_type = TS_INT64;
  step.request_ids = ids.data();
  step.slots = slots.data();
  step.params = batch.params.empty() ? nullptr : batch.params.data();
  require(ts_sampler_prepare_step(sampler_, &step, nullptr), "ts_sampler_prepare_step");
}

Sampled Sampler::sample(const Batch& batch) {
  DeviceRows in(batch);
  const size_t n = static_cast<size_t>(in.rows.n_requests) * static_cast<size_t>(batch.rows_per_request);
  Output<int32_t> tokens(n), ranks(n), n_kept(n);
  Output<float> logprobs(n);
  Output<uint32_t> flags(n);
  ts_sample_out out{};
  out.struct_size = sizeof(out);
  out.tokens = tokens.data();
  out.logprobs = logprobs.data();
  out.ranks = ranks.data();
  out.n_kept = n_kept.data();
  out.row_flags = flags.data();
  require(ts_sampler_sample(sampler_, &in.rows, &out, nullptr), "ts_sampler_sample");
  return {tokens.take(), logprobs.take(), ranks.take(), n_kept.take(), flags.take()};
}

Verified Sampler::verify(const Batch& batch, const std::vector<int32_t>& candidates) {
  DeviceRows in(batch);
  const size_t n_requests = static_cast<size_t>(in.rows.n_requests);
  const size_t n = n_requests * static_cast<size_t>(batch.rows_per_request);
  DeviceBytes drafts(candidates.data(), candidates.size() * 4);
  Output<int32_t> predict(n), accept_index(n), accept_length(n_requests), ranks(n), n_kept(n);
  Output<float> logprobs(n);
  Output<uint32_t> flags(n);
  ts_draft draft{};
  draft.struct_size = sizeof(draft);
  draft.candidates = static_cast<const int32_t*>(drafts.data());
  ts_verify_out out{};
  out.struct_size = sizeof(out);
  out.predict = predict.data();
  out.accept_index = accept_index.data();
  out.accept_length = accept_length.data();
  out.logprobs = logprobs.data();
  out.ranks = ranks.data();
  out.n_kept = n_kept.data();
  out.row_flags = flags.data();
  require(ts_sampler_verify(sampler_, &in.rows, &draft, &out, nullptr), "ts_sampler_verify");
  return {predict.take(), accept_index.take(), accept_length.take(), logprobs.take(),
          ranks.take(),   n_kept.take(),       flags.take()};
}

Sampled Sampler::run(const Batch& batch) {
  prepare(batch);
  return sample(batch);
}

std::vector<int32_t> Sampler::tokens(const Batch& batch) {
  prepare(batch);
  DeviceRows in(batch);
  Output<int32_t> tokens(static_cast<size_t>(in.rows.n_requests) * static_cast<size_t>(batch.rows_per_request));
  ts_sample_out out{};
  out.struct_size = sizeof(out);
  out.tokens = tokens.data();
  require(ts_sampler_sample(sampler_, &in.rows, &out, nullptr), "ts_sampler_sample");
  return tokens.take();
}

std::string Sampler::route() const { return ts_sampler_step_route(sampler_); }

ScopedEnvironment::ScopedEnvironment(const char* name, const char* value) : name_(name) {
  if (const char* before = std::getenv(name)) {
    before_ = before;
    had_ = true;
  }
  if (value != nullptr) {
    setenv(name, value, 1);
  } else {
    unsetenv(name);
  }
}

ScopedEnvironment::~ScopedEnvironment() {
  if (had_) {
    setenv(name_.c_str(), before_.c_str(), 1);
  } else {
    unsetenv(name_.c_str());
  }
}

}  // namespace ts::test
