// SPDX-License-Identifier: Apache-2.0
// The CPU backend: the contract in code, one row after another. Every other backend must return its bits.
#pragma once

#include <vector>

#include "core/backend.h"
#include "cpu/filter.h"

namespace ts {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const ts_config& config);

  int32_t device() const override { return TS_DEVICE_CPU; }
  // Why: nothing to do; this backend reads the host's pool.
  void write_slots(const std::vector<int32_t>&, const std::vector<RequestState>&, ts_stream) override {}
  void sample(const Step& step, const ts_rows& rows, const ts_sample_out& out, ts_stream stream) override;
  void verify(const Step& step, const ts_rows& rows, const ts_draft& draft, const ts_verify_out& out,
              ts_stream stream) override;
  Broadcast make_broadcast(const ts_broadcast& broadcast) override;
  void send(const Broadcast& broadcast, const OutputArrays& arrays, ts_stream stream) override {
    broadcast.send(arrays, stream);
  }

 private:
  // The answers of one row; the last three only where asked for.
  struct RowResult {
    uint32_t token;
    uint32_t flags;
    float logprob;
    int32_t rank;
    int32_t n_kept;
  };
  struct Wanted {
    bool logprob;
    bool rank;
    bool n_kept;
  };

  void read_slots(const Step& step, const ts_rows& rows);
  RowResult sample_row(const Step& step, const ts_rows& rows, int32_t request, int32_t row, Wanted wanted);

  uint32_t invalid_token_;
  std::vector<int32_t> slots_;    // of a call's requests, checked
  std::vector<float> logits_;     // one row
  std::vector<float> chunk_max_;  // its chunks
  FilterScratch filter_scratch_;
};

}  // namespace ts
