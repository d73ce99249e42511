// SPDX-License-Identifier: Apache-2.0
// The engine of the capture and stream tests.
#include "gpu/engine.h"

#include <algorithm>

#include "gpu/cases.h"
#include "gpu/kernels.h"

namespace ts::gpu {

ts_request_params step_params(int kind, int32_t request, uint64_t seed) {
  ts_request_params p = TS_REQUEST_PARAMS_INIT;
  p.flags = TS_PARAMS_SEEDED;
  p.seed = seed;
  if (kind == 0) {
    p = step_params(1 + request % 5, request, seed);
    if (request % 2 == 0) p.min_p = 0.01f;
  }
  if (kind == 2 || kind == 4) p.top_p = 0.9f;
  if (kind == 3 || kind == 4) p.top_k = 40;
  if (kind == 5) p.temperature = 0.0f;
  return p;
}

Engine::Engine(ts_sampler* cuda, const Shape& shape, uint64_t seed)
    : shape_(shape),
      n_(static_cast<size_t>(shape.n_requests) * static_cast<size_t>(shape.rows_per_request)),
      cuda_(cuda),
      cpu_(make_sampler(TS_DEVICE_CPU, shape.vocab)) {
  Random random(seed);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  for (std::vector<uint16_t>& set : logit_sets_) {
    for (size_t i = 0; i < n_ * static_cast<size_t>(shape.vocab); ++i) set.push_back(to_bf16(normal(random)));
    device_sets_[&set - logit_sets_].put(set.data(), set.size() * 2);
  }
  for (int32_t r = 0; r < shape.n_requests; ++r) {
    slots_.push_back((r * 37 + 5) % 1024);
    positions_.push_back(pick(random, 1000));
    ids_.push_back(0);
  }
  // Drafts that are accepted now and then: the likeliest ids of the rows before.
  for (size_t i = 0; i < n_ && shape.verify; ++i) {
    const size_t row = i > 0 ? i - 1 : 0;
    const auto first = logit_sets_[0].begin() + static_cast<std::ptrdiff_t>(row * static_cast<size_t>(shape.vocab));
    const auto value = [](uint16_t b) { return b >= 0x8000 ? -(b & 0x7FFF) : b; };
    const auto most =
        std::max_element(first, first + shape.vocab, [&](uint16_t a, uint16_t b) { return value(a) < value(b); });
    candidates_.push_back(static_cast<int32_t>(most - first));
  }
  arrays_.logits.put(logit_sets_[0].data(), logit_sets_[0].size() * 2);
  arrays_.slots.put(slots_.data(), slots_.size() * 4);
  arrays_.positions.put(positions_.data(), positions_.size() * 8);
  arrays_.candidates.put(candidates_.data(), candidates_.size() * 4);
  arrays_.block.get(n_ * kNumOutputs * 4);
  others_.block.get(n_ * kNumOutputs * 4);
  others_.logits.get(logit_sets_[0].size() * 2);
  others_.slots.get(slots_.size() * 4);
  others_.positions.get(positions_.size() * 8);
  others_.candidates.put(candidates_.data(), candidates_.size() * 4);
}

Engine::~Engine() { ts_sampler_destroy(cpu_); }

void Engine::new_requests(int kind, cudaStream_t stream) {
  static uint64_t next_id = 1;
  std::vector<ts_request_params> params;
  for (size_t r = 0; r < ids_.size(); ++r) {
    ids_[r] = next_id++;
    params.push_back(step_params(kind, static_cast<int32_t>(r), ids_[r] * 77));
  }
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = shape_.n_requests;
  step.rows_per_request = shape_.rows_per_request;
  step.request_ids = ids_.data();
  step.slots = slots_.data();
  step.params = params.data();
  check(ts_sampler_prepare_step(cuda_, &step, stream) == TS_OK, "prepare_step");
  check(ts_sampler_prepare_step(cpu_, &step, nullptr) == TS_OK, "prepare_step on the CPU");
}

ts_status Engine::prepare_known() {
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = shape_.n_requests;
  step.rows_per_request = shape_.rows_per_request;
  step.request_ids = ids_.data();
  step.slots = slots_.data();
  return ts_sampler_prepare_step(cuda_, &step, nullptr);
}

ts_rows Engine::rows_of(const void* logits, const void* slots, const void* positions) const {
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = shape_.n_requests;
  rows.rows_per_request = shape_.rows_per_request;
  rows.vocab = shape_.vocab;
  rows.logits = logits;
  rows.logits_type = TS_BF16;
  rows.slots = slots;
  rows.positions = positions;
  rows.positions_type = TS_INT64;
  return rows;
}

ts_status Engine::enqueue(cudaStream_t stream, bool other) {
  Arrays& a = other ? others_ : arrays_;
  const ts_rows rows = rows_of(a.logits.data(), a.slots.data(), a.positions.data());
  const auto* candidates = static_cast<const int32_t*>(shape_.verify ? a.candidates.data() : nullptr);
  return call(cuda_, rows, candidates, static_cast<int32_t*>(a.block.data()), n_, shape_.asked, stream);
}

void Engine::advance(int64_t by, cudaStream_t stream) {
  launch_advance(static_cast<int64_t*>(arrays_.positions.data()), shape_.n_requests, by, stream);
  for (int64_t& position : positions_) position += by;
}

// The order of the requests in the call changes, and with it their slots' order; positions stay with the place.
void Engine::rotate_slots(cudaStream_t stream) {
  launch_rotate(static_cast<int32_t*>(arrays_.slots.data()), shape_.n_requests, stream);
  std::rotate(slots_.begin(), slots_.begin() + 1, slots_.end());
  std::rotate(ids_.begin(), ids_.begin() + 1, ids_.end());
}

void Engine::change_logits(cudaStream_t stream) {
  set_ = 1 - set_;
  launch_produce(static_cast<uint16_t*>(arrays_.logits.data()), static_cast<const uint16_t*>(device_sets_[set_].data()),
                 static_cast<int64_t>(logit_sets_[set_].size()), stream);
}

void Engine::copy_arrays(cudaStream_t stream) {
  const auto copy = [stream](Buffer& to, const Buffer& from) {
    check(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, stream), "copy");
  };
  copy(others_.logits, arrays_.logits);
  copy(others_.slots, arrays_.slots);
  copy(others_.positions, arrays_.positions);
}

