// SPDX-License-Identifier: Apache-2.0
// The golden rows of tests/data/contract_vectors.json through the C API: token, n_kept, rank, log-probability and flags
// bit for bit, alone and in one batch, as a later row of a request, in every logits type and on every route.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/data.h"
#include "support/device_memory.h"
#include "tssample.h"

namespace ts::test {
namespace {

using nlohmann::json;

constexpr uint32_t kMinusInf = 0xFF800000u;

struct GoldenRow {
  std::string name;
  int32_t logits_type;
  std::vector<uint32_t> logits;  // bits of the type
  std::vector<uint32_t> as_fp32;
  ts_request_params params;
  uint64_t request_id, sampler_seed;
  int64_t position;
  int32_t n_valid, invalid_token;
  bool masked;
  std::vector<int32_t> mask;
  int32_t token, n_kept, rank;
  bool logprob_is_nan;
  uint32_t logprob, flags;
  int32_t vocab() const { return static_cast<int32_t>(logits.size()); }
};

uint64_t hex(const json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); }

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Written apart from the library's own conversion.
uint32_t fp16_as_fp32(uint32_t pattern) {
  const int exponent = static_cast<int>(pattern >> 10) & 31;
  const float fraction = static_cast<float>(pattern & 1023);
  float magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction != 0 ? NAN : HUGE_VALF;
  return bits_of((pattern & 0x8000) != 0 ? -magnitude : magnitude);
}

GoldenRow parse(const json& v) {
  GoldenRow row{};
  row.name = v["name"];
  const std::string type = v["type"];
  row.logits_type = type == "fp32" ? TS_FP32 : type == "bf16" ? TS_BF16 : TS_FP16;
  for (const json& text : v["logits"]) {
    const uint32_t bits = static_cast<uint32_t>(hex(text));
    row.logits.push_back(bits);
    row.as_fp32.push_back(row.logits_type == TS_FP32   ? bits
                          : row.logits_type == TS_BF16 ? bits << 16
                                                       : fp16_as_fp32(bits));
  }
  row.params = TS_REQUEST_PARAMS_INIT;
  row.params.temperature = float_of(static_cast<uint32_t>(hex(v["temperature"])));
  row.params.top_k = v["top_k"];
  row.params.top_p = float_of(static_cast<uint32_t>(hex(v["top_p"])));
  row.params.min_p = float_of(static_cast<uint32_t>(hex(v["min_p"])));
  if (!v["seed"].is_null()) {
    row.params.flags = TS_PARAMS_SEEDED;
    row.params.seed = hex(v["seed"]);
  }
  row.request_id = hex(v["request_id"]);
  row.sampler_seed = hex(v["sampler_seed"]);
  row.position = static_cast<int64_t>(hex(v["position"]));
  row.n_valid = v["n_valid"];
  row.invalid_token = v["invalid_token"];
  row.masked = !v["mask"].is_null();
  if (row.masked) {
    for (const json& word : v["mask"]) row.mask.push_back(static_cast<int32_t>(static_cast<uint32_t>(hex(word))));
  }
  const json& out = v["out"];
  row.token = out["token"];
  row.n_kept = out["n_kept"];
  row.rank = out["rank"];
  row.logprob_is_nan = out["logprob"] == "nan";
  row.logprob = row.logprob_is_nan ? 0 : static_cast<uint32_t>(hex(out["logprob"]));
  row.flags = out["flags"];
  return row;
}

const std::vector<GoldenRow>& golden_rows() {
  static const std::vector<GoldenRow> rows = [] {
    std::ifstream file(data_path("contract_vectors.json"));
    const json all = json::parse(file);
    std::vector<GoldenRow> parsed;
    for (const json& v : all.at("rows")) parsed.push_back(parse(v));
    return parsed;
  }();
  REQUIRE(rows.size() >= 40);
  return rows;
}

using SamplerPtr = std::unique_ptr<ts_sampler, decltype(&ts_sampler_destroy)>;

SamplerPtr make_sampler(int32_t vocab_size, uint64_t seed, int32_t invalid_token) {
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = test_device();
  config.vocab_size = vocab_size;
  config.n_slots = 128;
  config.seed = seed;
  config.invalid_token = invalid_token;
  ts_sampler* sampler = nullptr;
  const ts_status status = ts_sampler_create(&config, &sampler);
  INFO(ts_last_error());
  REQUIRE(status == TS_OK);
  return {sampler, ts_sampler_destroy};
}

// What a call writes, with values in it that no row has.
struct Outputs {
  SharedVector<int32_t> tokens, ranks, n_kept;
  SharedVector<float> logprobs;
  SharedVector<uint32_t> flags;

