// SPDX-License-Identifier: Apache-2.0
// Ownership of slots: what a step writes, what it does not, and that a refused step changes nothing.
#include <vector>

#include "core/error.h"
#include "core/pool.h"
#include "support/catch.h"

namespace ts {
namespace {

struct StepArrays {
  std::vector<uint64_t> ids;
  std::vector<int32_t> slots;
  std::vector<ts_request_params> params;

  ts_step step() const {
    ts_step step{};
    step.struct_size = sizeof(step);
    step.n_requests = static_cast<int32_t>(ids.size());
    step.rows_per_request = 1;
    step.request_ids = ids.data();
    step.slots = slots.data();
    step.params = params.empty() ? nullptr : params.data();
    return step;
  }
};

ts_request_params params_of(float temperature, int32_t top_k = 0) {
  ts_request_params params = TS_REQUEST_PARAMS_INIT;
  params.temperature = temperature;
  params.top_k = top_k;
  return params;
}

ts_status status_of_stage(Pool& pool, const StepArrays& arrays) {
  try {
    pool.stage(arrays.step());
  } catch (const Error& error) {
    return error.status();
  }
  return TS_OK;
}

}  // namespace

TEST_CASE("a slot is written when its owner changes and only then") {
  Pool pool(8, 8, 100, 0);
  StepArrays arrays{{1, 2}, {5, 0}, {params_of(0.5f), params_of(2.0f)}};
  pool.stage(arrays.step());
  CHECK(pool.new_slots() == std::vector<int32_t>{5, 0});
  pool.commit();
  CHECK(pool.state(5).inv_temperature == 2.0);
  CHECK(pool.state(0).inv_temperature == 0.5);
  CHECK((pool.in_step(5) && pool.in_step(0) && !pool.in_step(1)));

  // The same owners, in another order, with other parameters: nothing is written.
  arrays = {{2, 1}, {0, 5}, {params_of(7.0f), params_of(7.0f)}};
  pool.stage(arrays.step());
  CHECK(pool.new_slots().empty());
  pool.commit();
  CHECK(pool.state(0).inv_temperature == 0.5);

  // Without parameters too.
  arrays.params.clear();
  CHECK(status_of_stage(pool, arrays) == TS_OK);
  pool.commit();

  // Slot 5 is recycled, slot 0 keeps its owner.
  arrays = {{2, 3}, {0, 5}, {params_of(7.0f), params_of(4.0f)}};
  pool.stage(arrays.step());
  CHECK(pool.new_slots() == std::vector<int32_t>{5});
  pool.commit();
  CHECK(pool.state(5).inv_temperature == 0.25);

  // A former owner that comes back is new again.
  arrays = {{1}, {5}, {params_of(0.0f)}};
  pool.stage(arrays.step());
  CHECK(pool.new_slots() == std::vector<int32_t>{5});
  pool.commit();
  CHECK(pool.state(5).needs == 0);
  CHECK(pool.state(5).inv_temperature == 0.0);
  CHECK(!pool.in_step(0));
}

TEST_CASE("request id 0 is an id like any other") {
  Pool pool(4, 4, 100, 0);
  StepArrays arrays{{0}, {1}, {}};
  CHECK(status_of_stage(pool, arrays) == TS_ERROR_INVALID_ARGUMENT);
  arrays.params = {params_of(1.0f)};
  CHECK(status_of_stage(pool, arrays) == TS_OK);
  CHECK(pool.new_slots().size() == 1);
}

TEST_CASE("a refused step leaves owners, states and the current step alone") {
  Pool pool(4, 4, 100, 0);
  const StepArrays good{{1, 2}, {0, 1}, {params_of(0.5f), params_of(0.5f)}};
  pool.stage(good.step());
  pool.commit();
  const std::vector<StepArrays> bad = {
      {{9, 9}, {0, 4}, {params_of(1.0f), params_of(1.0f)}},   // outside the pool
      {{9, 9}, {0, -1}, {params_of(1.0f), params_of(1.0f)}},  // outside the pool
      {{9, 8}, {3, 3}, {params_of(1.0f), params_of(1.0f)}},   // the same slot twice
      {{9, 8}, {0, 1}, {params_of(1.0f), params_of(-1.0f)}},  // parameter out of range
      {{9, 8}, {0, 1}, {}},                                   // new without parameters
  };
  for (const StepArrays& arrays : bad) {
    CHECK(status_of_stage(pool, arrays) == TS_ERROR_INVALID_ARGUMENT);
    CHECK(pool.state(0).inv_temperature == 2.0);
    CHECK((pool.in_step(0) && pool.in_step(1) && !pool.in_step(3)));
    pool.stage(StepArrays{{1, 2}, {0, 1}, {}}.step());
    CHECK(pool.new_slots().empty());
  }
}

TEST_CASE("a released slot is new for whoever comes next") {
  Pool pool(4, 4, 100, 0);
  pool.stage(StepArrays{{1, 2}, {0, 1}, {params_of(0.5f), params_of(0.5f)}}.step());
  pool.commit();
  const int32_t outside[] = {1, 4};
  CHECK_THROWS_AS(pool.release(IndexArray(outside, TS_INT32), 2), Error);
  pool.stage(StepArrays{{2}, {1}, {}}.step());
  CHECK(pool.new_slots().empty());
  pool.commit();
  const int64_t slots[] = {0};
  CHECK_FALSE(pool.release(IndexArray(slots, TS_INT64), 1));  // not in the current step
  const int64_t more[] = {1, 3};
  CHECK(pool.release(IndexArray(more, TS_INT64), 2));
  pool.stage(StepArrays{{1, 2}, {0, 1}, {params_of(4.0f), params_of(4.0f)}}.step());
  CHECK(pool.new_slots() == std::vector<int32_t>{0, 1});
}

TEST_CASE("seeds: a request's own, else from the id and the sampler's seed") {
  Pool pool(8, 8, 100, 77);
  Pool other(8, 8, 100, 78);
  ts_request_params seeded = params_of(1.0f);
  seeded.flags = TS_PARAMS_SEEDED;
  seeded.seed = UINT64_MAX;
  const StepArrays arrays{{1, 2, 1}, {0, 1, 2}, {seeded, params_of(1.0f), params_of(1.0f)}};
  for (Pool* p : {&pool, &other}) {
    p->stage(arrays.step());
    p->commit();
  }
  CHECK(pool.state(0).seed == UINT64_MAX);
  CHECK(other.state(0).seed == UINT64_MAX);
  CHECK(pool.state(1).seed != pool.state(2).seed);
  CHECK(pool.state(1).seed != other.state(1).seed);
}

TEST_CASE("parameters become what the contract rounds on the host") {
  // Expected values by hand: 1/T, log2(e)/T, T ln(min_p), round(p 2^32).
  ts_request_params params = params_of(2.0f, 50);
  params.top_p = 0.75f;
  params.min_p = 0.25f;
  const RequestState state = make_request_state(params, 1, 0, 100, "p", 0);
  CHECK(state.inv_temperature == 0.5);
  CHECK(state.log2e_over_t == 0.72134752f);
  CHECK(state.min_p_threshold == -2.7725887f);
  CHECK(state.top_p_fixed == 3221225472u);
  CHECK(state.top_k == 50);
  CHECK(state.needs == (kNeedSample | kNeedTopK | kNeedTopP | kNeedMinP));

  for (const int32_t off : {0, -1, 100, 101, 9999999, 1 << 30, INT32_MIN, INT32_MAX}) {
    CHECK(make_request_state(params_of(1.0f, off), 1, 0, 100, "p", 0).needs == kNeedSample);
  }
  CHECK(make_request_state(params_of(9e-7f, 50), 1, 0, 100, "p", 0).needs == 0);
  CHECK(make_request_state(params_of(1e-6f), 1, 0, 100, "p", 0).needs == kNeedSample);
}

}  // namespace ts
