// SPDX-License-Identifier: Apache-2.0
// src/cuda/ptx.cuh for the emulator.
#pragma once

#include <cmath>
#include <cstdint>

#include "device.h"

namespace ts::cuda {

inline float max_or_nan(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::nanf("");
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

// Of two 16-bit values each, by what a value is as a float.
template <class ToFloat>
uint32_t max_or_nan_of_halves(uint32_t a, uint32_t b, ToFloat to_float) {
  uint32_t both = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const auto x = static_cast<uint16_t>(a >> shift), y = static_cast<uint16_t>(b >> shift);
    const float most = max_or_nan(to_float(x), to_float(y));
    const bool first = to_float(x) == most && std::signbit(to_float(x)) == std::signbit(most);
    both |= static_cast<uint32_t>(std::isnan(most) ? uint16_t{0x7FFF} : first ? x : y) << shift;
  }
  return both;
}
inline uint32_t max_or_nan_bf16x2(uint32_t a, uint32_t b) {
  return max_or_nan_of_halves(a, b, [](uint16_t v) { return __uint_as_float(uint32_t{v} << 16); });
}
inline uint32_t max_or_nan_fp16x2(uint32_t a, uint32_t b) {
  return max_or_nan_of_halves(a, b, [](uint16_t v) { return __half2float(__half(__half_raw{v})); });
}

// Why not the best approximation: what the kernels do must be right for every result that the instructions may give. The error
// is all that PTX allows for, up or down by a bit of the argument.
inline float approximately(double exact, double error, float argument) {
  const double off = (__float_as_uint(argument) * 0x9E3779B9u >> 31) != 0 ? error : -error;
  const auto result = static_cast<float>(exact + off);
  return std::fabs(result) < 0x1p-126f ? std::copysign(0.0f, result) : result;
}
inline float exp2_approx(float z) {
  const double exact = std::exp2(std::fabs(z) < 0x1p-126f ? 0.0 : static_cast<double>(z));
  return std::isfinite(exact) ? approximately(exact, exact * 0x1p-22, z) : static_cast<float>(exact);
}
inline float log2_approx(float x) {
  const double exact = std::log2(std::fabs(x) < 0x1p-126f ? 0.0 : static_cast<double>(x));
  if (!std::isfinite(exact)) return static_cast<float>(exact);
  return approximately(exact, x > 0.5f && x < 2.0f ? 0x1p-22 : std::fabs(exact) * 0x1p-22, x);
}

inline uint32_t arrive(uint32_t* counter) { return (*counter)++; }

inline uint32_t shared_address(const void* of) { return emulator::shared_address(of); }
inline int32_t least_of_four_now(const int32_t* words) { return min(min(words[0], words[1]), min(words[2], words[3])); }

inline void copy_async(uint32_t to, const uint4* from, int offset) {
  emulator::copy_later(emulator::from_shared_address(to + static_cast<uint32_t>(offset)),
                       reinterpret_cast<const unsigned char*>(from) + offset);
}
inline void commit_copies() { emulator::commit_copies(); }
template <int kLeft>
void wait_for_copies() {
  emulator::wait_for_copies(kLeft);
}

inline void wait_for_predecessor() {}
inline void release_successor() {}

}  // namespace ts::cuda
