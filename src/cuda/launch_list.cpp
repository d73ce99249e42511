// SPDX-License-Identifier: Apache-2.0
// Launch lists: filling, comparing and enqueueing.
#include "cuda/launch_list.h"

#include "cuda/device.h"

namespace ts::cuda {
namespace {

bool same(const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

}  // namespace

bool LaunchShape::operator==(const LaunchShape& other) const {
  return same(grid, other.grid) && same(block, other.block) && shared_bytes == other.shared_bytes &&
         cluster_size == other.cluster_size;
}

void Launch::point_to_arguments(void* arguments[kMaxArguments]) const {
  // Why const_cast: the runtime's interface; it only copies from there.
  for (int32_t i = 0; i < n_arguments; ++i) arguments[i] = const_cast<unsigned char*>(bytes + offsets[i]);
}

bool Launch::same_node(const Launch& other) const {
  return function == other.function && shape == other.shape && programmatic == other.programmatic;
}

bool Launch::same_arguments(const Launch& other) const {
  return n_bytes == other.n_bytes && std::memcmp(bytes, other.bytes, n_bytes) == 0;
}

void Launch::take_arguments(const Launch& other) {
  n_arguments = other.n_arguments;
  n_bytes = other.n_bytes;
  std::memcpy(offsets, other.offsets, sizeof(offsets));
  std::memcpy(bytes, other.bytes, other.n_bytes);
}

Launch& LaunchList::append(const char* name, const void* function, const LaunchShape& shape) {
  if (n_launches_ == kMaxLaunches) throw Error(TS_ERROR_INTERNAL, "%s: launch list is full", name);
  Launch& launch = launches_[n_launches_];
  launch.name = name;
  launch.function = function;
  launch.shape = shape;
  launch.programmatic = programmatic_.supported && (n_launches_ > 0 || programmatic_.first);
  launch.n_arguments = 0;
  launch.n_bytes = 0;
  ++n_launches_;
  return launch;
}

void enqueue(const char* name, const void* function, const LaunchShape& shape, bool programmatic, void** arguments,
             cudaStream_t stream) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (shape.cluster_size > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = shape.cluster_size;
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
  }
  if (programmatic) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  check(cudaLaunchKernelExC(&config, function, arguments), name);
}

void enqueue(const LaunchList& list, cudaStream_t stream) {
  for (int32_t i = 0; i < list.size(); ++i) {
    const Launch& launch = list[i];
    void* arguments[kMaxArguments];
    launch.point_to_arguments(arguments);
    enqueue(launch.name, launch.function, launch.shape, launch.programmatic, arguments, stream);
  }
}

}  // namespace ts::cuda
