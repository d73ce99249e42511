// SPDX-License-Identifier: Apache-2.0
// New owners on the fake runtime: the ring, the way by value when it is busy or the stream captures, and failures. The
// kernels are stand-ins with the interface of src/cuda/write_slots.cu.
#include <cstring>
#include <vector>

#include "cuda/launch.h"
#include "cuda/slot_staging.h"
#include "fake_cudart.h"
#include "support/catch.h"

namespace ts::cuda {
namespace {

void write_slots(const int32_t* slots, const RequestState* states, int32_t n, RequestState* pool,
                 volatile uint64_t* copied, uint64_t sequence) {
  *copied = sequence;
  for (int32_t i = 0; i < n; ++i) pool[slots[i]] = states[i];
}

void write_owners(OwnersByValue owners, RequestState* pool) {
  for (int32_t i = 0; i < owners.n; ++i) {
    std::memcpy(static_cast<void*>(pool + owners.slots[i]), owners.states[i], sizeof(RequestState));
  }
}

const bool kernels_known = [] {
  fake::add_kernel(write_slots);
  fake::add_kernel(write_owners);
  return true;
}();

constexpr int32_t kSlots = 100;

// A pool in "device memory", and what it must hold once the stream has run.
struct Pool {
  std::vector<RequestState> device = std::vector<RequestState>(kSlots, RequestState{});
  std::vector<uint64_t> seeds = std::vector<uint64_t>(kSlots, 0);
  uint64_t next_seed = 1;

  void write(SlotStaging& staging, fake::Stream& stream, int32_t n) {
    std::vector<int32_t> slots;
    std::vector<RequestState> states;
    for (int32_t i = 0; i < n; ++i) {
      slots.push_back(static_cast<int32_t>((static_cast<uint64_t>(i) * 7 + next_seed) % kSlots));
      states.push_back({});
      states.back().seed = seeds[static_cast<size_t>(slots.back())] = next_seed * 1000 + static_cast<uint64_t>(i);
    }
    ++next_seed;
    staging.write(slots, states, device.data(), stream.capturing, stream.handle());
  }
  bool right() const {
    for (size_t i = 0; i < kSlots; ++i) {
      if (device[i].seed != seeds[i]) return false;
    }
    return true;
  }
};

}  // namespace

void launch_write_slots(LaunchList& list, const int32_t* slots, const RequestState* states, int32_t n,
                        RequestState* pool, volatile uint64_t* copied, uint64_t sequence) {
  list.add("write_slots", write_slots, {dim3(1), dim3(1)}, slots, states, n, pool, copied, sequence);
}

void enqueue_owners(const OwnersByValue& owners, RequestState* pool, bool programmatic, cudaStream_t stream) {
  void* arguments[] = {const_cast<OwnersByValue*>(&owners), &pool};
  enqueue("write_owners", reinterpret_cast<const void*>(write_owners), {dim3(1), dim3(1)}, programmatic, arguments,
          stream);
}

TEST_CASE("new owners take one copy and one kernel, step after step") {
  REQUIRE(kernels_known);
  SlotStaging staging(kSlots, true);
  fake::Stream stream;
  Pool pool;
  for (int step = 0; step < 20; ++step) {
    pool.write(staging, stream, 1 + step * 5 % kSlots);
    REQUIRE(stream.queue.size() == 2);
    CHECK(stream.queue[0].what == "copy");
    CHECK_FALSE(stream.queue[1].programmatic);
    stream.run();
    CHECK(pool.right());
  }
}

TEST_CASE("a busy ring never waits and never overwrites what is still to be copied") {
  SlotStaging staging(kSlots, true);
  fake::Stream stream;
  Pool pool;
  for (size_t i = 0; i < kStagingDepth; ++i) pool.write(staging, stream, 40);
  CHECK(stream.queue.size() == 2 * kStagingDepth);
  // The ring is full: by value, 30 a kernel, all but the first programmatic.
  pool.write(staging, stream, 61);
  REQUIRE(stream.queue.size() == 2 * kStagingDepth + 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(stream.queue[2 * kStagingDepth + i].what == "kernel");
    CHECK(stream.queue[2 * kStagingDepth + i].programmatic == (i > 0));
  }
  // The copy alone does not free an entry, the kernel does.
  stream.run(1);
  pool.write(staging, stream, 1);
  CHECK(stream.queue.back().what == "kernel");
  CHECK(stream.queue[stream.queue.size() - 2].what == "kernel");
  stream.run(1);
  pool.write(staging, stream, 50);
  CHECK(stream.queue[stream.queue.size() - 2].what == "copy");
  stream.run();
  CHECK(pool.right());
  // All free again.
  for (size_t i = 0; i < kStagingDepth; ++i) {
    pool.write(staging, stream, 3);
    CHECK(stream.queue[stream.queue.size() - 2].what == "copy");
  }
  stream.run();
  CHECK(pool.right());
}

TEST_CASE("in a capture owners go by value, so that replays write them again") {
  SlotStaging staging(kSlots, false);
  fake::Stream stream;
  Pool pool;
  stream.capturing = true;
  pool.write(staging, stream, 31);
  REQUIRE(stream.queue.size() == 2);
  for (const fake::Work& work : stream.queue) {
    CHECK(work.what == "kernel");
    CHECK_FALSE(work.programmatic);  // the device has no programmatic launch
  }
  const std::vector<fake::Work> graph = stream.queue;
  const std::vector<uint64_t> captured = pool.seeds;
  stream.run();
  CHECK(pool.right());
  stream.capturing = false;
  pool.write(staging, stream, 60);
  stream.run();
  CHECK(pool.right());
  pool.seeds = captured;
  pool.device.assign(kSlots, RequestState{});
  for (const fake::Work& work : graph) work.run();
  CHECK(pool.right());
}

TEST_CASE("a copy or kernel that fails is an error; later owners arrive") {
  for (const char* function : {"cudaMemcpyAsync", "cudaLaunchKernelExC"}) {
    SlotStaging staging(kSlots, true);
    fake::Stream stream;
    Pool pool;
    fake::runtime().fail = function;
    CHECK_THROWS_AS(pool.write(staging, stream, 5), Error);
    for (int i = 0; i < 10; ++i) pool.write(staging, stream, kSlots);
    stream.run();
    CHECK(pool.right());
  }
}

}  // namespace ts::cuda
