// SPDX-License-Identifier: Apache-2.0
// Generated cases.
#include "gpu/cases.h"

#include <cmath>
#include <cstring>

namespace ts::gpu {
namespace {

const char* const kKinds[] = {"synthetic", "flat",       "near-flat", "tied",   "sparse -inf",
                              "wide",      "non-finite", "falling",   "rising", "peaked"};
constexpr int kNumKinds = 10;

// Rough rounding is enough: both backends see the same bits.
uint16_t to_fp16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const int e = static_cast<int>(bits >> 23 & 0xFFu) - 127;
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (e > 15) return static_cast<uint16_t>(sign | 0x7C00u);
  if (e < -14) return static_cast<uint16_t>(sign | (e < -25 ? 0u : 0x400u >> (-14 - e)));
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(e + 15) << 10 | (bits >> 13 & 0x3FFu));
}

const char* random_row(Random& random, std::vector<float>& row) {
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::exponential_distribution<float> raise(0.25f);
  const int kind = pick(random, kNumKinds);
  const float level = 0.25f * static_cast<float>(pick(random, 100));
  for (size_t i = 0; i < row.size(); ++i) {
    float& l = row[i];
    const auto place = static_cast<float>(i);
    switch (kind) {
      case 1: l = level; break;
      case 2: l = normal(random) * 0.01f; break;
      case 3: l = static_cast<float>(pick(random, 5)); break;
      case 4: l = pick(random, 3) == 0 ? normal(random) : -HUGE_VALF; break;
      case 5: l = normal(random) * 20.0f; break;
      case 6: l = pick(random, 50) == 0 ? NAN : (pick(random, 2000) == 0 ? HUGE_VALF : normal(random)); break;
      case 7: l = level - place * 0.001f; break;
      case 8: l = level + place * 0.001f; break;
      default: l = normal(random) + (pick(random, 1024) == 0 ? raise(random) : 0.0f); break;
    }
  }
  if (kind == 9) row[static_cast<size_t>(pick(random, static_cast<int64_t>(row.size())))] = 15.0f + level;
  if (pick(random, 40) == 0) {
    row.assign(row.size(), pick(random, 2) != 0 ? NAN : -HUGE_VALF);
    return "empty";
  }
  if (pick(random, 10) == 0) row[static_cast<size_t>(pick(random, static_cast<int64_t>(row.size())))] = 65504.0f;
  return kKinds[kind];
}

void fill_logits(Random& random, Case& c) {
  const size_t element = c.element();
  c.logits.assign(c.lead + c.n_rows() * c.row_bytes(), 0x7F);  // NaN or huge between rows
  std::vector<float> row(static_cast<size_t>(c.vocab));
  for (size_t r = 0; r < c.n_rows(); ++r) {
    c.kinds.push_back(random_row(random, row));
    unsigned char* at = c.logits.data() + c.lead + r * c.row_bytes();
    for (size_t i = 0; i < row.size(); ++i) {
      const uint16_t half = c.type == TS_BF16 ? to_bf16(row[i]) : to_fp16(row[i]);
      std::memcpy(at + i * element, c.type == TS_FP32 ? static_cast<const void*>(&row[i]) : &half, element);
    }
  }
}

void fill_candidates(Random& random, Case& c) {
  for (size_t i = 0; i < c.n_rows(); ++i) {
    c.candidates.push_back(pick(random, 2) != 0 ? pick(random, c.vocab) : pick(random, 4) - 1);
  }
}

Case random_case(Random& random, int32_t vocab, int32_t n_requests) {
  Case c;
  c.vocab = vocab;
  c.n_requests = n_requests;
  c.rows_per_request = 1 + pick(random, 4);
  c.type = pick(random, 3);
  c.row_stride = vocab + (pick(random, 3) == 0 ? pick(random, 70) : 0);
  if (pick(random, 3) == 0) c.n_valid = 1 + pick(random, vocab);
  c.lead = static_cast<size_t>(pick(random, 3) == 0 ? pick(random, 8) : 0) * c.element();
  fill_logits(random, c);
  const int kind = pick(random, 7);  // 5, 6: mixed
  const bool min_p = pick(random, 2) == 0;
  for (int r = 0; r < n_requests; ++r) {
    const int own = pick(random, 8) == 0 ? 0 : kind;
    c.params.push_back(random_params(random, vocab, kind < 5 ? own : pick(random, 5), min_p));
    c.positions.push_back(static_cast<int64_t>(random() >> (2 + pick(random, 60))));
  }
  if (pick(random, 3) == 0) c.positions.clear();
  if (pick(random, 3) == 0) {
    c.mask_words = 1 + pick(random, (vocab + 31) / 32 + 2);
    for (size_t i = 0; i < c.n_rows() * static_cast<size_t>(c.mask_words); ++i) {
      c.mask.push_back(static_cast<int32_t>(pick(random, 3) == 0 ? 0xFFFFFFFFu : random()));
    }
  }
  c.asked = random_asked(random);
  if (pick(random, 4) == 0) fill_candidates(random, c);
  return c;
}

