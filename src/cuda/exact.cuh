// SPDX-License-Identifier: Apache-2.0
// The exact kernel: the rows that the stream left open, by a cluster of blocks, each over its slice, or by one block each
// when they are many.
//
// Method: if the unfiltered winner is known, one pass sums the fp32 mass in front of it; mostly that shows it kept, and
// if not, the best of what is in front of it is next. Where that does not decide, a cut: one pass adds measures into 2048
// bins of width 1/32 below the maximum, which finds the bin that the cut falls into; one lists that bin's candidates, on
// which block_cut goes on (if they are too many, over the row); one more draws. Bytes: 1 to 5 reads of an open row, mostly
// from L2. Open rows come from a list: none, no work.
// Measured: with the sampling kernel in front, by operation, in benchmarks/RESULTS.md.
#pragma once

#include "cuda/list.cuh"
#include "cuda/mass.cuh"
#include "cuda/programmatic.cuh"
#include "cuda/row_context.cuh"
#include "cuda/row_source.cuh"
#include "cuda/team.cuh"

namespace ts::cuda {

constexpr int32_t kExactThreads = 512;

struct ExactShared {
  ListShared list;  // the first block's is the cluster's
  CutShared cut;
  TeamShared team;
  int32_t bound;  // ordered(): a lower bound of the best score
  Cut found;
  uint32_t flag;
};

// Whether a cut and min-p leave an id.
__device__ inline bool is_left(float logit, uint32_t id, uint64_t last_key, float min_distance, float max) {
  return logit > kMinusInf && order_key(logit, id) >= last_key && logit - max >= min_distance;
}

// The best of a group's ids that may win and that a cut and min-p leave. Raises the block's bound.
template <class Type>
__device__ __noinline__ Scored best_of_group(Raw<Type> raw, int32_t group, PhiloxBlock block, uint64_t last_key,
                                             float min_distance, const RowContext& row, ExactShared& shared) {
  const float factor = row.state.log2e_over_t;
  float bound = from_ordered(*const_cast<volatile int32_t*>(&shared.bound));
  float logits[kGroup];
  raw.clean(logits);
  uint32_t may = 0;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    const uint32_t coarse = coarse_bits(block, j);
    if (is_left(logits[j], static_cast<uint32_t>(group * kGroup + j), last_key, min_distance, row.max) &&
        may_win(logits[j], coarse, factor, bound)) {
      may |= 1u << j;
      bound = fmaxf(bound, lower_score(logits[j], coarse, factor));
    }
  }
  if (may != 0) atomicMax(&shared.bound, ordered(bound));
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

template <class Type>
class ExactRow {
 public:
  __device__ ExactRow(const Call& call, int64_t row_index, const RowContext& row, const Team& team, ExactShared& shared)
      : source_(call, row_index, static_cast<int32_t>(team.rank()), static_cast<int32_t>(team.size())),
        row_(row),
        team_(team),
        shared_(shared) {}

  __device__ float logit(uint32_t id) const {
    float logits[kGroup];
    source_.load(static_cast<int32_t>(id / kGroup)).clean(logits);
    return logit_at(logits, id % kGroup);
  }

