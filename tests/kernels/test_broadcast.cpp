// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel agreement through the callback, on the CPU backend: two ranks in one process, wrong arguments, and
// callbacks that fail.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/sampler.h"

namespace ts::test {
namespace {

constexpr int32_t kVocab = 500;
constexpr int32_t kRequests = 3;
constexpr int32_t kRowsPerRequest = 2;
constexpr int32_t kRows = kRequests * kRowsPerRequest;
using Bytes = std::vector<unsigned char>;

// Rank 0's callback puts arrays on the wire, rank 1's takes them off.
struct Wire {
  std::vector<Bytes> arrays;
  size_t n_taken = 0;
};
struct Rank {
  Wire* wire = nullptr;
  int32_t rank = 0;
  int32_t n_calls = 0;
  int32_t fail_at = -1;
  ts_status failure = TS_OK;
  ts_stream stream = nullptr;
};

ts_status send(void* user, void* data, size_t n_bytes, ts_stream stream) {
  Rank& rank = *static_cast<Rank*>(user);
  rank.stream = stream;
  if (rank.n_calls++ == rank.fail_at) return rank.failure;
  auto* bytes = static_cast<unsigned char*>(data);
  if (rank.rank == 0) {
    rank.wire->arrays.emplace_back(bytes, bytes + n_bytes);
  } else {
    const Bytes& sent = rank.wire->arrays.at(rank.wire->n_taken++);
    REQUIRE(sent.size() == n_bytes);
    std::memcpy(data, sent.data(), n_bytes);
  }
  return TS_OK;
}

// A sampler whose seed depends on its rank, so that ranks disagree by themselves.
struct Member {
  Rank rank;
  ts_sampler* sampler = nullptr;
  std::vector<float> logits = std::vector<float>(size_t{kRows} * kVocab, 0.0f);
  int32_t slots[kRequests] = {2, 0, 1};
  int32_t candidates[kRows] = {0, 1, 0, 2, 0, 3};
  std::vector<int32_t> ints[5];
  std::vector<float> logprobs = std::vector<float>(kRows, -1.0f);
  std::vector<uint32_t> flags = std::vector<uint32_t>(kRows, 77);
  uint32_t n_bad_rows = 0;
  ts_rows rows{};
  ts_sample_out out{};
  ts_draft draft{};
  ts_verify_out verified{};
  ts_broadcast broadcast{};

