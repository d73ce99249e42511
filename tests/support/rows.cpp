// SPDX-License-Identifier: Apache-2.0
// Generators and conversions of rows.
#include "support/rows.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "support/data.h"

namespace ts::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// value as the nearest multiple of a type with `bits` mantissa bits, smallest exponent `low`, largest finite `max`.
double rounded(double value, int bits, int low) {
  int exponent;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - bits - 1, low - bits);
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

}  // namespace

uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x0040u);
  const uint32_t rest = bits & 0xFFFFu;
  uint32_t high = bits >> 16;
  if (rest > 0x8000u || (rest == 0x8000u && (high & 1u) != 0)) ++high;
  return static_cast<uint16_t>(high);
}

uint16_t to_fp16(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000u : 0u);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00u);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  const double near = std::isinf(value) ? 1e6 : rounded(magnitude, 10, -14);
  if (near > 65504.0) return static_cast<uint16_t>(sign | 0x7C00u);
  if (near < std::ldexp(1.0, -14)) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::ldexp(near, 24)));
  int exponent;
  const double fraction = std::frexp(near, &exponent);  // in [1/2, 1)
  const auto mantissa = static_cast<uint32_t>(std::ldexp(fraction, 11)) & 0x3FFu;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 14) << 10 | mantissa);
}

float from_bf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) * 65536u;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

float from_fp16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? kNan : static_cast<float>(sign) * kInfinity;
  const double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return static_cast<float>(sign * value);
}

std::vector<float> synthetic_row(Random& random, int32_t vocab) {
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::exponential_distribution<float> raise(0.25f);
  std::vector<float> row(static_cast<size_t>(vocab));
  for (float& logit : row) logit = normal(random) + (pick(random, 1024) == 0 ? raise(random) : 0.0f);
  return row;
}

std::vector<float> any_row(Random& random, int32_t vocab) {
  const int kind = pick(random, 12);
  std::vector<float> row = synthetic_row(random, vocab);
  for (size_t i = 0; i < row.size(); ++i) {
    float& logit = row[i];
    switch (kind) {
      case 0:
      case 1: break;
      case 2: logit = -3.5f; break;
      case 3: logit *= 0.01f; break;
      case 4: logit = static_cast<float>(pick(random, 4)); break;
      case 5: logit = pick(random, 3) == 0 ? logit : -kInfinity; break;
      case 6: logit *= 30.0f; break;
      case 7: logit = pick(random, 20) == 0 ? kNan : (pick(random, 200) == 0 ? kInfinity : logit); break;
      case 8: logit = -0.01f * static_cast<float>(i); break;
      case 9: logit = 0.01f * static_cast<float>(i); break;
      case 10: logit = i == row.size() / 2 ? 25.0f : logit; break;
      default: logit = pick(random, 2) == 0 ? 65504.0f : -65504.0f; break;
    }
  }
  const int rare = pick(random, 60);
  if (rare == 0) row.assign(row.size(), kNan);
  if (rare == 1) row.assign(row.size(), -kInfinity);
  return row;
}

Logits pack(std::vector<std::vector<float>>& rows, int32_t type, int64_t stride) {
  Logits logits;
  logits.type = type;
  logits.row_stride = stride;
  const size_t element = type == TS_FP32 ? 4 : 2;
  const size_t row_bytes = static_cast<size_t>(stride) * element;
  // Filler between rows: large logits, so that a read past a row's end shows.
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<unsigned char> bytes(r + 1 < rows.size() ? row_bytes : rows[r].size() * element);
    for (size_t i = 0; i + element <= bytes.size(); i += element) {
      float& value = rows[r][std::min(i / element, rows[r].size() - 1)];
      const bool filler = i / element >= rows[r].size();
      const float used = filler ? 60000.0f : value;
      if (type == TS_FP32) {
        std::memcpy(&bytes[i], &used, 4);
        continue;
      }
      const uint16_t bits = type == TS_BF16 ? to_bf16(used) : to_fp16(used);
      std::memcpy(&bytes[i], &bits, 2);
      if (!filler) value = type == TS_BF16 ? from_bf16(bits) : from_fp16(bits);
    }
    logits.bytes.insert(logits.bytes.end(), bytes.begin(), bytes.end());
  }
  return logits;
}

std::vector<uint16_t> real_rows() {
  const char* all = std::getenv("TS_LM_DATA");
  const std::string path = all != nullptr ? all : data_path("lm_rows_8x128256.bf16");
  static const int once = all != nullptr ? 0 : std::puts("real rows: the committed 8; set TS_LM_DATA for more");
  static_cast<void>(once);
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  if (bytes.empty() || bytes.size() % (2 * kRealVocab) != 0) throw std::runtime_error("no real rows in " + path);
  std::vector<uint16_t> rows(bytes.size() / 2);
  std::memcpy(rows.data(), bytes.data(), bytes.size());
  return rows;
}

std::vector<float> real_row(const std::vector<uint16_t>& rows, size_t index) {
  std::vector<float> row(kRealVocab);
  for (size_t i = 0; i < row.size(); ++i) row[i] = from_bf16(rows[index * kRealVocab + i]);
  return row;
}

}  // namespace ts::test
