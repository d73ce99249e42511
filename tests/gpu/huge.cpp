// SPDX-License-Identifier: Apache-2.0
// D1: 64-bit offsets in one call of 15,408 rows.
#include "gpu/huge.h"

#include <algorithm>

namespace ts::gpu {
namespace {

constexpr int32_t kRows = 15408;
constexpr int32_t kVocab = 151936;
constexpr int32_t kBlock = 96;  // distinct rows; repeated over the matrix
constexpr size_t kRowBytes = size_t{kVocab} * 2;

// Rows that are compared: the first and last, and those where the offset passes a power of two, as a number of
// elements and of bytes. They are rows of their own, so that a row read at a wrong offset is another row.
std::vector<int32_t> watched_rows() {
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < 40; ++i) rows.push_back(i);
  for (int shift = 27; shift <= 31; ++shift) {
    const auto at = static_cast<int32_t>((int64_t{1} << shift) / kVocab);
    for (int32_t i = at - 2; i <= at + 2; ++i) rows.push_back(i);
  }
  for (int32_t i = kRows - 64; i < kRows; ++i) rows.push_back(i);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::vector<uint16_t> distinct_rows(Random& random, size_t n) {
  std::vector<uint16_t> bits(n * size_t{kVocab});
  std::normal_distribution<float> normal(0.0f, 2.5f);
  // Why a table: 24 million draws of the distribution take longer than all that the GPU does.
  std::vector<uint16_t> table(1 << 16);
  for (uint16_t& b : table) b = to_bf16(normal(random));
  for (size_t i = 0; i < bits.size(); i += 4) {
    uint64_t word = random();
    for (size_t j = i; j < std::min(i + 4, bits.size()); ++j, word >>= 16) bits[j] = table[word & 0xFFFF];
  }
  return bits;
}

}  // namespace

bool compare_huge(Counts& total) {
  const size_t n_bytes = size_t{kRows} * kRowBytes;
  size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  if (free < n_bytes + (size_t{2} << 30)) {
    std::printf("huge: skipped: %zu MB of GPU memory are free\n", free >> 20);
    return false;
  }
  Random random(0xD1);
  const std::vector<int32_t> watched = watched_rows();
  const std::vector<uint16_t> block = distinct_rows(random, kBlock), own = distinct_rows(random, watched.size());
  Buffer matrix;
  auto* logits = static_cast<unsigned char*>(matrix.get(n_bytes));
  check(cudaMemcpy(logits, block.data(), block.size() * 2, cudaMemcpyHostToDevice), "first block");
  for (size_t done = block.size() * 2; done < n_bytes; done *= 2) {
    check(cudaMemcpy(logits + done, logits, std::min(done, n_bytes - done), cudaMemcpyDeviceToDevice), "repeat");
  }
  for (size_t i = 0; i < watched.size(); ++i) {
    check(cudaMemcpy(logits + static_cast<size_t>(watched[i]) * kRowBytes, &own[i * size_t{kVocab}], kRowBytes,
                     cudaMemcpyHostToDevice),
          "watched row");
  }

  std::vector<uint64_t> ids(kRows);
  std::vector<int32_t> slots(kRows);
  std::vector<int64_t> positions(kRows);
  std::vector<ts_request_params> params(kRows);
  for (int32_t r = 0; r < kRows; ++r) {
    const auto i = static_cast<size_t>(r);
    ids[i] = i + 1;
    slots[i] = (r * 7 + 3) % 16384;
    positions[i] = static_cast<int64_t>(random() >> 20);
    params[i] = random_params(random, kVocab, pick(random, 5), true);
  }
  ts_step step{};
  step.struct_size = sizeof(step);
  step.n_requests = kRows;
  step.request_ids = ids.data();
  step.slots = slots.data();
  step.params = params.data();
  Buffer device_slots, device_positions, device_out;
  Results got(kRows);
  ts_rows rows{};
  rows.struct_size = sizeof(rows);
  rows.n_requests = kRows;
  rows.logits = logits;
  rows.logits_type = TS_BF16;
  rows.slots = device_slots.put(slots.data(), slots.size() * 4);
  rows.positions = device_positions.put(positions.data(), positions.size() * 8);
  rows.positions_type = TS_INT64;
  auto* words = static_cast<int32_t*>(device_out.put(got.words.data(), got.words.size() * 4));
  const auto outputs = [](int32_t* block_of, size_t n) {
    ts_sample_out out{};
    out.struct_size = sizeof(out);
    out.tokens = block_of + kTokens * n;
    out.ranks = block_of + kRanks * n;
    out.n_kept = block_of + kKept * n;
    out.logprobs = reinterpret_cast<float*>(block_of + kLogprobs * n);
    out.row_flags = reinterpret_cast<uint32_t*>(block_of + kFlags * n);
    return out;
  };
  const ts_sample_out out = outputs(words, kRows);
  ts_sampler* cuda = make_sampler(TS_DEVICE_CUDA, kVocab, 0, 16384, 1);
  check(ts_sampler_prepare_step(cuda, &step, nullptr) == TS_OK, "prepare_step");
  check(ts_sampler_sample(cuda, &rows, &out, nullptr) == TS_OK, "sample");
  check(cudaMemcpy(got.words.data(), words, got.words.size() * 4, cudaMemcpyDeviceToHost), "the huge call");
  ts_sampler_destroy(cuda);

  // The watched rows, and as many of the repeated ones, one by one on the CPU.
  ts_sampler* cpu = make_sampler(TS_DEVICE_CPU, kVocab);
  std::vector<int32_t> compared = watched;
  for (int i = 0; i < 200; ++i) compared.push_back(pick(random, kRows));
  long bad = 0;
  uint64_t id = 0;
  for (const int32_t r : compared) {
    const auto i = static_cast<size_t>(r);
    const auto found = std::lower_bound(watched.begin(), watched.end(), r);
    const bool is_own = found != watched.end() && *found == r;
    const auto own_row = static_cast<size_t>(found - watched.begin());
    const int32_t slot = 0;
    ++id;
    ts_step one{};
    one.struct_size = sizeof(one);
    one.n_requests = 1;
    one.request_ids = &id;
    one.slots = &slot;
    one.params = &params[i];
    check(ts_sampler_prepare_step(cpu, &one, nullptr) == TS_OK, "prepare_step on the CPU");
    Results expected(1);
    ts_rows row = rows;
    row.n_requests = 1;
    row.logits = is_own ? &own[own_row * size_t{kVocab}] : &block[i % kBlock * size_t{kVocab}];
    row.slots = &slot;
    row.positions = &positions[i];
    const ts_sample_out one_out = outputs(expected.words.data(), 1);
    check(ts_sampler_sample(cpu, &row, &one_out, nullptr) == TS_OK, "sample on the CPU");
    bool same = true;
    for (int output = kTokens; output <= kFlags; ++output) same &= expected.at(output, 0) == got.at(output, i);
    if (!same && ++bad <= 10) {
      std::printf("huge row %d: token %d/%d (cpu/cuda) flags %d/%d\n", r, expected.at(kTokens, 0), got.at(kTokens, i),
                  expected.at(kFlags, 0), got.at(kFlags, i));
    }
  }
  ts_sampler_destroy(cpu);
  // No row was passed over.
  for (size_t i = 0; i < size_t{kRows}; ++i) bad += got.at(kTokens, i) == kPoison;
  std::printf("huge: %d rows x %d bf16 (%.2f GB) in one call, %zu of them compared, mismatches=%ld\n", kRows, kVocab,
              static_cast<double>(n_bytes) * 1e-9, compared.size(), bad);
  std::fflush(stdout);
  total.rows += static_cast<long>(compared.size());
  total.mismatches += bad;
  return true;
}

}  // namespace ts::gpu
