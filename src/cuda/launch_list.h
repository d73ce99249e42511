// SPDX-License-Identifier: Apache-2.0
// The kernel launches of one call, with copies of their arguments: to be enqueued on a stream, or to become the nodes
// of a graph. Fixed capacity; nothing is allocated.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/error.h"

namespace ts::cuda {

constexpr int32_t kMaxLaunches = 3;
constexpr int32_t kMaxArguments = 8;
constexpr size_t kArgumentAlignment = 16;
constexpr size_t kArgumentBytes = 512;

struct LaunchShape {
  dim3 grid;
  dim3 block;
  uint32_t shared_bytes = 0;  // dynamic
  uint32_t cluster_size = 1;  // blocks along x; 1: no cluster

  bool operator==(const LaunchShape& other) const;
};

struct Launch {
  const char* name = nullptr;  // for error messages
  const void* function = nullptr;
  LaunchShape shape;
  // May start before the kernel in front of it has ended; it waits by itself (cuda/ptx.cuh).
  bool programmatic = false;
  int32_t n_arguments = 0;
  size_t n_bytes = 0;
  // The first n_arguments, and the first n_bytes, have a value.
  size_t offsets[kMaxArguments];
  alignas(kArgumentAlignment) unsigned char bytes[kArgumentBytes];

  // Where the arguments lie, as the CUDA runtime wants them.
  void point_to_arguments(void* arguments[kMaxArguments]) const;
  // The same kernel in the same shape.
  bool same_node(const Launch& other) const;
  bool same_arguments(const Launch& other) const;
  void take_arguments(const Launch& other);
};

// Which launches may overlap their predecessor's end.
struct ProgrammaticLaunch {
  bool supported;  // by the device
  bool first;      // the first of a call too: it overlaps the caller's kernel
};

class LaunchList {
 public:
  explicit LaunchList(ProgrammaticLaunch programmatic) : programmatic_(programmatic) {}

  // Appends a launch of `kernel`. Arguments are converted to the kernel's parameters and copied.
  template <class... Parameters, class... Arguments>
  void add(const char* name, void (*kernel)(Parameters...), const LaunchShape& shape, const Arguments&... arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "an argument for each parameter");
    static_assert(sizeof...(Parameters) <= kMaxArguments, "raise kMaxArguments");
    static_assert((padded(sizeof(Parameters)) + ... + 0) <= kArgumentBytes, "raise kArgumentBytes");
    static_assert((std::is_trivially_copyable_v<Parameters> && ...), "arguments are copied as bytes");
    static_assert(((alignof(Parameters) <= kArgumentAlignment) && ...), "raise kArgumentAlignment");
    Launch& launch = append(name, reinterpret_cast<const void*>(kernel), shape);
    (store<Parameters>(launch, arguments), ...);
  }

  // Takes over the arguments of a launch of the same kernel.
  void set_arguments(int32_t i, const Launch& from) { launches_[i].take_arguments(from); }

  int32_t size() const { return n_launches_; }
  const Launch& operator[](int32_t i) const { return launches_[i]; }

 private:
  static constexpr size_t padded(size_t n) {
    return (n + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment;
  }

  template <class Parameter>
  static void store(Launch& launch, const Parameter& argument) {
    std::memcpy(launch.bytes + launch.n_bytes, &argument, sizeof(Parameter));
    launch.offsets[launch.n_arguments++] = launch.n_bytes;
    // Why: lists are compared by their bytes, so the gaps must have a value.
    std::memset(launch.bytes + launch.n_bytes + sizeof(Parameter), 0, padded(sizeof(Parameter)) - sizeof(Parameter));
    launch.n_bytes += padded(sizeof(Parameter));
  }

  Launch& append(const char* name, const void* function, const LaunchShape& shape);

  ProgrammaticLaunch programmatic_;
  int32_t n_launches_ = 0;
  Launch launches_[kMaxLaunches];
};

// Enqueues one kernel. Throws Error.
void enqueue(const char* name, const void* function, const LaunchShape& shape, bool programmatic, void** arguments,
             cudaStream_t stream);

// Enqueues every launch of a list, in order. Throws Error.
void enqueue(const LaunchList& list, cudaStream_t stream);

}  // namespace ts::cuda
