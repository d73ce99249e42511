// SPDX-License-Identifier: Apache-2.0
// Fibers, barriers and shared memory of the emulator.
#include "emulator.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

namespace ts::cuda {

// What the kernels know as their dynamic shared memory: that of the block that runs.
constexpr size_t kSharedBytes = 228 << 10;
alignas(128) thread_local unsigned char shared_bytes[kSharedBytes];

}  // namespace ts::cuda

namespace ts::emulator {
namespace {

using boost::context::fiber;
using ts::cuda::kSharedBytes;
using ts::cuda::shared_bytes;

constexpr unsigned char kFresh = 0xCB;  // what shared memory holds before a kernel writes it
constexpr size_t kStackBytes = 128 << 10;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "emulator: %s\n", what);
  std::abort();
}

// Stacks, used again. Why: mapping one for each of a million threads would be most of the time.
struct Stacks {
  std::vector<boost::context::stack_context> free;
  boost::context::fixedsize_stack source{kStackBytes};

  boost::context::stack_context allocate() {
    if (free.empty()) return source.allocate();
    const auto stack = free.back();
    free.pop_back();
    return stack;
  }
  ~Stacks() {
    for (auto& stack : free) source.deallocate(stack);
  }
};
thread_local Stacks stacks;
struct StackAllocator {
  boost::context::stack_context allocate() { return stacks.allocate(); }
  void deallocate(boost::context::stack_context& stack) { stacks.free.push_back(stack); }
};

struct Copy {
  void* to;
  const void* from;
};

struct Warp {
  uint64_t values[32];
  uint64_t taken[32];  // the values of the exchange that was last complete
  unsigned n_waiting = 0;
  const char* site = nullptr;
};

struct Thread {
  Here here;
  size_t block = 0;  // of the cluster
  unsigned lane = 0;
  Warp* warp = nullptr;
  fiber resume_at;
  uint64_t cluster_phase = 0;                 // the one that it has arrived at
  std::deque<std::vector<Copy>> commits{{}};  // the last one is still open
};

struct Block {
  std::vector<Thread*> ready;
  std::vector<Thread*> at_barrier, at_cluster;
  std::vector<std::vector<Thread*>> at_exchange;  // by warp
  std::vector<Warp> warps;
  size_t n_alive = 0;
  std::vector<unsigned char> image;  // its shared memory while another block of the cluster runs
};

// The blocks of a cluster, or one block.
class Gang {
 public:
  Gang(const Launch& launch, size_t first_block, const std::function<void()>& kernel);
  void run();

  void leave() { back_ = std::move(back_).resume(); }
  Thread& thread() { return *running_; }
  Block& block() { return blocks_[running_->block]; }
  size_t n_blocks() const { return blocks_.size(); }
  Block& block(size_t rank) { return blocks_[rank]; }
  size_t live_block() const { return live_; }

  void sync_block();
  const uint64_t* exchange(uint64_t value, const char* site);
  void cluster_arrive();
  void cluster_wait();

 private:
  void start(Thread& thread, const std::function<void()>& kernel);
  void go_live(size_t block);
  void end_barrier_if_complete(Block& block);
  void end_phase_if_complete();
  void finish(Thread& thread);

  const Launch& launch_;
  std::vector<Block> blocks_;
  std::vector<Thread> threads_;
  std::minstd_rand random_;
  Thread* running_ = nullptr;
  fiber back_;
  size_t live_ = 0;
  size_t n_alive_ = 0, n_arrived_ = 0;
  uint64_t phase_ = 1;
};

thread_local Gang* gang = nullptr;

Gang::Gang(const Launch& launch, size_t first_block, const std::function<void()>& kernel)
    : launch_(launch), blocks_(launch.cluster), random_(static_cast<unsigned>(first_block + 1)) {
  const size_t n = launch.block.x;
  threads_.resize(n * launch.cluster);
  n_alive_ = threads_.size();
  for (size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    block.n_alive = n;
    block.warps.resize((n + 31) / 32);
    block.at_exchange.resize(block.warps.size());
    if (blocks_.size() > 1) block.image.assign(launch.shared_bytes, kFresh);
    for (size_t i = 0; i < n; ++i) {
      Thread& thread = threads_[b * n + i];
      thread.here.thread = dim3(static_cast<unsigned>(i), 0, 0);
      thread.here.block = dim3(static_cast<unsigned>(first_block + b), 0, 0);
      thread.here.block_dim = launch.block;
      thread.here.grid_dim = launch.grid;
      thread.block = b;
      thread.lane = static_cast<unsigned>(i % 32);
      thread.warp = &block.warps[i / 32];
      start(thread, kernel);
      block.ready.push_back(&thread);
    }
  }
}

void Gang::start(Thread& thread, const std::function<void()>& kernel) {
  thread.resume_at = fiber(std::allocator_arg, StackAllocator(), [this, &thread, &kernel](fiber&& back) {
    back_ = std::move(back);
    kernel();
    finish(thread);
    return std::move(back_);
  });
}

void Gang::finish(Thread& thread) {
  Block& block = blocks_[thread.block];
  --block.n_alive;
  --n_alive_;
  end_barrier_if_complete(block);
  end_phase_if_complete();
}

