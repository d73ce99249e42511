// SPDX-License-Identifier: Apache-2.0
// Loading of rows. The loops carry no branch, so that compilers vectorise them.
#include "cpu/row.h"

#include "contract/convert.h"
#include "cpu/simd.h"

namespace ts {
namespace {

struct Fp32 {
  using Element = float;
  static float to_float(float v) { return v; }
};
struct Bf16 {
  using Element = uint16_t;
  static float to_float(uint16_t v) { return bf16_to_float(v); }
};
struct Fp16 {
  using Element = uint16_t;
  static float to_float(uint16_t v) { return fp16_to_float(v); }
};

// Step 1: NaN to -inf, +inf to FLT_MAX. Returns the row's flags.
template <class Type>
TS_SIMD_INLINE uint32_t convert(const typename Type::Element* in, int32_t n, float* out) {
  uint32_t flags = 0;
  for (int32_t i = 0; i < n; ++i) out[i] = clean_logit(Type::to_float(in[i]), flags);
  return flags;
}

// Step 2: ids at or past n_valid, and ids whose mask bit is clear, are no candidates.
TS_SIMD_INLINE void forbid(const int32_t* mask, int32_t mask_words, int32_t n_valid, int32_t vocab, float* logits) {
  for (int32_t i = n_valid; i < vocab; ++i) logits[i] = kMinusInf;
  if (mask == nullptr) return;
  const int32_t n_words = (n_valid - 1) / 32 + 1;
  for (int32_t w = 0; w < n_words; ++w) {
    const uint32_t word = w < mask_words ? static_cast<uint32_t>(mask[w]) : 0u;
    if (word == 0xFFFFFFFFu) continue;
    const int32_t end = (w + 1) * 32 < n_valid ? (w + 1) * 32 : n_valid;
    for (int32_t i = w * 32; i < end; ++i) logits[i] = ((word >> (i % 32)) & 1u) != 0 ? logits[i] : kMinusInf;
  }
}

// The maximum, its first id, and the number of candidates.
void describe(Row& row, float* chunk_max) {
  row.max = kMinusInf;
  int32_t first_chunk = 0;
  for (int32_t c = 0; c < n_chunks(row.vocab); ++c) {
    const float* chunk = row.logits + c * kChunk;
    chunk_max[c] = max_of(chunk, chunk_size(row.vocab, c));
    row.n_candidates += count_above(chunk, chunk_size(row.vocab, c), kMinusInf);
    if (chunk_max[c] > row.max) {
      row.max = chunk_max[c];
      first_chunk = c;
    }
  }
  row.chunk_max = chunk_max;
  if (row.n_candidates == 0) {
    row.flags |= kRowEmpty;
    return;
  }
  row.first = static_cast<uint32_t>(first_chunk * kChunk);
  while (row.logits[row.first] != row.max) ++row.first;
}

TS_SIMD_CLONES uint32_t load(const ts_rows& rows, int64_t index, float* logits) {
  uint32_t flags = 0;
  const int64_t offset = index * rows.row_stride;
  switch (rows.logits_type) {
    case TS_FP32: flags = convert<Fp32>(static_cast<const float*>(rows.logits) + offset, rows.vocab, logits); break;
    case TS_BF16: flags = convert<Bf16>(static_cast<const uint16_t*>(rows.logits) + offset, rows.vocab, logits); break;
    default: flags = convert<Fp16>(static_cast<const uint16_t*>(rows.logits) + offset, rows.vocab, logits); break;
  }
  const int32_t* mask = rows.allow_mask != nullptr ? rows.allow_mask + index * rows.mask_stride : nullptr;
  forbid(mask, rows.mask_words, rows.n_valid, rows.vocab, logits);
  return flags;
}

}  // namespace

Row load_row(const ts_rows& rows, int64_t index, float* logits, float* chunk_max) {
  Row row{};
  row.flags = load(rows, index, logits);
  row.logits = logits;
  row.vocab = rows.vocab;
  describe(row, chunk_max);
  return row;
}

}  // namespace ts
