// SPDX-License-Identifier: Apache-2.0
// Runs kernels on the host: every thread of a block is a fiber, so that barriers, votes and shuffles are what they are on a
// GPU. Between two of them a thread runs alone, and which thread is next is drawn: a missing barrier shows as a wrong result.
// Copies to shared memory land when they are waited for, and not before.
//
// For the logic of the kernels, without a GPU. What it cannot show: memory order between blocks (they run one after the
// other, those of a cluster by turns), time, and what only a GPU's compiler and arithmetic do.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ts::emulator {

struct Launch {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // dynamic
  unsigned cluster = 1;     // blocks along x
};

// Runs `kernel` once a thread, on the calling thread. Ends the process with a message where threads wait for each other
// for ever, or write past their shared memory.
void run(const Launch& launch, const std::function<void()>& kernel);

// The rest is for code of kernels: what the running thread is and does.
struct Here {
  dim3 thread, block, block_dim, grid_dim;
};
const Here& here();

void sync_block();
// Gives `value` to the other lanes and takes theirs: 32 values, valid until the next call. site: which call this is; all lanes
// must make the same one.
const uint64_t* exchange(uint64_t value, const char* site);
// Of the cluster. wait() after arrive().
void cluster_arrive();
void cluster_wait();
unsigned cluster_rank();
unsigned cluster_size();
// Where `shared`, an address of this block's dynamic shared memory, is in another block of the cluster.
void* of_rank(void* shared, unsigned rank);
// An address of shared memory as a number, and back.
uint32_t shared_address(const void* of);
void* from_shared_address(uint32_t address);
// Copies 16 bytes once they are waited for.
void copy_later(void* to, const void* from);
void commit_copies();
void wait_for_copies(size_t n_left);

}  // namespace ts::emulator
