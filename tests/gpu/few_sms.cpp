// SPDX-License-Identifier: Apache-2.0
// Green contexts. Why by entry point: the programs link no libcuda, so that they start where there is no driver.
#include "gpu/few_sms.h"

#include <cuda.h>

namespace ts::gpu {
namespace {

template <class Function>
bool find(Function*& function, const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, &result);
  cudaGetLastError();
  function = reinterpret_cast<Function*>(found);
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess && found != nullptr;
}

}  // namespace

cudaStream_t make_small_stream(int n_sm, int* n_sm_given, std::string* why) {
  decltype(cuDeviceGetDevResource)* get_resource = nullptr;
  decltype(cuDevSmResourceSplitByCount)* split = nullptr;
  decltype(cuDevResourceGenerateDesc)* describe = nullptr;
  decltype(cuGreenCtxCreate)* create = nullptr;
  decltype(cuGreenCtxStreamCreate)* create_stream = nullptr;
  if (!find(get_resource, "cuDeviceGetDevResource") || !find(split, "cuDevSmResourceSplitByCount") ||
      !find(describe, "cuDevResourceGenerateDesc") || !find(create, "cuGreenCtxCreate") ||
      !find(create_stream, "cuGreenCtxStreamCreate")) {
    *why = "the driver has no green contexts";
    return nullptr;
  }
  CUdevResource all{}, part{}, rest{};
  unsigned n_groups = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx context = nullptr;
  CUstream stream = nullptr;
  CUresult error = get_resource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (error == CUDA_SUCCESS) error = split(&part, &n_groups, &all, &rest, 0, static_cast<unsigned>(n_sm));
  if (error == CUDA_SUCCESS) error = describe(&description, &part, 1);
  if (error == CUDA_SUCCESS) error = create(&context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  if (error == CUDA_SUCCESS) error = create_stream(&stream, context, CU_STREAM_NON_BLOCKING, 0);
  if (error != CUDA_SUCCESS) {
    *why = "the driver gives no green context: error " + std::to_string(static_cast<int>(error));
    return nullptr;
  }
  *n_sm_given = static_cast<int>(part.sm.smCount);
  return stream;
}

}  // namespace ts::gpu
