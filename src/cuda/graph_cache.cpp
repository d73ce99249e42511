// SPDX-License-Identifier: Apache-2.0
// Making, finding, updating and evicting the sampler's graphs.
#include "cuda/graph_cache.h"

#include <algorithm>

#include "cuda/device.h"

namespace ts::cuda {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

// Of what same_node compares.
uint64_t hash_of(const LaunchList& list) {
  uint64_t hash = static_cast<uint64_t>(list.size());
  for (int32_t i = 0; i < list.size(); ++i) {
    const LaunchShape& shape = list[i].shape;
    hash = mix(hash, reinterpret_cast<uintptr_t>(list[i].function));
    hash = mix(hash, uint64_t{shape.grid.x} << 32 | shape.grid.y);
    hash = mix(hash, uint64_t{shape.grid.z} << 32 | shape.block.x);
    hash = mix(hash, uint64_t{shape.block.y} << 32 | shape.block.z);
    hash = mix(hash, uint64_t{shape.shared_bytes} << 32 | shape.cluster_size << 1 | (list[i].programmatic ? 1u : 0u));
  }
  return hash;
}

bool same_nodes(const LaunchList& a, const LaunchList& b) {
  if (a.size() != b.size()) return false;
  for (int32_t i = 0; i < a.size(); ++i) {
    if (!a[i].same_node(b[i])) return false;
  }
  return true;
}

// Why: making a graph may allocate and evicting one may free, which captures in global mode refuse, here too if another
// thread has begun one.
class RelaxedCapture {
 public:
  RelaxedCapture() { check(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

cudaKernelNodeParams node_params(const Launch& launch, void* arguments[kMaxArguments]) {
  launch.point_to_arguments(arguments);
  cudaKernelNodeParams params = {};
  params.func = const_cast<void*>(launch.function);
  params.gridDim = launch.shape.grid;
  params.blockDim = launch.shape.block;
  params.sharedMemBytes = launch.shape.shared_bytes;
  params.kernelParams = arguments;
  return params;
}

// The dependency of a launch on the one in front of it.
void add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to, bool programmatic) {
  cudaGraphEdgeData edge = {};
  if (programmatic) {
    edge.type = cudaGraphDependencyTypeProgrammatic;
    edge.from_port = cudaGraphKernelNodePortProgrammatic;
  }
#if CUDART_VERSION >= 13000
  check(cudaGraphAddDependencies(graph, &from, &to, &edge, 1), "cudaGraphAddDependencies");
#else
  check(cudaGraphAddDependencies_v2(graph, &from, &to, &edge, 1), "cudaGraphAddDependencies");
#endif
}

}  // namespace

struct GraphCache::Graph {
  explicit Graph(const LaunchList& launches) : list(launches) {
    try {
      make();
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Graph() { destroy(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Gives the nodes the arguments of a list of the same shape. Launches that are under way keep theirs.
  void set_arguments(const LaunchList& launches) {
    for (int32_t i = 0; i < launches.size(); ++i) {
      if (list[i].same_arguments(launches[i])) continue;
      void* arguments[kMaxArguments];
      const cudaKernelNodeParams params = node_params(launches[i], arguments);
      check(cudaGraphExecKernelNodeSetParams(exec, nodes[i], &params), "cudaGraphExecKernelNodeSetParams");
      list.set_arguments(i, launches[i]);
    }
  }

  LaunchList list;  // with the arguments that the nodes have
  uint64_t last_use = 0;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t nodes[kMaxLaunches] = {};

 private:
  void make() {
    check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    for (int32_t i = 0; i < list.size(); ++i) {
      void* arguments[kMaxArguments];
      const cudaKernelNodeParams params = node_params(list[i], arguments);
      check(cudaGraphAddKernelNode(&nodes[i], graph, nullptr, 0, &params), "cudaGraphAddKernelNode");
      if (list[i].shape.cluster_size > 1) {
        cudaLaunchAttributeValue value = {};
        value.clusterDim.x = list[i].shape.cluster_size;
        value.clusterDim.y = 1;
        value.clusterDim.z = 1;
        check(cudaGraphKernelNodeSetAttribute(nodes[i], cudaLaunchAttributeClusterDimension, &value),
              "cudaGraphKernelNodeSetAttribute(cluster)");
      }
      if (i > 0) add_edge(graph, nodes[i - 1], nodes[i], list[i].programmatic);
    }
    check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  }

  // Why no wait: "If the executable graph is in-flight, it will not be terminated, but rather freed asynchronously on
  // completion" (cuGraphExecDestroy in cuda.h, which cudaGraphExecDestroy is).
  void destroy() {
    if (exec != nullptr) cudaGraphExecDestroy(exec);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
};

GraphCache::GraphCache(int32_t max_graphs) : max_graphs_(static_cast<size_t>(std::max(max_graphs, 0))) {
  hashes_.reserve(max_graphs_);
  graphs_.reserve(max_graphs_);
}

GraphCache::~GraphCache() = default;

GraphCache::Graph& GraphCache::graph_for(const LaunchList& list) {
  const uint64_t hash = hash_of(list);
  for (size_t i = 0; i < hashes_.size(); ++i) {
    if (hashes_[i] == hash && same_nodes(graphs_[i]->list, list)) return *graphs_[i];
  }
  const RelaxedCapture relaxed;
  auto graph = std::make_unique<Graph>(list);
  if (graphs_.size() < max_graphs_) {
    hashes_.push_back(hash);
    graphs_.push_back(std::move(graph));
    return *graphs_.back();
  }
  // Full: in the place of the one that was not used for the longest time.
  size_t oldest = 0;
  for (size_t i = 1; i < graphs_.size(); ++i) {
    if (graphs_[i]->last_use < graphs_[oldest]->last_use) oldest = i;
  }
  hashes_[oldest] = hash;
  graphs_[oldest] = std::move(graph);
  return *graphs_[oldest];
}

void GraphCache::launch(const LaunchList& list, cudaStream_t stream) {
  Graph& graph = graph_for(list);
  graph.last_use = ++n_launches_;
  graph.set_arguments(list);
  check(cudaGraphLaunch(graph.exec, stream), "cudaGraphLaunch");
}

}  // namespace ts::cuda
