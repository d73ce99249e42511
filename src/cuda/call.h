// SPDX-License-Identifier: Apache-2.0
// What the kernels are told about a call, by value, and what they leave for each other in device memory.
#pragma once

#include <cstdint>

#include "core/request_state.h"
#include "tssample.h"

namespace ts::cuda {

// The rows that the sampling kernel leaves open, in any order. Empty between calls.
struct OpenRows {
  uint32_t n;
  uint32_t arrivals;  // blocks that are done with them
  uint32_t rows[1];   // as many as a call may have
};

// The rows of a call. Pointers are the caller's device arrays.
struct Call {
  const void* logits;
  int64_t row_stride;
  int32_t vocab;
  int32_t n_valid;
  const void* slots;
  const void* positions;  // nullptr: 0
  int32_t slots_are_64;
  int32_t positions_are_64;
  const int32_t* allow_mask;  // nullptr: all allowed
  int64_t mask_stride;
  int32_t mask_words;
  int32_t rows_per_request;
  const RequestState* states;
  int32_t n_slots;
  uint32_t features;  // kNeed* bits that the route looks at
  uint32_t invalid_token;
  int32_t n_slices;   // blocks that share a row
  int32_t exact_cut;  // the cut itself is wanted, not only the token
  OpenRows* open_rows;
};

constexpr int32_t kMaxContenders = 4;
constexpr uint32_t kMaxUnknown = 3;  // of them with kUnknownMass
constexpr uint64_t kUnknownMass = ~uint64_t{0};

// What is known of a row after the stream, and what is left to do.
struct RowPick {
  uint64_t last_key;  // the cut, as Kept of the CPU backend
  float min_distance;
  float max;
  uint32_t token;
  uint32_t flags;       // kRow* bits
  uint32_t open;        // an Open: whether the exact kernel must decide
  uint32_t arrivals;    // blocks that are done with the row; 0 between kernels
  uint32_t ended_rows;  // of verify: rows of the request that have their token, if this is its first; 0 between calls
  // Where top-p is left open: winners of ever smaller sets, each the best of what is in front of the one before.
  uint32_t n_contenders;
  uint32_t contenders[kMaxContenders];
  float logits[kMaxContenders];     // theirs
  uint64_t before[kMaxContenders];  // the weight in front of them, kUnknownMass: not known
};

// A candidate and its score; better() of block.cuh is the contract's order of scores.
struct Scored {
  double score;
  uint32_t id;
  float logit;
};

// What a block found in its slice.
struct SlicePick {
  Scored best[kMaxContenders];  // the best scores, where noise was drawn
  uint32_t n_best;              // as many as it may have, or the first alone
  uint64_t floor_key;           // the list has every candidate of at least this order key
  uint32_t top_key;             // logit key of the maximum
  uint32_t first;               // first id with it, where the row is greedy
  uint32_t flags;
  uint32_t n_list;
};

// Integer totals of a row for the report kernel.
struct RowTotals {
  unsigned long long mass;
  uint32_t n_above;
  uint32_t n_kept;
  uint32_t arrivals;
  uint32_t padding;
};

// The drafted chains of a verify call.
struct Chains {
  const int32_t* candidates;  // nullptr: none, a sample call
  int64_t candidates_stride;
  int32_t* accept_index;
  int32_t* accept_length;
};

// Outputs; nullptr: not wanted.
struct Outputs {
  int32_t* tokens;  // those of verify: with -1 behind a chain's end, where the others are empty too
  float* logprobs;
  int32_t* ranks;
  int32_t* n_kept;
  uint32_t* row_flags;
  uint32_t* n_bad_rows;  // one word: the rows with flags are added to it
  Chains chains;
};

constexpr int32_t kMaxSlices = 32;
constexpr int32_t kMaxListSlices = 16;
constexpr int32_t kMaxParts = 16;            // blocks of the exact kernel that share a row
constexpr int32_t kListCapacity = 3072;      // entries of a block's list
constexpr int32_t kSliceListCapacity = 512;  // entries that a slice hands to its row's last block
constexpr int32_t kListGoal = 1024;          // the longest top-k that a list must hold

}  // namespace ts::cuda