void Gang::go_live(size_t block) {
  if (block == live_) return;
  std::memcpy(blocks_[live_].image.data(), shared_bytes, launch_.shared_bytes);
  std::memcpy(shared_bytes, blocks_[block].image.data(), launch_.shared_bytes);
  live_ = block;
}

void Gang::run() {
  std::memset(shared_bytes, kFresh, kSharedBytes);
  while (n_alive_ > 0) {
    bool ran = false;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      std::vector<Thread*>& ready = blocks_[b].ready;
      while (!ready.empty()) {
        go_live(b);
        std::swap(ready[random_() % ready.size()], ready.back());
        running_ = ready.back();
        ready.pop_back();
        running_->resume_at = std::move(running_->resume_at).resume();
        ran = true;
      }
    }
    if (!ran) fail("threads wait for others that have ended, or that wait elsewhere");
  }
  for (size_t i = launch_.shared_bytes; i < kSharedBytes; ++i) {
    if (shared_bytes[i] != kFresh) fail("a kernel wrote past its shared memory");
  }
}

void Gang::end_barrier_if_complete(Block& block) {
  if (block.at_barrier.size() < block.n_alive) return;
  block.ready.insert(block.ready.end(), block.at_barrier.begin(), block.at_barrier.end());
  block.at_barrier.clear();
}

void Gang::sync_block() {
  Block& mine = block();
  mine.at_barrier.push_back(running_);
  end_barrier_if_complete(mine);
  leave();
}

const uint64_t* Gang::exchange(uint64_t value, const char* site) {
  Thread& me = *running_;
  Warp& warp = *me.warp;
  std::vector<Thread*>& waiting = block().at_exchange[me.here.thread.x / 32];
  if (warp.n_waiting == 0) warp.site = site;
  if (warp.site != site) fail("the lanes of a warp make different calls");
  warp.values[me.lane] = value;
  if (++warp.n_waiting < 32) {
    waiting.push_back(&me);
    leave();
    return warp.taken;
  }
  std::memcpy(warp.taken, warp.values, sizeof(warp.taken));
  warp.n_waiting = 0;
  block().ready.insert(block().ready.end(), waiting.begin(), waiting.end());
  waiting.clear();
  return warp.taken;
}

void Gang::end_phase_if_complete() {
  if (n_arrived_ < n_alive_ || n_arrived_ == 0) return;
  n_arrived_ = 0;
  ++phase_;
  for (Block& block : blocks_) {
    block.ready.insert(block.ready.end(), block.at_cluster.begin(), block.at_cluster.end());
    block.at_cluster.clear();
  }
}

void Gang::cluster_arrive() {
  running_->cluster_phase = phase_;
  ++n_arrived_;
  end_phase_if_complete();
}

void Gang::cluster_wait() {
  if (running_->cluster_phase < phase_) return;
  block().at_cluster.push_back(running_);
  leave();
}

}  // namespace

const Here& here() { return gang->thread().here; }
void sync_block() { gang->sync_block(); }
const uint64_t* exchange(uint64_t value, const char* site) { return gang->exchange(value, site); }
void cluster_arrive() { gang->cluster_arrive(); }
void cluster_wait() { gang->cluster_wait(); }
unsigned cluster_rank() { return static_cast<unsigned>(gang->thread().block); }
unsigned cluster_size() { return static_cast<unsigned>(gang->n_blocks()); }

void* of_rank(void* shared, unsigned rank) {
  const uint32_t offset = shared_address(shared);
  if (rank >= gang->n_blocks() || offset >= kSharedBytes) fail("no dynamic shared memory of the cluster");
  return rank == gang->live_block() ? shared : gang->block(rank).image.data() + offset;
}

// Static shared memory is a variable of the same OS thread, not far from shared_bytes.
uint32_t shared_address(const void* of) {
  const auto offset = static_cast<const unsigned char*>(of) - shared_bytes;
  if (offset != static_cast<int32_t>(offset)) fail("an address that is not shared memory");
  return static_cast<uint32_t>(offset);
}
void* from_shared_address(uint32_t address) { return shared_bytes + static_cast<int32_t>(address); }

void copy_later(void* to, const void* from) {
  if (((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) & 15) != 0) fail("an unaligned copy");
  gang->thread().commits.back().push_back({to, from});
}
void commit_copies() { gang->thread().commits.emplace_back(); }
void wait_for_copies(size_t n_left) {
  std::deque<std::vector<Copy>>& commits = gang->thread().commits;
  while (commits.size() > n_left + 1) {
    for (const Copy& copy : commits.front()) std::memcpy(copy.to, copy.from, 16);
    commits.pop_front();
  }
}

void run(const Launch& launch, const std::function<void()>& kernel) {
  if (launch.block.y != 1 || launch.block.z != 1 || launch.grid.y != 1 || launch.grid.z != 1)
    fail("one dimension alone");
  if (launch.shared_bytes > kSharedBytes || launch.block.x > 1024) fail("a block that no GPU can run");
  if (launch.grid.x % launch.cluster != 0) fail("blocks that are no whole clusters");
  std::vector<size_t> order(launch.grid.x / launch.cluster);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::minstd_rand(launch.grid.x));
  for (const size_t i : order) {
    Gang all(launch, i * launch.cluster, kernel);
    gang = &all;
    all.run();
    gang = nullptr;
  }
}

}  // namespace ts::emulator
