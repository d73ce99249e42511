// SPDX-License-Identifier: Apache-2.0
// FAULTS.md C10: every argument wrong once gives a code and a message that names it, writes nothing and changes
// nothing.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/sampler.h"

namespace ts::test {
namespace {

constexpr int32_t kVocab = 70;
constexpr int32_t kRequests = 3;
constexpr int32_t kRowsPerRequest = 2;
constexpr size_t kRows = kRequests * kRowsPerRequest;
constexpr int32_t kPoison = 0x5A5A5A5A;

// All arguments of a good step and its calls, to be spoilt one at a time.
struct Calls {
  ts_config config{};
  ts_sampler* sampler = nullptr;
  std::vector<uint64_t> ids = {7, 8, 9, 0};
  SharedVector<int32_t> slots = {5, 0, 3, 0};
  std::vector<ts_request_params> params;
  SharedVector<float> logits;
  SharedVector<int64_t> positions = {4, 5, 6, 0};
  SharedVector<int32_t> mask;
  SharedVector<int32_t> candidates;
  SharedVector<int32_t> ints[7];
  SharedVector<float> logprobs;
  ts_step step{};
  ts_rows rows{};
  ts_sample_out out{};
  ts_draft draft{};
  ts_verify_out verified{};

  Calls() {
    config.struct_size = sizeof(config);
    config.device = test_device();
    config.vocab_size = kVocab;
    config.n_slots = 8;
    config.max_requests = 4;
    config.max_rows_per_request = 4;
    REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
    params = {test::params(1.0f), test::params(0.8f, 5), test::params(1.2f, 0, 0.9f), test::params()};
    logits.resize(kRows * kVocab + 1);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 37) % 41) * 0.2f;
    mask.assign(kRows * 3 + 1, -1);
    candidates.assign(kRows + 1, 3);
    for (SharedVector<int32_t>& v : ints) v.assign(kRows + 1, kPoison);
    logprobs.assign(kRows + 1, 0.0f);
    poison();
    step = {sizeof(ts_step), kRequests, kRowsPerRequest, TS_INT32, ids.data(), slots.data(), params.data(), 0, 0};
    rows.struct_size = sizeof(rows);
    rows.n_requests = kRequests;
    rows.rows_per_request = kRowsPerRequest;
    rows.vocab = kVocab;
    rows.logits = logits.data();
    rows.slots = slots.data();
    rows.positions = positions.data();
    rows.positions_type = TS_INT64;
    rows.allow_mask = mask.data();
    out = {sizeof(ts_sample_out),
           0,
           ints[0].data(),
           logprobs.data(),
           ints[1].data(),
           ints[2].data(),
           reinterpret_cast<uint32_t*>(ints[3].data()),
           reinterpret_cast<uint32_t*>(ints[6].data())};
    draft = {sizeof(ts_draft), 0, candidates.data(), 0};
    verified = {sizeof(ts_verify_out),
                0,
                ints[0].data(),
                ints[4].data(),
                ints[5].data(),
                logprobs.data(),
                ints[1].data(),
                ints[2].data(),
                reinterpret_cast<uint32_t*>(ints[3].data()),
                reinterpret_cast<uint32_t*>(ints[6].data())};
  }
  ~Calls() { ts_sampler_destroy(sampler); }

  void poison() {
    for (SharedVector<int32_t>& v : ints) v.assign(v.size(), kPoison);
    std::memset(logprobs.data(), 0x5A, logprobs.size() * 4);
  }
  bool untouched() const {
    for (const SharedVector<int32_t>& v : ints) {
      for (const int32_t value : v) {
        if (value != kPoison) return false;
      }
    }
    for (const float value : logprobs) {
      int32_t bits;
      std::memcpy(&bits, &value, 4);
      if (bits != kPoison) return false;
    }
    return true;
  }
  ts_status prepare() { return ts_sampler_prepare_step(sampler, &step, nullptr); }
  ts_status sample() { return done(ts_sampler_sample(sampler, &rows, &out, nullptr)); }
  ts_status verify() { return done(ts_sampler_verify(sampler, &rows, &draft, &verified, nullptr)); }
  // What was enqueued has been written. After a refused call too: nothing may have been enqueued by it.
  static ts_status done(ts_status status) {
    synchronize();
    return status;
  }
};

