// SPDX-License-Identifier: Apache-2.0
// The fake runtime's functions.
#include "fake_cudart.h"

#include <cstdlib>
#include <cstring>
#include <map>

using ts::fake::Bind;
using ts::fake::Stream;
using ts::fake::Work;

struct CUgraphNode_st {
  Work work;
};
struct CUgraph_st {
  std::vector<cudaGraphNode_t> nodes;
};
struct CUgraphExec_st {
  std::vector<std::pair<cudaGraphNode_t, Work>> nodes;
};

namespace ts::fake {
namespace {

std::map<const void*, Bind>& kernels() {
  static std::map<const void*, Bind> all;
  return all;
}

bool fails(const char* function) {
  if (runtime().fail != function) return false;
  runtime().fail.clear();
  return true;
}

Stream& stream_of(cudaStream_t stream) { return *reinterpret_cast<Stream*>(stream); }

void enqueue(cudaStream_t stream, const Work& work) {
  if (stream == nullptr) {
    runtime().execute(work);
  } else {
    stream_of(stream).queue.push_back(work);
  }
}

Work work_of(const cudaKernelNodeParams& params) {
  Work work;
  work.what = "node";
  work.function = params.func;
  work.grid = params.gridDim;
  work.block = params.blockDim;
  work.shared_bytes = params.sharedMemBytes;
  work.run = kernels().at(params.func)(params.kernelParams);
  return work;
}

}  // namespace

Runtime& runtime() {
  static Runtime all;
  return all;
}

void add_kernel(const void* function, Bind bind) { kernels()[function] = std::move(bind); }

void Stream::run(size_t n) {
  for (size_t i = 0; i < n; ++i) runtime().execute(queue[i]);
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace ts::fake

using namespace ts::fake;

extern "C" {

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "fake failure"; }
const char* cudaGetErrorName(cudaError_t) { return "fakeError"; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }

cudaError_t cudaMalloc(void** data, size_t n) {
  *data = std::aligned_alloc(256, (n + 255) / 256 * 256);
  ++runtime().n_buffers;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  std::free(data);
  --runtime().n_buffers;
  return cudaSuccess;
}
cudaError_t cudaMemset(void* data, int value, size_t n) {
  std::memset(data, value, n);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, size_t n, unsigned) { return cudaMalloc(data, n); }
cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status =
      stream != nullptr && stream_of(stream).capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind, cudaStream_t stream) {
  if (fails("cudaMemcpyAsync")) return cudaErrorInvalidValue;
  Work work;
  work.what = "copy";
  work.run = [=] { std::memcpy(to, from, n); };
  enqueue(stream, work);
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  if (fails("cudaLaunchKernelExC")) return cudaErrorInvalidConfiguration;
  Work work;
  work.what = "kernel";
  work.function = function;
  work.grid = config->gridDim;
  work.block = config->blockDim;
  work.shared_bytes = static_cast<unsigned>(config->dynamicSmemBytes);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      work.programmatic = attribute.val.programmaticStreamSerializationAllowed != 0;
    }
    if (attribute.id == cudaLaunchAttributeClusterDimension) work.cluster = attribute.val.clusterDim.x;
  }
  work.run = kernels().at(function)(arguments);
  enqueue(config->stream, work);
  return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  ++runtime().n_live_graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  for (cudaGraphNode_t node : graph->nodes) delete node;
  delete graph;
  --runtime().n_live_graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t,
                                   const cudaKernelNodeParams* params) {
  if (fails("cudaGraphAddKernelNode")) return cudaErrorInvalidValue;
  *node = new CUgraphNode_st{work_of(*params)};
  graph->nodes.push_back(*node);
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
                                            const cudaLaunchAttributeValue* value) {
  if (fails("cudaGraphKernelNodeSetAttribute") || id != cudaLaunchAttributeClusterDimension) {
    return cudaErrorInvalidValue;
  }
  node->work.cluster = value->clusterDim.x;
  return cudaSuccess;
}
// Nodes must come in a line; the second edge end says whether it may overlap.
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edge, size_t n) {
  const size_t last = graph->nodes.size() - 1;
  if (n != 1 || last == 0 || *from != graph->nodes[last - 1] || *to != graph->nodes[last]) return cudaErrorInvalidValue;
  const bool programmatic = edge->type == cudaGraphDependencyTypeProgrammatic;
  if (programmatic != (edge->from_port == cudaGraphKernelNodePortProgrammatic)) return cudaErrorInvalidValue;
  (*to)->work.programmatic = programmatic;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (fails("cudaGraphInstantiate")) return cudaErrorInvalidValue;
  *exec = new CUgraphExec_st;
  for (cudaGraphNode_t node : graph->nodes) (*exec)->nodes.emplace_back(node, node->work);
  ++runtime().n_instantiated;
  ++runtime().n_live_execs;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  --runtime().n_live_execs;
  return cudaSuccess;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  if (fails("cudaGraphExecKernelNodeSetParams")) return cudaErrorInvalidValue;
  for (auto& [of, work] : exec->nodes) {
    if (of != node) continue;
    work.run = work_of(*params).run;
    ++runtime().n_set_params;
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (fails("cudaGraphLaunch")) return cudaErrorInvalidValue;
  for (const auto& [node, work] : exec->nodes) enqueue(stream, work);
  return cudaSuccess;
}

}  // extern "C"
