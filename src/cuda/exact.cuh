// SPDX-License-Identifier: Apache-2.0
// The exact kernel: the rows that the stream left open, a block each.
//
// Method: top-p is decided by winners of ever smaller sets, each the best of what is in front of the one before: one pass sums
// the row's fp32 mass and what is in front of the first of them, which mostly decides; if it is not kept, and no contender is
// left from the list, one pass finds the next. Where fp32 does not decide, and where the cut itself is wanted, a cut: one pass
// adds measures into 2048 bins of width 1/32 below the maximum, which finds the bin that the cut falls into; one lists that
// bin's candidates, on which block_cut goes on (if they are too many, over the row); one more draws.
// Bytes: 1 to 5 reads of an open row, mostly from L2. Open rows come from a list: none, no work.
// Why not clusters: beside a kernel that holds most of the multiprocessors a cluster may not find room (FAULTS.md D5).
// Measured: with the sampling kernel in front, by operation, in benchmarks/RESULTS.md.
#pragma once

#include "cuda/list.cuh"
#include "cuda/mass.cuh"
#include "cuda/programmatic.cuh"
#include "cuda/row_context.cuh"
#include "cuda/row_source.cuh"

namespace ts::cuda {

constexpr int32_t kExactThreads = 1024;
constexpr uint32_t kMaxDrawn = 1024;  // groups that a draw lists before it gives up listing

struct ExactShared {
  ReduceShared reduce;
  CutShared cut;
  ListShared list;
  int32_t bound;  // ordered(): a lower bound of the best score
  uint32_t n_drawn;
  uint32_t drawn[kMaxDrawn];  // groups with an id that may win
  uint32_t flag;
};

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
__device__ __noinline__ uint32_t may_win_of_group(Raw<Type> raw, int32_t group, PhiloxBlock block, Left left, float factor,
                                                  float& bound) {
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
    const uint32_t coarse = coarse_bits(block, id);
    if (!may_win(logit, coarse, factor, bound)) continue;
    best = better(best, score_of(logit, id, coarse, row.state.inv_temperature, row.key));
  }
  return best;
}

// fp32 masses, in units of the maximum's weight.
struct Masses {
  float total;
  float before;
};
struct AddMasses {
  __device__ Masses operator()(Masses a, Masses b) const { return {a.total + b.total, a.before + b.before}; }
};
template <>
__device__ inline Masses shuffle_xor(Masses value, int mask) {
  return {shuffle_xor(value.total, mask), shuffle_xor(value.before, mask)};
}

template <class Type>
class ExactRow {
 public:
  __device__ ExactRow(const Call& call, int64_t row_index, const RowContext& row, ExactShared& shared)
      : source_(call, row_index, 0, 1), row_(row), shared_(shared) {}

  __device__ float logit(uint32_t id) const {
    float logits[kGroup];
    source_.load(static_cast<int32_t>(id / kGroup)).clean(logits);
    return logit_at(logits, id % kGroup);
  }

