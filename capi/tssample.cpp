// SPDX-License-Identifier: Apache-2.0
// The C functions: translate and call.
#include "tssample.h"

#include <cstring>

#include "core/sampler.h"
#include "core/struct_io.h"
#include "devices.h"
#include "guard.h"

struct ts_sampler {
  ts::Sampler sampler;
};

namespace ts {
namespace {

thread_local char last_error[512] = "";

Sampler& deref(ts_sampler* sampler) {
  if (sampler == nullptr) throw Error(TS_ERROR_INVALID_ARGUMENT, "sampler is NULL");
  return sampler->sampler;
}

#define TS_STRINGIZE_(x) #x
#define TS_STRINGIZE(x) TS_STRINGIZE_(x)
constexpr char kVersionString[] =
    TS_STRINGIZE(TS_VERSION_MAJOR) "." TS_STRINGIZE(TS_VERSION_MINOR) "." TS_STRINGIZE(TS_VERSION_PATCH);

}  // namespace

void set_last_error(const char* message) noexcept {
  std::strncpy(last_error, message, sizeof(last_error) - 1);
  last_error[sizeof(last_error) - 1] = '\0';
}

}  // namespace ts

extern "C" {

const char* ts_status_string(ts_status status) {
  switch (status) {
    case TS_OK: return "TS_OK";
    case TS_ERROR_INVALID_ARGUMENT: return "TS_ERROR_INVALID_ARGUMENT";
    case TS_ERROR_STRUCT_SIZE: return "TS_ERROR_STRUCT_SIZE";
    case TS_ERROR_NOT_PREPARED: return "TS_ERROR_NOT_PREPARED";
    case TS_ERROR_UNSUPPORTED: return "TS_ERROR_UNSUPPORTED";
    case TS_ERROR_OUT_OF_MEMORY: return "TS_ERROR_OUT_OF_MEMORY";
    case TS_ERROR_DEVICE: return "TS_ERROR_DEVICE";
    case TS_ERROR_CUDA: return "TS_ERROR_CUDA";
    case TS_ERROR_INTERNAL: return "TS_ERROR_INTERNAL";
    default: return "TS_ERROR_UNKNOWN";
  }
}

const char* ts_last_error(void) { return ts::last_error; }

int32_t ts_version(void) { return TS_VERSION_MAJOR * 10000 + TS_VERSION_MINOR * 100 + TS_VERSION_PATCH; }

const char* ts_version_string(void) { return ts::kVersionString; }

ts_status ts_get_capabilities(ts_capabilities* out) {
  return ts::guarded([&] {
    // Why: only struct_size is read, so the rest may be uninitialised; fields of a newer header become zero.
    const uint32_t size = ts::read_struct_size(out, "ts_capabilities", "ts_capabilities");
    ts_capabilities caps{};
    caps.struct_size = size;
    caps.devices = ts::built_devices();
    caps.n_cuda_devices = ts::n_cuda_devices();
    caps.auto_device = ts::choose_auto_device();
    caps.logits_types = 1u << TS_FP32 | 1u << TS_BF16 | 1u << TS_FP16;
    caps.index_types = 1u << TS_INT32 | 1u << TS_INT64;
    caps.max_vocab = TS_MAX_VOCAB;
    caps.abi_version = TS_ABI_VERSION;
    std::memset(static_cast<void*>(out), 0, size);
    std::memcpy(static_cast<void*>(out), &caps, size < sizeof(caps) ? size : sizeof(caps));
  });
}

ts_status ts_sampler_create(const ts_config* config, ts_sampler** out) {
  return ts::guarded([&] {
    if (out == nullptr) throw ts::Error(TS_ERROR_INVALID_ARGUMENT, "out is NULL");
    *out = nullptr;
    const ts_config in = ts::read_struct(config, "ts_config");
    try {
      *out = new ts_sampler{ts::Sampler(in, ts::Environment::read(), ts::make_backend)};
    } catch (const std::bad_alloc&) {
      throw ts::Error(TS_ERROR_OUT_OF_MEMORY, "ts_config.n_slots = %d, vocab_size = %d: out of host memory", in.n_slots,
                      in.vocab_size);
    }
  });
}

void ts_sampler_destroy(ts_sampler* sampler) { delete sampler; }

int32_t ts_sampler_device(const ts_sampler* sampler) { return sampler != nullptr ? sampler->sampler.device() : 0; }

ts_status ts_sampler_prepare_step(ts_sampler* sampler, const ts_step* step, ts_stream stream) {
  return ts::guarded([&] { ts::deref(sampler).prepare_step(ts::read_struct(step, "ts_step"), stream); });
}

ts_status ts_sampler_release_slots(ts_sampler* sampler, const void* slots, int32_t slots_type, int32_t n) {
  return ts::guarded([&] { ts::deref(sampler).release_slots(slots, slots_type, n); });
}

const char* ts_sampler_step_route(const ts_sampler* sampler) {
  if (sampler == nullptr) return ts::route_name(ts::Route::kNone, false);
  const ts::Plan& plan = sampler->sampler.plan();
  return ts::route_name(plan.route, plan.min_p);
}

ts_status ts_sampler_sample(ts_sampler* sampler, const ts_rows* rows, const ts_sample_out* out, ts_stream stream) {
  return ts::guarded([&] {
    ts::deref(sampler).sample(ts::read_struct(rows, "ts_rows"), ts::read_struct(out, "ts_sample_out"), stream);
  });
}

ts_status ts_sampler_verify(ts_sampler* sampler, const ts_rows* rows, const ts_draft* draft, const ts_verify_out* out,
                            ts_stream stream) {
  return ts::guarded([&] {
    ts::deref(sampler).verify(ts::read_struct(rows, "ts_rows"), ts::read_struct(draft, "ts_draft"),
                              ts::read_struct(out, "ts_verify_out"), stream);
  });
}

int32_t ts_capture_variant_count(int32_t call) { return ts::capture_variant_count(call); }

const char* ts_capture_variant_name(int32_t call, int32_t index) { return ts::capture_variant_name(call, index); }

ts_status ts_sampler_prepare_capture(ts_sampler* sampler, int32_t n_requests, int32_t rows_per_request,
                                     const char* variant, ts_stream) {
  return ts::guarded([&] { ts::deref(sampler).prepare_capture(n_requests, rows_per_request, variant); });
}

ts_status ts_sampler_reset_capture(ts_sampler* sampler, ts_stream) {
  return ts::guarded([&] { ts::deref(sampler).reset_capture(); });
}

const char* ts_sampler_step_variant(const ts_sampler* sampler, int32_t call) {
  return sampler != nullptr ? ts::capture_variant_of(sampler->sampler.plan(), call) : nullptr;
}

ts_status ts_sampler_set_broadcast(ts_sampler* sampler, const ts_broadcast* broadcast) {
  return ts::guarded([&] {
    const ts_broadcast off{};
    ts::deref(sampler).set_broadcast(broadcast != nullptr ? ts::read_struct(broadcast, "ts_broadcast") : off);
  });
}

}  // extern "C"
