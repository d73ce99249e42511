// SPDX-License-Identifier: Apache-2.0
// What lets one set of contract headers compile for host and device, with IEEE-754 arithmetic written out.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define TS_HD __host__ __device__ __forceinline__
#else
#include <cmath>
#define TS_HD inline
#endif

namespace ts {

// fma with one rounding. Why: host code is compiled with -ffp-contract=off and device code with --fmad=false, so
// these are the only contractions anywhere in the contract.
TS_HD double fma_rn(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

TS_HD float fma_rn(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

template <class To, class From>
TS_HD To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast needs equal sizes");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// The high 64 bits of a 64 x 64 bit product.
TS_HD uint64_t mul_high(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  __extension__ using uint128 = unsigned __int128;
  return static_cast<uint64_t>((static_cast<uint128>(a) * b) >> 64);
#endif
}

}  // namespace ts