  // visit(logits, group) for each group of the block's slice with a logit of at least `least`.
  template <class Visit>
  __device__ void for_each_group(float least, const Visit& visit) const {
    // Groups under way: their loads must not wait for one another.
    constexpr int kAhead = 2;
    Raw<Type> raws[kAhead];
    const int32_t first = source_.first_group + static_cast<int32_t>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (first + i * kExactThreads < source_.end_group) raws[i] = source_.load(first + i * kExactThreads);
    }
#pragma unroll 1
    for (int32_t begin = first; begin < source_.end_group; begin += kAhead * kExactThreads) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int32_t group = begin + i * kExactThreads;
        if (group >= source_.end_group) break;
        const Raw<Type> raw = raws[i];
        const int32_t next = group + kAhead * kExactThreads;
        if (next < source_.end_group) raws[i] = source_.load(next);
        const float top = raw.stored_top();
        if (top < least) continue;
        float logits[kGroup];
        raw.unpack(logits);
        if (!(top <= kFloatMax)) raw.clean(logits);
        visit(logits, group);
      }
    }
  }

  // visit(logit, id) for each candidate that is not after last_key.
  template <class Visit>
  __device__ void for_each(uint64_t last_key, const Visit& visit) const {
    for_each_group(last_key != 0 ? logit_of(last_key) : kMinusInf, [&](const float(&logits)[kGroup], int32_t group) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const uint32_t id = static_cast<uint32_t>(group * kGroup + j);
        if (logits[j] > kMinusInf && order_key(logits[j], id) >= last_key) visit(logits[j], id);
      }
    });
  }

  // The approximate mass in front of a candidate, in units of the largest candidate's weight.
  __device__ float mass_before(float logit, uint32_t id) const {
    const float factor = row_.state.log2e_over_t;
    float before = 0.0f;
    for_each_group(logit, [&](const float(&logits)[kGroup], int32_t group) {
      bool tied = false;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        if (logits[j] > logit) before += exp2_approx((logits[j] - row_.max) * factor);
        tied |= logits[j] == logit;
      }
      if (tied) {
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          const bool in_front = logits[j] == logit && static_cast<uint32_t>(group * kGroup + j) < id;
          before += in_front ? exp2_approx((logit - row_.max) * factor) : 0.0f;
        }
      }
    });
    return team_reduce(before, team_, shared_.team, Add{});
  }

  // The cut among what is not after last_key. limit_of(total): the limit, given the sum of all measures.
  template <class Measure, class LimitOf>
  __device__ Cut cut(uint64_t last_key, const Measure& measure, const LimitOf& limit_of) const {
    clear_bins(shared_.cut);
    BinAdder adder(shared_.cut.bins);
    for_each(last_key, [&](float logit, uint32_t) { adder.add(bin_of(logit), measure(logit)); });
    adder.flush();
    merge_bins();
    unsigned long long total = 0;
    for (int32_t i = threadIdx.x; i < kBins; i += kExactThreads) total += shared_.cut.bins[i];
    total = block_reduce(total, shared_.team.reduce.as<unsigned long long>(), Add{});
    const uint64_t limit = limit_of(total);
    find_bin(shared_.cut, 0, limit);
    const uint32_t bin = shared_.cut.bin;
    if (bin == kNoBin) return {0, false};
    const uint64_t before = shared_.cut.before;
    if (threadIdx.x == 0) shared_.list.count = 0;
    team_.sync();
    ListShared& list = *team_.at(&shared_.list, 0);
    for_each(last_key, [&](float logit, uint32_t id) {
      if (bin_of(logit) == bin) push(list, order_key(logit, id));
    });
    team_.sync();
    const uint32_t n = list.count;
    if (n <= kListCapacity) {
      if (team_.rank() == 0) {
        const auto listed = [&](auto visit) {
          for (uint32_t i = threadIdx.x; i < n; i += kExactThreads) {
            visit(shared_.list.entries[i], measure(logit_of(shared_.list.entries[i])));
          }
        };
        const Cut found = block_cut(listed, limit - before, shared_.cut, [] {});
        if (threadIdx.x == 0) shared_.found = found;
      }
      team_.sync();
      const Cut found = team_.at(&shared_, 0)->found;
      team_.sync();
      return found;
    }
    const auto all = [&](auto visit) {
      for_each(last_key, [&](float logit, uint32_t id) {
        if (bin_of(logit) == bin) visit(order_key(logit, id), measure(logit));
      });
    };
    return block_cut(all, limit - before, shared_.cut, [&] { merge_bins(); });
  }

  // The best of what is not after last_key and min-p keeps.
  __device__ Scored draw(uint64_t last_key, float min_distance) const {
    const float factor = row_.state.log2e_over_t;
    const float cut_logit = last_key != 0 ? logit_of(last_key) : kMinusInf;
    // A bound from each thread's first group.
    if (threadIdx.x == 0) shared_.bound = ordered(kNoBound);
    __syncthreads();
    const int32_t first = source_.first_group + static_cast<int32_t>(threadIdx.x);
    float lower = kNoBound;
    if (first < source_.end_group) {
      float logits[kGroup];
      source_.load(first).clean(logits);
      const PhiloxBlock block = cold_noise_block(row_.key, static_cast<uint32_t>(first), 0);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        if (is_left(logits[j], static_cast<uint32_t>(first * kGroup + j), last_key, min_distance, row_.max)) {
          lower = fmaxf(lower, lower_score(logits[j], coarse_bits(block, j), factor));
        }
      }
    }
    lower = team_reduce(lower, team_, shared_.team, Max{});
    if (threadIdx.x == 0) shared_.bound = ordered(lower);
    __syncthreads();
    // The winner. The bound rises with what is found.
    Scored best = no_score();
    for_each_group(cut_logit, [&](const float(&logits)[kGroup], int32_t group) {
      float top = logits[0];
#pragma unroll
      for (int j = 1; j < kGroup; ++j) top = fmaxf(top, logits[j]);
      const PhiloxBlock block = coarse_block(row_.key, static_cast<uint32_t>(group));
      const float bound = from_ordered(*const_cast<volatile int32_t*>(&shared_.bound));
      if (!(top - row_.max >= min_distance) || !may_win(top, least_coarse(block), factor, bound)) return;
      best =
          better(best, best_of_group<Type>(source_.load(group), group, block, last_key, min_distance, row_, shared_));
    });
    return team_reduce(best, team_, shared_.team, Better{});
  }

 private:
  // Why monotone: the difference and its multiple by a power of two are rounded monotonically.
  __device__ uint32_t bin_of(float logit) const {
    return static_cast<uint32_t>(fminf((row_.max - logit) * 32.0f, static_cast<float>(kBins - 1)));
  }

  // Adds up the blocks' bins; every block then has all sums. Each block adds its share of the bins, and copies the
  // other shares from their blocks.
  __device__ void merge_bins() const {
    const uint32_t n_blocks = team_.size();
    if (n_blocks == 1) {
      __syncthreads();
      return;
    }
    const int32_t share = kBins / static_cast<int32_t>(n_blocks);
    const int32_t first = share * static_cast<int32_t>(team_.rank());
    team_.sync();
    for (int32_t i = first + static_cast<int32_t>(threadIdx.x); i < first + share; i += kExactThreads) {
      unsigned long long sum = 0;
      for (uint32_t rank = 0; rank < n_blocks; ++rank) sum += team_.at(&shared_, rank)->cut.bins[i];
      shared_.cut.bins[i] = sum;
    }
    team_.sync();
    for (int32_t i = threadIdx.x; i < kBins; i += kExactThreads) {
      const uint32_t owner = static_cast<uint32_t>(i / share);
      if (owner != team_.rank()) shared_.cut.bins[i] = team_.at(&shared_, owner)->cut.bins[i];
    }
    team_.sync();
  }

  RowSource<Type> source_;
  const RowContext& row_;
  const Team& team_;
  ExactShared& shared_;
};

