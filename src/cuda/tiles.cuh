// SPDX-License-Identifier: Apache-2.0
// The walk over a slice of a row in tiles of kThreads x kTileGroups groups, read ahead of their use.
//
// Each warp copies its own groups into shared memory while it works on the tile before: no barrier of the block. Why: a
// pass that computes between its loads keeps too few bytes under way; at full speed an H200's memory answers after some
// 4,000 cycles, so each multiprocessor must have 75 KB under way at all times.
#pragma once

#include "cuda/row_source.cuh"

namespace ts::cuda {

template <class Type>
constexpr int kTileGroups = 32 / (sizeof(typename Type::Element) * 4);  // 64 bytes a thread and tile

template <class Type>
constexpr int32_t kTileStep = kThreads* kTileGroups<Type>;

// Whether the noise loop reads ahead. Why not fp32: it reads twice the bytes for the same work, and without copies sooner.
template <class Type>
constexpr bool reads_ahead = sizeof(typename Type::Element) == 2;

struct TileBuffer {
  uint4 words[kThreads * 4];
};

template <class Type>
class Tiles {
 public:
  static constexpr int kGroups = kTileGroups<Type>;

  __device__ Tiles(const RowSource<Type>& source, TileBuffer& buffer) : source_(source), buffer_(buffer) {}

  // Sends for the first tile, for walk_ahead.
  __device__ void start() const { send_for(source_.first_group); }

  // visit(first, raw) is called for every tile; raw(i), 0 <= i < kGroups, is the group first + i * kThreads, all -inf when
  // outside the slice. flags: those of groups that are not whole. All threads make the same calls. After start().
  template <class Visit>
  __device__ void walk_ahead(uint32_t& flags, const Visit& visit) const {
    const uint4* mine = buffer_.words + threadIdx.x * kWords;
#pragma unroll 1
    for (int32_t begin = source_.first_group; begin < source_.end_group; begin += kTileStep<Type>) {
      Raw<Type> raw[kGroups];
      wait_for_copies<0>();
      if constexpr (kWords > 1) __syncwarp();
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
#pragma unroll
        for (int w = 0; w < kWords; ++w) raw[i].words[w] = mine[i * kThreads * kWords + w];
      }
      if (begin + kTileStep < Type >> source_.whole_end) load_rest(begin, raw, flags);
      if constexpr (kWords > 1) __syncwarp();
      send_for(begin + kTileStep<Type>);
      visit(begin + static_cast<int32_t>(threadIdx.x), [&](int i) { return raw[i]; });
    }
  }

  // The same without reading ahead, for passes that compute little; start() is not needed, but may have been called.
  template <class Visit>
  __device__ void walk(uint32_t& flags, const Visit& visit) const {
#pragma unroll 1
    for (int32_t begin = source_.first_group; begin < source_.end_group; begin += kTileStep<Type>) {
      const int32_t first = begin + static_cast<int32_t>(threadIdx.x);
      Raw<Type> raw[kGroups];
      if (begin + kTileStep<Type> <= source_.whole_end) {
#pragma unroll
        for (int i = 0; i < kGroups; ++i) raw[i] = source_.load_whole(first + i * kThreads);
      } else {
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
          if (first + i * kThreads < source_.whole_end) raw[i] = source_.load_whole(first + i * kThreads);
        }
        load_rest(begin, raw, flags);
      }
      visit(first, [&](int i) { return raw[i]; });
    }
    // Why: where start() was called its copies must have landed before the buffer is used for something else.
    wait_for_copies<0>();
  }

 private:
  static constexpr int kWords = Raw<Type>::kWords;

  // The thread's groups of a tile that are not whole.
  __device__ void load_rest(int32_t begin, Raw<Type> (&raw)[kGroups], uint32_t& flags) const {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const int32_t group = begin + static_cast<int32_t>(threadIdx.x) + i * kThreads;
      if (group < source_.whole_end) continue;
      raw[i] = Raw<Type>::nothing();
      if (group < source_.end_group) {
        const Checked<Type> checked = load_checked(source_, group);
        raw[i] = checked.raw;
        flags |= checked.flags;
      }
    }
  }

  // Copies the warp's whole groups of the tile at `begin`: neighbouring lanes copy neighbouring words.
  __device__ void send_for(int32_t begin) const {
    const uint32_t warp = threadIdx.x / 32 * 32;
    const uint32_t lane = threadIdx.x % 32;
    const uint4* from =
        reinterpret_cast<const uint4*>(source_.row) + (begin + static_cast<int32_t>(warp)) * kWords + lane;
    const uint32_t to = shared_address(buffer_.words + warp * kWords + lane);
    if (begin + kTileStep<Type> <= source_.whole_end) {
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
#pragma unroll
        for (int w = 0; w < kWords; ++w) copy_async(to, from, (i * kThreads * kWords + w * 32) * 16);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
          const int32_t group =
              begin + static_cast<int32_t>(warp) + i * kThreads + static_cast<int32_t>(lane + w * 32) / kWords;
          if (group < source_.whole_end) copy_async(to, from, (i * kThreads * kWords + w * 32) * 16);
        }
      }
    }
    commit_copies();
  }

  const RowSource<Type>& source_;
  TileBuffer& buffer_;
};

}  // namespace ts::cuda
