// SPDX-License-Identifier: Apache-2.0
// FAULTS.md D (layout), E (verification) and F (log-probabilities), where no GPU is needed.
#include <cmath>
#include <limits>
#include <numeric>

#include "support/catch.h"
#include "support/reference.h"
#include "support/rows.h"

namespace ts::test {
namespace {

// Rows of one request, row j with its only likely token at peaks[j].
Batch peaked(const std::vector<int32_t>& peaks, int32_t vocab, int32_t n_requests = 1) {
  std::vector<std::vector<float>> rows;
  for (const int32_t peak : peaks) {
    std::vector<float> row(static_cast<size_t>(vocab), 0.0f);
    row[static_cast<size_t>(peak)] = 500.0f;
    rows.push_back(row);
  }
  Batch batch;
  batch.vocab = vocab;
  batch.rows_per_request = static_cast<int32_t>(peaks.size()) / n_requests;
  batch.logits = pack(rows, TS_FP32, vocab);
  batch.params.assign(static_cast<size_t>(n_requests), params());
  return batch;
}

Verified verify(const Batch& batch, const std::vector<int32_t>& candidates) {
  Sampler sampler(batch.vocab);
  sampler.prepare(batch);
  return sampler.verify(batch, candidates);
}

}  // namespace

TEST_CASE("D1 offsets are 64-bit: rows and masks more than 2^31 elements apart") {
  // Only the pages of the rows are ever touched.
  const int64_t stride = (int64_t{1} << 31) + 24;  // elements
  const int32_t vocab = 1000;
  const size_t n_bytes = static_cast<size_t>(2 * stride + vocab) * 4;
  HugeBytes logits(n_bytes), mask(n_bytes);
  for (int64_t r = 0; r < 3; ++r) {
    std::vector<float> row(static_cast<size_t>(vocab), 0.0f);
    row[static_cast<size_t>(100 * (r + 1))] = 9.0f;
    row[7] = 20.0f;  // masked
    std::vector<int32_t> words(32, -1);
    words[0] = ~(1 << 7);
    logits.put(static_cast<size_t>(r * stride) * 4, row.data(), row.size() * 4);
    mask.put(static_cast<size_t>(r * stride) * 4, words.data(), words.size() * 4);
  }
  ts_config config{};
  config.struct_size = sizeof(config);
  config.device = test_device();
  config.vocab_size = vocab;
  ts_sampler* sampler = nullptr;
  REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
  const uint64_t ids[] = {1, 2, 3};
  const SharedVector<int32_t> slots = {0, 1, 2};
  const std::vector<ts_request_params> greedy(3, params(0.0f));
  const ts_step step{sizeof(ts_step), 3, 1, TS_INT32, ids, slots.data(), greedy.data(), 0, 0};
  REQUIRE(ts_sampler_prepare_step(sampler, &step, nullptr) == TS_OK);
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = 3;
  rows.logits = logits.data();
  rows.row_stride = stride;
  rows.slots = slots.data();
  rows.allow_mask = static_cast<const int32_t*>(mask.data());
  rows.mask_stride = stride;
  SharedVector<int32_t> tokens(3);
  ts_sample_out out{};
  out.struct_size = sizeof(out);
  out.tokens = tokens.data();
  CHECK(ts_sampler_sample(sampler, &rows, &out, nullptr) == TS_OK);
  synchronize();
  CHECK(tokens[0] == 100);
  CHECK(tokens[1] == 200);
  CHECK(tokens[2] == 300);
  ts_sampler_destroy(sampler);
}

TEST_CASE("D2 strides, shifted bases and column slices give the tokens of the packed copy") {
  Random random(2);
  for (const int32_t vocab : {31, 1023, 50257}) {
    for (const int32_t type : {TS_FP32, TS_BF16, TS_FP16}) {
      std::vector<std::vector<float>> rows;
      std::vector<ts_request_params> p;
      for (int i = 0; i < 6; ++i) {
        rows.push_back(synthetic_row(random, vocab));
        p.push_back(params(1.0f, i % 3 == 1 ? 20 : 0, i % 3 == 2 ? 0.9f : 1.0f, 0.0f, random()));
      }
      Batch packed;
      packed.vocab = vocab;
      packed.params = p;
      packed.logits = pack(rows, type, vocab);
      Sampler sampler(vocab);
      const Sampled expected = sampler.run(packed);
      // The last stride is a column slice: the row sits in the middle of a wider matrix.
      for (const int64_t stride : {vocab + 1, vocab + 64, vocab * 2}) {
        for (const int32_t shift : {0, 1, 2, 3, stride == vocab * 2 ? vocab / 2 : 7}) {
          Batch strided = packed;
          strided.logits = pack(rows, type, stride);
          strided.logits.shift = shift;
          const Sampled got = sampler.run(strided);
          CHECK(got.tokens == expected.tokens);
          CHECK(got.n_kept == expected.n_kept);
          CHECK(got.logprobs == expected.logprobs);
        }
      }
    }
  }
}

TEST_CASE("E1 draft ids that are no ids are mismatches") {
  // The peaks are where an id would land that is cut to the vocabulary, wrapped round, or counted from the end.
  for (const std::vector<int32_t>& peaks :
       {std::vector<int32_t>{3, 1, 4, 1}, {0, 9, 0, 9}, {9, 0, 9, 0}, {1, 1, 1, 1}}) {
    const Batch batch = peaked(peaks, 10);
    for (const int32_t bad : {-1, INT32_MIN, 10, 11, INT32_MAX, INT32_MIN + 9, (1 << 16) + 1}) {
      for (size_t at = 1; at < 4; ++at) {
        std::vector<int32_t> candidates = {0, peaks[0], peaks[1], peaks[2]};
        candidates[at] = bad;
        const Verified got = verify(batch, candidates);
        CHECK(got.accept_length[0] == static_cast<int32_t>(at));
        for (size_t j = 0; j < 4; ++j) CHECK(got.predict[j] == (j < at ? peaks[j] : -1));
      }
    }
  }
}

TEST_CASE("E2 only the accepted prefix counts") {
  const Verified got = verify(peaked({3, 1, 4, 1, 5}, 10), {0, 3, 9, 4, 1});
  CHECK(got.accept_length[0] == 2);  // one accepted, and the correction
  CHECK(got.predict == std::vector<int32_t>{3, 1, -1, -1, -1});
  CHECK(got.accept_index == std::vector<int32_t>{0, 1, -1, -1, -1});
  // All accepted: the bonus token; none: the correction alone; row numbers go on over requests.
  const Verified both = verify(peaked({3, 1, 4, 2, 6, 8}, 10, 2), {0, 3, 1, 0, 5, 6});
  CHECK(both.accept_length == std::vector<int32_t>{3, 1});
  CHECK(both.predict == std::vector<int32_t>{3, 1, 4, 2, -1, -1});
  CHECK(both.accept_index == std::vector<int32_t>{0, 1, 2, 3, -1, -1});
}

TEST_CASE("E3 drafts that the target never samples are never accepted") {
  Random random(3);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 400; ++i) {
    std::vector<float> row = synthetic_row(random, 64);
    for (size_t id = 32; id < 64; ++id) row[id] = -std::numeric_limits<float>::infinity();
    rows.push_back(row);
  }
  Batch batch;
  batch.vocab = 64;
  batch.rows_per_request = 4;
  batch.logits = pack(rows, TS_BF16, 64);
  std::vector<int32_t> candidates;
  for (int i = 0; i < 400; ++i) candidates.push_back(32 + pick(random, 32));
  for (int r = 0; r < 100; ++r) batch.params.push_back(params(1.0f, 0, 1.0f, 0.0f, random()));
  const Verified got = verify(batch, candidates);
  for (const int32_t length : got.accept_length) CHECK(length == 1);
}

