// SPDX-License-Identifier: Apache-2.0
// Instructions that CUDA C++ has no name for. All inline PTX is here; tests/emulator has the same functions for a host.
#pragma once

#include <cstdint>

namespace ts::cuda {

// The larger; NaN if one of them is. The second and the third: of two 16-bit values each.
__device__ inline float max_or_nan(float a, float b) {
  float m;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
  return m;
}
__device__ inline uint32_t max_or_nan_bf16x2(uint32_t a, uint32_t b) {
  uint32_t m;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
  return m;
}
__device__ inline uint32_t max_or_nan_fp16x2(uint32_t a, uint32_t b) {
  uint32_t m;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
  return m;
}

// 2^z with a relative error of at most 2^-22 (two units in the last place) and log2(x) with an absolute one of 2^-22 for x in
// (0.5, 2), else a relative one of 2^-22 (PTX ISA, ex2.approx and lg2.approx); subnormals are 0.
__device__ inline float exp2_approx(float z) {
  float p;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(z));
  return p;
}
__device__ inline float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Adds one to a counter of device memory; what the caller has seen written before is then visible to who reads the
// counter so, and the other way round. Returns the count before.
__device__ inline uint32_t arrive(uint32_t* counter) {
  uint32_t before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

// The address of shared memory within its block.
__device__ inline uint32_t shared_address(const void* of) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(of));
}

// The least of four words of shared memory, 16-byte aligned, as they are now.
__device__ inline int32_t least_of_four_now(const int32_t* words) {
  int32_t a, b, c, d;
  asm volatile("ld.volatile.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(shared_address(words)));
  return min(min(a, b), min(c, d));
}

// Copies 16 bytes to shared memory, offset bytes behind both addresses, without waiting for them.
__device__ __forceinline__ void copy_async(uint32_t to, const uint4* from, int offset) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + static_cast<uint32_t>(offset)),
               "l"(reinterpret_cast<const unsigned char*>(from) + offset)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most kLeft of the thread's commits are under way.
template <int kLeft>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Programmatic dependent launch, from inside a kernel. Both are nothing before compute capability 9.0.
//
// Every kernel calls wait_for_predecessor() before it reads or writes what another kernel of the stream may touch, even
// if it has nothing to wait for: the next kernel counts on this one's end to mean the end of all before it.
//
// Returns when the kernel in front has ended and its writes are visible; at once if the launch was an ordinary one.
__device__ inline void wait_for_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The next kernel may start once every block of this one has said so, or ended. It says nothing about writes: the next
// kernel's wait is for this kernel's end.
__device__ inline void release_successor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace ts::cuda
