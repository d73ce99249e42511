// SPDX-License-Identifier: Apache-2.0
// The exact kernel: the rows that the stream left open, a block each, or some blocks each where they are few.
//
// Method: top-p is decided by the row's contenders, winners of ever smaller sets: one pass sums the row's fp32 mass and what
// is in front of them. If none of them is kept, one pass finds the best of what is in front of the last, and so on. Where fp32
// does not decide, and where the cut itself is wanted, a cut: one pass
// adds measures into 2048 bins of width 1/32 below the maximum, which finds the bin that the cut falls into; one lists that
// bin's candidates, on which block_cut goes on (if they are too many, over the row); one more draws.
// Bytes: 1 to 5 reads of an open row, mostly from L2. Open rows come from a list: none, no work.
// Why not clusters: beside a kernel that holds most of the multiprocessors a cluster may not find room (FAULTS.md D5).
// Measured (H200, V 128256, bf16, 512 real rows with top-p .9, 84 to 98 of them open, ncu): 28 us alone, commit bf4c8d6.
#pragma once

#include "cuda/list.cuh"
#include "cuda/mass.cuh"
#include "cuda/programmatic.cuh"
#include "cuda/row_context.cuh"
#include "cuda/row_source.cuh"

namespace ts::cuda {

constexpr int32_t kExactThreads = 512;
constexpr uint32_t kExactCapacity = 2048;

// Why below 99 KB: that is what a block may have on devices of compute capability 12.0.
struct ExactShared {
  uint4 ring[kExactThreads * 4];  // of copies under way
  ReduceShared reduce;
  CutShared cut;
  uint32_t n_listed;  // may exceed the capacity: then the list is not complete
  union {
    uint64_t entries[kExactCapacity];  // order keys
    uint32_t groups[kExactCapacity];   // with an id that may win
  };
  int32_t bound;  // ordered(): a lower bound of the best score
  uint32_t flag;
};
static_assert(sizeof(ExactShared) <= 99 * 1024, "");

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

// fp32 masses, in units of the maximum's weight: of the row, and in front of its contenders of unknown mass.
struct Masses {
  float total;
  float before[kMaxUnknown];
};
struct AddMasses {
  __device__ Masses operator()(Masses a, const Masses& b) const {
    a.total += b.total;
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) a.before[p] += b.before[p];
    return a;
  }
};
template <>
__device__ inline Masses shuffle_xor(Masses value, int mask) {
  value.total = shuffle_xor(value.total, mask);
#pragma unroll
  for (uint32_t p = 0; p < kMaxUnknown; ++p) value.before[p] = shuffle_xor(value.before[p], mask);
  return value;
}

// Candidates whose fronts are summed; by default nothing is in front.
struct Places {
  float logits[kMaxUnknown];
  uint32_t ids[kMaxUnknown];

  __device__ Places() {
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) logits[p] = -kMinusInf, ids[p] = 0;
  }
};

// The walk over a slice, in two steps: start() sends for the first groups, for_each_raw() calls visit(raw, group, top) for each
// group; groups past the slice may come too, all -inf.
// Why a ring of copies: the loads of kDepth groups a thread are under way, and the code is that of one. A row is read once or
// twice, so code in line would be waited for more than run.
template <class Type>
constexpr int kDepth = 4 / Raw<Type>::kWords;

template <class Type>
__device__ void send_for(const RowSource<Type>& source, int32_t group, uint32_t place, ExactShared& shared) {
  constexpr int kWords = Raw<Type>::kWords;
  const uint4* from = reinterpret_cast<const uint4*>(source.row) + group * kWords;
  if (group < source.whole_end) {
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const uint4* to = shared.ring + (place * kWords + w) * kExactThreads + threadIdx.x;
      copy_async(static_cast<uint32_t>(__cvta_generic_to_shared(to)), from + w, 0);
    }
  }
  commit_copies();
}

template <class Type>
__device__ void start(const RowSource<Type>& source, ExactShared& shared) {
  const int32_t group = source.first_group + static_cast<int32_t>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kDepth<Type>; ++i) send_for(source, group + i * kExactThreads, i, shared);
}

