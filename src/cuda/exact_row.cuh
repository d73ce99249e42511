// SPDX-License-Identifier: Apache-2.0
// What the exact kernel can ask of a whole row, by one block: its masses, cuts, and the best of what is left.
#pragma once

#include "cuda/cold.cuh"
#include "cuda/exact_masses.cuh"
#include "cuda/mass.cuh"

namespace ts::cuda {

// What a cut and min-p leave of a row.
struct Left {
  uint64_t last_key;
  float min_distance;
  float max;

  __device__ bool has(float logit, uint32_t id) const {
    return logit > kMinusInf && order_key(logit, id) >= last_key && logit - max >= min_distance;
  }
};

// The ids of a group, as bits, that are left and may win. Raises the bound by them.
template <class Type>
__device__ __noinline__ uint32_t may_win_of_group(Raw<Type> raw, int32_t group, PhiloxBlock block, Left left,
                                                  float factor, float& bound) {
  float logits[kGroup];
  raw.clean(logits);
  uint32_t may = 0;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    const uint32_t coarse = coarse_bits(block, j);
    if (left.has(logits[j], static_cast<uint32_t>(group * kGroup + j)) && may_win(logits[j], coarse, factor, bound)) {
      may |= 1u << j;
      bound = fmaxf(bound, lower_score(logits[j], coarse, factor));
    }
  }
  return may;
}

// The best of a group's ids that are left and reach the bound, scored exactly.
template <class Type>
__device__ __noinline__ Scored best_of_group(RowSource<Type> source, int32_t group, Left left, const RowContext& row,
                                             float bound) {
  const float factor = row.state.log2e_over_t;
  const Raw<Type> raw = source.load(group);
  const PhiloxBlock block = cold_noise_block(row.key, static_cast<uint32_t>(group), 0);
  float logits[kGroup];
  raw.clean(logits);
  uint32_t may = may_win_of_group(raw, group, block, left, factor, bound);
  Scored best = no_score();
#pragma unroll 1
  while (may != 0) {
    const uint32_t j = static_cast<uint32_t>(__ffs(static_cast<int>(may))) - 1;
    may &= may - 1;
    const float logit = logit_at(logits, j);
    const uint32_t id = static_cast<uint32_t>(group) * kGroup + j;
    const uint32_t coarse = coarse_at(block, j);
    if (!may_win(logit, coarse, factor, bound)) continue;
    best = better(best, score_of(logit, id, coarse, row.state.inv_temperature, row.key));
  }
  return best;
}

template <class Type>
class ExactRow {
 public:
  __device__ ExactRow(const Call& call, int64_t row_index, const RowContext& row, ExactShared& shared)
      : source_(call, row_index, 0, 1), row_(row), shared_(shared) {}

  // The masses of the row, with what is in front of a candidate.
  __device__ Masses masses(float logit, uint32_t id) const {
    Places places;
    places.logits[0] = logit;
    places.ids[0] = id;
    start(source_, shared_);
    return sum_masses(source_, row_.max, row_.state.log2e_over_t, places, shared_);
  }

