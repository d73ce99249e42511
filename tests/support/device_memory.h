// SPDX-License-Identifier: Apache-2.0
// Memory of the device under test, which TS_TEST_DEVICE names: cpu (the default) or cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ts::test {

// TS_DEVICE_CPU or TS_DEVICE_CUDA, as TS_TEST_DEVICE says.
int32_t test_device();
bool on_cuda();
// Why no test can run on the device that TS_TEST_DEVICE names; "" when they can.
std::string missing_device();
// Waits for the device; throws when something that it ran failed.
void synchronize();

// Bytes in the device's memory, in exactly the size asked for, so that reads past the end are seen by the address
// sanitizer (CPU) or memcheck (CUDA).
class DeviceBytes {
 public:
  DeviceBytes() = default;
  DeviceBytes(const void* host, size_t n_bytes);
  // As above, with guard bytes behind it on CUDA that read() looks at: a write past an output throws there.
  static DeviceBytes guarded(const void* host, size_t n_bytes);
  void* data() const { return memory_.get(); }
  void read(void* host, size_t n_bytes) const;

 private:
  std::shared_ptr<void> memory_;
  size_t n_bytes_ = 0;
  bool guarded_ = false;
};

// Gigabytes whose pages are mostly never touched. Contents are not defined until put.
class HugeBytes {
 public:
  explicit HugeBytes(size_t n_bytes);
  ~HugeBytes();
  HugeBytes(const HugeBytes&) = delete;
  HugeBytes& operator=(const HugeBytes&) = delete;
  void* data() const { return data_; }
  void put(size_t at, const void* host, size_t n_bytes);

 private:
  void* data_ = nullptr;
  size_t n_bytes_;
};

// Memory that the host and the device both address: pinned on CUDA. For tests that spoil arrays in place.
void* allocate_shared(size_t n_bytes);
void free_shared(void* p, size_t n_bytes);

template <class T>
struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <class U>
  SharedAllocator(const SharedAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(allocate_shared(n * sizeof(T))); }
  void deallocate(T* p, size_t n) { free_shared(p, n * sizeof(T)); }
  template <class U>
  bool operator==(const SharedAllocator<U>&) const {
    return true;
  }
  template <class U>
  bool operator!=(const SharedAllocator<U>&) const {
    return false;
  }
};

template <class T>
using SharedVector = std::vector<T, SharedAllocator<T>>;

}  // namespace ts::test
