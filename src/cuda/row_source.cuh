// SPDX-License-Identifier: Apache-2.0
// Reading a row in groups of 8 ids, the ids that share a level-0 noise block: conversion, NaN and inf, padding, mask.
//
// A group stays packed, as it lies in memory, until its logits are needed one by one: its largest comes from packed
// maxima, and most groups are done with after that.
#pragma once

#include <cuda_fp16.h>

#include "contract/convert.h"
#include "cuda/call.h"
#include "cuda/ptx.cuh"
#include "cuda/row_context.cuh"

namespace ts::cuda {

constexpr int32_t kGroup = 8;

// Element types. Two 16-bit elements share a word, the lower id in its low half.
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
  static __device__ uint32_t max_or_nan_of_two(uint32_t a, uint32_t b) { return max_or_nan_bf16x2(a, b); }
};
struct Fp16 {
  using Element = uint16_t;
  static constexpr uint16_t kMinusInfBits = 0xFC00u;
  static __device__ void unpack(uint32_t word, float& low, float& high) {
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&word));
    low = both.x;
    high = both.y;
  }
  static __device__ uint32_t max_or_nan_of_two(uint32_t a, uint32_t b) { return max_or_nan_fp16x2(a, b); }
};

// The raw elements of a group.
template <class Type>
struct Raw {
  static constexpr int kWords = kGroup * sizeof(typename Type::Element) / 16;
  uint4 words[kWords];

  // All -inf: a group without a candidate.
  static __device__ Raw nothing() {
    typename Type::Element elements[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) elements[j] = bit_cast<typename Type::Element>(Type::kMinusInfBits);
    Raw raw;
    memcpy(&raw, elements, sizeof(raw));
    return raw;
  }

  // The largest as stored; NaN if one is.
  __device__ float stored_top() const {
    if constexpr (kWords == 2) {
      float all[kGroup];
      memcpy(all, words, sizeof(all));
      return max_or_nan(max_or_nan(max_or_nan(all[0], all[1]), max_or_nan(all[2], all[3])),
                        max_or_nan(max_or_nan(all[4], all[5]), max_or_nan(all[6], all[7])));
    } else {
      float low, high;
      Type::unpack(Type::max_or_nan_of_two(Type::max_or_nan_of_two(words[0].x, words[0].y),
                                           Type::max_or_nan_of_two(words[0].z, words[0].w)),
                   low, high);
      return max_or_nan(low, high);
    }
  }

  __device__ void unpack(float (&logits)[kGroup]) const {
    if constexpr (kWords == 2) {
      memcpy(logits, words, sizeof(words));
    } else {
      Type::unpack(words[0].x, logits[0], logits[1]);
      Type::unpack(words[0].y, logits[2], logits[3]);
      Type::unpack(words[0].z, logits[4], logits[5]);
      Type::unpack(words[0].w, logits[6], logits[7]);
    }
  }

  // The logits as they count, and the flags they raise.
  __device__ void clean(float (&logits)[kGroup], uint32_t& flags) const {
    unpack(logits);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) logits[j] = clean_logit(logits[j], flags);
  }
  // The same where the flags are known: NaN becomes -inf, +inf the largest finite.
  __device__ void clean(float (&logits)[kGroup]) const {
    unpack(logits);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) logits[j] = fminf(fmaxf(logits[j], kMinusInf), kFloatMax);
  }

  // The largest as it counts; -inf if there is no candidate.
  __device__ float top(uint32_t& flags) const {
    const float stored = stored_top();
    if (stored <= kFloatMax) return stored;
    float logits[kGroup];
    clean(logits, flags);
    float most = logits[0];
#pragma unroll
    for (int j = 1; j < kGroup; ++j) most = fmaxf(most, logits[j]);
    return most;
  }
};

// A group's logit by a place that is not known when compiling. Why so: an index would put the group in local memory.
__device__ inline float logit_at(const float (&logits)[kGroup], uint32_t place) {
  float logit = logits[0];
#pragma unroll
  for (uint32_t j = 1; j < kGroup; ++j) logit = place == j ? logits[j] : logit;
  return logit;
}

template <class Type>
struct Checked;
template <class Type>
struct RowSource;
template <class Type>
__device__ __noinline__ Checked<Type> load_checked(RowSource<Type> source, int32_t group);

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
  int32_t whole_end;  // groups before it are aligned, inside the row and allowed in full
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

  // For a group before whole_end.
  __device__ Raw<Type> load_whole(int32_t group) const {
    Raw<Type> raw;
    const uint4* at = reinterpret_cast<const uint4*>(row + group * kGroup);
#pragma unroll
    for (int w = 0; w < Raw<Type>::kWords; ++w) raw.words[w] = __ldg(at + w);
    return raw;
  }

  // Any group of the row, when its flags are known already.
  __device__ Raw<Type> load(int32_t group) const {
    return group >= first_group && group < whole_end ? load_whole(group) : load_checked(*this, group).raw;
  }
};

// A group that may be cut off, masked or unaligned.
template <class Type>
struct Checked {
  Raw<Type> raw;
  uint32_t flags;  // of all its ids, masked and padding ones too
};

// Any group of the row. Ids that are no candidates read as -inf, ids past the row without touching memory.
// Why not inlined, and all by value: it is rare, and the loops around it need the registers.
template <class Type>
__device__ Checked<Type> load_checked(RowSource<Type> source, int32_t group) {
  using Element = typename Type::Element;
  const int32_t begin = group * kGroup;
  Element elements[kGroup];
  Checked<Type> checked{{}, 0};
  if (source.aligned && begin + kGroup <= source.vocab) {
    checked.raw = source.load_whole(group);
    memcpy(elements, &checked.raw, sizeof(elements));
  } else {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      elements[j] = begin + j < source.vocab ? source.row[begin + j] : bit_cast<Element>(Type::kMinusInfBits);
    }
    memcpy(&checked.raw, elements, sizeof(elements));
  }
  checked.raw.top(checked.flags);
  uint32_t allowed = 0xFFu;
  if (source.mask != nullptr) allowed = group < source.mask_bytes ? source.mask[group] : 0u;
  if (begin + kGroup > source.n_valid) allowed &= begin < source.n_valid ? (1u << (source.n_valid - begin)) - 1u : 0u;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    elements[j] = (allowed >> j & 1u) != 0 ? elements[j] : bit_cast<Element>(Type::kMinusInfBits);
  }
  memcpy(&checked.raw, elements, sizeof(elements));
  return checked;
}

}  // namespace ts::cuda
