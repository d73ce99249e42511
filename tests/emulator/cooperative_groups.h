// SPDX-License-Identifier: Apache-2.0
// The part of cooperative groups that src/cuda uses, on the emulator.
#pragma once

#include "emulator.h"

namespace cooperative_groups {

struct cluster_group {
  unsigned num_blocks() const { return ts::emulator::cluster_size(); }
  unsigned block_rank() const { return ts::emulator::cluster_rank(); }
  void barrier_arrive() const { ts::emulator::cluster_arrive(); }
  void barrier_wait() const { ts::emulator::cluster_wait(); }
  void sync() const {
    barrier_arrive();
    barrier_wait();
  }
  template <class T>
  T* map_shared_rank(T* shared, int rank) const {
    return static_cast<T*>(ts::emulator::of_rank(shared, static_cast<unsigned>(rank)));
  }
};
inline cluster_group this_cluster() { return {}; }

}  // namespace cooperative_groups
