// SPDX-License-Identifier: Apache-2.0
// FAULTS.md C10: every field of create's configuration and of a step, wrong once, gives a code and a message that names
// it and changes nothing.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/wrong_calls.h"

namespace ts::test {

TEST_CASE("C10 create: every wrong field is named and gives no sampler") {
  struct WrongConfig {
    const char* named;
    ts_status status;
    std::function<void(ts_config&)> spoil;
  };
  const std::vector<WrongConfig> wrongs = {
      {"struct_size", kSize, [](ts_config& c) { c.struct_size = 0; }},
      {"struct_size", kSize, [](ts_config& c) { c.struct_size = 4; }},
      {"struct_size", kSize, [](ts_config& c) { c.struct_size = 40; }},
      {"struct_size", kSize, [](ts_config& c) { c.struct_size = 1u << 30; }},
      {"device", kInvalid, [](ts_config& c) { c.device = 3; }},
      {"device", kInvalid, [](ts_config& c) { c.device = -1; }},
      {"device_ordinal", kInvalid, [](ts_config& c) { c.device_ordinal = -1; }},
      {"vocab_size", kInvalid, [](ts_config& c) { c.vocab_size = 0; }},
      {"vocab_size", kInvalid, [](ts_config& c) { c.vocab_size = -5; }},
      {"vocab_size", kInvalid, [](ts_config& c) { c.vocab_size = TS_MAX_VOCAB + 1; }},
      {"n_slots", kInvalid, [](ts_config& c) { c.n_slots = -1; }},
      {"n_slots", kInvalid, [](ts_config& c) { c.n_slots = (1 << 24) + 1; }},
      {"max_requests", kInvalid, [](ts_config& c) { c.max_requests = 9; }},
      {"max_requests", kInvalid, [](ts_config& c) { c.max_requests = -1; }},
      {"max_rows_per_request", kInvalid, [](ts_config& c) { c.max_rows_per_request = 1025; }},
      {"max_rows_per_request", kInvalid, [](ts_config& c) { c.max_rows_per_request = -2; }},
      {"invalid_token", kInvalid, [](ts_config& c) { c.invalid_token = Calls::kVocab; }},
      {"invalid_token", kInvalid, [](ts_config& c) { c.invalid_token = -1; }},
      {"flags", kInvalid, [](ts_config& c) { c.flags = 4; }},
      {"flags", kInvalid, [](ts_config& c) { c.flags = uint64_t{1} << 32; }},
      {"max_graphs", kInvalid, [](ts_config& c) { c.max_graphs = -2; }},
      {"max_graphs", kInvalid, [](ts_config& c) { c.max_graphs = 4097; }},
      {"ts_config.reserved", kInvalid, [](ts_config& c) { c.reserved = 1; }},
  };
  const Calls good;
  for (const WrongConfig& wrong : wrongs) {
    INFO(wrong.named);
    ts_config config = good.config;
    wrong.spoil(config);
    auto* sampler = reinterpret_cast<ts_sampler*>(0x10);
    CHECK(ts_sampler_create(&config, &sampler) == wrong.status);
    CHECK(sampler == nullptr);
    CHECK(std::string(ts_last_error()).find(wrong.named) != std::string::npos);
  }
  CHECK(ts_sampler_create(nullptr, nullptr) == kInvalid);
  ts_sampler* sampler = nullptr;
  CHECK(ts_sampler_create(nullptr, &sampler) == kInvalid);
  CHECK(std::string(ts_last_error()).find("ts_config") != std::string::npos);
  ts_capabilities capabilities{};
  capabilities.struct_size = sizeof(capabilities);
  REQUIRE(ts_get_capabilities(&capabilities) == TS_OK);
  ts_config config = good.config;
  config.device = TS_DEVICE_CUDA;
  config.device_ordinal = capabilities.n_cuda_devices;
  CHECK(ts_sampler_create(&config, &sampler) == TS_ERROR_DEVICE);
  CHECK(std::string(ts_last_error()).find("ts_config.device") != std::string::npos);
  for (const char* name : {"fast", "none", "greedy "}) {
    const ScopedEnvironment forced("TSSAMPLE_FORCE_ROUTE", name);
    CHECK(ts_sampler_create(&good.config, &sampler) == kInvalid);
    CHECK(std::string(ts_last_error()).find("TSSAMPLE_FORCE_ROUTE") != std::string::npos);
  }
}

TEST_CASE("C10 prepare_step: every wrong argument is named and changes nothing") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  // New owners, so that their parameters are looked at.
  const auto with_new = [](const Spoil& spoil) {
    return [spoil](Calls& c) {
      c.ids = {100, 101, 102, 0};
      c.step.request_ids = c.ids.data();
      spoil(c);
    };
  };
  const std::vector<Wrong> wrongs = {
      {"ts_step.struct_size", kSize, [](Calls& c) { c.step.struct_size = 0; }},
      {"ts_step.struct_size", kSize, [](Calls& c) { c.step.struct_size = sizeof(ts_step) - 8; }},
      {"ts_step.n_requests", kInvalid, [](Calls& c) { c.step.n_requests = -1; }},
      {"ts_step.n_requests", kInvalid, [](Calls& c) { c.step.n_requests = 5; }},
      {"ts_step.rows_per_request", kInvalid, [](Calls& c) { c.step.rows_per_request = -1; }},
      {"ts_step.rows_per_request", kInvalid, [](Calls& c) { c.step.rows_per_request = 5; }},
      {"ts_step.slots_type", kInvalid, [](Calls& c) { c.step.slots_type = 2; }},
      {"ts_step.request_ids", kInvalid, [](Calls& c) { c.step.request_ids = nullptr; }},
      {"ts_step.request_ids", kInvalid, [](Calls& c) { c.step.request_ids = misaligned(c.ids.data()); }},
      {"ts_step.slots", kInvalid, [](Calls& c) { c.step.slots = nullptr; }},
      {"ts_step.slots", kInvalid, [](Calls& c) { c.step.slots = misaligned(c.slots.data()); }},
      {"ts_step.slots[1]", kInvalid, [](Calls& c) { c.slots[1] = 8; }},
      {"ts_step.slots[2]", kInvalid, [](Calls& c) { c.slots[2] = -1; }},
      {"ts_step.slots[2]", kInvalid, [](Calls& c) { c.slots[2] = 5; }},
      {"ts_step.params", kInvalid, with_new([](Calls& c) { c.step.params = nullptr; })},
      {"ts_step.params", kInvalid, with_new([](Calls& c) { c.step.params = misaligned(c.params.data()); })},
      {"ts_step.params_stride", kInvalid, with_new([](Calls& c) { c.step.params_stride = 33; })},
      {"ts_step.params", kSize, with_new([](Calls& c) { c.step.params_stride = 8; })},
      {"ts_step.params[0].struct_size", kSize, with_new([](Calls& c) { c.params[0].struct_size = 0; })},
      {"ts_step.params[0].struct_size", kSize, with_new([](Calls& c) { c.params[0].struct_size = 0xDEADBEE0u; })},
      {"ts_step.params[0].struct_size", kSize, with_new([](Calls& c) { c.params[0].struct_size = 33; })},
      {"ts_step.params[2].struct_size", kSize, with_new([](Calls& c) { c.params[2].struct_size = 0; })},
      {"ts_step.params[2]", kSize, with_new([](Calls& c) { c.params[2].struct_size = 64; })},
      {"ts_step.reserved", kInvalid, [](Calls& c) { c.step.reserved = 1; }},
      {"ts_step.params[2].temperature", kInvalid, with_new([](Calls& c) { c.params[2].temperature = -1.0f; })},
      {"ts_step.params[0].temperature", kInvalid, with_new([=](Calls& c) { c.params[0].temperature = nan; })},
      {"ts_step.params[0].temperature", kInvalid, with_new([=](Calls& c) { c.params[0].temperature = inf; })},
      {"ts_step.params[1].top_p", kInvalid, with_new([=](Calls& c) { c.params[1].top_p = nan; })},
      {"ts_step.params[1].min_p", kInvalid, with_new([=](Calls& c) { c.params[1].min_p = nan; })},
      {"ts_step.params[1].min_p", kInvalid, with_new([](Calls& c) { c.params[1].min_p = 1.01f; })},
      {"ts_step.params[1].flags", kInvalid, with_new([](Calls& c) { c.params[1].flags = 2; })},
  };
  for (const Wrong& wrong : wrongs) check_wrong(wrong, &Calls::prepare);

