// SPDX-License-Identifier: Apache-2.0
// The route selector: every combination of requests, names, variants, and what a route serves.
#include <cstring>
#include <vector>

#include "core/plan.h"
#include "support/catch.h"

namespace ts {
namespace {

constexpr uint32_t kPlain = kNeedSample;
constexpr uint32_t kTopK = kNeedSample | kNeedTopK;
constexpr uint32_t kTopP = kNeedSample | kNeedTopP;
constexpr uint32_t kTopKTopP = kNeedSample | kNeedTopK | kNeedTopP;

Plan plan_of(const std::vector<uint32_t>& requests) {
  StepNeeds needs;
  for (const uint32_t request : requests) needs.add(request);
  return select_plan(needs, static_cast<int32_t>(requests.size()), 1);
}

std::string route_of(const std::vector<uint32_t>& requests) {
  const Plan plan = plan_of(requests);
  return route_name(plan.route, plan.min_p);
}

}  // namespace

TEST_CASE("a step of one kind takes that kind's route") {
  CHECK(route_of({}) == "none");
  CHECK(route_of({0}) == "greedy");
  CHECK(route_of({kPlain, kPlain}) == "plain");
  CHECK(route_of({kTopK}) == "top_k");
  CHECK(route_of({kTopP}) == "top_p");
  CHECK(route_of({kTopKTopP}) == "top_k_top_p");
  CHECK(route_of({kPlain | kNeedMinP}) == "plain+min_p");
  CHECK(route_of({kTopKTopP, kTopKTopP | kNeedMinP}) == "top_k_top_p+min_p");
}

TEST_CASE("greedy requests ride along, two kinds are mixed") {
  CHECK(route_of({0, kPlain}) == "plain");
  CHECK(route_of({kTopP, 0, 0}) == "top_p");
  const std::vector<uint32_t> kinds = {kPlain, kTopK, kTopP, kTopKTopP};
  for (const uint32_t a : kinds) {
    for (const uint32_t b : kinds) {
      if (a == b) continue;
      CHECK(route_of({a, b}) == "mixed");
      CHECK(route_of({a, 0, b | kNeedMinP}) == "mixed+min_p");
    }
  }
}

TEST_CASE("the selected route serves every request of the step") {
  const std::vector<uint32_t> kinds = {0, kPlain, kTopK, kTopP, kTopKTopP};
  for (const uint32_t a : kinds) {
    for (const uint32_t b : kinds) {
      for (const uint32_t min_p : {0u, kNeedMinP}) {
        const uint32_t b_needs = b == 0 ? 0 : b | min_p;
        const Plan plan = plan_of({a, b_needs});
        CHECK(plan.serves(a));
        CHECK(plan.serves(b_needs));
      }
    }
  }
  CHECK_FALSE(plan_of({kTopK}).serves(kTopP));
  CHECK_FALSE(plan_of({kPlain}).serves(kTopK));
  CHECK_FALSE(plan_of({kPlain}).serves(kPlain | kNeedMinP));
  CHECK_FALSE(plan_of({0}).serves(kPlain));
}

TEST_CASE("route names parse back") {
  for (const char* name : {"greedy", "plain", "top_k", "top_k_top_p", "top_p", "mixed", "plain+min_p", "top_k+min_p",
                           "top_k_top_p+min_p", "top_p+min_p", "mixed+min_p"}) {
    Route route = Route::kNone;
    bool min_p = false;
    REQUIRE(parse_route(name, route, min_p));
    CHECK(std::string(route_name(route, min_p)) == name);
  }
  Route route;
  bool min_p;
  for (const char* name : {"none", "", "topk", "top_k+", "TOP_K", "default"})
    CHECK_FALSE(parse_route(name, route, min_p));
}

TEST_CASE("the variant of a plan can serve the plan, and plans of variants round-trip") {
  const std::vector<std::vector<uint32_t>> steps = {{0},
                                                    {kPlain},
                                                    {kTopK},
                                                    {kTopP},
                                                    {kTopKTopP},
                                                    {0, kTopK},
                                                    {kPlain, kTopK},
                                                    {kTopP | kNeedMinP},
                                                    {kPlain | kNeedMinP}};
  for (const auto& step : steps) {
    for (const int32_t call : {TS_CALL_SAMPLE, TS_CALL_VERIFY}) {
      const char* name = capture_variant_of(plan_of(step), call);
      REQUIRE(name != nullptr);
      Plan captured;
      REQUIRE(plan_of_variant(name, 4, 2, captured));
      for (const uint32_t request : step) CHECK(captured.serves(request));
      CHECK(variant_plan(plan_of(step)).route == captured.route);
      CHECK(variant_plan(plan_of(step)).min_p == captured.min_p);
      CHECK(captured.n_requests == 4);
      CHECK(captured.rows_per_request == 2);
      CHECK(std::strcmp(capture_variant_of(captured, call), name) == 0);
    }
  }
  CHECK(std::strcmp(capture_variant_of(plan_of({kPlain, kTopK}), TS_CALL_SAMPLE), "default") == 0);
  CHECK(std::strcmp(capture_variant_of(plan_of({kTopK}), TS_CALL_VERIFY), "verify_top_k") == 0);
  CHECK(capture_variant_of(plan_of({}), TS_CALL_SAMPLE) == nullptr);
  CHECK(variant_plan(plan_of({})).route == Route::kNone);
}

TEST_CASE("a plan prints as one line") {
  const std::string line = describe(plan_of({0, kTopK, kTopK | kNeedMinP}));
  CHECK(line ==
        "route=top_k+min_p requests=3 rows_per_request=1 variant=default greedy=1 plain=0 top_k=2 "
        "top_k_top_p=0 top_p=0 min_p=1");
}

}  // namespace ts
