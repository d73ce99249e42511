// SPDX-License-Identifier: Apache-2.0
// Reading the environment.
#include "core/environment.h"

#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace ts {

Environment Environment::read() {
  Environment environment;
  const char* route = std::getenv("TSSAMPLE_FORCE_ROUTE");
  if (route != nullptr && route[0] != '\0' && !parse_route(route, environment.forced_route, environment.forced_min_p)) {
    throw Error(TS_ERROR_INVALID_ARGUMENT,
                "TSSAMPLE_FORCE_ROUTE = \"%.64s\": not one of greedy, plain, top_k, top_k_top_p, top_p, mixed, each "
                "but greedy also with +min_p",
                route);
  }
  const char* log = std::getenv("TSSAMPLE_LOG_PLAN");
  environment.log_plan = log != nullptr && log[0] != '\0' && std::strcmp(log, "0") != 0;
  return environment;
}

}  // namespace ts
