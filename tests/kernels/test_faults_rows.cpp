// SPDX-License-Identifier: Apache-2.0
// FAULTS.md A (what needs no statistics) and C1 to C9: noise that belongs to the row, bad rows, slots.
#include <algorithm>
#include <cmath>
#include <limits>

#include "support/catch.h"
#include "support/reference.h"
#include "support/rows.h"

namespace ts::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Parameters of every route.
std::vector<ts_request_params> all_ways(uint64_t seed = 3) {
  return {params(0.0f, 0, 1.0f, 0.0f, seed),   params(1.0f, 0, 1.0f, 0.0f, seed),  params(1.0f, 50, 1.0f, 0.0f, seed),
          params(1.0f, 50, 0.9f, 0.0f, seed),  params(1.0f, 0, 0.9f, 0.0f, seed),  params(1.0f, 0, 1.0f, 0.05f, seed),
          params(0.7f, 50, 0.9f, 0.05f, seed), params(1.5f, 0, 0.95f, 0.01f, seed)};
}

Sampled run_row(const std::vector<float>& row, const ts_request_params& p, int32_t type = TS_FP32, int32_t n_valid = 0,
                const std::vector<int32_t>& mask = {}) {
  const auto vocab = static_cast<int32_t>(row.size());
  Sampler sampler(vocab, 8, 8, vocab > 5 ? 5 : 0);
  std::vector<std::vector<float>> rows = {row};
  Batch batch;
  batch.vocab = vocab;
  batch.logits = pack(rows, type, vocab);
  batch.params = {p};
  batch.n_valid = n_valid;
  batch.allow_mask = mask;
  batch.mask_words = static_cast<int32_t>(mask.size());
  return sampler.run(batch);
}

Batch batch_of(std::vector<std::vector<float>> rows, const std::vector<ts_request_params>& p) {
  Batch batch;
  batch.vocab = static_cast<int32_t>(rows[0].size());
  batch.logits = pack(rows, TS_FP32, batch.vocab);
  batch.params = p;
  return batch;
}

}  // namespace

TEST_CASE("A2 the noise of a position is not used at another") {
  Random random(2);
  const std::vector<float> row = synthetic_row(random, 1000);
  for (const ts_request_params& p : all_ways()) {
    Sampler used(1000);
    Batch batch = batch_of({row}, {p});
    std::vector<int32_t> stepwise;
    for (int64_t position = 0; position < 40; ++position) {
      batch.positions = {position};
      stepwise.push_back(used.tokens(batch)[0]);
      const ReferenceRow reference{row, 0, {}, p, static_cast<uint64_t>(position)};
      const ReferenceResult expected = reference_sample(reference);
      if (!expected.too_close) CHECK(stepwise.back() == expected.token);
    }
    if (p.temperature > 0) CHECK(std::count(stepwise.begin(), stepwise.end(), stepwise[0]) < 40);
    // Later positions first, on a fresh sampler, and all of them in one call.
    Sampler fresh(1000, 8, 64);
    for (const int64_t position : {39, 7, 20}) {
      batch.positions = {position};
      CHECK(fresh.tokens(batch)[0] == stepwise[static_cast<size_t>(position)]);
    }
    Batch chain = batch_of(std::vector<std::vector<float>>(40, row), {p});
    chain.rows_per_request = 40;
    CHECK(Sampler(1000, 8, 64).tokens(chain) == stepwise);
  }
}

