// SPDX-License-Identifier: Apache-2.0
// Calls with their outputs in one block.
#include "gpu/calls.h"

namespace ts::gpu {
ts_status call(ts_sampler* sampler, const ts_rows& rows, const int32_t* candidates, int32_t* block, size_t n,
               bool tokens_alone, ts_stream stream) {
  float* logprobs = tokens_alone ? nullptr : reinterpret_cast<float*>(block + kLogprobs * n);
  int32_t* ranks = tokens_alone ? nullptr : block + kRanks * n;
  int32_t* kept = tokens_alone ? nullptr : block + kKept * n;
  uint32_t* flags = tokens_alone ? nullptr : reinterpret_cast<uint32_t*>(block + kFlags * n);
  uint32_t* bad_rows = tokens_alone ? nullptr : reinterpret_cast<uint32_t*>(block + kBadRows * n);
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
