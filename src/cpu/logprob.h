// SPDX-License-Identifier: Apache-2.0
// Raw log-probability and rank of a chosen id: contract section 1 step 3, section 2.
#pragma once

#include "cpu/row.h"

namespace ts {

// Natural log of id's probability under the row's candidates at temperature 1.
float raw_logprob(const Row& row, uint32_t id);

// 1 + number of candidates with a strictly greater logit.
int32_t rank_of(const Row& row, uint32_t id);

}  // namespace ts
