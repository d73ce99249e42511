// SPDX-License-Identifier: Apache-2.0
// The sampler: checks arguments, keeps the pool and the step's plan, and hands work to its backend.
#pragma once

#include <memory>

#include "core/backend.h"
#include "core/environment.h"
#include "core/plan.h"
#include "core/pool.h"

namespace ts {

// Why handed in: the sampler knows no backend but by its interface.
using MakeBackend = std::unique_ptr<Backend> (*)(const ts_config& complete_config);

class Sampler {
 public:
  Sampler(const ts_config& config, const Environment& environment, MakeBackend make_backend);

  void prepare_step(const ts_step& step, ts_stream stream);
  void release_slots(const void* slots, int32_t slots_type, int32_t n);
  void sample(const ts_rows& rows, const ts_sample_out& out, ts_stream stream);
  void verify(const ts_rows& rows, const ts_draft& draft, const ts_verify_out& out, ts_stream stream);
  void prepare_capture(int32_t n_requests, int32_t rows_per_request, const char* variant);
  void reset_capture() { forget_step(); }
  void set_broadcast(const ts_broadcast& broadcast);

  int32_t device() const { return backend_->device(); }
  const Plan& plan() const { return plan_; }

 private:
  void check_prepared(const ts_rows& rows) const;
  void forget_step();

  ts_config config_;
  Environment environment_;
  Pool pool_;
  std::unique_ptr<Backend> backend_;
  Broadcast broadcast_;
  Plan plan_;
  bool capturing_ = false;
};

}  // namespace ts
