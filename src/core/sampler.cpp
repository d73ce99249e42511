// SPDX-License-Identifier: Apache-2.0
// The sampler's calls: check, decide, hand over.
#include "core/sampler.h"

#include <cstdio>

#include "core/arguments.h"
#include "core/error.h"
#include "core/profiler_range.h"

namespace ts {
namespace {

void log_plan(const Plan& plan) { std::fprintf(stderr, "tssample: %s\n", describe(plan).c_str()); }

}  // namespace

Sampler::Sampler(const ts_config& config, const Environment& environment, MakeBackend make_backend)
    : config_(complete(config)),
      environment_(environment),
      pool_(config_.n_slots, config_.max_requests, config_.vocab_size, config_.seed),
      backend_(make_backend(config_)) {
  find_profiler();
}

void Sampler::prepare_step(const ts_step& caller_step, ts_stream stream) {
  const ProfilerRange range("tssample prepare_step");
  const ts_step step = complete(caller_step, config_);
  const StepNeeds needs = pool_.stage(step);
  Plan plan = select_plan(needs, step.n_requests, step.rows_per_request);
  if (environment_.forced_route != Route::kNone && plan.route != Route::kNone) {
    const char* selected = route_name(plan.route, plan.min_p);
    plan.route = environment_.forced_route;
    plan.min_p = environment_.forced_min_p;
    plan.forced = true;
    if (!plan.serves(needs.bits)) {
      throw Error(TS_ERROR_UNSUPPORTED, "TSSAMPLE_FORCE_ROUTE = %s cannot serve this step, which takes %s",
                  route_name(plan.route, plan.min_p), selected);
    }
  }
  if (!pool_.new_slots().empty()) backend_->write_slots(pool_.new_slots(), pool_.new_states(), stream);
  pool_.commit();
  plan_ = plan;
  capturing_ = false;
  if (environment_.log_plan) log_plan(plan_);
}

void Sampler::release_slots(const void* slots, int32_t slots_type, int32_t n) {
  check_index_type(slots_type, "slots_type");
  check_range(n, 0, INT32_MAX, "n");
  if (n == 0) return;
  check_array(slots, slots_type == TS_INT64 ? 8 : 4, "slots");
  if (pool_.release(IndexArray(slots, slots_type), n)) forget_step();
}

void Sampler::forget_step() {
  pool_.forget_step();
  plan_ = Plan{};
  capturing_ = false;
}

void Sampler::check_prepared(const ts_rows& rows) const {
  if (plan_.route == Route::kNone) {
    throw Error(TS_ERROR_NOT_PREPARED, "ts_rows.n_requests = %d: no step is prepared", rows.n_requests);
  }
  if (rows.n_requests > plan_.n_requests) {
    throw Error(TS_ERROR_NOT_PREPARED, "ts_rows.n_requests = %d: the prepared step has %d requests", rows.n_requests,
                plan_.n_requests);
  }
  if (rows.rows_per_request != plan_.rows_per_request) {
    throw Error(TS_ERROR_NOT_PREPARED, "ts_rows.rows_per_request = %d: the prepared step has %d", rows.rows_per_request,
                plan_.rows_per_request);
  }
}

void Sampler::sample(const ts_rows& caller_rows, const ts_sample_out& out, ts_stream stream) {
  const ProfilerRange range("tssample sample");
  const ts_rows rows = complete(caller_rows, config_, plan_.rows_per_request);
  check(out, rows);
  if (rows.n_requests == 0) return;
  check_prepared(rows);
  backend_->sample({pool_, plan_, capturing_}, rows, out, stream);
  if (broadcast_.on()) backend_->send(broadcast_, OutputArrays(out, rows), stream);
}

void Sampler::verify(const ts_rows& caller_rows, const ts_draft& caller_draft, const ts_verify_out& out,
                     ts_stream stream) {
  const ProfilerRange range("tssample verify");
  const ts_rows rows = complete(caller_rows, config_, plan_.rows_per_request);
  const ts_draft draft = complete(caller_draft, rows);
  check(out, rows);
  if (rows.n_requests == 0) return;
  check_prepared(rows);
  backend_->verify({pool_, plan_, capturing_}, rows, draft, out, stream);
  if (broadcast_.on()) backend_->send(broadcast_, OutputArrays(out, rows), stream);
}

void Sampler::set_broadcast(const ts_broadcast& broadcast) {
  broadcast_ = backend_->make_broadcast(complete(broadcast));
}

void Sampler::prepare_capture(int32_t n_requests, int32_t rows_per_request, const char* variant) {
  check_range(n_requests, 1, config_.max_requests, "n_requests");
  check_range(rows_per_request, 1, config_.max_rows_per_request, "rows_per_request");
  if (variant == nullptr) throw Error(TS_ERROR_INVALID_ARGUMENT, "variant is NULL");
  Plan plan;
  if (!plan_of_variant(variant, n_requests, rows_per_request, plan)) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "variant = \"%.64s\": not a name that ts_capture_variant_name gives",
                variant);
  }
  forget_step();
  plan_ = plan;
  capturing_ = true;
}

}  // namespace ts
