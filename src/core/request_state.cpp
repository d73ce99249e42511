// SPDX-License-Identifier: Apache-2.0
// From a caller's parameters to a slot's state.
#include "core/request_state.h"

#include <cmath>

#include "contract/convert.h"
#include "contract/ln.h"
#include "contract/philox.h"
#include "contract/weight.h"
#include "core/error.h"

namespace ts {
namespace {

constexpr float kGreedyBelow = 1e-6f;
constexpr double kLog2E = 0x1.71547652b82fep+0;

constexpr uint32_t kSeedTag = 0xFFFFFFFFu;  // a counter tag that no noise uses

// Why: every rank of a tensor-parallel group must find the same seed, so it comes from the id, not from entropy.
uint64_t seed_from_id(uint64_t request_id, uint64_t sampler_seed) {
  const PhiloxBlock counter{{static_cast<uint32_t>(request_id), static_cast<uint32_t>(request_id >> 32), 0u, kSeedTag}};
  const PhiloxBlock block =
      philox4x32_10(counter, {{static_cast<uint32_t>(sampler_seed), static_cast<uint32_t>(sampler_seed >> 32)}});
  return static_cast<uint64_t>(block.w[1]) << 32 | block.w[0];
}

void check_range(bool in_range, const char* name, int32_t index, const char* field, double value, const char* rule) {
  if (!in_range) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s[%d].%s = %.9g: %s", name, index, field, value, rule);
  }
}

}  // namespace

RequestState make_request_state(const ts_request_params& params, uint64_t request_id, uint64_t sampler_seed,
                                int32_t vocab_size, const char* name, int32_t index) {
  check_range(params.temperature >= 0 && std::isfinite(params.temperature), name, index, "temperature",
              params.temperature, "must be finite and at least 0");
  check_range(!std::isnan(params.top_p), name, index, "top_p", params.top_p, "must be a number");
  check_range(params.min_p <= 1.0f, name, index, "min_p", params.min_p, "must be a number of at most 1");
  if ((params.flags & ~static_cast<uint32_t>(TS_PARAMS_SEEDED)) != 0) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s[%d].flags = 0x%x: only TS_PARAMS_SEEDED is defined", name, index,
                params.flags);
  }

  RequestState state{};
  state.seed = (params.flags & TS_PARAMS_SEEDED) != 0 ? params.seed : seed_from_id(request_id, sampler_seed);
  state.top_k = kTopKOff;
  state.top_p_fixed = kTopPOff;
  state.min_p_threshold = kMinusInf;
  if (params.temperature < kGreedyBelow) return state;

  const double temperature = static_cast<double>(params.temperature);
  state.inv_temperature = 1.0 / temperature;
  state.log2e_over_t = static_cast<float>(kLog2E / temperature);
  state.needs = kNeedSample;
  if (params.top_k > 0 && params.top_k < vocab_size) {
    state.top_k = params.top_k;
    state.needs |= kNeedTopK;
  }
  if (params.top_p < 1.0f) {
    state.top_p_fixed = params.top_p > 0.0f ? top_p_to_fixed(params.top_p) : 0;
    state.needs |= kNeedTopP;
  }
  if (params.min_p > 0.0f) {
    state.min_p_threshold = static_cast<float>(temperature * ln(static_cast<double>(params.min_p)));
    state.needs |= kNeedMinP;
  }
  return state;
}

}  // namespace ts
