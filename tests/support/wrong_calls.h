// SPDX-License-Identifier: Apache-2.0
// Good arguments of all calls, to be spoilt one at a time, and the check that a wrong call changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "support/sampler.h"

namespace ts::test {

// All arguments of a good step and its calls, to be spoilt one at a time.
struct Calls {
  static constexpr int32_t kVocab = 70;
  static constexpr int32_t kRequests = 3;
  static constexpr int32_t kRowsPerRequest = 2;
  static constexpr size_t kRows = kRequests * kRowsPerRequest;

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

  Calls();
  ~Calls() { ts_sampler_destroy(sampler); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // Fills the outputs with what no call writes.
  void poison();
  // Whether they still hold it.
  bool untouched() const;
  ts_status prepare() { return ts_sampler_prepare_step(sampler, &step, nullptr); }
  ts_status sample() { return done(ts_sampler_sample(sampler, &rows, &out, nullptr)); }
  ts_status verify() { return done(ts_sampler_verify(sampler, &rows, &draft, &verified, nullptr)); }
  // What was enqueued has been written. After a refused call too: nothing may have been enqueued by it.
  static ts_status done(ts_status status) {
    synchronize();
    return status;
  }
};

// Samples with good arguments.
SharedVector<int32_t> tokens_of(Calls& good);

using Spoil = std::function<void(Calls&)>;
struct Wrong {
  const char* named;  // must be in the message
  ts_status status;
  Spoil spoil;
};

// The wrong call is refused and names what is wrong; with the arguments mended, everything is as it was.
void check_wrong(const Wrong& wrong, ts_status (Calls::*call)());

template <class T>
T* misaligned(T* p) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) + 1);
}

constexpr ts_status kInvalid = TS_ERROR_INVALID_ARGUMENT;
constexpr ts_status kSize = TS_ERROR_STRUCT_SIZE;
constexpr ts_status kUnprepared = TS_ERROR_NOT_PREPARED;

}  // namespace ts::test
