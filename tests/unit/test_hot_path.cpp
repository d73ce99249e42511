// SPDX-License-Identifier: Apache-2.0
// After create, no call allocates, and create itself little, on either backend: every operator new of this program is
// counted.
#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer has an operator new of its own
#include <cstdlib>
#include <new>
#include <vector>

#include "../../capi/devices.h"
#include "core/request_state.h"
#include "core/sampler.h"
#include "support/catch.h"
#include "support/device_memory.h"

namespace {
long n_allocations = 0;
size_t n_bytes = 0;  // of all of them; what is freed stays counted
}  // namespace

void* operator new(std::size_t size) {
  ++n_allocations;
  n_bytes += size;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
// Request states are aligned to more than malloc gives.
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++n_allocations;
  n_bytes += size;
  const auto to = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(to, (size + to - 1) / to * to)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace ts {

using test::SharedVector;

TEST_CASE("prepare_step, sample and verify allocate nothing") {
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = test::test_device();
  config.vocab_size = 5000;
  config.n_slots = 16;
  config.max_graphs = -1;  // the first call of a shape makes its graph otherwise
  Sampler sampler(config, Environment{}, make_backend);
  ts_broadcast broadcast{};
  broadcast.struct_size = sizeof(broadcast);
  broadcast.n_ranks = 2;
  broadcast.callback = [](void*, void*, size_t, ts_stream) -> ts_status { return TS_OK; };
  sampler.set_broadcast(broadcast);

  SharedVector<float> logits(16 * 5000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 2654435761u) % 1000) * 0.01f;
  std::vector<uint64_t> ids(4);
  SharedVector<int32_t> slots = {3, 1, 0, 9};
  std::vector<ts_request_params> params(4, ts_request_params TS_REQUEST_PARAMS_INIT);
  params[1].top_k = 40;
  params[2].top_p = 0.9f;
  params[3].min_p = 0.1f;
  SharedVector<int32_t> tokens(16), accept_index(16), accept_length(4), ranks(16), candidates(16), kept(16);
  SharedVector<float> logprobs(16);
  SharedVector<uint32_t> n_bad_rows(1);

  for (uint64_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = round * 4 + i;
    ts_step step{};
    step.struct_size = sizeof(step);
    step.n_requests = 4;
    step.rows_per_request = 4;
    step.request_ids = ids.data();
    step.slots = slots.data();
    step.params = params.data();
    ts_rows rows{};
    rows.struct_size = sizeof(rows);
    rows.n_requests = 4;
    rows.rows_per_request = 4;
    rows.logits = logits.data();
    rows.slots = slots.data();
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = tokens.data();
    out.logprobs = logprobs.data();
    out.ranks = ranks.data();
    out.n_kept = kept.data();
    out.n_bad_rows = n_bad_rows.data();
    ts_draft draft{};
    draft.struct_size = sizeof(draft);
    draft.candidates = candidates.data();
    ts_verify_out verified{};
    verified.struct_size = sizeof(verified);
    verified.predict = tokens.data();
    verified.accept_index = accept_index.data();
    verified.accept_length = accept_length.data();
    verified.logprobs = logprobs.data();

    const long before = n_allocations;
    sampler.prepare_step(step, nullptr);
    sampler.sample(rows, out, nullptr);
    sampler.verify(rows, draft, verified, nullptr);
    const long after = n_allocations;
    CHECK(after == before);
    test::synchronize();
  }
  // The counter counts.
  const long before = n_allocations;
  volatile int* allocated = new int(1);
  const long after = n_allocations;
  delete allocated;
  const std::vector<RequestState> aligned(3);
  const long after_aligned = n_allocations;
  CHECK(after == before + 1);
  CHECK(after_aligned == after + 1);
}

// FAULTS.md F3. The bound is TARGETS.md's: scratch under 8 MB, beside the slots; one [rows, V] float buffer takes 311.
TEST_CASE("with 512 rows of 151,936 ids create allocates under 8 MB, and prepare_step and sample allocate nothing") {
  constexpr int32_t kVocab = 151936, kRows = 512;
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = test::test_device();
  config.max_rows_per_request = 4;
  config.max_graphs = -1;
  const auto bytes_of_create = [&](int32_t vocab, int32_t n_slots) {
    config.vocab_size = vocab;
    config.n_slots = n_slots;
    const size_t before = n_bytes;
    const Sampler sampler(config, Environment{}, make_backend);
    return n_bytes - before;
  };
  const size_t bytes = bytes_of_create(kVocab, kRows);
  CHECK(bytes < 8000000);
  CHECK(bytes > sizeof(RequestState) * kRows);  // the counter counts
  CHECK(bytes_of_create(262144, kRows) < 8000000);
  // The CPU backend has room for a few rows of ids, however many rows there will be.
  if (!test::on_cuda()) CHECK(bytes - bytes_of_create(kVocab, 1) == bytes_of_create(1, kRows) - bytes_of_create(1, 1));

  config.vocab_size = kVocab;
  config.n_slots = kRows;
  Sampler sampler(config, Environment{}, make_backend);
  SharedVector<uint16_t> logits(size_t{kRows} * kVocab);  // zero: the flattest rows have the longest lists
  SharedVector<int32_t> slots(kRows), tokens(kRows), ranks(kRows), kept(kRows);
  SharedVector<float> logprobs(kRows);
  std::vector<uint64_t> ids(kRows);
  std::vector<ts_request_params> params(kRows, ts_request_params TS_REQUEST_PARAMS_INIT);
  for (size_t i = 0; i < kRows; ++i) {
    ids[i] = i;
    slots[i] = static_cast<int32_t>(i);
    if (i % 2 == 1) params[i].top_k = 100000;
    if (i % 3 == 1) params[i].top_p = 0.9f;
    if (i % 5 == 1) params[i].min_p = 0.1f;
  }
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = kRows;
  step.request_ids = ids.data();
  step.slots = slots.data();
  step.params = params.data();
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = kRows;
  rows.logits = logits.data();
  rows.logits_type = TS_BF16;
  rows.slots = slots.data();
  ts_sample_out out{};
  out.struct_size = sizeof(out);
  out.tokens = tokens.data();
  out.logprobs = logprobs.data();
  out.ranks = ranks.data();
  out.n_kept = kept.data();
  const size_t before = n_bytes;
  sampler.prepare_step(step, nullptr);
  sampler.sample(rows, out, nullptr);
  const size_t after = n_bytes;
  test::synchronize();
  CHECK(after == before);
  CHECK((kept[0] == kVocab && kept[1] == 90000));  // so the filters did work on all of it
}

}  // namespace ts
#endif
