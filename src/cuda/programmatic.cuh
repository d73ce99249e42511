// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch, from inside a kernel. Both are nothing before compute capability 9.0.
//
// Every kernel calls wait_for_predecessor() before it reads or writes what another kernel of the stream may touch, even
// if it has nothing to wait for: the next kernel counts on this one's end to mean the end of all before it.
#pragma once

namespace ts::cuda {

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
