// SPDX-License-Identifier: Apache-2.0
// The exact kernel: one block for each row that the stream left open, over the whole row, as the CPU backend does it.
//
// Method: a cut takes two passes over the row: one adds measures into 2048 bins of width 1/32 below the maximum, which
// finds the bin that the cut falls into; one lists that bin's candidates, on which block_cut goes on. If they are too
// many (near-flat rows), block_cut runs over the row. One more pass draws. Rows that are not open cost their block's
// launch. Bytes: 3 to 5 reads of an open row, mostly from L2.
#pragma once

#include "cuda/finish.cuh"
#include "cuda/list.cuh"
#include "cuda/row_context.cuh"
#include "cuda/row_source.cuh"

namespace ts::cuda {

constexpr int32_t kExactThreads = 1024;

struct ExactShared {
  ListShared list;
  CutShared cut;
  ReduceShared reduce;
};

template <class Type>
class ExactRow {
 public:
  __device__ ExactRow(const Call& call, int64_t row_index, const RowContext& row, ExactShared& shared)
      : source_(call, row_index, 0, 1), row_(row), shared_(shared) {}

  // visit(logit, id) for each candidate that is not after last_key.
  template <class Visit>
  __device__ void for_each(uint64_t last_key, const Visit& visit) const {
    for (int32_t group = threadIdx.x; group < source_.end_group; group += kExactThreads) {
      float logits[kGroup];
      uint32_t flags = 0;
      source_.clean(source_.load(group), group, logits, flags);
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const uint32_t id = static_cast<uint32_t>(group * kGroup + j);
        if (logits[j] > kMinusInf && order_key(logits[j], id) >= last_key) visit(logits[j], id);
      }
    }
  }

  // The cut among what is not after last_key. limit_of(total): the limit, given the sum of all measures.
  template <class Measure, class LimitOf>
  __device__ Cut cut(uint64_t last_key, const Measure& measure, const LimitOf& limit_of) const {
    clear_bins(shared_.cut);
    for_each(last_key, [&](float logit, uint32_t) {
      const uint64_t m = measure(logit);
      if (m != 0) add_to_bin(&shared_.cut.bins[bin_of(logit)], m);
    });
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

 private:
  // Why monotone: the difference and its multiple by a power of two are rounded monotonically.
  __device__ uint32_t bin_of(float logit) const {
    return static_cast<uint32_t>(fminf((row_.max - logit) * 32.0f, static_cast<float>(kBins - 1)));
  }

  RowSource<Type> source_;
  const RowContext& row_;
  ExactShared& shared_;
};

template <class Type>
__global__ void __launch_bounds__(kExactThreads) exact_kernel(const Call call, RowPick* picks, const Outputs out) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  ExactShared& shared = *reinterpret_cast<ExactShared*>(shared_bytes);
  const int64_t row_index = blockIdx.x;
  RowPick& pick = picks[row_index];
  if (pick.open == 0) return;
  bool slot_in_pool;
  RowContext row = row_context(call, row_index, slot_in_pool);
  const RequestState& state = row.state;
  row.max = pick.max;
  const ExactRow<Type> exact(call, row_index, row, shared);
  uint64_t last_key = 0;
  if ((state.needs & kNeedTopK) != 0) {
    const Cut cut = exact.cut(
        0, [](float) { return uint64_t{1}; }, [&](uint64_t) { return static_cast<uint64_t>(state.top_k); });
    if (cut.reached) last_key = cut.key;
  }
  if ((state.needs & kNeedTopP) != 0) {
    last_key = exact
                   .cut(
                       last_key, [&](float logit) { return weight(logit - row.max, state.log2e_over_t); },
                       [&](uint64_t total) {
                         const uint64_t limit = mass_limit(state.top_p_fixed, total);
                         return limit > 0 ? limit : uint64_t{1};
                       })
                   .key;
  }
  const float min_distance = (state.needs & kNeedMinP) != 0 ? state.min_p_threshold : kMinusInf;
  Scored best = no_score();
  WinBound bound;
  exact.for_each(last_key, [&](float logit, uint32_t id) {
    if (!(logit - row.max >= min_distance)) return;
    const uint32_t coarse = coarse_bits(coarse_block(row.key, id / kCoarsePerBlock), id);
    if (!bound.may_win(logit, coarse)) return;
    const Scored scored = score_of(logit, id, coarse, state.inv_temperature, row.key);
    if (better(scored, best).id == best.id) return;
    best = scored;
    bound = WinBound(best, state.inv_temperature, state.log2e_over_t);
  });
  best = block_reduce(best, shared.reduce.as<Scored>(), Better{});
  if (threadIdx.x == 0) {
    pick.last_key = last_key;
    pick.token = best.id;
    pick.open = 0;
    out.tokens[row_index] = static_cast<int32_t>(best.id);
  }
}

}  // namespace ts::cuda