using Spoil = std::function<void(Calls&)>;
struct Wrong {
  const char* named;  // must be in the message
  ts_status status;
  Spoil spoil;
};

SharedVector<int32_t> tokens_of(Calls& good) {
  good.poison();
  REQUIRE(good.sample() == TS_OK);
  return good.ints[0];
}

template <class T>
T* misaligned(T* p) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) + 1);
}

constexpr ts_status kInvalid = TS_ERROR_INVALID_ARGUMENT;
constexpr ts_status kSize = TS_ERROR_STRUCT_SIZE;
constexpr ts_status kUnprepared = TS_ERROR_NOT_PREPARED;

// After a wrong call, with the arguments mended, everything is as it was.
void check_wrong(const Wrong& wrong, ts_status (Calls::*call)()) {
  INFO(wrong.named);
  Calls calls;
  REQUIRE(calls.prepare() == TS_OK);
  const SharedVector<int32_t> expected = tokens_of(calls);
  Calls good;  // its arrays stay as they are
  calls.poison();
  wrong.spoil(calls);
  CHECK((calls.*call)() == wrong.status);
  CHECK(std::string(ts_last_error()).find(wrong.named) != std::string::npos);
  CHECK(calls.untouched());
  std::swap(calls.sampler, good.sampler);
  CHECK(std::string(ts_sampler_step_route(good.sampler)) == "mixed");
  CHECK(tokens_of(good) == expected);
  CHECK(good.prepare() == TS_OK);
  CHECK(tokens_of(good) == expected);
}

}  // namespace

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
      {"invalid_token", kInvalid, [](ts_config& c) { c.invalid_token = kVocab; }},
      {"invalid_token", kInvalid, [](ts_config& c) { c.invalid_token = -1; }},
      {"flags", kInvalid, [](ts_config& c) { c.flags = 2; }},
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