Case named(Case c, const char* section, uint64_t section_number, int64_t number) {
  c.name = std::string(section) + ":" + std::to_string(number);
  c.first_id = section_number << 56 | static_cast<uint64_t>(number) << 20;
  return c;
}

}  // namespace

uint16_t to_bf16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

ts_request_params random_params(Random& random, int32_t vocab, int kind, bool min_p) {
  ts_request_params p = TS_REQUEST_PARAMS_INIT;
  p.flags = TS_PARAMS_SEEDED;
  p.seed = random();
  const float temperatures[] = {0.0f, 1e-6f, 1e-5f, 0.1f, 0.7f, 1.0f, 1.0f, 1.5f, 5.0f, 1e4f};
  p.temperature = kind == 0 ? 0.0f : temperatures[1 + pick(random, 9)];
  const int32_t ks[] = {1, 2, 5, 20, 50, 100, 128, 129, 500, 1000, 1024, 1025, 4000, vocab - 1, vocab / 2};
  const float ps[] = {0.0f, 1e-7f, 1e-3f, 0.1f, 0.3f, 0.5f, 0.8f, 0.9f, 0.95f, 0.99f, 0.9999f};
  if (kind == 2 || kind == 4) p.top_k = ks[pick(random, 15)];
  if (kind == 3 || kind == 4) p.top_p = ps[pick(random, 11)];
  if (min_p && pick(random, 3) == 0) p.min_p = 0.001f * static_cast<float>(pick(random, 300));
  return p;
}

Asked random_asked(Random& random) {
  const int kind = pick(random, 4);
  return kind < 3 ? kAsked[kind] : static_cast<Asked>(random()) & kEverything;
}

Case real_case(const std::vector<unsigned char>& rows, int32_t vocab, int64_t number) {
  Random random(0x9EA1000000 + static_cast<uint64_t>(number));
  Case c;
  c.logits = rows;
  c.vocab = vocab;
  c.row_stride = vocab;
  c.type = TS_BF16;
  c.n_requests = static_cast<int32_t>(rows.size() / 2 / static_cast<size_t>(vocab));
  const int kind = static_cast<int>(number % 6);  // 5: mixed
  for (int32_t r = 0; r < c.n_requests; ++r) {
    if (kind == 5 || r == 0) {
      c.params.push_back(random_params(random, vocab, kind == 5 ? pick(random, 5) : kind, number / 6 % 2 == 0));
    } else {
      c.params.push_back(c.params[0]);
      c.params.back().seed += static_cast<uint64_t>(r);
    }
    c.positions.push_back(pick(random, 100000));
    c.kinds.push_back("real");
  }
  c.asked = random_asked(random);
  if (number % 4 == 3) fill_candidates(random, c);
  return named(std::move(c), "real", 1, number);
}

Case small_case(int64_t number) {
  Random random(0x53A11000000 + static_cast<uint64_t>(number));
  const int32_t vocabs[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 255, 256, 257, 511, 1023, 2047, 2048, 4096, 5000};
  const int32_t vocab = vocabs[pick(random, 18)];
  return named(random_case(random, vocab, 1 + pick(random, pick(random, 2) != 0 ? 8 : 300)), "small", 2, number);
}

Case large_case(int64_t number) {
  Random random(0x1A26E000000 + static_cast<uint64_t>(number));
  const int32_t vocabs[] = {40001, 50257, 128256, 151936, 151937, 201088, 262144};
  const int32_t vocab = vocabs[pick(random, 7)];
  return named(random_case(random, vocab, 1 + pick(random, 8)), "large", 3, number);
}

}  // namespace ts::gpu
