// SPDX-License-Identifier: Apache-2.0
// Route selection and the names of routes and capture variants.
#include "core/plan.h"

#include <cstdio>
#include <cstring>

namespace ts {
namespace {

constexpr uint32_t kRouteNeeds = kNeedSample | kNeedTopK | kNeedTopP;

struct RouteRow {
  Route route;
  const char* name;
  const char* name_min_p;
  uint32_t features;  // without min-p
};

constexpr RouteRow kRoutes[] = {
    {Route::kNone, "none", "none", 0},
    {Route::kGreedy, "greedy", "greedy", 0},
    {Route::kPlain, "plain", "plain+min_p", kNeedSample},
    {Route::kTopK, "top_k", "top_k+min_p", kNeedSample | kNeedTopK},
    {Route::kTopKTopP, "top_k_top_p", "top_k_top_p+min_p", kNeedSample | kNeedTopK | kNeedTopP},
    {Route::kTopP, "top_p", "top_p+min_p", kNeedSample | kNeedTopP},
    {Route::kMixed, "mixed", "mixed+min_p", kNeedSample | kNeedTopK | kNeedTopP},
};

struct VariantRow {
  Route route;
  bool min_p;
  const char* names[2];  // by TS_CALL_*
};

// Why: "default" serves every step, so it has min-p on; a min-p step of any route replays it.
constexpr VariantRow kVariants[] = {
    {Route::kMixed, true, {"default", "verify_default"}},
    {Route::kPlain, false, {"plain", "verify_plain"}},
    {Route::kTopP, false, {"top_p", "verify_top_p"}},
    {Route::kTopK, false, {"top_k", "verify_top_k"}},
    {Route::kTopKTopP, false, {"top_k_top_p", "verify_top_k_top_p"}},
};
constexpr int32_t kVariantCount = sizeof(kVariants) / sizeof(kVariants[0]);

const RouteRow& row_of(Route route) { return kRoutes[static_cast<int>(route)]; }

// The variant that serves a plan with a route.
const VariantRow& variant_of(const Plan& plan) {
  // Why: a greedy row of the plain variant skips the noise, so greedy steps need no variant of their own.
  const Route route = plan.route == Route::kGreedy ? Route::kPlain : plan.route;
  if (!plan.min_p) {
    for (const VariantRow& row : kVariants) {
      if (row.route == route && !row.min_p) return row;
    }
  }
  return kVariants[0];
}

bool known_call(int32_t call) { return call == TS_CALL_SAMPLE || call == TS_CALL_VERIFY; }

}  // namespace

void StepNeeds::add(uint32_t request_needs) {
  switch (request_needs & kRouteNeeds) {
    case kNeedSample: ++n_plain; break;
    case kNeedSample | kNeedTopK: ++n_top_k; break;
    case kNeedSample | kNeedTopP: ++n_top_p; break;
    case kNeedSample | kNeedTopK | kNeedTopP: ++n_top_k_top_p; break;
    default: ++n_greedy; break;
  }
  if ((request_needs & kNeedMinP) != 0) ++n_min_p;
  bits |= request_needs;
}

uint32_t Plan::features() const { return row_of(route).features | (min_p ? kNeedMinP : 0u); }

bool Plan::serves(uint32_t request_needs) const { return (request_needs & ~features()) == 0; }

Plan select_plan(const StepNeeds& needs, int32_t n_requests, int32_t rows_per_request) {
  Plan plan;
  plan.needs = needs;
  plan.n_requests = n_requests;
  plan.rows_per_request = rows_per_request;
  plan.min_p = needs.n_min_p > 0;
  const int32_t n_sampled = needs.n_plain + needs.n_top_k + needs.n_top_k_top_p + needs.n_top_p;
  if (n_requests == 0) {
    plan.route = Route::kNone;
  } else if (n_sampled == 0) {
    plan.route = Route::kGreedy;
  } else if (n_sampled == needs.n_plain) {
    plan.route = Route::kPlain;
  } else if (n_sampled == needs.n_top_k) {
    plan.route = Route::kTopK;
  } else if (n_sampled == needs.n_top_k_top_p) {
    plan.route = Route::kTopKTopP;
  } else if (n_sampled == needs.n_top_p) {
    plan.route = Route::kTopP;
  } else {
    plan.route = Route::kMixed;
  }
  return plan;
}

bool parse_route(const char* name, Route& route, bool& min_p) {
  for (const RouteRow& row : kRoutes) {
    if (row.route == Route::kNone) continue;
    for (const bool with_min_p : {false, true}) {
      if (std::strcmp(name, with_min_p ? row.name_min_p : row.name) == 0) {
        route = row.route;
        min_p = with_min_p;
        return true;
      }
    }
  }
  return false;
}

const char* route_name(Route route, bool min_p) { return min_p ? row_of(route).name_min_p : row_of(route).name; }

std::string describe(const Plan& plan) {
  char line[256];
  const char* sample = capture_variant_of(plan, TS_CALL_SAMPLE);
  std::snprintf(line, sizeof(line),
                "route=%s requests=%d rows_per_request=%d variant=%s greedy=%d plain=%d top_k=%d top_k_top_p=%d "
                "top_p=%d min_p=%d",
                route_name(plan.route, plan.min_p), plan.n_requests, plan.rows_per_request,
                sample != nullptr ? sample : "none", plan.needs.n_greedy, plan.needs.n_plain, plan.needs.n_top_k,
                plan.needs.n_top_k_top_p, plan.needs.n_top_p, plan.needs.n_min_p);
  return line;
}

int32_t capture_variant_count(int32_t call) { return known_call(call) ? kVariantCount : 0; }

const char* capture_variant_name(int32_t call, int32_t index) {
  if (!known_call(call) || index < 0 || index >= kVariantCount) return nullptr;
  return kVariants[index].names[call];
}

const char* capture_variant_of(const Plan& plan, int32_t call) {
  if (!known_call(call) || plan.route == Route::kNone) return nullptr;
  return variant_of(plan).names[call];
}

Plan variant_plan(Plan plan) {
  if (plan.route == Route::kNone) return plan;
  const VariantRow& variant = variant_of(plan);
  plan.route = variant.route;
  plan.min_p = variant.min_p;
  return plan;
}

bool plan_of_variant(const char* variant, int32_t n_requests, int32_t rows_per_request, Plan& plan) {
  for (const VariantRow& row : kVariants) {
    for (const char* name : row.names) {
      if (std::strcmp(variant, name) == 0) {
        plan = Plan{};
        plan.route = row.route;
        plan.min_p = row.min_p;
        plan.n_requests = n_requests;
        plan.rows_per_request = rows_per_request;
        return true;
      }
    }
  }
  return false;
}

}  // namespace ts
