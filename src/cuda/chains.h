// SPDX-License-Identifier: Apache-2.0
// The drafted chains of a verify call, as its kernel takes them.
#pragma once

#include "cuda/call.h"

namespace ts::cuda {

struct Chains {
  const int32_t* candidates;
  int64_t candidates_stride;
  int32_t n_requests;
  int32_t rows_per_request;
  int32_t* predict;
  int32_t* accept_index;
  int32_t* accept_length;
};

}  // namespace ts::cuda
