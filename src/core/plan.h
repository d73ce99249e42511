// SPDX-License-Identifier: Apache-2.0
// The route selector: from what a step's requests need to the way their rows take. Pure; no device, no state.
#pragma once

#include <cstdint>
#include <string>

#include "core/request_state.h"

namespace ts {

enum class Route : uint8_t { kNone, kGreedy, kPlain, kTopK, kTopKTopP, kTopP, kMixed };

// How many requests of a step need what.
struct StepNeeds {
  int32_t n_greedy = 0;
  int32_t n_plain = 0;
  int32_t n_top_k = 0;
  int32_t n_top_k_top_p = 0;
  int32_t n_top_p = 0;
  int32_t n_min_p = 0;  // of the ones above, those that also use min_p
  uint32_t bits = 0;    // the kNeed* bits of all

  void add(uint32_t request_needs);
};

struct Plan {
  Route route = Route::kNone;
  bool min_p = false;
  bool forced = false;  // by the environment, not chosen by needs
  int32_t n_requests = 0;
  int32_t rows_per_request = 0;
  StepNeeds needs;

  // Whether this way gives every such request what it needs.
  bool serves(uint32_t request_needs) const;
  // The kNeed* bits that rows on this way have looked at.
  uint32_t features() const;
};

// One kind of sampled request: its own route. Greedy requests ride along on any. Several kinds: mixed.
Plan select_plan(const StepNeeds& needs, int32_t n_requests, int32_t rows_per_request);

// The route that `name` says, e.g. "top_k" or "mixed+min_p"; false if it is none.
bool parse_route(const char* name, Route& route, bool& min_p);

// "greedy", "top_p+min_p", ...; "none" for no step. Static.
const char* route_name(Route route, bool min_p);

// One line about a plan.
std::string describe(const Plan& plan);

// Capture variants of a call (TS_CALL_*): "default" first. nullptr outside the list.
int32_t capture_variant_count(int32_t call);
const char* capture_variant_name(int32_t call, int32_t index);

// The variant that serves a plan; nullptr for an empty plan or unknown call.
const char* capture_variant_of(const Plan& plan, int32_t call);

// The same step on the way of the variant that serves it, which has at least the plan's features.
Plan variant_plan(Plan plan);

// The plan that a variant captures (names of both calls); false if there is no such variant.
bool plan_of_variant(const char* variant, int32_t n_requests, int32_t rows_per_request, Plan& plan);

}  // namespace ts
