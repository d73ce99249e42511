// SPDX-License-Identifier: Apache-2.0
// The Gumbel-max draw over a row's kept set: contract section 3.
#pragma once

#include "contract/noise.h"
#include "cpu/filter.h"

namespace ts {

// The kept candidate with the largest score, lower id on a tie. The row has a candidate.
uint32_t draw(const Row& row, const Kept& kept, double inv_temperature, const NoiseKey& key);

}  // namespace ts
