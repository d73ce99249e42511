// SPDX-License-Identifier: Apache-2.0
// The exact kernel's shared memory, and its walk over a row or a slice of it.
#pragma once

#include "cuda/cut.cuh"
#include "cuda/tiles.cuh"

namespace ts::cuda {

constexpr int32_t kExactThreads = 512;
constexpr uint32_t kExactCapacity = 2048;

// Why below 99 KB: that is what a block may have on devices of compute capability 12.0.
struct ExactShared {
  uint4 ring[kExactThreads * 4];  // of copies under way
  ReduceShared reduce;
  CutShared cut;
  uint32_t n_listed;  // may exceed the capacity: then the list is not complete
  union {
    uint64_t entries[kExactCapacity];  // order keys
    uint32_t groups[kExactCapacity];   // with an id that may win
  };
  int32_t bound;  // ordered(): a lower bound of the best score
  uint32_t flag;
};
static_assert(sizeof(ExactShared) <= 99 * 1024, "");

// The walk over a slice, in two steps: start() sends for the first groups, for_each_raw() calls visit(raw, group, top) for each
// group; groups past the slice may come too, all -inf.
// Why a ring of copies: the loads of kDepth groups a thread are under way, and the code is that of one. A row is read once or
// twice, so code in line would be waited for more than run.
template <class Type>
constexpr int kDepth = 4 / Raw<Type>::kWords;

template <class Type>
__device__ void send_for(const RowSource<Type>& source, int32_t group, uint32_t place, ExactShared& shared) {
  constexpr int kWords = Raw<Type>::kWords;
  const uint4* from = reinterpret_cast<const uint4*>(source.row) + group * kWords;
  if (group < source.whole_end) {
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const uint4* to = shared.ring + (place * kWords + w) * kExactThreads + threadIdx.x;
      copy_async(shared_address(to), from + w, 0);
    }
  }
  commit_copies();
}

template <class Type>
__device__ void start(const RowSource<Type>& source, ExactShared& shared) {
  const int32_t group = source.first_group + static_cast<int32_t>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kDepth<Type>; ++i) send_for(source, group + i * kExactThreads, i, shared);
}

template <class Type, class Visit>
__device__ void for_each_raw(const RowSource<Type>& source, ExactShared& shared, const Visit& visit) {
  constexpr int kWords = Raw<Type>::kWords;
  int32_t group = source.first_group + static_cast<int32_t>(threadIdx.x);
  uint32_t place = 0;
#pragma unroll 1
  for (int32_t begin = source.first_group; begin < source.end_group; begin += kExactThreads) {
    wait_for_copies<kDepth<Type> - 1>();
    Raw<Type> raw;
#pragma unroll
    for (int w = 0; w < kWords; ++w) raw.words[w] = shared.ring[(place * kWords + w) * kExactThreads + threadIdx.x];
    if (group >= source.whole_end) {
      raw = Raw<Type>::nothing();
      if (group < source.end_group) raw = load_checked(source, group).raw;
    }
    send_for(source, group + kDepth<Type> * kExactThreads, place, shared);
    place = (place + 1) % kDepth<Type>;
    visit(raw, group, raw.stored_top());
    group += kExactThreads;
  }
  wait_for_copies<0>();
}

}  // namespace ts::cuda
