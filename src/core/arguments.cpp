// SPDX-License-Identifier: Apache-2.0
// Checks and defaults of the public structs.
#include "core/arguments.h"

#include "core/error.h"

namespace ts {
namespace {

constexpr int32_t kMaxSlots = 1 << 24;
constexpr int32_t kMaxRowsPerRequest = 1024;
constexpr int32_t kMaxGraphs = 4096;
constexpr int64_t kMaxStride = int64_t{1} << 40;

template <class T>
void default_to(T& field, T value) {
  if (field == 0) field = value;
}

void check_zero(uint64_t value, const char* name) {
  if (value != 0) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s = %llu: must be 0", name, static_cast<unsigned long long>(value));
  }
}

// An optional output array of 4-byte elements.
void check_optional(const void* data, const char* name) {
  if (data != nullptr) check_array(data, 4, name);
}

size_t index_size(int32_t type) { return type == TS_INT64 ? 8 : 4; }

}  // namespace

void check_array(const void* data, size_t alignment, const char* name) {
  if (data == nullptr) throw Error(TS_ERROR_INVALID_ARGUMENT, "%s is NULL", name);
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s = %p: not aligned to %zu bytes", name, data, alignment);
  }
}

void check_index_type(int32_t type, const char* name) {
  if (type != TS_INT32 && type != TS_INT64) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s = %d: neither TS_INT32 nor TS_INT64", name, type);
  }
}

void check_range(int64_t value, int64_t low, int64_t high, const char* name) {
  if (value < low || value > high) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s = %lld: outside %lld..%lld", name, static_cast<long long>(value),
                static_cast<long long>(low), static_cast<long long>(high));
  }
}

ts_config complete(ts_config config) {
  check_range(config.device, TS_DEVICE_AUTO, TS_DEVICE_CUDA, "ts_config.device");
  check_range(config.device_ordinal, 0, INT32_MAX, "ts_config.device_ordinal");
  check_range(config.vocab_size, 1, TS_MAX_VOCAB, "ts_config.vocab_size");
  default_to(config.n_slots, 1024);
  check_range(config.n_slots, 1, kMaxSlots, "ts_config.n_slots");
  default_to(config.max_requests, config.n_slots);
  check_range(config.max_requests, 1, config.n_slots, "ts_config.max_requests");
  default_to(config.max_rows_per_request, 8);
  check_range(config.max_rows_per_request, 1, kMaxRowsPerRequest, "ts_config.max_rows_per_request");
  check_range(int64_t{config.max_requests} * config.max_rows_per_request, 1, INT32_MAX,
              "ts_config.max_requests * max_rows_per_request");
  check_range(config.invalid_token, 0, config.vocab_size - 1, "ts_config.invalid_token");
  if ((config.flags & ~uint64_t{TS_CONFIG_PROGRAMMATIC_LAUNCH | TS_CONFIG_CLUSTERS}) != 0) {
    throw Error(TS_ERROR_INVALID_ARGUMENT,
                "ts_config.flags = 0x%llx: only TS_CONFIG_PROGRAMMATIC_LAUNCH and TS_CONFIG_CLUSTERS are defined",
                static_cast<unsigned long long>(config.flags));
  }
  default_to(config.max_graphs, 32);
  check_range(config.max_graphs, -1, kMaxGraphs, "ts_config.max_graphs");
  check_zero(static_cast<uint32_t>(config.reserved), "ts_config.reserved");
  return config;
}

ts_step complete(ts_step step, const ts_config& config) {
  check_range(step.n_requests, 0, config.max_requests, "ts_step.n_requests");
  default_to(step.rows_per_request, 1);
  check_range(step.rows_per_request, 1, config.max_rows_per_request, "ts_step.rows_per_request");
  check_index_type(step.slots_type, "ts_step.slots_type");
  check_zero(step.reserved, "ts_step.reserved");
  if (step.n_requests == 0) return step;
  check_array(step.request_ids, 8, "ts_step.request_ids");
  check_array(step.slots, index_size(step.slots_type), "ts_step.slots");
  return step;
}

