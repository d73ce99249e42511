// SPDX-License-Identifier: Apache-2.0
// FAULTS.md C10: structs as programs built with other headers bring them, and in exactly their size.
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "support/catch.h"
#include "support/wrong_calls.h"

namespace ts::test {

TEST_CASE("C10 structs of a newer header: zero in what is unknown is accepted, anything else is not") {
  struct NewerParams {
    ts_request_params params;
    uint64_t extra;
  };
  struct NewerRows {
    ts_rows rows;
    uint64_t extra;
  };
  Calls calls;
  REQUIRE(calls.prepare() == TS_OK);
  const SharedVector<int32_t> expected = tokens_of(calls);
  NewerRows newer{calls.rows, 0};
  newer.rows.struct_size = sizeof(newer);
  calls.poison();
  CHECK(Calls::done(ts_sampler_sample(calls.sampler, &newer.rows, &calls.out, nullptr)) == TS_OK);
  CHECK(calls.ints[0] == expected);
  newer.extra = 1;
  calls.poison();
  CHECK(ts_sampler_sample(calls.sampler, &newer.rows, &calls.out, nullptr) == kSize);
  CHECK(std::string(ts_last_error()).find("ts_rows.struct_size") != std::string::npos);
  CHECK(calls.untouched());

  std::vector<NewerParams> wide(3);
  for (size_t i = 0; i < 3; ++i) wide[i] = {calls.params[i], 0};
  for (NewerParams& p : wide) p.params.struct_size = sizeof(p);
  calls.ids = {200, 201, 202, 0};
  calls.step.params = &wide[0].params;
  for (const uint32_t stride : {0u, static_cast<uint32_t>(sizeof(NewerParams))}) {
    for (uint64_t& id : calls.ids) id += 10;
    calls.step.params_stride = stride;
    REQUIRE(calls.prepare() == TS_OK);
    CHECK(tokens_of(calls) == expected);
  }
  wide[2].extra = 5;
  for (uint64_t& id : calls.ids) id += 10;
  CHECK(calls.prepare() == kSize);
  CHECK(tokens_of(calls) == expected);
}

TEST_CASE("C10 structs are read to their end and no further") {
  // Each on the heap in exactly its size, so that the address sanitizer sees a read or write past it.
  Calls calls;
  const auto exactly = [](const auto& value) {
    using T = std::decay_t<decltype(value)>;
    T* copy = static_cast<T*>(std::malloc(sizeof(T)));
    std::memcpy(static_cast<void*>(copy), &value, sizeof(T));
    return copy;
  };
  ts_config* config = exactly(calls.config);
  ts_step* step = exactly(calls.step);
  ts_rows* rows = exactly(calls.rows);
  ts_sample_out* out = exactly(calls.out);
  ts_draft* draft = exactly(calls.draft);
  ts_verify_out* verified = exactly(calls.verified);
  ts_capabilities* capabilities = exactly(ts_capabilities{sizeof(ts_capabilities), 0, 0, 0, 0, 0, 0, 0});
  ts_sampler* sampler = nullptr;
  CHECK(ts_get_capabilities(capabilities) == TS_OK);
  CHECK(ts_sampler_create(config, &sampler) == TS_OK);
  CHECK(ts_sampler_prepare_step(sampler, step, nullptr) == TS_OK);
  CHECK(ts_sampler_sample(sampler, rows, out, nullptr) == TS_OK);
  CHECK(Calls::done(ts_sampler_verify(sampler, rows, draft, verified, nullptr)) == TS_OK);
  ts_sampler_destroy(sampler);
  for (void* p :
       {static_cast<void*>(config), static_cast<void*>(step), static_cast<void*>(rows), static_cast<void*>(out),
        static_cast<void*>(draft), static_cast<void*>(verified), static_cast<void*>(capabilities)}) {
    std::free(p);
  }
}

}  // namespace ts::test