TEST_CASE("E4 chains of real rows with filters are the reference's, of drafts that the filters keep or drop") {
  std::vector<uint16_t> bits = real_rows();
  bits.resize(8 * kRealVocab);  // two requests of four rows
  const std::vector<ts_request_params> ways = {params(1.3f, 50), params(1.3f, 0, 0.8f), params(1.3f, 0, 1.0f, 0.1f),
                                               params(1.3f, 20, 0.9f), params(1.3f, 100, 0.95f, 0.02f)};
  Sampler sampler(kRealVocab);
  Batch batch;
  batch.vocab = kRealVocab;
  batch.rows_per_request = 4;
  batch.logits = Logits::bf16(bits);
  batch.positions = {7, 100000};
  std::vector<ReferenceRow> rows(8);
  uint64_t next_id = 1;
  int n_full = 0, n_cut = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    // What plain sampling would give: where a chain ends early, a filter has dropped the draft.
    std::vector<int32_t> candidates(9);
    for (size_t i = 0; i < 8; ++i) {
      const uint64_t position = static_cast<uint64_t>(batch.positions[i / 4]) + i % 4;
      rows[i] = {real_row(bits, i), 0, {}, params(1.3f, 0, 1.0f, 0.0f, seed), position};
      candidates[i + 1] = reference_sample(rows[i]).token;
    }
    for (size_t step = 0; step < 2 * ways.size(); ++step) {  // one way for both, or two
      batch.params = {ways[step / 2], ways[(step + 1) / 2 % ways.size()]};
      batch.request_ids = {next_id, next_id + 1};
      next_id += 2;
      for (size_t i = 0; i < 8; ++i) {
        batch.params[i / 4].seed = seed;
        rows[i].params = batch.params[i / 4];
      }
      sampler.prepare(batch);
      const Verified got = sampler.verify(batch, {candidates.begin(), candidates.end() - 1});
      for (size_t r = 0; r < 2; ++r) {
        const auto first = static_cast<int32_t>(4 * r);
        const ReferenceChain expected =
            reference_verify({rows.begin() + first, rows.begin() + first + 4}, &candidates[4 * r], first);
        REQUIRE(!expected.too_close);
        CHECK(got.accept_length[r] == expected.accept_length);
        ++(expected.accept_length == 4 ? n_full : n_cut);
        for (size_t j = 0; j < 4; ++j) {
          CHECK(got.predict[4 * r + j] == expected.predict[j]);
          CHECK(got.accept_index[4 * r + j] == expected.accept_index[j]);
          CHECK(got.n_kept[4 * r + j] == expected.n_kept[j]);
          CHECK(got.ranks[4 * r + j] == expected.ranks[j]);
        }
      }
    }
  }
  CHECK((n_full > 5 && n_cut > 5));
}

