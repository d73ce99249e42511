// SPDX-License-Identifier: Apache-2.0
// Reading a row in groups of 8 ids, the ids that share a level-0 noise block: conversion, NaN and inf, padding, mask.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "contract/convert.h"
#include "cuda/call.h"
#include "cuda/row_context.cuh"

namespace ts::cuda {

constexpr int32_t kGroup = 8;

struct Fp32 {
  using Element = float;
  static constexpr uint32_t kMinusInfBits = 0xFF800000u;
};
struct Bf16 {
  using Element = uint16_t;
  static constexpr uint16_t kMinusInfBits = 0xFF80u;
  static __device__ void unpack(uint32_t word, float& low, float& high) {
    low = __uint_as_float(word << 16);
    high = __uint_as_float(word & 0xFFFF0000u);
  }
};
struct Fp16 {
  using Element = uint16_t;
  static constexpr uint16_t kMinusInfBits = 0xFC00u;
  static __device__ void unpack(uint32_t word, float& low, float& high) {
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&word));
    low = both.x;
    high = both.y;
  }
};

// The raw elements of a group.
template <class Type>
struct Raw {
  static constexpr int kWords = kGroup * sizeof(typename Type::Element) / 16;
  uint4 words[kWords];
};

// One row, or a slice of it: groups first_group .. end_group - 1.
template <class Type>
struct RowSource {
  using Element = typename Type::Element;
  const Element* row;
  const uint8_t* mask;  // bytes of the allow-bitmask, one a group; nullptr: all allowed
  int32_t mask_bytes;
  int32_t vocab;
  int32_t n_valid;
  int32_t first_group;
  int32_t end_group;
  int32_t whole_end;  // groups before it may be read and cleaned the quick way
  bool aligned;

  __device__ RowSource(const Call& call, int64_t row_index, int32_t slice, int32_t n_slices) {
    row = static_cast<const Element*>(call.logits) + row_index * call.row_stride;
    mask = call.allow_mask == nullptr
               ? nullptr
               : reinterpret_cast<const uint8_t*>(call.allow_mask + row_index * call.mask_stride);
    mask_bytes = call.mask_words > INT32_MAX / 4 ? INT32_MAX : call.mask_words * 4;
    vocab = call.vocab;
    n_valid = call.n_valid;
    const int32_t n_groups = (vocab + kGroup - 1) / kGroup;
    const int32_t share = (n_groups + n_slices - 1) / n_slices;
    first_group = min(slice * share, n_groups);
    end_group = min(first_group + share, n_groups);
    aligned = reinterpret_cast<uintptr_t>(row) % 16 == 0;
    whole_end = aligned && mask == nullptr ? max(first_group, min(end_group, n_valid / kGroup)) : first_group;
  }

  // Starts the first tile on its way from device memory.
  __device__ void prefetch(int32_t n_groups) const {
    for (int32_t group = first_group + threadIdx.x; group < min(first_group + n_groups, whole_end); group += kThreads) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(row + static_cast<int64_t>(group) * kGroup));
    }
  }

  // A group without a candidate.
  static __device__ Raw<Type> nothing() {
    Element elements[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) elements[j] = bit_cast<Element>(Type::kMinusInfBits);
    Raw<Type> raw;
    memcpy(&raw, elements, sizeof(raw));
    return raw;
  }

  // The quick way, for a group before whole_end: all of it is in the row and allowed.
  __device__ Raw<Type> load_whole(int32_t group) const {
    Raw<Type> raw;
    const uint4* at = reinterpret_cast<const uint4*>(row + group * kGroup);
#pragma unroll
    for (int w = 0; w < Raw<Type>::kWords; ++w) raw.words[w] = __ldg(at + w);
    return raw;
  }
  static __device__ float clean_whole(const Raw<Type>& raw, float (&logits)[kGroup], uint32_t& flags) {
    unpack(raw, logits);
    float top = max_of(logits);
    if (!(top <= kFloatMax)) {
      clean_special(logits, flags);
      top = max_of(logits);
    }
    return top;
  }

  // The group's raw elements; ids at or past vocab read as -inf, without touching memory.
  __device__ Raw<Type> load(int32_t group) const {
    Raw<Type> raw;
    const int32_t begin = group * kGroup;
    if (aligned && begin + kGroup <= vocab) {
      const uint4* at = reinterpret_cast<const uint4*>(row + begin);
#pragma unroll
      for (int w = 0; w < Raw<Type>::kWords; ++w) raw.words[w] = __ldg(at + w);
      return raw;
    }
    Element elements[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      elements[j] = begin + j < vocab ? row[begin + j] : bit_cast<Element>(Type::kMinusInfBits);
    }
    memcpy(&raw, elements, sizeof(raw));
    return raw;
  }

  // The group's logits as they count; row flags are raised on the way. Not candidates: -inf. Returns the largest.
  __device__ float clean(const Raw<Type>& raw, int32_t group, float (&logits)[kGroup], uint32_t& flags) const {
    unpack(raw, logits);
    // NaN and +inf are rare: look once, at the largest with NaN winning.
    float top = max_of(logits);
    const int32_t begin = group * kGroup;
    const bool special = !(top <= kFloatMax);
    if (special || mask != nullptr || begin + kGroup > n_valid) {
      if (special) clean_special(logits, flags);
      uint32_t allowed = 0xFFu;
      if (mask != nullptr) allowed = group < mask_bytes ? mask[group] : 0u;
      if (begin + kGroup > n_valid) allowed &= begin < n_valid ? (1u << (n_valid - begin)) - 1u : 0u;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) logits[j] = (allowed >> j & 1u) != 0 ? logits[j] : kMinusInf;
      top = max_of(logits);
    }
    return top;
  }

 private:
  static __device__ void unpack(const Raw<Type>& raw, float (&logits)[kGroup]) {
    if constexpr (sizeof(Element) == 4) {
      memcpy(logits, &raw, sizeof(raw));
    } else {
      const uint32_t words[4] = {raw.words[0].x, raw.words[0].y, raw.words[0].z, raw.words[0].w};
#pragma unroll
      for (int w = 0; w < 4; ++w) Type::unpack(words[w], logits[2 * w], logits[2 * w + 1]);
    }
  }
  static __device__ void clean_special(float (&logits)[kGroup], uint32_t& flags) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) logits[j] = clean_logit(logits[j], flags);
  }
  // NaN if one of them is.
  static __device__ float max_of(const float (&logits)[kGroup]) {
    float top = logits[0];
#pragma unroll
    for (int j = 1; j < kGroup; ++j) asm("max.NaN.f32 %0, %0, %1;" : "+f"(top) : "f"(logits[j]));
    return top;
  }
};

}  // namespace ts::cuda