void Engine::poison(cudaStream_t stream) {
  for (Arrays* a : {&arrays_, &others_}) {
    check(cudaMemsetAsync(a->block.data(), 0xA5, a->block.size(), stream), "poison");
  }
}

void Engine::poison_first(cudaStream_t stream) {
  check(cudaMemsetAsync(arrays_.block.data(), 0xA5, arrays_.block.size(), stream), "poison");
}

std::vector<int32_t> Engine::results(cudaStream_t stream, bool other) {
  std::vector<int32_t> words(n_ * kNumOutputs);
  const Arrays& a = other ? others_ : arrays_;
  check(cudaMemcpyAsync(words.data(), a.block.data(), words.size() * 4, cudaMemcpyDeviceToHost, stream), "results");
  check(cudaStreamSynchronize(stream), "the stream");
  return words;
}

std::vector<int32_t> Engine::results_and_overwrite(cudaStream_t stream) {
  change_logits(stream);
  change_logits(stream);
  return results(stream);
}

std::vector<int32_t> Engine::expected() {
  Results results(n_);
  const ts_rows rows = rows_of(logit_sets_[set_].data(), slots_.data(), positions_.data());
  const int32_t* candidates = shape_.verify ? candidates_.data() : nullptr;
  check(call(cpu_, rows, candidates, results.words.data(), n_, shape_.asked, nullptr) == TS_OK, "the CPU");
  return results.words;
}

}  // namespace ts::gpu
