// SPDX-License-Identifier: Apache-2.0
// The end of a stream capture, and what is in the graph.
#pragma once

#include <string>
#include <vector>

#include "gpu/gpu.h"

namespace ts::gpu {

struct Captured {
  cudaGraphExec_t executable;
  size_t n_nodes;
  long n_foreign;  // nodes other than kernels and memsets: what allocates, copies, calls the host or nests a graph
};

// status: of the captured call. Gives up when the call or the capture failed.
inline Captured end_capture(cudaStream_t stream, ts_status status, const std::string& what) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  check(status == TS_OK, (what + ": the call").c_str());
  check(error, (what + ": the capture").c_str());
  Captured captured{};
  check(cudaGraphGetNodes(graph, nullptr, &captured.n_nodes), "nodes");
  std::vector<cudaGraphNode_t> nodes(captured.n_nodes);
  check(cudaGraphGetNodes(graph, nodes.data(), &captured.n_nodes), "nodes");
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    check(cudaGraphNodeGetType(node, &type), "node type");
    captured.n_foreign +=
        type != cudaGraphNodeTypeKernel && type != cudaGraphNodeTypeMemset && type != cudaGraphNodeTypeEmpty;
  }
  check(cudaGraphInstantiate(&captured.executable, graph, 0), "instantiate");
  check(cudaGraphDestroy(graph), "graph");
  return captured;
}

}  // namespace ts::gpu