TEST_CASE("C10 sample and verify: every wrong row argument is named and writes nothing") {
  const std::vector<Wrong> wrongs = {
      {"ts_rows.struct_size", kSize, [](Calls& c) { c.rows.struct_size = 0; }},
      {"ts_rows.struct_size", kSize, [](Calls& c) { c.rows.struct_size = sizeof(ts_rows) - 8; }},
      {"ts_rows.n_requests", kInvalid, [](Calls& c) { c.rows.n_requests = -1; }},
      {"ts_rows.n_requests", kInvalid, [](Calls& c) { c.rows.n_requests = 5; }},
      {"ts_rows.n_requests", kUnprepared, [](Calls& c) { c.rows.n_requests = 4; }},
      {"ts_rows.rows_per_request", kUnprepared, [](Calls& c) { c.rows.rows_per_request = 1; }},
      {"ts_rows.rows_per_request", kInvalid, [](Calls& c) { c.rows.rows_per_request = 5; }},
      {"ts_rows.vocab", kInvalid, [](Calls& c) { c.rows.vocab = kVocab + 1; }},
      {"ts_rows.vocab", kInvalid, [](Calls& c) { c.rows.vocab = -1; }},
      {"ts_rows.logits", kInvalid, [](Calls& c) { c.rows.logits = nullptr; }},
      {"ts_rows.logits", kInvalid, [](Calls& c) { c.rows.logits = misaligned(c.logits.data()); }},
      {"ts_rows.row_stride", kInvalid, [](Calls& c) { c.rows.row_stride = kVocab - 1; }},
      {"ts_rows.row_stride", kInvalid, [](Calls& c) { c.rows.row_stride = -kVocab; }},
      {"ts_rows.row_stride", kInvalid, [](Calls& c) { c.rows.row_stride = INT64_MAX; }},
      {"ts_rows.logits_type", kInvalid, [](Calls& c) { c.rows.logits_type = 3; }},
      {"ts_rows.n_valid", kInvalid, [](Calls& c) { c.rows.n_valid = kVocab + 1; }},
      {"ts_rows.n_valid", kInvalid, [](Calls& c) { c.rows.n_valid = -1; }},
      {"ts_rows.slots", kInvalid, [](Calls& c) { c.rows.slots = nullptr; }},
      {"ts_rows.slots", kInvalid, [](Calls& c) { c.rows.slots = misaligned(c.slots.data()); }},
      {"ts_rows.slots_type", kInvalid, [](Calls& c) { c.rows.slots_type = -1; }},
      {"ts_rows.positions", kInvalid, [](Calls& c) { c.rows.positions = misaligned(c.positions.data()); }},
      {"ts_rows.positions_type", kInvalid, [](Calls& c) { c.rows.positions_type = 9; }},
      {"ts_rows.allow_mask", kInvalid, [](Calls& c) { c.rows.allow_mask = misaligned(c.mask.data()); }},
      {"ts_rows.mask_words", kInvalid, [](Calls& c) { c.rows.mask_words = -1; }},
      {"ts_rows.mask_stride", kInvalid, [](Calls& c) { c.rows.mask_stride = 2; }},
      {"ts_rows.reserved", kInvalid, [](Calls& c) { c.rows.reserved = 1; }},
  };
  for (const Wrong& wrong : wrongs) {
    check_wrong(wrong, &Calls::sample);
    check_wrong(wrong, &Calls::verify);
  }
  const std::vector<Wrong> sample_wrongs = {
      {"ts_sample_out.struct_size", kSize, [](Calls& c) { c.out.struct_size = 0; }},
      {"ts_sample_out.reserved", kInvalid, [](Calls& c) { c.out.reserved = 1; }},
      {"ts_sample_out.tokens", kInvalid, [](Calls& c) { c.out.tokens = nullptr; }},
      {"ts_sample_out.tokens", kInvalid, [](Calls& c) { c.out.tokens = misaligned(c.out.tokens); }},
      {"ts_sample_out.logprobs", kInvalid, [](Calls& c) { c.out.logprobs = misaligned(c.out.logprobs); }},
      {"ts_sample_out.ranks", kInvalid, [](Calls& c) { c.out.ranks = misaligned(c.out.ranks); }},
      {"ts_sample_out.n_kept", kInvalid, [](Calls& c) { c.out.n_kept = misaligned(c.out.n_kept); }},
      {"ts_sample_out.row_flags", kInvalid, [](Calls& c) { c.out.row_flags = misaligned(c.out.row_flags); }},
      {"ts_sample_out.n_bad_rows", kInvalid, [](Calls& c) { c.out.n_bad_rows = misaligned(c.out.n_bad_rows); }},
  };
  for (const Wrong& wrong : sample_wrongs) check_wrong(wrong, &Calls::sample);
  const std::vector<Wrong> verify_wrongs = {
      {"ts_draft.struct_size", kSize, [](Calls& c) { c.draft.struct_size = 0; }},
      {"ts_draft.reserved", kInvalid, [](Calls& c) { c.draft.reserved = 1; }},
      {"ts_draft.candidates", kInvalid, [](Calls& c) { c.draft.candidates = nullptr; }},
      {"ts_draft.candidates", kInvalid, [](Calls& c) { c.draft.candidates = misaligned(c.draft.candidates); }},
      {"ts_draft.candidates_stride", kInvalid, [](Calls& c) { c.draft.candidates_stride = 1; }},
      {"ts_verify_out.struct_size", kSize, [](Calls& c) { c.verified.struct_size = 12; }},
      {"ts_verify_out.reserved", kInvalid, [](Calls& c) { c.verified.reserved = 1; }},
      {"ts_verify_out.predict", kInvalid, [](Calls& c) { c.verified.predict = nullptr; }},
      {"ts_verify_out.accept_index", kInvalid, [](Calls& c) { c.verified.accept_index = nullptr; }},
      {"ts_verify_out.accept_length", kInvalid, [](Calls& c) { c.verified.accept_length = nullptr; }},
      {"ts_verify_out.logprobs", kInvalid, [](Calls& c) { c.verified.logprobs = misaligned(c.verified.logprobs); }},
      {"ts_verify_out.ranks", kInvalid, [](Calls& c) { c.verified.ranks = misaligned(c.verified.ranks); }},
      {"ts_verify_out.n_kept", kInvalid, [](Calls& c) { c.verified.n_kept = misaligned(c.verified.n_kept); }},
      {"ts_verify_out.row_flags", kInvalid, [](Calls& c) { c.verified.row_flags = misaligned(c.verified.row_flags); }},
      {"ts_verify_out.n_bad_rows", kInvalid,
       [](Calls& c) { c.verified.n_bad_rows = misaligned(c.verified.n_bad_rows); }},
  };
  for (const Wrong& wrong : verify_wrongs) check_wrong(wrong, &Calls::verify);

  Calls calls;  // not prepared
  CHECK(calls.sample() == kUnprepared);
  CHECK(calls.verify() == kUnprepared);
  CHECK(calls.untouched());
  REQUIRE(calls.prepare() == TS_OK);
  CHECK(ts_sampler_sample(nullptr, &calls.rows, &calls.out, nullptr) == kInvalid);
  CHECK(ts_sampler_sample(calls.sampler, nullptr, &calls.out, nullptr) == kInvalid);
  CHECK(ts_sampler_sample(calls.sampler, &calls.rows, nullptr, nullptr) == kInvalid);
  CHECK(ts_sampler_verify(nullptr, &calls.rows, &calls.draft, &calls.verified, nullptr) == kInvalid);
  CHECK(ts_sampler_verify(calls.sampler, &calls.rows, nullptr, &calls.verified, nullptr) == kInvalid);
  CHECK(ts_sampler_verify(calls.sampler, &calls.rows, &calls.draft, nullptr, nullptr) == kInvalid);
  CHECK(calls.untouched());
  // Releasing a slot of the step forgets it.
  REQUIRE(ts_sampler_release_slots(calls.sampler, calls.slots.data(), TS_INT32, 1) == TS_OK);
  CHECK(calls.sample() == kUnprepared);
}

