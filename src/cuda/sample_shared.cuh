// SPDX-License-Identifier: Apache-2.0
// The shared memory of the sampling kernel's blocks.
#pragma once

#include "cuda/cut.cuh"
#include "cuda/tiles.cuh"

namespace ts::cuda {

struct ListShared {
  uint64_t entries[kListCapacity];
  uint32_t count;  // may exceed the capacity: then the list is not complete
};

constexpr uint32_t kMaxWinners = 512;  // groups that the noise loop lists before it gives up listing
constexpr uint32_t kMaxScores = 64;    // candidates that are gathered to be scored
constexpr uint32_t kTopScores = kMaxContenders;
static_assert(kMaxListSlices * kTopScores <= kMaxScores, "the slices' best scores are ranked together");
constexpr uint32_t kMaxMarked = 2048;  // groups that can be marked for the list at a time

struct SampleShared {
  ReduceShared reduce;
  uint32_t tops[kThreads / 32];  // the warps' largest logit keys
  uint32_t flags[kThreads / 32];
  uint32_t first;
  // ordered(): lower bounds of the best scores of a quarter of the threads each, or all in the first.
  alignas(16) int32_t bounds[kTopScores];
  uint32_t n_winners;             // may exceed kMaxWinners: then any group may
  uint32_t winners[kMaxWinners];  // groups with an id that may win
  uint32_t n_scores;              // may exceed kMaxScores
  Scored scores[kMaxScores];
  Scored best_scores[kTopScores];  // in their order
  union {
    TileBuffer tiles;  // until the walk is over
    struct {
      ListShared list;
      CutShared cut;
    };
  };
  // From here on for lists alone.
  uint32_t marked[kMaxMarked];        // groups that reach the floor, not yet listed
  uint32_t n_marked;                  // may exceed kMaxMarked: then marks are lost
  uint32_t raises;                    // whether the floor is raised
  uint32_t seed_top;                  // logit key of the first tile's largest
  unsigned long long seed_floors[2];  // order keys: at first, and raised
  uint32_t sizes[kMaxSlices];
  uint32_t flag;
};

// Why not a reference handed around: a function that is not inlined would not know that it is shared memory.
__device__ inline SampleShared& sample_shared() {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  return *reinterpret_cast<SampleShared*>(shared_bytes);
}

}  // namespace ts::cuda
