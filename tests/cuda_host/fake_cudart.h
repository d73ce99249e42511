// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime without a GPU, for tests of the host's side and for the emulator (tests/emulator): streams are queues that
// a test runs when it likes, the null stream runs at once, kernels are host functions. Only what the library and its tests
// call.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ts::fake {

// One launched kernel, copy or graph node, as the runtime saw it.
struct Work {
  std::string what;  // "copy", "kernel" or "node"
  const void* function = nullptr;
  dim3 grid, block;
  unsigned shared_bytes = 0;
  unsigned cluster = 1;  // blocks
  bool programmatic = false;
  std::function<void()> run;
};

struct Stream {
  std::vector<Work> queue;
  bool capturing = false;

  cudaStream_t handle() { return reinterpret_cast<cudaStream_t>(this); }
  // Runs the first n of what is enqueued.
  void run(size_t n);
  void run() { run(queue.size()); }
};

// What the fake counts, and the next failure that it is to give.
struct Runtime {
  int n_instantiated = 0;
  int n_live_graphs = 0;
  int n_live_execs = 0;
  int n_set_params = 0;
  int n_buffers = 0;
  std::string fail;  // name of a function; cleared when it has failed
  std::function<void(const Work&)> execute = [](const Work& work) { work.run(); };
};
Runtime& runtime();

// Copies a kernel's arguments and gives the call.
using Bind = std::function<std::function<void()>(void** arguments)>;
void add_kernel(const void* function, Bind bind);

template <class... Parameters, size_t... i>
std::function<void()> bind_arguments(void (*kernel)(Parameters...), void** arguments, std::index_sequence<i...>) {
  const std::tuple<Parameters...> copies(*static_cast<const Parameters*>(arguments[i])...);
  return [=] { std::apply(kernel, copies); };
}

template <class... Parameters>
void add_kernel(void (*kernel)(Parameters...)) {
  add_kernel(reinterpret_cast<const void*>(kernel), [=](void** arguments) {
    return bind_arguments(kernel, arguments, std::index_sequence_for<Parameters...>{});
  });
}

}  // namespace ts::fake