template <class Type, class Visit>
__device__ void for_each_raw(const RowSource<Type>& source, ExactShared& shared, const Visit& visit) {
  constexpr int kWords = Raw<Type>::kWords;
  int32_t group = source.first_group + static_cast<int32_t>(threadIdx.x);
  uint32_t place = 0;
#pragma unroll 1
  for (int32_t begin = source.first_group; begin < source.end_group; begin += kExactThreads) {
    wait_for_copies<kDepth<Type> - 1>();
    Raw<Type> raw;
#pragma unroll
    for (int w = 0; w < kWords; ++w) raw.words[w] = shared.ring[(place * kWords + w) * kExactThreads + threadIdx.x];
    if (group >= source.whole_end) {
      raw = Raw<Type>::nothing();
      if (group < source.end_group) raw = load_checked(source, group).raw;
    }
    send_for(source, group + kDepth<Type> * kExactThreads, place, shared);
    place = (place + 1) % kDepth<Type>;
    visit(raw, group, raw.stored_top());
    group += kExactThreads;
  }
  wait_for_copies<0>();
}

// The masses of a slice, after start(). A NaN or an infinity in it makes them NaN or infinite.
template <class Type>
__device__ __noinline__ Masses sum_masses(RowSource<Type> source, float max, float factor, Places places,
                                          ExactShared& shared) {
  // Ids of the same logit are in front in groups before a place's own: there the limit is the logit, else the next float.
  float above[kMaxUnknown];
  float least = -kMinusInf;
#pragma unroll
  for (uint32_t p = 0; p < kMaxUnknown; ++p) {
    places.logits[p] += 0.0f;
    above[p] = places.logits[p] < -kMinusInf ? from_ordered(ordered(places.logits[p]) + 1) : places.logits[p];
    least = fminf(least, places.logits[p]);
  }
  const float offset = -(max * factor);
  Masses sum{};
  for_each_raw(source, shared, [&](const Raw<Type>& raw, int32_t group, float top) {
    float logits[kGroup];
    raw.unpack(logits);
    float terms[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) terms[j] = exp2_approx(__fmaf_rn(logits[j], factor, offset));
    sum.total += ((terms[0] + terms[1]) + (terms[2] + terms[3])) + ((terms[4] + terms[5]) + (terms[6] + terms[7]));
    if (!(top >= least)) return;
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) {
      const auto own_group = static_cast<int32_t>(places.ids[p] / kGroup);
      const float limit = group < own_group ? places.logits[p] : above[p];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sum.before[p] += logits[j] >= limit ? terms[j] : 0.0f;
      if (group == own_group) {
#pragma unroll 1
        for (uint32_t j = 0; j < places.ids[p] % kGroup; ++j) {
          sum.before[p] += logit_at(logits, j) == places.logits[p] ? logit_at(terms, j) : 0.0f;
        }
      }
    }
  });
  return block_reduce(sum, shared.reduce.as<Masses>(), AddMasses{});
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

// The contenders of a row whose fronts are to be summed.
__device__ inline Places unknown_contenders(const RowPick& pick) {
  Places places;
  uint32_t n = 0;
#pragma unroll
  for (uint32_t i = 0; i < kMaxContenders; ++i) {
    if (i >= pick.n_contenders || pick.before[i] != kUnknownMass) continue;
#pragma unroll
    for (uint32_t p = 0; p < kMaxUnknown; ++p) {
      if (p == n) places.logits[p] = pick.logits[i], places.ids[p] = pick.contenders[i];
    }
    ++n;
  }
  return places;
}

