// SPDX-License-Identifier: Apache-2.0
// From the groups that may win to the winner, or to the kTopScores best in the order of their scores.
//
// Few candidates are left after the coarse noise: they are gathered in shared memory and scored side by side by the first
// warp. One that is left alone has won without a score: most rows are decided so.
#pragma once

#include "cuda/cold.cuh"
#include "cuda/draw.cuh"
#include "cuda/sample_shared.cuh"

namespace ts::cuda {

__device__ inline bool is_scored(const Scored& s) { return s.score == s.score; }

// A candidate that is not scored yet: its coarse half stands in the score's place.
__device__ inline Scored not_scored(float logit, uint32_t id, uint32_t coarse) {
  return {__longlong_as_double(static_cast<long long>(uint64_t{0x7FF8000000000000} | coarse)), id, logit};
}
__device__ inline uint32_t coarse_of(const Scored& s) {
  return static_cast<uint32_t>(__double_as_longlong(s.score)) & 0xFFFFu;
}

__device__ inline Scored scored(const Scored& s, const RowContext& row) {
  return is_scored(s) ? s : score_of(s.logit, s.id, coarse_of(s), row.state.inv_temperature, row.key);
}

// A bound of the block's best score from below, and of its kTopScores-th best one.
__device__ inline float best_bound() {
  const int32_t(&bounds)[4] = sample_shared().bounds;
  return from_ordered(max(max(bounds[0], bounds[1]), max(bounds[2], bounds[3])));
}
__device__ inline float top_bound() {
  const int32_t(&bounds)[4] = sample_shared().bounds;
  return from_ordered(min(min(bounds[0], bounds[1]), min(bounds[2], bounds[3])));
}

// Calls visit(logit, id, coarse) for each id that may reach the bound. All threads, after stream() with noise.
template <class Type, class Visit>
__device__ void for_each_candidate(const RowSource<Type>& source, const RowContext& row, float bound,
                                   const Visit& visit) {
  const SampleShared& shared = sample_shared();
  const uint32_t n = shared.n_winners;
  const bool listed = n <= kMaxWinners;  // if not, all groups of the slice
  const int32_t n_groups = listed ? static_cast<int32_t>(n) : source.end_group - source.first_group;
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < n_groups; i += kThreads) {
    const int32_t group = listed ? static_cast<int32_t>(shared.winners[i]) : source.first_group + i;
    float logits[kGroup];
    source.load(group).clean(logits);
    const PhiloxBlock block = cold_noise_block(row.key, static_cast<uint32_t>(group), 0);
    uint32_t may = 0;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      may |= logits[j] > kMinusInf && may_win(logits[j], coarse_bits(block, j), row.state.log2e_over_t, bound) ? 1u << j
                                                                                                               : 0u;
    }
#pragma unroll 1
    while (may != 0) {
      const uint32_t j = static_cast<uint32_t>(__ffs(static_cast<int>(may))) - 1;
      may &= may - 1;
      const uint32_t id = static_cast<uint32_t>(group) * kGroup + j;
      visit(logit_at(logits, j), id, coarse_bits(block, id));
    }
  }
}

// The best of all that may win, where they are too many to be gathered.
template <class Type>
__device__ __noinline__ Scored best_of_many(RowSource<Type> source, const RowContext& row) {
  Scored best = no_score();
  for_each_candidate(source, row, best_bound(), [&](float logit, uint32_t id, uint32_t coarse) {
    best = better(best, score_of(logit, id, coarse, row.state.inv_temperature, row.key));
  });
  return block_reduce(best, sample_shared().reduce.as<Scored>(), Better{});
}

// Gathers what may reach the bound. Whether it is no more than `most`. All threads; ends with a barrier.
template <class Type>
__device__ __noinline__ bool gather(RowSource<Type> source, const RowContext& row, float bound, uint32_t most) {
  SampleShared& shared = sample_shared();
  for_each_candidate(source, row, bound, [&](float logit, uint32_t id, uint32_t coarse) {
    const uint32_t at = atomicAdd(&shared.n_scores, 1u);
    if (at < kMaxScores) shared.scores[at] = not_scored(logit, id, coarse);
  });
  __syncthreads();
  return shared.n_scores <= most;
}

// The best of one a lane, scored or not. All lanes of a warp.
static __device__ __noinline__ Scored best_of_lanes(Scored mine, const RowContext& row) {
  const float factor = row.state.log2e_over_t;
  const bool is_any = mine.id != kNoId;
  float lower = kNoBound;
  if (is_any) {
    lower = is_scored(mine) ? below(static_cast<float>(mine.score * 1.4426950408889634))
                            : lower_score(mine.logit, coarse_of(mine), factor);
  }
  const float bound = warp_reduce(lower, Max{});
  const bool may = is_any && (is_scored(mine) || may_win(mine.logit, coarse_of(mine), factor, bound));
  const uint32_t votes = __ballot_sync(0xFFFFFFFFu, may);
  if (__popc(votes) > 1) return warp_reduce(may ? scored(mine, row) : no_score(), Better{});
  return shuffle(may ? mine : no_score(), max(__ffs(static_cast<int>(votes)) - 1, 0));
}

// The block's winner, known to its first warp. All threads.
template <class Type>
__device__ Scored find_winner(const RowSource<Type>& source, const RowContext& row) {
  const SampleShared& shared = sample_shared();
  if (!gather(source, row, best_bound(), 32)) return best_of_many(source, row);
  if (threadIdx.x >= 32) return no_score();
  return best_of_lanes(threadIdx.x < shared.n_scores ? shared.scores[threadIdx.x] : no_score(), row);
}

// The best of shared.scores, n of them, into shared.best_scores in the order of their scores, padded with no_score(). The
// first two warps, one score a thread; a barrier must be in front and follow.
__device__ inline void rank_scores(uint32_t n) {
  SampleShared& shared = sample_shared();
  const uint32_t i = threadIdx.x;
  if (i >= kMaxScores) return;
  const Scored mine = i < n ? shared.scores[i] : no_score();
  uint32_t n_better = 0;
#pragma unroll 4
  for (uint32_t other = 0; other < n; ++other) {
    const Scored s = shared.scores[other];
    n_better += s.score > mine.score || (s.score == mine.score && s.id < mine.id) ? 1u : 0u;
  }
  if (mine.id != kNoId && n_better < kTopScores) shared.best_scores[n_better] = mine;
}

// The block's best scores, in shared.best_scores: kTopScores of them or as many as there are, or if there is no room to
// gather them, the best one. Returns how many there may be. All threads; ends with a barrier.
template <class Type>
__device__ uint32_t find_best_scores(const RowSource<Type>& source, const RowContext& row) {
  SampleShared& shared = sample_shared();
  const bool gathered = gather(source, row, top_bound(), kMaxScores);
  const Scored best = gathered ? no_score() : best_of_many(source, row);
  const uint32_t n = gathered ? shared.n_scores : 0;
  if (threadIdx.x < kTopScores) shared.best_scores[threadIdx.x] = threadIdx.x == 0 ? best : no_score();
  if (threadIdx.x < n) shared.scores[threadIdx.x] = scored(shared.scores[threadIdx.x], row);
  __syncthreads();
  rank_scores(n);
  __syncthreads();
  return gathered ? kTopScores : 1;
}

}  // namespace ts::cuda
