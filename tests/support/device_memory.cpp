// SPDX-License-Identifier: Apache-2.0
// Memory on either device. Freed blocks are kept by size: tests ask for the same few sizes ten thousand times, and
// cudaMalloc and fresh pages cost more than the tests.
#include "support/device_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "tssample.h"

#if defined(TS_TEST_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace ts::test {
namespace {

// Keeps freed memory on the CPU: tests copy the same tens of megabytes a thousand times.
const bool keeps_memory = mallopt(M_MMAP_THRESHOLD, 1 << 30) != 0 && mallopt(M_TRIM_THRESHOLD, 1 << 30) != 0;

constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xA7;

#if defined(TS_TEST_WITH_CUDA)
constexpr bool kWithCuda = true;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

void to_device(void* device, const void* host, size_t n) {
  check(cudaMemcpy(device, host, n, cudaMemcpyHostToDevice), "copy to the device");
}
void from_device(void* host, const void* device, size_t n) {
  check(cudaMemcpy(host, device, n, cudaMemcpyDeviceToHost), "copy from the device");
}
void* allocate(bool pinned, size_t n) {
  void* p = nullptr;
  check(pinned ? cudaMallocHost(&p, n) : cudaMalloc(&p, n), pinned ? "cudaMallocHost" : "cudaMalloc");
  return p;
}
void release(bool pinned, void* p) {
  if (pinned) {
    cudaFreeHost(p);
  } else {
    cudaFree(p);
  }
}
#else
constexpr bool kWithCuda = false;
[[noreturn]] void no_cuda() { throw std::runtime_error("these tests were built without CUDA"); }
void to_device(void*, const void*, size_t) { no_cuda(); }
void from_device(void*, const void*, size_t) { no_cuda(); }
void* allocate(bool, size_t) { no_cuda(); }
void release(bool, void*) {}
#endif

// Blocks that a test gave back, by size. Never destroyed: the driver may be gone before it would be.
class Kept {
 public:
  explicit Kept(bool pinned) : pinned_(pinned) {}
  void* take(size_t n) {
    const auto found = blocks_.find(n);
    if (found == blocks_.end()) return allocate(pinned_, n);
    void* p = found->second;
    blocks_.erase(found);
    n_bytes_ -= n;
    return p;
  }
  void give(void* p, size_t n) {
    if (n_bytes_ + n > (size_t{4} << 30)) {
      for (const auto& block : blocks_) release(pinned_, block.second);
      blocks_.clear();
      n_bytes_ = 0;
    }
    blocks_.emplace(n, p);
    n_bytes_ += n;
  }

 private:
  bool pinned_;
  std::multimap<size_t, void*> blocks_;
  size_t n_bytes_ = 0;
};

Kept& kept(bool pinned) {
  static Kept& device = *new Kept(false);
  static Kept& host = *new Kept(true);
  return pinned ? host : device;
}

}  // namespace

int32_t test_device() {
  const char* name = std::getenv("TS_TEST_DEVICE");
  if (name == nullptr || std::strcmp(name, "cpu") == 0) return TS_DEVICE_CPU;
  if (std::strcmp(name, "cuda") == 0) return TS_DEVICE_CUDA;
  throw std::runtime_error("TS_TEST_DEVICE is neither cpu nor cuda");
}

bool on_cuda() { return test_device() == TS_DEVICE_CUDA; }

std::string missing_device() {
  if (!on_cuda()) return "";
  if (!kWithCuda) return "these tests were built without CUDA";
  ts_capabilities capabilities{};
  capabilities.struct_size = sizeof(capabilities);
  if (ts_get_capabilities(&capabilities) != TS_OK) return "";  // a defect: let the tests say so
  return capabilities.n_cuda_devices > 0 ? "" : "no GPU";
}

void synchronize() {
#if defined(TS_TEST_WITH_CUDA)
  if (on_cuda()) check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#endif
}

DeviceBytes::DeviceBytes(const void* host, size_t n_bytes) : n_bytes_(n_bytes) {
  if (n_bytes == 0) return;
  if (on_cuda()) {
    memory_ = {kept(false).take(n_bytes), [n_bytes](void* p) { kept(false).give(p, n_bytes); }};
    to_device(memory_.get(), host, n_bytes);
  } else {
    memory_ = {std::malloc(n_bytes), std::free};
    std::memcpy(memory_.get(), host, n_bytes);
  }
}

DeviceBytes DeviceBytes::guarded(const void* host, size_t n_bytes) {
  if (!on_cuda() || n_bytes == 0) return DeviceBytes(host, n_bytes);
  std::vector<unsigned char> bytes(n_bytes + kGuardBytes, kGuard);
  std::memcpy(bytes.data(), host, n_bytes);
  DeviceBytes result(bytes.data(), bytes.size());
  result.n_bytes_ = n_bytes;
  result.guarded_ = true;
  return result;
}

void DeviceBytes::read(void* host, size_t n_bytes) const {
  if (n_bytes == 0) return;
  if (!on_cuda()) {
    std::memcpy(host, memory_.get(), n_bytes);
    return;
  }
  std::vector<unsigned char> bytes(n_bytes_ + (guarded_ ? kGuardBytes : 0));
  from_device(bytes.data(), memory_.get(), bytes.size());
  std::memcpy(host, bytes.data(), n_bytes);
  for (size_t i = n_bytes_; i < bytes.size(); ++i) {
    if (bytes[i] != kGuard) {
      throw std::runtime_error("a kernel wrote " + std::to_string(i - n_bytes_) + " bytes past the end of an output");
    }
  }
}

HugeBytes::HugeBytes(size_t n_bytes) : n_bytes_(n_bytes) {
  if (on_cuda()) {
    data_ = allocate(false, n_bytes);
    return;
  }
  data_ = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data_ == MAP_FAILED) throw std::runtime_error("mmap");
}

HugeBytes::~HugeBytes() {
  if (on_cuda()) {
    release(false, data_);
  } else {
    munmap(data_, n_bytes_);
  }
}

void HugeBytes::put(size_t at, const void* host, size_t n_bytes) {
  void* to = static_cast<unsigned char*>(data_) + at;
  if (on_cuda()) {
    to_device(to, host, n_bytes);
  } else {
    std::memcpy(to, host, n_bytes);
  }
}

void* allocate_shared(size_t n_bytes) {
  if (on_cuda()) return kept(true).take(n_bytes);
  if (void* p = std::malloc(n_bytes)) return p;
  throw std::bad_alloc();
}

void free_shared(void* p, size_t n_bytes) {
  if (on_cuda()) {
    kept(true).give(p, n_bytes);
  } else {
    std::free(p);
  }
}

}  // namespace ts::test
