// SPDX-License-Identifier: Apache-2.0
// From the groups that may win to the winner, or to the kTopScores best in the order of their scores.
#pragma once

#include "cuda/cold.cuh"
#include "cuda/stream.cuh"

namespace ts::cuda {

// A bound of the block's best score from below.
__device__ inline float best_bound() {
  const int32_t(&bounds)[kTopScores] = sample_shared().bounds;
  return from_ordered(max(max(bounds[0], bounds[1]), max(bounds[2], bounds[3])));
}

// Calls visit(logit, id, coarse) for each id that may reach the bound. All threads.
template <class Type, class Visit>
__device__ void for_each_candidate(const RowSource<Type>& source, const NoiseKey& key, float factor, float bound,
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
    const PhiloxBlock block = cold_noise_block(key, static_cast<uint32_t>(group), 0);
    uint32_t may = 0;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const bool may_id = may_win(logits[j], coarse_bits(block, j), factor, bound);
      may |= logits[j] > kMinusInf && may_id ? 1u << j : 0u;
    }
#pragma unroll 1
    while (may != 0) {
      const uint32_t j = static_cast<uint32_t>(__ffs(static_cast<int>(may))) - 1;
      may &= may - 1;
      visit(logit_at(logits, j), static_cast<uint32_t>(group) * kGroup + j, coarse_at(block, j));
    }
  }
}

// The block's winner. All threads, after stream() with noise.
template <class Type>
__device__ __noinline__ Scored find_winner(RowSource<Type> source, NoiseKey key, double inv_temperature, float factor) {
  Scored best = no_score();
  for_each_candidate(source, key, factor, best_bound(), [&](float logit, uint32_t id, uint32_t coarse) {
    best = better(best, score_of(logit, id, coarse, inv_temperature, key));
  });
  return block_reduce(best, sample_shared().reduce.as<Scored>(), Better{});
}

// The best of shared.scores, n of them, into shared.best_scores in the order of their scores. All threads, some for each
// score; a barrier must be in front and follow.
__device__ inline void rank_scores(uint32_t n) {
  SampleShared& shared = sample_shared();
  constexpr uint32_t kShare = kThreads / kMaxScores;
  const uint32_t i = threadIdx.x / kShare;
  const Scored mine = i < n ? shared.scores[i] : no_score();
  uint32_t n_better = 0;
#pragma unroll 2
  for (uint32_t other = threadIdx.x % kShare; other < n; other += kShare) {
    const Scored s = shared.scores[other];
    n_better += s.score > mine.score || (s.score == mine.score && s.id < mine.id) ? 1u : 0u;
  }
#pragma unroll
  for (uint32_t lane = 1; lane < kShare; lane *= 2) n_better += __shfl_xor_sync(0xFFFFFFFFu, n_better, lane);
  if (mine.id != kNoId && n_better < kTopScores) shared.best_scores[n_better] = mine;
}

// The block's best scores, in shared.best_scores: of `all` kTopScores of them or as many as there are, else, and if there is no
// room for what may be among them, the best one. Returns how many there may be. All threads, after stream() with noise; ends
// with a barrier.
template <class Type>
__device__ __noinline__ uint32_t find_best_scores(RowSource<Type> source, NoiseKey key, double inv_temperature,
                                                  float factor, bool all) {
  SampleShared& shared = sample_shared();
  if (shared.n_winners <= kMaxWinners) {
    for_each_candidate(source, key, factor, all ? from_ordered(least_bound()) : best_bound(),
                       [&](float logit, uint32_t id, uint32_t coarse) {
                         const uint32_t at = atomicAdd(&shared.n_scores, 1u);
                         if (at < kMaxScores) shared.scores[at] = score_of(logit, id, coarse, inv_temperature, key);
                       });
    __syncthreads();
  }
  const bool gathered = shared.n_winners <= kMaxWinners && shared.n_scores <= kMaxScores;
  const Scored best = gathered ? no_score() : find_winner(source, key, inv_temperature, factor);
  if (threadIdx.x < kTopScores) shared.best_scores[threadIdx.x] = threadIdx.x == 0 ? best : no_score();
  __syncthreads();
  rank_scores(gathered ? shared.n_scores : 0);
  __syncthreads();
  return all && gathered ? kTopScores : 1;
}

}  // namespace ts::cuda
