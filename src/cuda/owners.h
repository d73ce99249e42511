// SPDX-License-Identifier: Apache-2.0
// A few new owners of pool slots as a kernel parameter.
#pragma once

#include "core/request_state.h"

namespace ts::cuda {

// Kernel parameters may take 4 KB on every architecture.
struct OwnersByValue {
  static constexpr int32_t kCapacity = 30;
  // Bytes, as RequestState asks for an alignment that parameters do not have.
  alignas(16) unsigned char states[kCapacity][sizeof(RequestState)];
  int32_t slots[kCapacity];
  int32_t n;
};
static_assert(sizeof(OwnersByValue) <= 4000, "with the pool's address within 4 KB of parameters");

}  // namespace ts::cuda
