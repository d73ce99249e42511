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

int64_t blocks_per_sm(const ClusterLimits& limits, int64_t n_blocks) { return (n_blocks - 1) / limits.n_sm + 1; }

}  // namespace

int32_t cluster_size_for(const ClusterLimits& limits, int32_t logits_type, int32_t vocab, int64_t n_rows) {
  if (n_rows > limits.tuning.max_rows || limits.max_size == 0) return 0;
  int32_t size = 1;
  while (size * 2 <= limits.max_size && blocks_per_sm(limits, n_rows * size * 2) <= limits.tuning.blocks_per_sm &&
         groups_of(vocab, size) > limits.tuning.min_groups) {
    size *= 2;
  }
  const int64_t n_beside = blocks_per_sm(limits, n_rows * size);
  const bool fits = size <= limits.max_size && n_beside <= limits.tuning.blocks_per_sm &&
                    static_cast<size_t>(n_beside) * shared_bytes(logits_type, vocab, size) <= limits.shared_bytes;
  return fits ? size : 0;
}

void launch_cluster(LaunchList& list, const ClusterLimits& limits, int32_t logits_type, const Call& call,
                    int64_t n_rows, int32_t cluster_size, RowPick* picks, const Outputs& out) {
  const int64_t n_blocks = n_rows * cluster_size;
  const int32_t n_groups = groups_of(call.vocab, cluster_size);
  const ClusterTuning& tuning = limits.tuning;
  const int32_t per_warp = 32 * tuning.groups_per_thread;
  const int32_t n_threads = (n_groups + per_warp - 1) / per_warp * 32;
  const int32_t most = blocks_per_sm(limits, n_blocks) > 1 ? tuning.crowded_threads : tuning.max_threads;
  LaunchShape shape{dim3(static_cast<unsigned>(n_blocks)),
                    dim3(static_cast<unsigned>(std::clamp(n_threads, tuning.min_threads, most))),
                    static_cast<uint32_t>(shared_bytes(logits_type, call.vocab, cluster_size))};
  shape.cluster_size = static_cast<uint32_t>(cluster_size);
  list.add("launch of cluster_kernel", kernel_for(logits_type), shape, call, picks, out);
}

ClusterLimits load_cluster_kernels(int32_t device, const ClusterTuning& tuning, int32_t n_sm) {
  ClusterLimits limits{0, n_sm, 0, tuning};
  if (tuning.max_rows == 0) return limits;
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory of a block");
  limits.shared_bytes = static_cast<size_t>(bytes);
  limits.max_size = std::min(tuning.max_size, kMaxClusterSize);
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