ts_rows complete(ts_rows rows, const ts_config& config, int32_t prepared_rows) {
  check_range(rows.n_requests, 0, config.max_requests, "ts_rows.n_requests");
  default_to(rows.rows_per_request, prepared_rows > 0 ? prepared_rows : 1);
  check_range(rows.rows_per_request, 1, config.max_rows_per_request, "ts_rows.rows_per_request");
  default_to(rows.vocab, config.vocab_size);
  check_range(rows.vocab, 1, config.vocab_size, "ts_rows.vocab");
  default_to(rows.row_stride, int64_t{rows.vocab});
  check_range(rows.row_stride, rows.vocab, kMaxStride, "ts_rows.row_stride");
  check_range(rows.logits_type, TS_FP32, TS_FP16, "ts_rows.logits_type");
  default_to(rows.n_valid, rows.vocab);
  check_range(rows.n_valid, 1, rows.vocab, "ts_rows.n_valid");
  check_index_type(rows.slots_type, "ts_rows.slots_type");
  check_index_type(rows.positions_type, "ts_rows.positions_type");
  default_to(rows.mask_words, (rows.vocab - 1) / 32 + 1);
  check_range(rows.mask_words, 1, INT32_MAX, "ts_rows.mask_words");
  default_to(rows.mask_stride, int64_t{rows.mask_words});
  check_range(rows.mask_stride, rows.mask_words, kMaxStride, "ts_rows.mask_stride");
  check_zero(static_cast<uint32_t>(rows.reserved), "ts_rows.reserved");
  if (rows.n_requests == 0) return rows;
  check_array(rows.logits, rows.logits_type == TS_FP32 ? 4 : 2, "ts_rows.logits");
  check_array(rows.slots, index_size(rows.slots_type), "ts_rows.slots");
  if (rows.positions != nullptr) check_array(rows.positions, index_size(rows.positions_type), "ts_rows.positions");
  if (rows.allow_mask != nullptr) check_array(rows.allow_mask, 4, "ts_rows.allow_mask");
  return rows;
}

ts_draft complete(ts_draft draft, const ts_rows& rows) {
  check_zero(draft.reserved, "ts_draft.reserved");
  default_to(draft.candidates_stride, int64_t{rows.rows_per_request});
  check_range(draft.candidates_stride, rows.rows_per_request, kMaxStride, "ts_draft.candidates_stride");
  if (rows.n_requests > 0) check_array(draft.candidates, 4, "ts_draft.candidates");
  return draft;
}

void check(const ts_sample_out& out, const ts_rows& rows) {
  check_zero(out.reserved, "ts_sample_out.reserved");
  if (rows.n_requests == 0) return;
  check_array(out.tokens, 4, "ts_sample_out.tokens");
  check_optional(out.logprobs, "ts_sample_out.logprobs");
  check_optional(out.ranks, "ts_sample_out.ranks");
  check_optional(out.n_kept, "ts_sample_out.n_kept");
  check_optional(out.row_flags, "ts_sample_out.row_flags");
  check_optional(out.n_bad_rows, "ts_sample_out.n_bad_rows");
}

void check(const ts_verify_out& out, const ts_rows& rows) {
  check_zero(out.reserved, "ts_verify_out.reserved");
  if (rows.n_requests == 0) return;
  check_array(out.predict, 4, "ts_verify_out.predict");
  check_array(out.accept_index, 4, "ts_verify_out.accept_index");
  check_array(out.accept_length, 4, "ts_verify_out.accept_length");
  check_optional(out.logprobs, "ts_verify_out.logprobs");
  check_optional(out.ranks, "ts_verify_out.ranks");
  check_optional(out.n_kept, "ts_verify_out.n_kept");
  check_optional(out.row_flags, "ts_verify_out.row_flags");
  check_optional(out.n_bad_rows, "ts_verify_out.n_bad_rows");
}

ts_broadcast complete(ts_broadcast broadcast) {
  if (broadcast.n_ranks <= 1) return {};
  check_range(broadcast.rank, 0, broadcast.n_ranks - 1, "ts_broadcast.rank");
  check_zero(broadcast.reserved, "ts_broadcast.reserved");
  if ((broadcast.nccl_comm != nullptr) == (broadcast.callback != nullptr)) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "ts_broadcast.nccl_comm and callback: %s",
                broadcast.callback != nullptr ? "both are given, one is needed" : "both are NULL, one is needed");
  }
  return broadcast;
}

}  // namespace ts
