// SPDX-License-Identifier: Apache-2.0
// Launching the kernels that write pool slots.
#include "cuda/launch.h"
#include "cuda/write_slots.cuh"

namespace ts::cuda {
namespace {

LaunchShape shape_for(int32_t n_owners) {
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>((int64_t{n_owners} * kThreadsPerSlot + kWriteThreads - 1) / kWriteThreads));
  shape.block = dim3(kWriteThreads);
  return shape;
}

}  // namespace

void launch_write_slots(LaunchList& list, const int32_t* slots, const RequestState* states, int32_t n,
                        RequestState* pool, volatile uint64_t* copied, uint64_t sequence) {
  list.add("launch of write_slots_kernel", write_slots_kernel, shape_for(n), slots, states, n, pool, copied, sequence);
}

void enqueue_owners(const OwnersByValue& owners, RequestState* pool, bool programmatic, cudaStream_t stream) {
  void* arguments[] = {const_cast<OwnersByValue*>(&owners), &pool};
  enqueue("launch of write_owners_kernel", reinterpret_cast<const void*>(write_owners_kernel), shape_for(owners.n),
          programmatic, arguments, stream);
}

void load_write_slots_kernels() {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, write_slots_kernel), "cudaFuncGetAttributes(write_slots_kernel)");
  check(cudaFuncGetAttributes(&attributes, write_owners_kernel), "cudaFuncGetAttributes(write_owners_kernel)");
}

}  // namespace ts::cuda
