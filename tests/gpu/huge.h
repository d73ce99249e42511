// SPDX-License-Identifier: Apache-2.0
// FAULTS.md D1: a matrix whose offsets do not fit 32 bits.
#pragma once

#include "gpu/runs.h"

namespace ts::gpu {

// 15,408 rows x 151,936 bf16 in one call (4.7 GB); rows around each power of two and at the far end against the CPU, 329 in all:
// the others repeat a few blocks of rows. False, with a line that says skipped, when the GPU has less free memory.
bool compare_huge(Counts& total);

}  // namespace ts::gpu