  Member(int32_t number, Wire* wire) {
    rank.wire = wire;
    rank.rank = number;
    ts_config config{};
    config.struct_size = sizeof(config);
    config.device = TS_DEVICE_CPU;
    config.vocab_size = kVocab;
    config.n_slots = 4;
    config.seed = static_cast<uint64_t>(number);
    REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
    const uint64_t ids[kRequests] = {10, 11, 12};
    const ts_request_params plain[kRequests] = {TS_REQUEST_PARAMS_INIT, TS_REQUEST_PARAMS_INIT, TS_REQUEST_PARAMS_INIT};
    const ts_step step = {sizeof(step), kRequests, kRowsPerRequest, TS_INT32, ids, slots, plain, 0, 0};
    REQUIRE(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK);
    for (std::vector<int32_t>& v : ints) v.assign(kRows, -5);
    rows.struct_size = sizeof(rows);
    rows.n_requests = kRequests;
    rows.rows_per_request = kRowsPerRequest;
    rows.logits = logits.data();
    rows.slots = slots;
    out = {sizeof(out), 0, ints[0].data(), logprobs.data(), ints[1].data(), ints[2].data(), flags.data(), &n_bad_rows};
    draft = {sizeof(draft), 0, candidates, 0};
    verified = {sizeof(verified), 0,
                ints[0].data(),   ints[3].data(),
                ints[4].data(),   logprobs.data(),
                ints[1].data(),   ints[2].data(),
                flags.data(),     &n_bad_rows};
    broadcast = {sizeof(broadcast), 2, number, 0, nullptr, send, &rank};
  }
  ~Member() { ts_sampler_destroy(sampler); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  ts_status set() { return ts_sampler_set_broadcast(sampler, &broadcast); }
  ts_status sample(ts_stream stream = nullptr) { return ts_sampler_sample(sampler, &rows, &out, stream); }
  ts_status verify() { return ts_sampler_verify(sampler, &rows, &draft, &verified, nullptr); }
};

}  // namespace

TEST_CASE("broadcast: ranks that differ agree with rank 0, array by array") {
  Wire wire;
  Member zero(0, &wire), one(1, &wire);
  REQUIRE(zero.sample() == TS_OK);
  REQUIRE(one.sample() == TS_OK);
  const std::vector<int32_t> own = zero.ints[0];
  REQUIRE(own != one.ints[0]);
  CHECK(zero.rank.n_calls == 0);

  REQUIRE(zero.set() == TS_OK);
  REQUIRE(one.set() == TS_OK);
  int some_stream = 0;
  const auto stream = reinterpret_cast<ts_stream>(&some_stream);
  REQUIRE(zero.sample(stream) == TS_OK);
  REQUIRE(one.sample(stream) == TS_OK);
  CHECK(zero.rank.n_calls == 5);
  CHECK(one.rank.n_calls == 5);
  CHECK(zero.rank.stream == stream);
  CHECK(zero.ints[0] == own);
  CHECK(one.ints[0] == own);
  CHECK(one.logprobs == zero.logprobs);
  for (const Bytes& array : wire.arrays) CHECK(array.size() == kRows * 4);

  // Only what is wanted travels; the counter never does.
  zero.out.logprobs = one.out.logprobs = nullptr;
  zero.out.ranks = one.out.ranks = nullptr;
  zero.out.row_flags = one.out.row_flags = nullptr;
  REQUIRE(zero.sample() == TS_OK);
  REQUIRE(one.sample() == TS_OK);
  CHECK(zero.rank.n_calls == 7);

  REQUIRE(zero.verify() == TS_OK);
  REQUIRE(one.verify() == TS_OK);
  CHECK(zero.rank.n_calls == 14);
  CHECK(wire.arrays.at(9).size() == kRequests * 4);  // accept_length
  for (int i : {0, 3, 4}) CHECK(zero.ints[i] == one.ints[i]);

  // No rows: nothing to send. Off again: ranks differ again.
  zero.rows.n_requests = 0;
  REQUIRE(zero.sample() == TS_OK);
  CHECK(zero.rank.n_calls == 14);
  REQUIRE(ts_sampler_set_broadcast(one.sampler, nullptr) == TS_OK);
  REQUIRE(one.sample() == TS_OK);
  CHECK(one.rank.n_calls == 14);
  CHECK(one.ints[0] != own);
}

TEST_CASE("broadcast: one rank is nothing, and its fields are not looked at") {
  Wire wire;
  Member only(0, &wire);
  for (const int32_t n_ranks : {1, 0, -3}) {
    only.broadcast = {sizeof(ts_broadcast), n_ranks, 9, 9, &wire, send, &only.rank};
    CHECK(only.set() == TS_OK);
    CHECK(only.sample() == TS_OK);
    CHECK(only.rank.n_calls == 0);
  }
}

TEST_CASE("broadcast: wrong arguments are named, and what was set before stays") {
  Wire wire;
  Member member(0, &wire);
  REQUIRE(member.set() == TS_OK);
  const ts_broadcast good = member.broadcast;
  const auto refuse = [&](const ts_broadcast& wrong, ts_status status, const char* name) {
    INFO(name);
    member.broadcast = wrong;
    CHECK(member.set() == status);
    CHECK_THAT(ts_last_error(), says(name));
    const int32_t before = member.rank.n_calls;
    CHECK(member.sample() == TS_OK);
    CHECK(member.rank.n_calls == before + 5);
  };
  ts_broadcast wrong = good;
  wrong.rank = 2;
  refuse(wrong, TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.rank");
  wrong.rank = -1;
  refuse(wrong, TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.rank");
  wrong = good;
  wrong.reserved = 1;
  refuse(wrong, TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.reserved");
  wrong = good;
  wrong.callback = nullptr;
  refuse(wrong, TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.nccl_comm and callback");
  wrong = good;
  wrong.nccl_comm = &wire;
  refuse(wrong, TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.nccl_comm and callback");
  wrong.callback = nullptr;
  refuse(wrong, TS_ERROR_UNSUPPORTED, "ts_broadcast.nccl_comm");
  CHECK(ts_sampler_set_broadcast(nullptr, &good) == TS_ERROR_INVALID_ARGUMENT);
  CHECK_THAT(ts_last_error(), says("sampler is NULL"));
}

TEST_CASE("broadcast: a failing callback's status comes back, and the next call is as ever") {
  Wire wire;
  Member member(0, &wire);
  REQUIRE(member.set() == TS_OK);
  for (const ts_status status : {ts_status{TS_ERROR_CUDA}, ts_status{TS_ERROR_INTERNAL}, ts_status{1234}}) {
    member.rank = {&wire, 0, 0, 2, status, nullptr};
    CHECK(member.sample() == status);
    CHECK_THAT(ts_last_error(), says("ts_broadcast.callback returned"));
    CHECK(member.rank.n_calls == 3);
    member.rank.n_calls = 0;
    CHECK(member.verify() == status);
    member.rank.fail_at = -1;
    CHECK(member.sample() == TS_OK);
  }
}

}  // namespace ts::test
