// SPDX-License-Identifier: Apache-2.0
// Checks of public arguments, each failure naming the argument, and their defaults.
#pragma once

#include "tssample.h"

namespace ts {

// Each returns the struct complete, every zero replaced by its default. Throws Error.
ts_config complete(ts_config config);
ts_step complete(ts_step step, const ts_config& config);
// prepared_rows: rows_per_request of the prepared step, 0 if there is none.
ts_rows complete(ts_rows rows, const ts_config& config, int32_t prepared_rows);
ts_draft complete(ts_draft draft, const ts_rows& rows);
// n_ranks 0 in the result: off.
ts_broadcast complete(ts_broadcast broadcast);
void check(const ts_sample_out& out, const ts_rows& rows);
void check(const ts_verify_out& out, const ts_rows& rows);

// NULL, misaligned, negative: throws naming the argument.
void check_array(const void* data, size_t alignment, const char* name);
void check_index_type(int32_t type, const char* name);
void check_range(int64_t value, int64_t low, int64_t high, const char* name);

}  // namespace ts