TEST_CASE("E5 ties at the top: greedy, plain and verify agree") {
  for (const int32_t vocab : {9, 1000}) {
    std::vector<std::vector<float>> rows(2, std::vector<float>(static_cast<size_t>(vocab), 0.0f));
    for (std::vector<float>& row : rows) row[4] = row[7] = row[8] = 300.0f;
    Batch batch;
    batch.vocab = vocab;
    batch.rows_per_request = 2;
    batch.logits = pack(rows, TS_FP32, vocab);
    batch.params = {params(0.0f)};
    CHECK(Sampler(vocab).tokens(batch) == std::vector<int32_t>{4, 4});
    CHECK(verify(batch, {0, 4}).predict == std::vector<int32_t>{4, 4});
    batch.params = {params(1.0f, 1)};
    CHECK(Sampler(vocab).tokens(batch) == std::vector<int32_t>{4, 4});
    CHECK(verify(batch, {0, 4}).accept_length[0] == 2);
    // Sampled ties: verify emits what sample samples.
    for (uint64_t seed = 0; seed < 50; ++seed) {
      batch.params = {params(1.0f, 0, 1.0f, 0.0f, seed)};
      const std::vector<int32_t> plain = Sampler(vocab).tokens(batch);
      CHECK((plain[0] == 4 || plain[0] == 7 || plain[0] == 8));
      CHECK(verify(batch, {0, plain[0]}).predict == plain);
    }
  }
}

TEST_CASE("E7 state follows the slot, not the row") {
  const std::vector<float> row(1000, 0.0f);
  std::vector<std::vector<float>> rows(3, row);
  Batch batch;
  batch.vocab = 1000;
  batch.logits = pack(rows, TS_FP32, 1000);
  batch.slots = {5, 0, 3};
  batch.request_ids = {50, 51, 52};
  for (uint64_t i = 0; i < 3; ++i) batch.params.push_back(params(1.0f, 0, 1.0f, 0.0f, 10 + i));
  Sampler sampler(1000);
  const std::vector<int32_t> tokens = sampler.tokens(batch);
  CHECK((tokens[0] != tokens[1] && tokens[1] != tokens[2]));
  // Known owners in another order, without parameters; and a part of the step.
  batch.slots = {3, 5, 0};
  batch.request_ids = {52, 50, 51};
  batch.params.clear();
  CHECK(sampler.tokens(batch) == std::vector<int32_t>{tokens[2], tokens[0], tokens[1]});
  Batch part = batch;
  part.slots = {0};
  std::vector<std::vector<float>> one = {row};
  part.logits = pack(one, TS_FP32, 1000);
  CHECK(sampler.sample(part).tokens == std::vector<int32_t>{tokens[1]});
}