  explicit Outputs(size_t n) : tokens(n, -9), ranks(n, -9), n_kept(n, -9), logprobs(n, 9.0f), flags(n, 99) {}

  ts_sample_out view() {
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = tokens.data();
    out.logprobs = logprobs.data();
    out.ranks = ranks.data();
    out.n_kept = n_kept.data();
    out.row_flags = flags.data();
    return out;
  }

  void check(size_t i, const GoldenRow& row, bool token_too = true) const {
    INFO(row.name);
    if (token_too) CHECK(tokens[i] == row.token);
    CHECK(n_kept[i] == row.n_kept);
    CHECK(ranks[i] == row.rank);
    CHECK(flags[i] == row.flags);
    if (row.logprob_is_nan) {
      CHECK(std::isnan(logprobs[i]));
    } else {
      CHECK(bits_of(logprobs[i]) == row.logprob);
    }
  }
};

// Rows of one logits type in memory, `stride` elements apart, NaN in between.
struct Logits {
  SharedVector<uint32_t> wide;
  SharedVector<uint16_t> narrow;
  int32_t type;

  Logits(int32_t logits_type, size_t n) : type(logits_type) {
    wide.assign(type == TS_FP32 ? n : 0, 0x7FC00000u);
    narrow.assign(type == TS_FP32 ? 0 : n, 0x7FFF);
  }
  void put(size_t at, const std::vector<uint32_t>& bits) {
    for (const uint32_t b : bits) {
      if (type == TS_FP32) wide[at] = b;
      if (type != TS_FP32) narrow[at] = static_cast<uint16_t>(b);
      ++at;
    }
  }
  const void* data() const { return type == TS_FP32 ? static_cast<const void*>(wide.data()) : narrow.data(); }
};

// The golden row as the last of `n_rows` rows of one request, whose other rows are other logits.
void sample_alone(const GoldenRow& row, bool as_fp32, int32_t n_rows, int32_t extra_vocab, int64_t gap) {
  INFO(row.name << (as_fp32 ? ", as fp32" : "") << ", row " << n_rows - 1);
  const SamplerPtr sampler =
      make_sampler(std::max(row.vocab(), row.invalid_token + 1) + extra_vocab, row.sampler_seed, row.invalid_token);
  const SharedVector<int32_t> slot = {3};
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = 1;
  step.rows_per_request = n_rows;
  step.request_ids = &row.request_id;
  step.slots = slot.data();
  step.params = &row.params;
  REQUIRE(ts_sampler_prepare_step(sampler.get(), &step, nullptr) == TS_OK);

  const int64_t stride = row.vocab() + gap;
  Logits logits(as_fp32 ? static_cast<int32_t>(TS_FP32) : row.logits_type, static_cast<size_t>(stride * n_rows));
  logits.put(static_cast<size_t>(stride * (n_rows - 1)), as_fp32 ? row.as_fp32 : row.logits);
  SharedVector<int32_t> mask(row.mask.size() * static_cast<size_t>(n_rows - 1), 0);
  mask.insert(mask.end(), row.mask.begin(), row.mask.end());
  const SharedVector<int64_t> position = {row.position - (n_rows - 1)};
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = 1;
  rows.rows_per_request = n_rows;
  rows.vocab = row.vocab();
  rows.logits = logits.data();
  rows.row_stride = stride;
  rows.logits_type = logits.type;
  rows.n_valid = row.n_valid;
  rows.slots = slot.data();
  rows.positions = position.data();
  rows.positions_type = TS_INT64;
  rows.allow_mask = row.masked ? mask.data() : nullptr;
  rows.mask_words = static_cast<int32_t>(row.mask.size());
  Outputs outputs(static_cast<size_t>(n_rows));
  const ts_sample_out out = outputs.view();
  const ts_status status = ts_sampler_sample(sampler.get(), &rows, &out, nullptr);
  INFO(ts_last_error());
  REQUIRE(status == TS_OK);
  synchronize();
  outputs.check(static_cast<size_t>(n_rows - 1), row);
}

// Every seeded row in one call: fp32, -inf up to one width, n_valid and short masks written as full masks.
void sample_batch(const std::vector<GoldenRow>& all) {
  constexpr int32_t kVocab = 80, kWords = 3;
  std::vector<const GoldenRow*> batch;
  for (const GoldenRow& row : all) {
    if ((row.params.flags & TS_PARAMS_SEEDED) != 0 || row.params.temperature == 0) batch.push_back(&row);
  }
  const size_t n = batch.size();
  std::vector<uint64_t> ids(n);
  SharedVector<int32_t> slots(n), mask(n * kWords, 0);
  SharedVector<int64_t> positions(n);
  std::vector<ts_request_params> params(n);
  Logits logits(TS_FP32, n * kVocab);
  for (size_t i = 0; i < n; ++i) {
    const GoldenRow& row = *batch[i];
    ids[i] = 1000 + i;
    slots[i] = static_cast<int32_t>(i * 37 % 128);
    positions[i] = row.position;
    params[i] = row.params;
    std::vector<uint32_t> padded = row.as_fp32;
    padded.resize(kVocab, kMinusInf);
    logits.put(i * kVocab, padded);
    for (int32_t id = 0; id < kVocab; ++id) {
      const size_t word = static_cast<size_t>(id / 32);
      const bool valid = row.n_valid == 0 || id < row.n_valid;
      const bool allowed =
          !row.masked || (word < row.mask.size() && (static_cast<uint32_t>(row.mask[word]) >> (id % 32) & 1u) != 0);
      if (valid && allowed) {
        int32_t& target = mask[i * kWords + word];
        target = static_cast<int32_t>(static_cast<uint32_t>(target) | 1u << (id % 32));
      }
    }
  }
  const SamplerPtr sampler = make_sampler(kVocab, 0, 0);
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = static_cast<int32_t>(n);
  step.request_ids = ids.data();
  step.slots = slots.data();
  step.params = params.data();
  REQUIRE(ts_sampler_prepare_step(sampler.get(), &step, nullptr) == TS_OK);
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = static_cast<int32_t>(n);
  rows.logits = logits.data();
  rows.slots = slots.data();
  rows.positions = positions.data();
  rows.positions_type = TS_INT64;
  rows.allow_mask = mask.data();
  Outputs outputs(n);
  const ts_sample_out out = outputs.view();
  REQUIRE(ts_sampler_sample(sampler.get(), &rows, &out, nullptr) == TS_OK);
  synchronize();
  for (size_t i = 0; i < n; ++i) outputs.check(i, *batch[i], (batch[i]->flags & TS_ROW_EMPTY) == 0);
}

}  // namespace

TEST_CASE("golden rows: each alone", "[golden]") {
  for (const GoldenRow& row : golden_rows()) sample_alone(row, false, 1, 0, 0);
}

TEST_CASE("golden rows: as fp32, in a wider sampler, with padding between rows", "[golden]") {
  for (const GoldenRow& row : golden_rows()) sample_alone(row, true, 1, 1000, 7);
}

TEST_CASE("golden rows: as a later row of a request", "[golden]") {
  for (const GoldenRow& row : golden_rows()) {
    if (row.position >= 4) sample_alone(row, false, 5, 3, 1);
  }
}

TEST_CASE("golden rows: all in one call", "[golden]") { sample_batch(golden_rows()); }

TEST_CASE("golden rows: on the route that serves everything", "[golden]") {
  REQUIRE(setenv("TSSAMPLE_FORCE_ROUTE", "mixed+min_p", 1) == 0);
  for (const GoldenRow& row : golden_rows()) sample_alone(row, false, 1, 0, 0);
  sample_batch(golden_rows());
  unsetenv("TSSAMPLE_FORCE_ROUTE");
}

}  // namespace ts::test
