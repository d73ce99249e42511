// SPDX-License-Identifier: Apache-2.0
// Makes every kernel known to the fake runtime, and runs them on the emulator.
#include "cuda/cluster.cuh"
#include "cuda/exact.cuh"
#include "cuda/owners.h"
#include "cuda/report.cuh"
#include "cuda/sample.cuh"
#include "cuda_host/fake_cudart.h"
#include "emulator.h"

namespace ts::cuda {

// Of the files that launch them: headers with kernels that are no templates have one user.
void write_slots_kernel(const int32_t* slots, const RequestState* states, int32_t n, RequestState* pool,
                        volatile uint64_t* copied, uint64_t sequence);
void write_owners_kernel(OwnersByValue owners, RequestState* pool);

namespace {

template <class Type>
void add_kernels() {
  fake::add_kernel(sample_kernel<Type, false, false, false>);
  fake::add_kernel(sample_kernel<Type, true, false, false>);
  fake::add_kernel(sample_kernel<Type, false, true, false>);
  fake::add_kernel(sample_kernel<Type, false, false, true>);
  fake::add_kernel(sample_kernel<Type, true, true, true>);
  fake::add_kernel(exact_kernel<Type>);
  fake::add_kernel(report_kernel<Type, false>);
  fake::add_kernel(report_kernel<Type, true>);
  fake::add_kernel(cluster_kernel<Type>);
}

const bool kernels_known = [] {
  add_kernels<Fp32>();
  add_kernels<Bf16>();
  add_kernels<Fp16>();
  fake::add_kernel(write_slots_kernel);
  fake::add_kernel(write_owners_kernel);
  fake::runtime().execute = [](const fake::Work& work) {
    if (work.function == nullptr) return work.run();
    emulator::run({work.grid, work.block, work.shared_bytes, work.cluster}, work.run);
  };
  return true;
}();

}  // namespace
}  // namespace ts::cuda
