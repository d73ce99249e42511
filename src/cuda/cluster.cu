// SPDX-License-Identifier: Apache-2.0
// Launching the cluster kernel, and whether a device can.
#include <algorithm>

#include "cuda/cluster.cuh"
#include "cuda/launch.h"

namespace ts::cuda {
namespace {

using Kernel = void (*)(Call, RowPick*, Outputs);

Kernel kernel_for(int32_t logits_type) {
  switch (logits_type) {
    case TS_FP32: return cluster_kernel<Fp32>;
    case TS_BF16: return cluster_kernel<Bf16>;
    default: return cluster_kernel<Fp16>;
  }
}

int32_t groups_of(int32_t vocab, int32_t cluster_size) {
  return ((vocab + kGroup - 1) / kGroup + cluster_size - 1) / cluster_size;
}

size_t shared_bytes(int32_t logits_type, int32_t vocab, int32_t cluster_size) {
  return cluster_shared_bytes(groups_of(vocab, cluster_size), logits_type == TS_FP32 ? 4 : 2);
}

constexpr int32_t kMinGroups = 512;      // of a row that more blocks do not share
constexpr int32_t kGroupsPerThread = 2;  // where multiprocessors have a block each
constexpr int32_t kMinThreads = 128;
constexpr int32_t kCrowdedThreads = 256;  // where they share them
constexpr int32_t kBlocksPerSm = 4;       // of so many threads

int64_t blocks_per_sm(const ClusterLimits& limits, int64_t n_blocks) { return (n_blocks - 1) / limits.n_sm + 1; }

}  // namespace

int32_t cluster_size_for(const ClusterLimits& limits, int32_t logits_type, int32_t vocab, int64_t n_rows) {
  if (limits.max_size == 0) return 0;
  int32_t size = 1;
  while (size * 2 <= limits.max_size && blocks_per_sm(limits, n_rows * size * 2) <= kBlocksPerSm &&
         groups_of(vocab, size) > kMinGroups) {
    size *= 2;
  }
  const int64_t n_beside = blocks_per_sm(limits, n_rows * size);
  const bool fits = size <= limits.max_size && n_beside <= kBlocksPerSm &&
                    static_cast<size_t>(n_beside) * shared_bytes(logits_type, vocab, size) <= limits.shared_bytes;
  return fits ? size : 0;
}

void launch_cluster(LaunchList& list, const ClusterLimits& limits, int32_t logits_type, const Call& call,
                    int64_t n_rows, int32_t cluster_size, RowPick* picks, const Outputs& out) {
  const int64_t n_blocks = n_rows * cluster_size;
  const int32_t n_groups = groups_of(call.vocab, cluster_size);
  const int32_t n_warps = (n_groups + 32 * kGroupsPerThread - 1) / (32 * kGroupsPerThread);
  const int32_t most = blocks_per_sm(limits, n_blocks) > 1 ? kCrowdedThreads : kMaxClusterThreads;
  LaunchShape shape{dim3(static_cast<unsigned>(n_blocks)),
                    dim3(static_cast<unsigned>(std::clamp(n_warps * 32, kMinThreads, most))),
                    static_cast<uint32_t>(shared_bytes(logits_type, call.vocab, cluster_size))};
  shape.cluster_size = static_cast<uint32_t>(cluster_size);
  list.add("launch of cluster_kernel", kernel_for(logits_type), shape, call, picks, out);
}

ClusterLimits load_cluster_kernels(int32_t device, int32_t capability, int32_t n_sm) {
  ClusterLimits limits{0, n_sm, 0};
  if (capability < 90) return limits;
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory of a block");
  limits.shared_bytes = static_cast<size_t>(bytes);
  limits.max_size = kMaxClusterSize;
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    const auto kernel = reinterpret_cast<const void*>(kernel_for(type));
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "cudaFuncSetAttribute(cluster_kernel)");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "cudaFuncSetAttribute(cluster_kernel)");
    // Why asked: 8 blocks are promised where there are clusters, 16 may not be, as on a part of a GPU.
    while (limits.max_size > 1) {
      cudaLaunchAttribute attribute = {};
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = static_cast<unsigned>(limits.max_size);
      attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = dim3(static_cast<unsigned>(limits.max_size));
      config.blockDim = dim3(256);
      config.dynamicSmemBytes = 48 << 10;
      config.attrs = &attribute;
      config.numAttrs = 1;
      int n_clusters = 0;
      if (cudaOccupancyMaxActiveClusters(&n_clusters, kernel, &config) == cudaSuccess && n_clusters > 0) break;
      cudaGetLastError();  // Why: what was refused here is not the caller's error.
      limits.max_size /= 2;
    }
  }
  return limits;
}

}  // namespace ts::cuda
