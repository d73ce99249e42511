// SPDX-License-Identifier: Apache-2.0
// `read`: a plain one-pass maximum over the logits, the floor that every time here is compared with.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace ts::bench {

// Bytes: the logits once. 16-byte loads, four in flight a thread; one float a block of a row, merged by atomicMax.
template <bool kBf16>
__global__ void __launch_bounds__(256)
    read_kernel(const void* logits, int64_t row_bytes, int32_t n_slices, int32_t* out) {
  const int64_t row = blockIdx.x / n_slices;
  const int32_t slice = blockIdx.x % n_slices;
  const uint4* words = reinterpret_cast<const uint4*>(static_cast<const char*>(logits) + row * row_bytes);
  const int32_t n_words = static_cast<int32_t>(row_bytes / 16);
  const int32_t share = (n_words + n_slices - 1) / n_slices;
  const int32_t end = min((slice + 1) * share, n_words);
  float top = -3.4e38f;
  for (int32_t begin = slice * share + threadIdx.x; begin < end; begin += 256 * 4) {
    uint4 raw[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) raw[i] = begin + i * 256 < end ? __ldg(words + begin + i * 256) : __ldg(words + begin);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t word[4] = {raw[i].x, raw[i].y, raw[i].z, raw[i].w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if (kBf16) {
          top = fmaxf(top, fmaxf(__uint_as_float(word[w] << 16), __uint_as_float(word[w] & 0xFFFF0000u)));
        } else {
          top = fmaxf(top, __uint_as_float(word[w]));
        }
      }
    }
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFu, top, offset));
  __shared__ float warps[8];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = top;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < 8; ++w) top = fmaxf(top, warps[w]);
  atomicMax(out + row, __float_as_int(fmaxf(top, 0.0f)));
}

}  // namespace ts::bench
