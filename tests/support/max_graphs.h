// SPDX-License-Identifier: Apache-2.0
// ts_config.max_graphs (graphs that a CUDA sampler owns; 0: 32, -1: none) where the library has it. Why by overload:
// these tests are also built against headers from before.
#pragma once

#include <cstdint>

#include "tssample.h"

namespace ts::test {
namespace detail {

template <class Config>
auto set(Config& config, int32_t n, int) -> decltype(config.max_graphs, bool()) {
  config.max_graphs = n;
  return true;
}
template <class Config>
bool set(Config&, int32_t, long) {
  return false;
}

}  // namespace detail

inline bool set_max_graphs(ts_config& config, int32_t n) { return detail::set(config, n, 0); }

inline bool has_owned_graphs() {
  ts_config config{};
  return set_max_graphs(config, 1);
}

}  // namespace ts::test
