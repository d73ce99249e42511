// SPDX-License-Identifier: Apache-2.0
// Calls with their outputs in one block.
#include "gpu/calls.h"

namespace ts::gpu {

std::string to_string(Asked asked) {
  std::string all = "tokens";
  const char* const names[] = {"tokens", "ranks", "n_kept", "logprobs", "flags", "index", "length", "bad rows"};
  for (int output = 0; output < kNumOutputs; ++output) {
    if ((asked >> output & 1u) != 0) all += std::string(" ") + names[output];
  }
  return all;
}

ts_status call(ts_sampler* sampler, const ts_rows& rows, const int32_t* candidates, int32_t* block, size_t n,
               Asked asked, ts_stream stream) {
  const auto array = [&](int output) {
    return asks_for(asked, output) ? block + static_cast<size_t>(output) * n : nullptr;
  };
  auto* logprobs = reinterpret_cast<float*>(array(kLogprobs));
  int32_t* ranks = array(kRanks);
  int32_t* kept = array(kKept);
  auto* flags = reinterpret_cast<uint32_t*>(array(kFlags));
  auto* bad_rows = reinterpret_cast<uint32_t*>(array(kBadRows));
  if (candidates == nullptr) {
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = block + kTokens * n;
    out.logprobs = logprobs;
    out.ranks = ranks;
    out.n_kept = kept;
    out.row_flags = flags;
    out.n_bad_rows = bad_rows;
    return ts_sampler_sample(sampler, &rows, &out, stream);
  }
  ts_draft draft{};
  draft.struct_size = sizeof(draft);
  draft.candidates = candidates;
  ts_verify_out out{};
  out.struct_size = sizeof(out);
  out.predict = block + kTokens * n;
  out.accept_index = block + kAcceptIndex * n;
  out.accept_length = block + kAcceptLength * n;
  out.logprobs = logprobs;
  out.ranks = ranks;
  out.n_kept = kept;
  out.row_flags = flags;
  out.n_bad_rows = bad_rows;
  return ts_sampler_verify(sampler, &rows, &draft, &out, stream);
}

}  // namespace ts::gpu
