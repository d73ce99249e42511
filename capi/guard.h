// SPDX-License-Identifier: Apache-2.0
// The only border between C++ exceptions and C status codes, and between the host's floating-point settings and ours.
#pragma once

#include <new>

#include "core/error.h"
#include "core/float_environment.h"

namespace ts {

// Keeps the thread's last message.
void set_last_error(const char* message) noexcept;

template <class Body>
ts_status guarded(Body&& body) noexcept {
  const FloatEnvironment float_environment;
  try {
    body();
    return TS_OK;
  } catch (const Error& error) {
    set_last_error(error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    set_last_error("out of host memory");
    return TS_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return TS_ERROR_INTERNAL;
  } catch (...) {
    set_last_error("unknown exception");
    return TS_ERROR_INTERNAL;
  }
}

}  // namespace ts
