// SPDX-License-Identifier: Apache-2.0
// The backend against the independent reference: real rows, generated rows, mixed batches, verification.
#include <cmath>
#include <cstdio>

#include "support/catch.h"
#include "support/reference.h"
#include "support/rows.h"

namespace ts::test {
namespace {

long n_compared = 0;
long n_too_close = 0;

// Whether a logprob is the reference's, rounded to fp32, or its neighbour: the backend's fp64 has an error of its own.
bool same_logprob(float got, long double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  const auto rounded = static_cast<float>(expected);
  return got == rounded || got == std::nextafter(rounded, 1e30f) || got == std::nextafter(rounded, -1e30f);
}

void check_row(const Sampled& got, size_t i, const ReferenceResult& expected) {
  ++n_compared;
  CHECK(got.flags[i] == expected.flags);
  CHECK(got.n_kept[i] == expected.n_kept);
  if (expected.too_close && got.tokens[i] != expected.token) {
    ++n_too_close;
    return;
  }
  CHECK(got.tokens[i] == expected.token);
  CHECK(got.ranks[i] == expected.rank);
  CHECK(same_logprob(got.logprobs[i], expected.logprob));
}

ts_request_params any_params(Random& random, int32_t vocab) {
  const float temperatures[] = {0.0f, 9e-7f, 1e-5f, 0.1f, 0.5f, 0.7f, 1.0f, 1.0f, 1.0f, 1.3f, 5.0f, 1e4f};
  const float ps[] = {1.0f, 1.0f, 0.0f, 1e-7f, 0.1f, 0.5f, 0.8f, 0.9f, 0.95f, 0.999f};
  const int32_t ks[] = {0, 0, 0, 1, 2, 3, 5, 50, vocab / 2, vocab - 1, vocab, vocab + 1, 1 << 30, -1};
  return params(temperatures[pick(random, 12)], ks[pick(random, 14)], ps[pick(random, 10)],
                pick(random, 3) == 0 ? 0.001f * static_cast<float>(pick(random, 400)) : 0.0f, random());
}

// A batch of generated rows and what the reference needs to know of them.
struct Generated {
  Batch batch;
  std::vector<ReferenceRow> rows;
};

Generated generate(Random& random, int32_t vocab, int32_t n_requests, int32_t rows_per_request) {
  Generated g;
  std::vector<std::vector<float>> values;
  const auto n_rows = static_cast<size_t>(n_requests * rows_per_request);
  for (size_t r = 0; r < n_rows; ++r) values.push_back(any_row(random, vocab));
  const int64_t strides[] = {vocab, vocab + 1, vocab + 64};
  g.batch.logits = pack(values, pick(random, 3), strides[pick(random, 3)]);
  g.batch.logits.shift = pick(random, 4);
  g.batch.vocab = vocab;
  g.batch.rows_per_request = rows_per_request;
  g.batch.n_valid = pick(random, 3) == 0 ? 1 + pick(random, vocab) : 0;
  g.batch.slots_type = pick(random, 2);
  g.batch.positions_type = pick(random, 2);
  if (pick(random, 3) == 0) g.batch.mask_words = 1 + pick(random, (vocab + 31) / 32 + 1);
  const bool positions = pick(random, 4) != 0;
  const ts_request_params shared = any_params(random, vocab);
  const bool mixed = pick(random, 2) == 0;
  for (int32_t r = 0; r < n_requests; ++r) {
    ts_request_params p = mixed || pick(random, 8) == 0 ? any_params(random, vocab) : shared;
    p.seed = random();
    g.batch.params.push_back(p);
    if (positions) {
      g.batch.positions.push_back(g.batch.positions_type == TS_INT64
                                      ? static_cast<int64_t>(random() >> (1 + pick(random, 50)))
                                      : pick(random, 1 << 30));
    }
  }
  for (size_t i = 0; i < n_rows; ++i) {
    const size_t r = i / static_cast<size_t>(rows_per_request);
    ReferenceRow row;
    row.logits = values[i];
    row.n_valid = g.batch.n_valid;
    row.params = g.batch.params[r];
    row.position =
        (positions ? static_cast<uint64_t>(g.batch.positions[r]) : 0) + i % static_cast<size_t>(rows_per_request);
    for (int32_t w = 0; w < g.batch.mask_words; ++w) {
      row.mask.push_back(static_cast<int32_t>(pick(random, 3) == 0 ? 0xFFFFFFFFu : random()));
    }
    g.batch.allow_mask.insert(g.batch.allow_mask.end(), row.mask.begin(), row.mask.end());
    g.rows.push_back(row);
  }
  return g;
}

// Row i alone, in another slot.
Batch alone(const Generated& g, size_t i) {
  Batch batch;
  std::vector<std::vector<float>> values = {g.rows[i].logits};
  batch.logits = pack(values, g.batch.logits.type, static_cast<int64_t>(values[0].size()));
  batch.vocab = g.batch.vocab;
  batch.n_valid = g.batch.n_valid;
  batch.slots = {77};
  batch.params = {g.rows[i].params};
  batch.positions = {static_cast<int64_t>(g.rows[i].position)};
  batch.positions_type = TS_INT64;
  batch.allow_mask = g.rows[i].mask;
  batch.mask_words = g.batch.mask_words;
  return batch;
}

}  // namespace

TEST_CASE("real rows at 96 settings agree with the reference") {
  const std::vector<uint16_t> bits = real_rows();
  const size_t n_rows = bits.size() / kRealVocab;
  Sampler sampler(kRealVocab);
  Batch batch;
  batch.logits = Logits::bf16(bits);
  std::vector<ReferenceRow> rows(n_rows);
  for (size_t r = 0; r < n_rows; ++r) rows[r].logits = real_row(bits, r);
  uint64_t seed = 1;
  for (const float temperature : {0.0f, 0.3f, 0.8f, 1.0f, 1.5f, 5.0f}) {
    for (const int32_t top_k : {0, 1, 50, 2000}) {
      for (const float top_p : {1.0f, 0.9f}) {
        for (const float min_p : {0.0f, 0.02f}) {
          batch.params.clear();
          batch.positions.clear();
          batch.request_ids.clear();
          for (size_t r = 0; r < n_rows; ++r) {
            batch.params.push_back(params(temperature, top_k, top_p, min_p, seed * 7919 + r));
            batch.positions.push_back(static_cast<int64_t>(seed + r));
            batch.request_ids.push_back(seed * 1000 + r);
          }
          const Sampled got = sampler.run(batch);
          for (size_t r = 0; r < n_rows; ++r) {
            rows[r].params = batch.params[r];
            rows[r].position = static_cast<uint64_t>(batch.positions[r]);
            check_row(got, r, reference_sample(rows[r]));
          }
          ++seed;
        }
      }
    }
  }
}

TEST_CASE("real rows under masks and padding, alone, permuted and as fp32, agree with the reference") {
  std::vector<uint16_t> bits = real_rows();
  bits.resize(8 * kRealVocab);
  Random random(14);
  const size_t mask_words = (kRealVocab + 31) / 32;
  Sampler sampler(kRealVocab);
  uint64_t next_id = 1;
  for (const ts_request_params& way : {params(0.0f), params(1.0f), params(0.8f, 40, 0.95f), params(1.2f, 0, 0.9f),
                                       params(1.0f, 0, 1.0f, 0.01f), params(1.0f, 70000, 0.999f)}) {
    Batch batch;
    batch.vocab = kRealVocab;
    batch.logits = Logits::bf16(bits);
    batch.n_valid = kRealVocab - pick(random, 2) * pick(random, 100000);
    batch.mask_words = static_cast<int32_t>(mask_words);
    std::vector<ReferenceRow> rows(8);
    for (size_t r = 0; r < 8; ++r) {
      batch.params.push_back(way);
      batch.params[r].seed = random();
      batch.positions.push_back(pick(random, 1 << 20));
      batch.request_ids.push_back(next_id++);
      // Masks from a tenth to all of the ids.
      for (size_t w = 0; w < mask_words; ++w) {
        const uint64_t dense = r == 0 ? 0xFFFFFFFFu : random() & (r % 2 == 0 ? random() & random() : 0xFFFFFFFFu);
        rows[r].mask.push_back(static_cast<int32_t>(static_cast<uint32_t>(dense)));
      }
      batch.allow_mask.insert(batch.allow_mask.end(), rows[r].mask.begin(), rows[r].mask.end());
      rows[r].logits = real_row(bits, r);
      rows[r].n_valid = batch.n_valid;
      rows[r].params = batch.params[r];
      rows[r].position = static_cast<uint64_t>(batch.positions[r]);
    }
    const Sampled got = sampler.run(batch);
    for (size_t r = 0; r < 8; ++r) check_row(got, r, reference_sample(rows[r]));
    // One row of them alone as fp32, and all of them in another order and other slots.
    const auto at = static_cast<size_t>(pick(random, 8));
    Batch single = batch;
    single.logits = Logits::fp32(rows[at].logits);
    single.params = {batch.params[at]};
    single.positions = {batch.positions[at]};
    single.request_ids = {next_id++};
    single.allow_mask = rows[at].mask;
    const Sampled one = sampler.run(single);
    CHECK(one.tokens[0] == got.tokens[at]);
    CHECK(one.n_kept[0] == got.n_kept[at]);
    CHECK(one.ranks[0] == got.ranks[at]);
    CHECK(one.logprobs[0] == got.logprobs[at]);
    Batch permuted = batch;
    permuted.logits.bytes.clear();
    permuted.allow_mask.clear();
    for (size_t r = 0; r < 8; ++r) {
      const size_t from = (r * 3 + 1) % 8;
      const auto begin = batch.logits.bytes.begin() + static_cast<std::ptrdiff_t>(from * kRealVocab * 2);
      permuted.logits.bytes.insert(permuted.logits.bytes.end(), begin, begin + kRealVocab * 2);
      permuted.allow_mask.insert(permuted.allow_mask.end(), rows[from].mask.begin(), rows[from].mask.end());
      permuted.params[r] = batch.params[from];
      permuted.positions[r] = batch.positions[from];
      permuted.request_ids[r] = next_id++;
      permuted.slots.push_back(static_cast<int64_t>(1000 - 5 * r));
    }
    const std::vector<int32_t> tokens = sampler.tokens(permuted);
    for (size_t r = 0; r < 8; ++r) CHECK(tokens[r] == got.tokens[(r * 3 + 1) % 8]);
  }
}

TEST_CASE("generated rows of every kind agree with the reference, in a batch, alone and permuted") {
  Random random(11);
  const int32_t vocabs[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511, 513, 1023};
  long n_rows = 0;
  uint64_t next_id = 1;
  while (n_rows < 6000) {
    const Generated g = generate(random, vocabs[pick(random, 17)], 1 + pick(random, 12), 1 + pick(random, 4));
    Sampler sampler(g.batch.vocab);
    Batch batch = g.batch;
    for (size_t r = 0; r < batch.params.size(); ++r) batch.request_ids.push_back(next_id++);
    const Sampled got = sampler.run(batch);
    CHECK(sampler.tokens(batch) == got.tokens);
    for (size_t i = 0; i < g.rows.size(); ++i) {
      check_row(got, i, reference_sample(g.rows[i]));
      ++n_rows;
    }
    // Alone.
    const auto i = static_cast<size_t>(pick(random, static_cast<int64_t>(g.rows.size())));
    Batch single = alone(g, i);
    single.request_ids = {next_id++};
    const Sampled one = sampler.run(single);
    CHECK(one.tokens[0] == got.tokens[i]);
    CHECK(one.n_kept[0] == got.n_kept[i]);
    CHECK((one.logprobs[0] == got.logprobs[i] || std::isnan(got.logprobs[i])));
    // Requests in reverse, in other slots.
    if (g.batch.rows_per_request == 1 && g.batch.logits.row_stride == g.batch.vocab) {
      const size_t n = g.rows.size();
      const size_t row_bytes = g.batch.logits.bytes.size() / n;
      Batch reversed = g.batch;
      reversed.logits.bytes.clear();
      reversed.allow_mask.clear();
      for (size_t r = n; r-- > 0;) {
        const auto begin = g.batch.logits.bytes.begin() + static_cast<std::ptrdiff_t>(r * row_bytes);
        reversed.logits.bytes.insert(reversed.logits.bytes.end(), begin,
                                     begin + static_cast<std::ptrdiff_t>(row_bytes));
        reversed.allow_mask.insert(reversed.allow_mask.end(), g.rows[r].mask.begin(), g.rows[r].mask.end());
        reversed.params[n - 1 - r] = g.batch.params[r];
        if (!g.batch.positions.empty()) reversed.positions[n - 1 - r] = g.batch.positions[r];
        reversed.slots.push_back(static_cast<int64_t>(100 + 3 * r));
        reversed.request_ids.push_back(next_id++);
      }
      std::vector<int32_t> tokens = sampler.tokens(reversed);
      std::reverse(tokens.begin(), tokens.end());
      CHECK(tokens == got.tokens);
    }
  }
}

TEST_CASE("batches of many rows agree with the reference in every row") {
  Random random(15);
  uint64_t next_id = 1;
  for (const int32_t vocab : {9, 70, 513}) {
    Sampler sampler(vocab);
    for (const int32_t n_requests : {63, 64, 129, 300, 1024}) {
      const Generated g = generate(random, vocab, n_requests, 1 + pick(random, 2));
      Batch batch = g.batch;
      for (size_t r = 0; r < batch.params.size(); ++r) batch.request_ids.push_back(next_id++);
      const Sampled got = sampler.run(batch);
      for (size_t i = 0; i < g.rows.size(); ++i) check_row(got, i, reference_sample(g.rows[i]));
    }
  }
}

TEST_CASE("large generated rows agree with the reference") {
  Random random(12);
  uint64_t next_id = 1;
  for (const int32_t vocab : {4096, 40001, 50257, 151937}) {
    Sampler sampler(vocab);
    for (int round = 0; round < 12; ++round) {
      const Generated g = generate(random, vocab, 1 + pick(random, 3), 1 + pick(random, 2));
      Batch batch = g.batch;
      for (size_t r = 0; r < batch.params.size(); ++r) batch.request_ids.push_back(next_id++);
      const Sampled got = sampler.run(batch);
      for (size_t i = 0; i < g.rows.size(); ++i) check_row(got, i, reference_sample(g.rows[i]));
    }
  }
}

TEST_CASE("verified chains agree with the reference chain and with plain sampling") {
  Random random(13);
  uint64_t next_id = 1;
  long n_chains = 0;
  std::vector<int> lengths(9, 0);
  while (n_chains < 1500) {
    const int32_t rows_per_request = 1 + pick(random, 8);
    const Generated g = generate(random, 1 + pick(random, 40), 1 + pick(random, 6), rows_per_request);
    Sampler sampler(g.batch.vocab);
    Batch batch = g.batch;
    for (size_t r = 0; r < batch.params.size(); ++r) batch.request_ids.push_back(next_id++);
    sampler.prepare(batch);
    const Sampled plain = sampler.sample(batch);
    // Drafts: what plain sampling says, now and then wrong or no id at all.
    std::vector<int32_t> candidates(g.rows.size(), 12345);
    for (size_t i = 0; i + 1 < g.rows.size(); ++i) {
      const int odd = pick(random, 12);
      candidates[i + 1] = odd == 0   ? -1
                          : odd == 1 ? g.batch.vocab
                          : odd == 2 ? pick(random, g.batch.vocab)
                                     : plain.tokens[i];
    }
    const Verified got = sampler.verify(batch, candidates);
    for (size_t r = 0; r < batch.params.size(); ++r) {
      const size_t first = r * static_cast<size_t>(rows_per_request);
      const std::vector<ReferenceRow> rows(g.rows.begin() + static_cast<std::ptrdiff_t>(first),
                                           g.rows.begin() + static_cast<std::ptrdiff_t>(first) + rows_per_request);
      const ReferenceChain expected = reference_verify(rows, &candidates[first], static_cast<int32_t>(first));
      ++n_chains;
      if (expected.too_close && got.accept_length[r] != expected.accept_length) {
        ++n_too_close;
        continue;
      }
      CHECK(got.accept_length[r] == expected.accept_length);
      ++lengths[static_cast<size_t>(expected.accept_length)];
      for (size_t j = 0; j < static_cast<size_t>(rows_per_request); ++j) {
        const size_t i = first + j;
        CHECK(got.predict[i] == expected.predict[j]);
        CHECK(got.accept_index[i] == expected.accept_index[j]);
        CHECK(got.ranks[i] == expected.ranks[j]);
        CHECK(got.n_kept[i] == expected.n_kept[j]);
        CHECK(got.flags[i] == expected.flags[j]);
        CHECK(same_logprob(got.logprobs[i], expected.logprobs[j]));
        if (got.predict[i] >= 0) CHECK(got.predict[i] == plain.tokens[i]);
      }
    }
  }
  for (size_t length = 1; length < lengths.size(); ++length) CHECK(lengths[length] > 10);
}

TEST_CASE("no comparison was too close to call") {
  std::printf("reference: %ld rows compared, %ld whose tokens differ where long double cannot judge fp64\n", n_compared,
              n_too_close);
  CHECK(n_too_close == 0);  // one in some 10^9 rows is expected
}

}  // namespace ts::test
