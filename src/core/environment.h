// SPDX-License-Identifier: Apache-2.0
// The environment variables, read once when a sampler is created.
#pragma once

#include "core/plan.h"

namespace ts {

struct Environment {
  Route forced_route = Route::kNone;  // TSSAMPLE_FORCE_ROUTE; kNone: not forced
  bool forced_min_p = false;
  bool log_plan = false;  // TSSAMPLE_LOG_PLAN

  // Throws Error for a route that does not exist.
  static Environment read();
};

}  // namespace ts