TEST_CASE("A3 a row depends on its own seed, position and logits only") {
  Random random(3);
  std::vector<std::vector<float>> rows;
  std::vector<ts_request_params> seeds, one_seed;
  const std::vector<float> row(64, 0.0f);
  for (int i = 0; i < 64; ++i) {
    rows.push_back(row);
    seeds.push_back(params(1.0f, 0, 1.0f, 0.0f, 1111u * static_cast<uint64_t>(i + 1)));
    one_seed.push_back(params(1.0f, 0, 1.0f, 0.0f, 1111));
  }
  Sampler a(64), b(64);
  const std::vector<int32_t> different = a.tokens(batch_of(rows, seeds));
  const std::vector<int32_t> same = b.tokens(batch_of(rows, one_seed));
  CHECK(std::count(same.begin(), same.end(), same[0]) == 64);
  CHECK(different[0] == same[0]);
  CHECK(std::count(different.begin(), different.end(), different[0]) < 10);  // 64 uniform draws of 64 ids
  for (const size_t i : {size_t{5}, size_t{63}}) {
    Sampler alone(64);
    CHECK(alone.tokens(batch_of({row}, {seeds[i]}))[0] == different[i]);
  }
}

TEST_CASE("A3 distinct rows keep their tokens when their order changes") {
  Random random(13);
  constexpr size_t kRows = 48;
  std::vector<std::vector<float>> rows;
  std::vector<ts_request_params> p;
  std::vector<int64_t> positions;
  const std::vector<ts_request_params> ways = all_ways();
  for (size_t i = 0; i < kRows; ++i) {
    rows.push_back(synthetic_row(random, 500));
    p.push_back(ways[i % ways.size()]);
    p.back().seed = random();
    positions.push_back(static_cast<int64_t>(random() % 1000));
  }
  Batch batch = batch_of(rows, p);
  batch.positions = positions;
  Sampler in_order(500), turned(500);
  const std::vector<int32_t> expected = in_order.tokens(batch);
  std::vector<size_t> order(kRows);
  for (size_t i = 0; i < kRows; ++i) order[i] = (i * 29 + 7) % kRows;
  std::vector<std::vector<float>> other_rows;
  std::vector<ts_request_params> other_p;
  std::vector<int64_t> other_positions;
  for (const size_t i : order) {
    other_rows.push_back(rows[i]);
    other_p.push_back(p[i]);
    other_positions.push_back(positions[i]);
  }
  Batch other = batch_of(other_rows, other_p);
  other.positions = other_positions;
  const std::vector<int32_t> got = turned.tokens(other);
  for (size_t i = 0; i < kRows; ++i) CHECK(got[i] == expected[order[i]]);
}

TEST_CASE("A4 batchmates that change their filters leave a row alone") {
  Random random(4);
  const std::vector<float> row = synthetic_row(random, 3000);
  const std::vector<float> mate = synthetic_row(random, 3000);
  for (const ts_request_params& p : all_ways()) {
    Sampler alone(3000);
    const int32_t expected = alone.tokens(batch_of({row}, {p}))[0];
    for (const ts_request_params& other :
         {params(0.0f), params(1.0f), params(1.0f, 1), params(1.0f, 0, 1.0f, 0.2f), params(1.0f, 0, 0.3f)}) {
      Sampler sampler(3000);
      CHECK(sampler.tokens(batch_of({mate, row, mate}, {other, p, other}))[1] == expected);
    }
  }
}

TEST_CASE("A6 a seeded request reproduces whatever came between") {
  Random random(6);
  const std::vector<float> row = synthetic_row(random, 1000);
  ts_request_params unseeded = params();
  unseeded.flags = 0;
  Sampler sampler(1000);
  Batch seeded = batch_of({row}, {params(1.0f, 0, 1.0f, 0.0f, 99)});
  seeded.request_ids = {1};
  const int32_t first = sampler.tokens(seeded)[0];
  int different = 0;
  for (uint64_t id = 2; id < 40; ++id) {
    Batch other = batch_of({row}, {unseeded});
    other.request_ids = {id};
    different += sampler.tokens(other)[0] != first ? 1 : 0;
    seeded.request_ids = {1000 + id};
    CHECK(sampler.tokens(seeded)[0] == first);
  }
  CHECK(different > 20);  // the unseeded ones do not share a seed
}