// The winner of a row with top-p, from the unfiltered winner: what is kept lies before a winner that is not. Gives up after
// a few, and where the mass is too near the limit: known is then false.
constexpr int32_t kWinners = 4;
template <class Type>
__device__ uint32_t winner_in_front(const ExactRow<Type>& exact, const RowContext& row, const RowPick& pick,
                                    const Team& team, bool& known) {
  const MassLimits limits = limits_of({pick.mass, pick.mass_error}, row.state.top_p_fixed);
  const float error = mass_error(static_cast<float>(row.vocab) / (kExactThreads * team.size()) + 64.0f);
  uint32_t token = pick.token;
  float logit = exact.logit(token);
  known = false;
#pragma unroll 1
  for (int32_t i = 0; i < kWinners; ++i) {
    const MassLimits before = limits_of({exact.mass_before(logit, token), error}, kTopPOff);
    known = before.high == 2 || before.high <= limits.low;  // nothing, or surely too little, in front
    if (known || before.low < limits.high) break;
    const Scored next = exact.draw(order_key(logit, token) + 1, kMinusInf);
    token = next.id;
    logit = next.logit;
  }
  if (known && (row.state.needs & kNeedMinP) != 0) known = logit - row.max >= row.state.min_p_threshold;
  return token;
}

template <class Type>
__device__ void exact_row(const Call& call, int64_t row_index, RowPick& pick, const Outputs& out, const Team& team,
                          ExactShared& shared) {
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RowState& state = row.state;
  row.max = pick.max;
  const ExactRow<Type> exact(call, row_index, row, team, shared);
  uint64_t last_key = 0;
  uint32_t token = 0;
  bool known = false;
  if (pick.open == static_cast<uint32_t>(Open::kWinner)) token = winner_in_front(exact, row, pick, team, known);
  if (!known) {
    if ((state.needs & kNeedTopK) != 0) {
      const Cut cut = exact.cut(
          0, [](float) { return uint64_t{1}; }, [&](uint64_t) { return static_cast<uint64_t>(state.top_k); });
      if (cut.reached) last_key = cut.key;
    }
    if ((state.needs & kNeedTopP) != 0) {
      last_key = exact
                     .cut(
                         last_key, [&](float logit) { return weight(logit - row.max, state.log2e_over_t); },
                         [&](uint64_t total) { return cut_limit(state.top_p_fixed, total); })
                     .key;
    }
    token = exact.draw(last_key, (state.needs & kNeedMinP) != 0 ? state.min_p_threshold : kMinusInf).id;
  }
  if (team.rank() == 0 && threadIdx.x == 0) {
    pick.last_key = last_key;
    pick.token = token;
    pick.open = 0;
    out.tokens[row_index] = static_cast<int32_t>(token);
  }
}

template <class Type>
__global__ void __launch_bounds__(kExactThreads, 2) exact_kernel(const Call call, RowPick* picks, const Outputs out) {
  wait_for_predecessor();
  release_successor();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  ExactShared& shared = *reinterpret_cast<ExactShared*>(shared_bytes);
  const uint32_t n_open = call.open_rows->n;
  if (n_open == 0) return;
  // Why alone when there are many: nothing waits for another block then.
  const Team team(n_open > gridDim.x / 2);
  const uint32_t n_teams = gridDim.x / team.size();
  for (uint32_t i = blockIdx.x / team.size(); i < n_open; i += n_teams) {
    const int64_t row_index = call.open_rows->rows[i];
    exact_row<Type>(call, row_index, picks[row_index], out, team, shared);
  }
  if (last_to_arrive(&call.open_rows->arrivals, gridDim.x, &shared.flag) && threadIdx.x == 0) call.open_rows->n = 0;
}

}  // namespace ts::cuda