  // visit(raw, group, top) for each group; groups past the row may come too, all -inf.
  template <class Visit>
  __device__ void for_each_raw(const Visit& visit) const {
    constexpr int kBatch = 64 / sizeof(Raw<Type>);  // whose loads do not wait for one another
#pragma unroll 1
    for (int32_t begin = 0; begin < source_.end_group; begin += kBatch * kExactThreads) {
      const int32_t first = begin + static_cast<int32_t>(threadIdx.x);
      Raw<Type> raws[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (first + i * kExactThreads < source_.whole_end) raws[i] = source_.load_whole(first + i * kExactThreads);
      }
      if (begin + kBatch * kExactThreads > source_.whole_end) {
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const int32_t group = first + i * kExactThreads;
          if (group < source_.whole_end) continue;
          raws[i] = Raw<Type>::nothing();
          if (group < source_.end_group) raws[i] = load_checked(source_, group).raw;
        }
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) visit(raws[i], first + i * kExactThreads, raws[i].stored_top());
    }
  }

  // visit(logit, id) for each candidate that is not after last_key.
  template <class Visit>
  __device__ void for_each(uint64_t last_key, const Visit& visit) const {
    const float least = last_key != 0 ? logit_of(last_key) : kMinusInf;
    for_each_raw([&](const Raw<Type>& raw, int32_t group, float top) {
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

  // The row's mass, and that in front of a candidate.
  __device__ Masses masses(float logit, uint32_t id) const {
    const float factor = row_.state.log2e_over_t;
    const auto own_group = static_cast<int32_t>(id / kGroup);
    // Ids with the same logit are in front in groups before its own: there the limit is the logit, else the next float.
    const float same = logit + 0.0f;
    const float above = from_ordered(ordered(same) + 1);
    Masses sum{0.0f, 0.0f};
    for_each_raw([&](const Raw<Type>& raw, int32_t group, float top) {
      float logits[kGroup];
      raw.unpack(logits);
      if (!(top <= kFloatMax)) raw.clean(logits);
      const float limit = group < own_group ? same : above;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const float term = exp2_approx((logits[j] - row_.max) * factor);
        sum.total += term;
        if (logits[j] >= limit) sum.before += term;
      }
      if (group == own_group) {
#pragma unroll
        for (uint32_t j = 0; j < kGroup; ++j) {
          if (j < id % kGroup && logits[j] == logit) sum.before += exp2_approx((logit - row_.max) * factor);
        }
      }
    });
    return block_reduce(sum, shared_.reduce.as<Masses>(), AddMasses{});
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
    if (threadIdx.x == 0) shared_.list.count = 0;
    __syncthreads();
    for_each(last_key, [&](float logit, uint32_t id) {
      if (bin_of(logit) == bin) push(shared_.list, order_key(logit, id));
    });
    __syncthreads();
    const uint32_t n = shared_.list.count;
    if (n <= kListCapacity) {
      const auto listed = [&](auto visit) {
        for (uint32_t i = threadIdx.x; i < n; i += kExactThreads) {
          visit(shared_.list.entries[i], measure(logit_of(shared_.list.entries[i])));
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
  __device__ Scored draw(uint64_t last_key, float min_distance) const {
    const float factor = row_.state.log2e_over_t;
    const Left left{last_key, min_distance, row_.max};
    const float least = last_key != 0 ? logit_of(last_key) : kMinusInf;
    __syncthreads();
    if (threadIdx.x == 0) {
      shared_.bound = ordered(kNoBound);
      shared_.n_drawn = 0;
    }
    __syncthreads();
    bool seeding = true;
    for_each_raw([&](const Raw<Type>& raw, int32_t group, float top) {
      if (!(top <= kFloatMax)) {
        uint32_t flags = 0;
        top = raw.top(flags);
      }
      const bool may_be_left = top >= least && top > kMinusInf && top - row_.max >= min_distance;
      PhiloxBlock block{};
      if (may_be_left) block = coarse_block(row_.key, static_cast<uint32_t>(group));
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
      const uint32_t at = atomicAdd(&shared_.n_drawn, 1u);
      if (at < kMaxDrawn) shared_.drawn[at] = static_cast<uint32_t>(group);
    });
    __syncthreads();
    const float bound = from_ordered(shared_.bound);
    const uint32_t n = shared_.n_drawn;
    const bool listed = n <= kMaxDrawn;  // if not, all groups
    const int32_t n_groups = listed ? static_cast<int32_t>(n) : source_.end_group;
    Scored best = no_score();
#pragma unroll 1
    for (int32_t i = threadIdx.x; i < n_groups; i += kExactThreads) {
      best = better(best, best_of_group<Type>(source_, listed ? static_cast<int32_t>(shared_.drawn[i]) : i, left, row_,
                                              bound));
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

// The winner of a row with top-p, from its contenders. Gives up after a few, and where the mass is too near the limit: known is
// then false.
constexpr uint32_t kMaxTries = 8;
template <class Type>
__device__ uint32_t winner_of_contenders(const ExactRow<Type>& exact, const RowContext& row, const RowPick& pick,
                                         uint32_t n_contenders, float min_distance, bool& known) {
  const float error = mass_error(static_cast<float>(row.vocab) / kExactThreads + 64.0f);
  known = false;
  uint32_t token = 0;
  float logit = 0.0f;
  uint64_t last_key = 0;
  MassLimits limits{};
#pragma unroll 1
  for (uint32_t i = 0; i < kMaxTries; ++i) {
    MassLimits before{kUnknownMass, kUnknownMass};
    if (i < n_contenders) {
      token = pick.contenders[i];
      logit = exact.logit(token);
      before.low = before.high = pick.before[i];
    } else {
      const Scored next = exact.draw(last_key, i == 0 ? min_distance : kMinusInf);
      token = next.id;
      logit = next.logit;
    }
    if (i == 0 || before.low == kUnknownMass) {
      const Masses masses = exact.masses(logit, token);
      limits = limits_of(masses.total, error, row.state.top_p_fixed);
      if (before.low == kUnknownMass) {
        before = limits_of(masses.before, error, kTopPOff);
        if (masses.before == 0.0f) before.high = 0;
      }
    }
    known = before.high == 0 || before.high <= limits.low;  // nothing, or surely too little, in front
    if (known || before.low < limits.high) break;
    last_key = order_key(logit, token) + 1;
  }
  return token;
}

template <class Type>
__device__ void exact_row(const Call& call, int64_t row_index, RowPick& pick, const Outputs& out, ExactShared& shared) {
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RowState& state = row.state;
  row.max = pick.max;
  const float min_distance = (state.needs & kNeedMinP) != 0 ? state.min_p_threshold : kMinusInf;
  const bool with_top_k = (state.needs & kNeedTopK) != 0;
  const bool with_top_p = (state.needs & kNeedTopP) != 0;
  const ExactRow<Type> exact(call, row_index, row, shared);
  uint64_t last_key = 0;
  uint32_t token = 0;
  bool known = false;
  if (with_top_p && !with_top_k && call.exact_cut == 0) {
    const bool contended = pick.open == static_cast<uint32_t>(Open::kContenders);
    token = winner_of_contenders(exact, row, pick, contended ? pick.n_contenders : 0, min_distance, known);
  }
  if (!known) {
    if (with_top_k) {
      const Cut cut = exact.cut(
          0, [](float) { return uint64_t{1}; }, [&](uint64_t) { return static_cast<uint64_t>(state.top_k); });
      if (cut.reached) last_key = cut.key;
    }
    if (with_top_p) {
      last_key = exact
                     .cut(
                         last_key, [&](float logit) { return weight(logit - row.max, state.log2e_over_t); },
                         [&](uint64_t total) { return cut_limit(state.top_p_fixed, total); })
                     .key;
    }
    token = exact.draw(last_key, min_distance).id;
  }
  if (threadIdx.x == 0) {
    pick.last_key = last_key;
    pick.token = token;
    pick.open = 0;
    out.tokens[row_index] = static_cast<int32_t>(token);
  }
}

template <class Type>
__global__ void __launch_bounds__(kExactThreads, 1) exact_kernel(const Call call, RowPick* picks, const Outputs out) {
  wait_for_predecessor();
  release_successor();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  ExactShared& shared = *reinterpret_cast<ExactShared*>(shared_bytes);
  const uint32_t n_open = call.open_rows->n;
  if (n_open == 0) return;
  for (uint32_t i = blockIdx.x; i < n_open; i += gridDim.x) {
    const int64_t row_index = call.open_rows->rows[i];
    exact_row<Type>(call, row_index, picks[row_index], out, shared);
  }
  if (last_to_arrive(&call.open_rows->arrivals, gridDim.x, &shared.flag) && threadIdx.x == 0) call.open_rows->n = 0;
}

}  // namespace ts::cuda