TEST_CASE("F1 a raw log-probability is of the masked logits, whatever the temperature and filters") {
  Random random(1);
  const int32_t vocab = 300;
  const std::vector<float> row = synthetic_row(random, vocab);
  std::vector<int32_t> mask(10);
  for (int32_t& word : mask) word = static_cast<int32_t>(random());
  long double sum = 0;
  for (int32_t id = 0; id < vocab; ++id) {
    if ((static_cast<uint32_t>(mask[static_cast<size_t>(id / 32)]) >> (id % 32) & 1u) != 0) {
      sum += std::exp(static_cast<long double>(row[static_cast<size_t>(id)]));
    }
  }
  for (const ts_request_params& p :
       {params(0.0f), params(1.0f), params(0.2f), params(3.0f, 10), params(1.0f, 0, 0.7f)}) {
    std::vector<std::vector<float>> rows = {row};
    Batch batch;
    batch.vocab = vocab;
    batch.logits = pack(rows, TS_FP32, vocab);
    batch.params = {p};
    batch.allow_mask = mask;
    batch.mask_words = 10;
    const Sampled got = Sampler(vocab).run(batch);
    const auto expected =
        static_cast<double>(static_cast<long double>(row[static_cast<size_t>(got.tokens[0])]) - std::log(sum));
    CHECK(got.logprobs[0] == Approx(expected).epsilon(1e-6));  // the weights are within 1e-6 of exp()
  }
}

TEST_CASE("F2 the rank is 1 + the number of strictly greater allowed logits") {
  std::vector<std::vector<float>> rows = {{3, 7, 7, 5, 7, 1}};
  Batch batch;
  batch.vocab = 6;
  batch.logits = pack(rows, TS_FP32, 6);
  batch.params = {params(1.0f)};
  batch.mask_words = 1;
  const int32_t ranks[] = {5, 1, 1, 4, 1, 6};
  for (int32_t id = 0; id < 6; ++id) {
    // Let the noise pick the id, by forbidding nothing, over positions.
    batch.allow_mask = {-1};
    bool seen = false;
    batch.params = {params(50.0f)};
    Sampler sampler(6);
    for (int64_t position = 0; position < 200 && !seen; ++position) {
      batch.positions = {position};
      const Sampled got = sampler.run(batch);
      if (got.tokens[0] != id) continue;
      seen = true;
      CHECK(got.ranks[0] == ranks[id]);
    }
    CHECK(seen);
    // Alone it is first; with id 1 forbidden one fewer is above.
    batch.positions.clear();
    batch.allow_mask = {1 << id};
    CHECK(Sampler(6).run(batch).ranks[0] == 1);
  }
  batch.params = {params(0.0f)};
  batch.allow_mask = {1 << 0 | 1 << 1 | 1 << 5};
  CHECK(Sampler(6).run(batch).ranks[0] == 1);
}

TEST_CASE("F4 what lies behind accept_length is defined, not stale") {
  const Verified got = verify(peaked({3, 1, 4, 1}, 10), {0, 9, 1, 4});  // all outputs were poisoned
  CHECK(got.accept_length[0] == 1);
  for (size_t j = 1; j < 4; ++j) {
    CHECK(got.predict[j] == -1);
    CHECK(got.accept_index[j] == -1);
    CHECK(std::isnan(got.logprobs[j]));
    CHECK(got.ranks[j] == 0);
    CHECK(got.n_kept[j] == 0);
    CHECK(got.flags[j] == 0u);
  }
  CHECK(got.logprobs[0] == 0.0f);
  CHECK(got.ranks[0] == 1);
  // A row without a candidate ends its chain even if the draft is the invalid token.
  Batch batch = peaked({3, 1}, 10);
  batch.allow_mask = {0, -1};
  batch.mask_words = 1;
  const Verified empty = verify(batch, {0, 0});
  CHECK(empty.accept_length[0] == 1);
  CHECK(empty.predict == std::vector<int32_t>{0, -1});
  CHECK(empty.flags == std::vector<uint32_t>{TS_ROW_EMPTY, 0});
}

}  // namespace ts::test
