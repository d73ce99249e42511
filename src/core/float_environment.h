// SPDX-License-Identifier: Apache-2.0
// IEEE-754 arithmetic for the length of a call, whatever the host process has set: round to nearest, no flushing of
// subnormals. Why: programs linked with -ffast-math, and some frameworks, set flush-to-zero for all their threads.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ts {

class FloatEnvironment {
 public:
  FloatEnvironment() : saved_(read()) { write(kDefault); }
  ~FloatEnvironment() { write(saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kDefault = 0x1F80;  // all exceptions masked
  static uint64_t read() { return _mm_getcsr(); }
  static void write(uint64_t value) { _mm_setcsr(static_cast<uint32_t>(value)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0;
  static uint64_t read() {
    uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(uint64_t value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }
#else
  static constexpr uint64_t kDefault = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  uint64_t saved_;
};

}  // namespace ts