  // The message says whose size to set.
  Calls sizes;
  sizes.ids = {70, 80, 90, 0};
  sizes.params[2].struct_size = 0;
  REQUIRE(sizes.prepare() == kSize);
  CHECK(std::string(ts_last_error()).find("sizeof(ts_request_params)") != std::string::npos);
  // The stride comes from entry 0, known or not, so its size must be one.
  sizes.params[2].struct_size = sizeof(ts_request_params);
  sizes.ids = {7, 80, 90, 0};
  sizes.params[0].struct_size = 0xDEADBEE0u;
  REQUIRE(sizes.prepare() == kSize);
  CHECK(std::string(ts_last_error()).find("ts_step.params[0].struct_size") == 0);
  Calls calls;
  CHECK(ts_sampler_prepare_step(nullptr, &calls.step, nullptr) == kInvalid);
  CHECK(std::string(ts_last_error()).find("sampler") != std::string::npos);
  CHECK(ts_sampler_prepare_step(calls.sampler, nullptr, nullptr) == kInvalid);
  CHECK(ts_sampler_release_slots(nullptr, calls.slots.data(), TS_INT32, 1) == kInvalid);
  CHECK(ts_sampler_release_slots(calls.sampler, nullptr, TS_INT32, 1) == kInvalid);
  CHECK(ts_sampler_release_slots(calls.sampler, calls.slots.data(), 7, 1) == kInvalid);
  CHECK(ts_sampler_release_slots(calls.sampler, calls.slots.data(), TS_INT32, -1) == kInvalid);
}

}  // namespace ts::test