  // visit(logit, id) for each candidate that is not after last_key.
  template <class Visit>
  __device__ void for_each(uint64_t last_key, const Visit& visit) const {
    const float least = last_key != 0 ? logit_of(last_key) : kMinusInf;
    start(source_, shared_);
    for_each_raw(source_, shared_, [&](const Raw<Type>& raw, int32_t group, float top) {
      if (top < least || top == kMinusInf) return;
      float logits[kGroup];
      raw.unpack(logits);
      if (!(top <= kFloatMax)) raw.clean(logits);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const uint32_t id = static_cast<uint32_t>(group * kGroup + j);
        if (logits[j] > kMinusInf && order_key(logits[j], id) >= last_key) visit(logits[j], id);
      }
    });
  }

  // The integer masses of the row and of what is in front of a candidate.
  __device__ __noinline__ void exact_masses(float logit, uint32_t id, uint64_t& total, uint64_t& before) const {
    const float factor = row_.state.log2e_over_t;
    const float max = row_.max;
    const uint64_t order = order_key(logit, id);
    unsigned long long all = 0;
    unsigned long long front = 0;
    for_each(0, [&](float other, uint32_t other_id) {
      const uint64_t w = weight(other - max, factor);
      all += w;
      if (order_key(other, other_id) > order) front += w;
    });
    total = block_reduce(all, shared_.reduce.as<unsigned long long>(), Add{});
    before = block_reduce(front, shared_.reduce.as<unsigned long long>(), Add{});
  }

  // The cut among what is not after last_key. limit_of(total): the limit, given the sum of all measures.
  template <class Measure, class LimitOf>
  __device__ Cut cut(uint64_t last_key, const Measure& measure, const LimitOf& limit_of) const {
    clear_bins(shared_.cut);
    BinAdder adder(shared_.cut.bins);
    for_each(last_key, [&](float logit, uint32_t) { adder.add(bin_of(logit), measure(logit)); });
    adder.flush();
    __syncthreads();
    unsigned long long total = 0;
    for (int32_t i = threadIdx.x; i < kBins; i += kExactThreads) total += shared_.cut.bins[i];
    total = block_reduce(total, shared_.reduce.as<unsigned long long>(), Add{});
    const uint64_t limit = limit_of(total);
    find_bin(shared_.cut, 0, limit);
    const uint32_t bin = shared_.cut.bin;
    if (bin == kNoBin) return {0, false};
    const uint64_t before = shared_.cut.before;
    if (threadIdx.x == 0) shared_.n_listed = 0;
    __syncthreads();
    for_each(last_key, [&](float logit, uint32_t id) {
      if (bin_of(logit) != bin) return;
      const uint32_t at = atomicAdd(&shared_.n_listed, 1u);
      if (at < kExactCapacity) shared_.entries[at] = order_key(logit, id);
    });
    __syncthreads();
    const uint32_t n = shared_.n_listed;
    if (n <= kExactCapacity) {
      const auto listed = [&](auto visit) {
        for (uint32_t i = threadIdx.x; i < n; i += kExactThreads) {
          visit(shared_.entries[i], measure(logit_of(shared_.entries[i])));
        }
      };
      return block_cut(listed, limit - before, shared_.cut);
    }
    const auto all = [&](auto visit) {
      for_each(last_key, [&](float logit, uint32_t id) {
        if (bin_of(logit) == bin) visit(order_key(logit, id), measure(logit));
      });
    };
    return block_cut(all, limit - before, shared_.cut);
  }

  // The best of what is not after last_key and min-p keeps.
  __device__ __noinline__ Scored draw(uint64_t last_key, float min_distance) const {
    const float factor = row_.state.log2e_over_t;
    const NoiseKey key = row_.key;
    const Left left{last_key, min_distance, row_.max};
    const float least = last_key != 0 ? logit_of(last_key) : kMinusInf;
    __syncthreads();
    if (threadIdx.x == 0) {
      shared_.bound = ordered(kNoBound);
      shared_.n_listed = 0;
    }
    __syncthreads();
    bool seeding = true;
    const RowSource<Type> source = source_;
    start(source, shared_);
    for_each_raw(source, shared_, [&](const Raw<Type>& raw, int32_t group, float top) {
      if (!(top <= kFloatMax)) {
        uint32_t flags = 0;
        top = raw.top(flags);
      }
      const bool may_be_left = top >= least && top > kMinusInf && top - left.max >= min_distance;
      PhiloxBlock block{};
      if (may_be_left) block = coarse_block(key, static_cast<uint32_t>(group));
      if (seeding) {
        // The first groups of all threads make a bound that spares most of the others.
        float lower = kNoBound;
        if (may_be_left) may_win_of_group(raw, group, block, left, factor, lower);
        const int32_t most = __reduce_max_sync(0xFFFFFFFFu, ordered(lower));
        if (threadIdx.x % 32 == 0) atomicMax(&shared_.bound, most);
        __syncthreads();
        seeding = false;
      }
      const float known = from_ordered(*const_cast<volatile int32_t*>(&shared_.bound));
      if (!may_be_left || !may_win(top, least_coarse(block), factor, known)) return;
      float bound = known;
      if (may_win_of_group(raw, group, block, left, factor, bound) == 0) return;
      if (bound > known) atomicMax(&shared_.bound, ordered(bound));
      const uint32_t at = atomicAdd(&shared_.n_listed, 1u);
      if (at < kExactCapacity) shared_.groups[at] = static_cast<uint32_t>(group);
    });
    __syncthreads();
    const float bound = from_ordered(shared_.bound);
    const uint32_t n = shared_.n_listed;
    const bool listed = n <= kExactCapacity;  // if not, all groups
    const int32_t n_groups = listed ? static_cast<int32_t>(n) : source_.end_group;
    Scored best = no_score();
#pragma unroll 1
    for (int32_t i = threadIdx.x; i < n_groups; i += kExactThreads) {
      best = better(
          best, best_of_group<Type>(source_, listed ? static_cast<int32_t>(shared_.groups[i]) : i, left, row_, bound));
    }
    return block_reduce(best, shared_.reduce.as<Scored>(), Better{});
  }

 private:
  // Why monotone: the difference and its multiple by a power of two are rounded monotonically.
  __device__ uint32_t bin_of(float logit) const {
    return static_cast<uint32_t>(fminf((row_.max - logit) * 32.0f, static_cast<float>(kBins - 1)));
  }

  RowSource<Type> source_;
  const RowContext& row_;
  ExactShared& shared_;
};

}  // namespace ts::cuda
