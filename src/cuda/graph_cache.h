// SPDX-License-Identifier: Apache-2.0
// CUDA graphs that the sampler owns: one for each shape of launch list, replayed with the arguments of the call.
#pragma once

#include <memory>
#include <vector>

#include "cuda/launch_list.h"

namespace ts::cuda {

class GraphCache {
 public:
  // max_graphs: the bound; beyond it the graph that was not used for the longest time goes. 0: no graphs.
  explicit GraphCache(int32_t max_graphs);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  bool enabled() const { return max_graphs_ > 0; }
  size_t size() const { return graphs_.size(); }

  // Enqueues a list as one graph. The first list of a shape makes the graph, which allocates; the others only set what
  // arguments differ. `stream` must not be capturing. Throws Error.
  void launch(const LaunchList& list, cudaStream_t stream);

 private:
  struct Graph;
  Graph& graph_for(const LaunchList& list);

  size_t max_graphs_;
  uint64_t n_launches_ = 0;
  // Beside each other, and not in Graph, so that a look-up reads few lines of memory.
  std::vector<uint64_t> hashes_;
  std::vector<std::unique_ptr<Graph>> graphs_;
};

}  // namespace ts::cuda
