// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for the host's compiler, as far as src/cuda uses it. In front of every file with kernels.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "emulator.h"

#undef __shared__
#define __shared__ thread_local
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __noinline__
#define __noinline__  // Why nothing: the standard library says __attribute__((__noinline__)).
#undef __forceinline__
#define __forceinline__ inline
#undef __grid_constant__
#define __grid_constant__

// Why not macros: the CUDA runtime has struct members of these names.
template <dim3 ts::emulator::Here::*kWhich>
struct Index {
  struct X {
    operator unsigned() const { return (ts::emulator::here().*kWhich).x; }
  } x;
};
inline constexpr Index<&ts::emulator::Here::thread> threadIdx{};
inline constexpr Index<&ts::emulator::Here::block> blockIdx{};
inline constexpr Index<&ts::emulator::Here::block_dim> blockDim{};
inline constexpr Index<&ts::emulator::Here::grid_dim> gridDim{};

namespace ts::emulator {

template <class T>
uint64_t to_word(T value) {
  static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}
template <class T>
T from_word(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}
inline unsigned lane() { return here().thread.x % 32; }

// op over the values of a warp.
template <class T, class Op>
T reduce(T value, const char* site, Op op) {
  const uint64_t* words = exchange(to_word(value), site);
  T all = from_word<T>(words[0]);
  for (int i = 1; i < 32; ++i) all = op(all, from_word<T>(words[i]));
  return all;
}
template <class T>
T shuffle(T value, unsigned from, const char* site) {
  const uint64_t* words = exchange(to_word(value), site);
  return from < 32 ? from_word<T>(words[from]) : value;
}

// The old value, as atomics give it. No two threads run at the same time.
template <class T, class Op>
T update(T* at, Op op) {
  const T old = *at;
  *at = op(old);
  return old;
}

}  // namespace ts::emulator

inline void __syncthreads() { ts::emulator::sync_block(); }
inline void __syncwarp(unsigned = 0xFFFFFFFFu) { ts::emulator::exchange(0, "syncwarp"); }
inline void __threadfence_system() {}

template <class T>
T __shfl_sync(unsigned, T value, int from) {
  return ts::emulator::shuffle(value, static_cast<unsigned>(from), "shfl");
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return ts::emulator::shuffle(value, ts::emulator::lane() ^ static_cast<unsigned>(mask), "shfl_xor");
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned by) {
  return ts::emulator::shuffle(value, ts::emulator::lane() - by, "shfl_up");
}
template <class T>
T __reduce_max_sync(unsigned, T value) {
  return ts::emulator::reduce(value, "reduce_max", [](T a, T b) { return a > b ? a : b; });
}
template <class T>
T __reduce_min_sync(unsigned, T value) {
  return ts::emulator::reduce(value, "reduce_min", [](T a, T b) { return a < b ? a : b; });
}
inline unsigned __reduce_or_sync(unsigned, unsigned value) {
  return ts::emulator::reduce(value, "reduce_or", [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  const uint64_t* words = ts::emulator::exchange(vote, "ballot");
  unsigned votes = 0;
  for (int i = 0; i < 32; ++i) votes |= static_cast<unsigned>(words[i]) << i;
  return votes;
}
inline int __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) == 0xFFFFFFFFu; }

template <class T, class U>
T atomicAdd(T* at, U value) {
  return ts::emulator::update(at, [=](T old) { return static_cast<T>(old + static_cast<T>(value)); });
}
template <class T, class U>
T atomicMax(T* at, U value) {
  return ts::emulator::update(at, [=](T old) { return old > static_cast<T>(value) ? old : static_cast<T>(value); });
}
template <class T, class U>
T atomicMin(T* at, U value) {
  return ts::emulator::update(at, [=](T old) { return old < static_cast<T>(value) ? old : static_cast<T>(value); });
}
template <class T, class U>
T atomicExch(T* at, U value) {
  return ts::emulator::update(at, [=](T) { return static_cast<T>(value); });
}

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __float_as_int(float v) { return ts::emulator::from_word<int>(ts::emulator::to_word(v)); }
inline unsigned __float_as_uint(float v) { return ts::emulator::from_word<unsigned>(ts::emulator::to_word(v)); }
inline float __int_as_float(int v) { return ts::emulator::from_word<float>(ts::emulator::to_word(v)); }
inline float __uint_as_float(unsigned v) { return ts::emulator::from_word<float>(ts::emulator::to_word(v)); }
inline double __longlong_as_double(long long v) { return ts::emulator::from_word<double>(ts::emulator::to_word(v)); }
inline unsigned __vminu2(unsigned a, unsigned b) {
  const unsigned low = (a & 0xFFFFu) < (b & 0xFFFFu) ? a & 0xFFFFu : b & 0xFFFFu;
  const unsigned high = a >> 16 < b >> 16 ? a >> 16 : b >> 16;
  return high << 16 | low;
}
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fadd_rd(float a, float b) {
  const int mode = std::fegetround();
  std::fesetround(FE_DOWNWARD);
  volatile float x = a, y = b;
  volatile float sum = x + y;
  std::fesetround(mode);
  return sum;
}
template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}

// As cuda_runtime.h has them, which wants nvcc.
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
