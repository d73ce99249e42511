// SPDX-License-Identifier: Apache-2.0
// After create, no call allocates, on either backend: every operator new of this program is counted.
#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer has an operator new of its own
#include <cstdlib>
#include <new>
#include <vector>

#include "core/request_state.h"
#include "core/sampler.h"
#include "support/catch.h"
#include "support/device_memory.h"

namespace {
long n_allocations = 0;
}

void* operator new(std::size_t size) {
  ++n_allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
// Request states are aligned to more than malloc gives.
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++n_allocations;
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
  Sampler sampler(config, Environment{});
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

}  // namespace ts
#endif