TEST_CASE("C1 a NaN anywhere counts as -inf on every route and is flagged") {
  Random random(1);
  for (const int32_t vocab : {33, 1023, 4096}) {
    for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
      std::vector<float> row = synthetic_row(random, vocab);
      row[static_cast<size_t>(vocab / 2 + 1)] = 20.0f;  // beside the NaN in the middle
      for (const ts_request_params& p : all_ways()) {
        for (const int32_t at : {0, vocab / 2, vocab - 1}) {
          std::vector<float> bad = row, masked = row;
          bad[static_cast<size_t>(at)] = kNan;
          masked[static_cast<size_t>(at)] = -kInfinity;
          const Sampled a = run_row(bad, p, type);
          const Sampled b = run_row(masked, p, type);
          CHECK(a.flags[0] == TS_ROW_NAN);
          CHECK(b.flags[0] == 0u);
          CHECK(a.tokens == b.tokens);
          CHECK(a.n_kept == b.n_kept);
          CHECK(a.logprobs == b.logprobs);
          CHECK(a.tokens[0] == vocab / 2 + 1);  // the peak of e^20 among N(0, 2.5): always
        }
      }
    }
  }
}

TEST_CASE("C1 NaNs beside the k-th value change nothing of the cut") {
  Random random(11);
  constexpr size_t kTopK = 20;
  for (const int32_t vocab : {257, 4096}) {
    const std::vector<float> row = synthetic_row(random, vocab);
    std::vector<size_t> ids(row.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    std::sort(ids.begin(), ids.end(), [&](size_t a, size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    for (const size_t rank : {kTopK - 2, kTopK - 1, kTopK}) {
      for (uint64_t seed = 0; seed < 10; ++seed) {
        ReferenceRow reference{row, 0, {}, params(1.5f, static_cast<int32_t>(kTopK), 1.0f, 0.0f, seed), 0};
        reference.logits[ids[rank]] = kNan;
        const ReferenceResult expected = reference_sample(reference);
        const Sampled got = run_row(reference.logits, reference.params);
        if (!expected.too_close) CHECK(got.tokens[0] == expected.token);
        CHECK(got.n_kept[0] == expected.n_kept);
        CHECK(got.flags[0] == TS_ROW_NAN);
      }
    }
  }
}

TEST_CASE("C2 rows without a candidate return invalid_token, flagged, and leave neighbours alone") {
  Random random(2);
  const std::vector<float> good = synthetic_row(random, 100);
  for (const ts_request_params& p : all_ways()) {
    const std::vector<float> nans(100, kNan), infs(100, -kInfinity);
    CHECK(run_row(nans, p).flags[0] == (TS_ROW_NAN | TS_ROW_EMPTY));
    CHECK(run_row(infs, p).flags[0] == TS_ROW_EMPTY);
    const Sampled masked = run_row(good, p, TS_FP32, 0, {0, 0, 0, 0});
    CHECK(masked.flags[0] == TS_ROW_EMPTY);
    CHECK(masked.tokens[0] == 5);
    CHECK(masked.ranks[0] == 0);
    CHECK(masked.n_kept[0] == 0);
    CHECK(std::isnan(masked.logprobs[0]));
    Sampler sampler(100, 8, 8, 5);
    const Sampled got = sampler.run(batch_of({good, nans, good, infs, good}, {p, p, p, p, p}));
    CHECK(got.tokens[1] == 5);
    CHECK(got.tokens[3] == 5);
    const Sampled alone = run_row(good, p);
    for (const size_t i : {size_t{0}, size_t{2}, size_t{4}}) {
      CHECK(got.tokens[i] == alone.tokens[0]);
      CHECK(got.flags[i] == 0u);
    }
  }
}

TEST_CASE("C3 +inf wins and is flagged; two share it") {
  Random random(3);
  for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
    for (const ts_request_params& p : all_ways()) {
      std::vector<float> row = synthetic_row(random, 200);
      row[77] = kInfinity;
      row[78] = -kInfinity;
      const Sampled one = run_row(row, p, type);
      CHECK(one.tokens[0] == 77);
      CHECK(one.flags[0] == TS_ROW_INF);
      CHECK(one.logprobs[0] == 0.0f);
      row[150] = kInfinity;
      const Sampled two = run_row(row, p, type);
      CHECK((two.tokens[0] == 77 || two.tokens[0] == 150));
      CHECK(two.logprobs[0] == Approx(-std::log(2.0f)));
      // Masked away, it still raises its flag: the whole row is looked at.
      const Sampled masked = run_row(row, p, type, 77);
      CHECK(masked.tokens[0] < 77);
      CHECK(masked.flags[0] == TS_ROW_INF);
    }
  }
}

TEST_CASE("C4 extreme logits and temperatures do not overflow") {
  std::vector<float> row(64, -65504.0f);
  row[9] = 65504.0f;
  for (const int32_t type : {TS_FP32, TS_FP16}) {
    for (const float t : {0.0f, 1e-20f, 1e-6f, 1e-5f, 1e-4f, 1.0f, 1e4f}) {
      const Sampled got = run_row(row, params(t, 0, 0.9f), type);
      CHECK(got.tokens[0] == 9);
      CHECK(got.flags[0] == 0u);
    }
    // Where greedy ends: all ids are in the running just above 1e-6, one is below.
    for (const float t : {0.0f, 1e-45f, 1e-20f, 9.9e-7f}) CHECK(run_row(row, params(t), type).n_kept[0] == 1);
    for (const float t : {1.01e-6f, 1e-5f, 1e-4f}) CHECK(run_row(row, params(t), type).n_kept[0] == 64);
  }
  // Temperature so high that all is uniform: ids other than the first come up, the filters stay valid.
  std::vector<float> huge(64, -3e38f);
  huge[9] = 3e38f;
  CHECK(run_row(huge, params(1.0f)).tokens[0] == 9);
  std::vector<std::vector<float>> rows(256, huge);
  Batch batch = batch_of(rows, {params(3e38f)});
  batch.rows_per_request = 256;
  std::vector<int32_t> tokens = Sampler(64, 4, 256).tokens(batch);
  std::sort(tokens.begin(), tokens.end());
  CHECK(std::unique(tokens.begin(), tokens.end()) - tokens.begin() > 30);
}

TEST_CASE("C5 a one-hot row returns its token") {
  for (const int32_t vocab : {2, 33, 50257}) {
    for (const int32_t at : {0, vocab / 2, vocab - 1}) {
      for (const float low : {-kInfinity, -1e4f}) {
        std::vector<float> row(static_cast<size_t>(vocab), low);
        row[static_cast<size_t>(at)] = 1.0f;
        for (const ts_request_params& p : all_ways()) {
          const Sampled got = run_row(row, p);
          CHECK(got.tokens[0] == at);
          CHECK(got.logprobs[0] == 0.0f);
        }
      }
    }
  }
}

TEST_CASE("C6 padding beyond the valid ids is never returned") {
  Random random(6);
  std::vector<float> row = synthetic_row(random, 248320);
  for (size_t i = 248077; i < row.size(); ++i) row[i] = 90.0f;
  std::vector<float> cut(row.begin(), row.begin() + 248077);
  for (const ts_request_params& p : all_ways()) {
    const Sampled padded = run_row(row, p, TS_FP32, 248077);
    const Sampled packed = run_row(cut, p);
    CHECK(padded.tokens == packed.tokens);
    CHECK(padded.n_kept == packed.n_kept);
    CHECK(padded.logprobs == packed.logprobs);
    CHECK(padded.ranks == packed.ranks);
  }
}

TEST_CASE("C7 no rows: success, nothing written") {
  Sampler sampler(100);
  ts_step step{};
  step.struct_size = sizeof(step);
  CHECK(ts_sampler_prepare_step(sampler.handle(), &step, nullptr) == TS_OK);
  CHECK(sampler.route() == "none");
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  ts_sample_out out{};
  out.struct_size = sizeof(out);
  CHECK(ts_sampler_sample(sampler.handle(), &rows, &out, nullptr) == TS_OK);
  ts_draft draft{};
  draft.struct_size = sizeof(draft);
  ts_verify_out verified{};
  verified.struct_size = sizeof(verified);
  CHECK(ts_sampler_verify(sampler.handle(), &rows, &draft, &verified, nullptr) == TS_OK);

  // With a step prepared, and outputs to write.
  const std::vector<float> row(100, kNan);  // would count in n_bad_rows
  sampler.prepare(batch_of({row, row}, {params(), params()}));
  SharedVector<int32_t> written(32, 0x5A5A5A5A);
  int32_t* w = written.data();
  auto* floats = reinterpret_cast<float*>(w + 4);
  auto* flags = reinterpret_cast<uint32_t*>(w + 16);
  auto* bad_rows = reinterpret_cast<uint32_t*>(w + 20);
  out = {sizeof(out), 0, w, floats, w + 8, w + 12, flags, bad_rows};
  CHECK(ts_sampler_sample(sampler.handle(), &rows, &out, nullptr) == TS_OK);
  verified = {sizeof(verified), 0, w, w + 24, w + 28, floats, w + 8, w + 12, flags, bad_rows};
  CHECK(ts_sampler_verify(sampler.handle(), &rows, &draft, &verified, nullptr) == TS_OK);
  synchronize();
  CHECK(written == SharedVector<int32_t>(32, 0x5A5A5A5A));
  CHECK(sampler.route() == "plain");  // still prepared
}

TEST_CASE("C8 a greedy row beside sampled rows is greedy, and never divides by its temperature") {
  Random random(8);
  const std::vector<float> row = synthetic_row(random, 5000);
  const auto first = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
  for (const ts_request_params& mate : all_ways()) {
    for (const float t : {0.0f, 1e-30f, 9e-7f}) {
      Sampler sampler(5000);
      const Sampled got = sampler.run(batch_of({row, row, row}, {mate, params(t, 3, 0.5f, 0.1f), mate}));
      CHECK(got.tokens[1] == first);
      CHECK(got.n_kept[1] == 1);
      CHECK(got.flags[1] == 0u);
    }
  }
}

TEST_CASE("C9 a recycled slot holds the new owner's parameters, and a known owner's are not rewritten") {
  Random random(9);
  const std::vector<float> row = synthetic_row(random, 500);
  const auto tokens_of = [&](const ts_request_params& p) {
    Sampler fresh(500);
    return fresh.run(batch_of({row}, {p}));
  };
  Sampler sampler(500);
  for (size_t round = 0; round < 3; ++round) {
    for (const ts_request_params& p : all_ways(17 + round)) {
      static uint64_t id = 1;
      Batch batch = batch_of({row}, {p});
      batch.slots = {4};
      batch.request_ids = {id++};
      const Sampled got = sampler.run(batch);
      const Sampled expected = tokens_of(p);
      CHECK(got.tokens == expected.tokens);
      CHECK(got.n_kept == expected.n_kept);
      // The same owner with other parameters: as before.
      batch.params = {params(0.3f, 2, 0.5f, 0.5f, 1)};
      CHECK(sampler.run(batch).tokens == expected.tokens);
      CHECK(sampler.run(batch).n_kept == expected.n_kept);
      batch.params.clear();
      CHECK(sampler.run(batch).tokens == expected.tokens);
      // An id that agrees in its low half is another owner.
      batch.request_ids[0] += uint64_t{1} << 32;
      batch.params = {params(0.0f)};
      CHECK(sampler.run(batch).n_kept[0] == 1);
      // Released, it is new.
      const int32_t slot = 4;
      REQUIRE(ts_sampler_release_slots(sampler.handle(), &slot, TS_INT32, 1) == TS_OK);
      batch.params = {params(0.3f, 2, 0.5f, 0.5f, 1)};
      CHECK(sampler.run(batch).n_kept == tokens_of(batch.params[0]).n_kept);
    }
  }
}

}  // namespace ts::test
