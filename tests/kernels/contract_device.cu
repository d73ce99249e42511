// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: every contract header in device code, so that host and device keep sharing one text.
#include "contract/convert.h"
#include "contract/ln.h"
#include "contract/noise.h"
#include "contract/order.h"
#include "contract/weight.h"

namespace ts {

__global__ void contract_kernel(const uint16_t* logits, NoiseKey key, float log2e_over_t, double* scores,
                                uint64_t* weights, uint64_t* order) {
  const uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t flags = 0;
  const float logit = clean_logit(bf16_to_float(logits[id]) + fp16_to_float(logits[id]), flags);
  const uint32_t coarse = coarse_bits(coarse_block(key, id / kCoarsePerBlock), id);
  scores[id] = logit + gumbel(uniform_bits(key, id, coarse)) + flags;
  weights[id] = mass_limit(top_p_to_fixed(log2e_over_t), weight(-logit, log2e_over_t));
  order[id] = order_key(logit, id);
}

}  // namespace ts