TEST_CASE("C10 sample and verify: wrong entries of device arrays are errors on the CPU and EMPTY rows on a GPU") {
  if (!on_cuda()) {
    const std::vector<Wrong> wrongs = {
        {"ts_rows.slots[1]", kInvalid, [](Calls& c) { c.slots[1] = 8; }},
        {"ts_rows.slots[1]", kInvalid, [](Calls& c) { c.slots[1] = INT32_MIN; }},
        {"ts_rows.slots[2]", kUnprepared, [](Calls& c) { c.slots[2] = 1; }},
        {"ts_rows.positions[2]", kInvalid, [](Calls& c) { c.positions[2] = -1; }},
    };
    for (const Wrong& wrong : wrongs) {
      check_wrong(wrong, &Calls::sample);
      check_wrong(wrong, &Calls::verify);
    }
    return;
  }
  // Nobody but the device sees them there: the request's rows are EMPTY, its neighbours' rows are as ever.
  for (const int32_t slot : {8, 9, -1, INT32_MIN, INT32_MAX}) {
    INFO("slot " << slot);
    Calls calls;
    REQUIRE(calls.prepare() == TS_OK);
    const SharedVector<int32_t> expected = tokens_of(calls);
    calls.slots[1] = slot;
    const SharedVector<int32_t> got = tokens_of(calls);
    for (size_t i = 0; i < kRows; ++i) {
      const bool empty = i / kRowsPerRequest == 1;
      CHECK(got[i] == (empty ? 0 : expected[i]));
      CHECK((calls.ints[3][i] == TS_ROW_EMPTY) == empty);
      CHECK(std::isnan(calls.logprobs[i]) == empty);
    }
    calls.poison();
    CHECK(calls.verify() == TS_OK);
    CHECK(calls.ints[5][1] == 1);  // an EMPTY row ends its chain
    CHECK(calls.ints[3][2] == TS_ROW_EMPTY);
    CHECK(calls.ints[0][0] == expected[0]);
    CHECK(calls.ints[0][4] == expected[4]);
  }
}

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