// The winner of a row with top-p, from its contenders and masses. Gives up after a few tries: known is then false.
constexpr uint32_t kMaxDraws = 4;
template <class Type>
__device__ uint32_t winner_of_contenders(const ExactRow<Type>& exact, const RowContext& row, const RowPick& pick,
                                         uint32_t n_contenders, Masses masses, float min_distance, bool& known) {
  // A thread adds a group's terms by three levels, the block its threads' sums by nine, and the parts are five more.
  const auto n_ids = static_cast<float>(row.vocab);
  const float error = mass_error(row.max * row.state.log2e_over_t, n_ids / (kExactThreads * kGroup) + 32.0f, n_ids);
  known = false;
  float logit = 0.0f;
  uint32_t token = 0;
  uint64_t last_key = 0;
  uint32_t n_unknown = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < n_contenders + kMaxDraws; ++i) {
    float front = 0.0f;
    MassLimits before{kUnknownMass, kUnknownMass};
    if (i < n_contenders) {
      logit = pick.logits[i];
      token = pick.contenders[i];
      before.low = before.high = pick.before[i];
      if (before.low == kUnknownMass) {
#pragma unroll
        for (uint32_t p = 0; p < kMaxUnknown; ++p) front = p == n_unknown ? masses.before[p] : front;
        ++n_unknown;
      }
    } else {
      const Scored next = exact.draw(last_key, min_distance);
      logit = next.logit;
      token = next.id;
      masses = exact.masses(logit, token);
      front = masses.before[0];
    }
    MassLimits limits{};
    const bool usable = masses.total < 1e9f && error < 0.01f;
    if (usable) {
      limits = limits_of(masses.total, error, row.state.top_p_fixed);
      if (before.low == kUnknownMass) before = limits_of(front, error, kTopPOff);
    }
    if (!usable || (before.high > limits.low && before.low < limits.high)) {
      // Too near the limit.
      exact.exact_masses(logit, token, limits.low, before.low);
      limits.low = limits.high = cut_limit(row.state.top_p_fixed, limits.low);
      before.high = before.low;
    }
    known = before.high <= limits.low && before.low < limits.high;
    if (known) break;
    last_key = order_key(logit, token) + 1;
  }
  return token;
}

// n_parts blocks share a row with contenders; partials: room for a part each.
template <class Type>
__device__ void exact_row(const Call& call, int64_t row_index, int32_t part, int32_t n_parts, Masses* partials,
                          RowPick& pick, const Outputs& out, ExactShared& shared) {
  const RowSource<Type> slice(call, row_index, part, n_parts);
  start(slice, shared);
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RowState& state = row.state;
  row.max = pick.max;
  const float min_distance = (state.needs & kNeedMinP) != 0 ? state.min_p_threshold : kMinusInf;
  const bool with_top_k = (state.needs & kNeedTopK) != 0;
  const bool with_top_p = (state.needs & kNeedTopP) != 0;
  const bool contended = pick.open == static_cast<uint32_t>(Open::kContenders);
  Masses masses{};
  if (contended) {
    masses = sum_masses(slice, row.max, state.log2e_over_t, unknown_contenders(pick), shared);
    if (n_parts > 1) {
      if (threadIdx.x == 0) partials[part] = masses;
      if (!last_to_arrive(&pick.arrivals, static_cast<uint32_t>(n_parts), &shared.flag)) return;
      const auto lane = static_cast<int32_t>(threadIdx.x % 32);
      masses = warp_reduce(lane < n_parts ? partials[lane] : Masses{}, AddMasses{});
    }
  } else {
    wait_for_copies<0>();
    if (part != 0) return;
  }
  const ExactRow<Type> exact(call, row_index, row, shared);
  uint64_t last_key = 0;
  uint32_t token = 0;
  bool known = false;
  if (with_top_p && !with_top_k && call.exact_cut == 0) {
    token = winner_of_contenders(exact, row, pick, contended ? pick.n_contenders : 0, masses, min_distance, known);
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

// partials: room for the masses of each block.
template <class Type>
__global__ void __launch_bounds__(kExactThreads, 2)
    exact_kernel(const Call call, RowPick* picks, float* partials, const Outputs out) {
  wait_for_predecessor();
  release_successor();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  ExactShared& shared = *reinterpret_cast<ExactShared*>(shared_bytes);
  const auto n_open = static_cast<int32_t>(call.open_rows->n);
  if (n_open == 0) return;
  const auto n_blocks = static_cast<int32_t>(gridDim.x);
  const int32_t n_parts = min(max(n_blocks / n_open, 1), kMaxParts);
  for (int32_t i = static_cast<int32_t>(blockIdx.x); i < n_open * n_parts; i += n_blocks) {
    const int64_t row_index = call.open_rows->rows[i / n_parts];
    exact_row<Type>(call, row_index, i % n_parts, n_parts, reinterpret_cast<Masses*>(partials) + i / n_parts * n_parts,
                    picks[row_index], out, shared);
  }
  if (last_to_arrive(&call.open_rows->arrivals, gridDim.x, &shared.flag) && threadIdx.x == 0) call.open_rows->n = 0;
}

}  // namespace ts::cuda
