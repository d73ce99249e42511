// SPDX-License-Identifier: Apache-2.0
// The border to C: every exception becomes a code and a message.
#include <new>
#include <stdexcept>
#include <string>

#include "../../capi/guard.h"
#include "core/error.h"
#include "support/catch.h"

namespace ts {

TEST_CASE("every exception becomes a status, and the message is the thread's last error") {
  CHECK(guarded([] {}) == TS_OK);
  CHECK(guarded([] { throw Error(TS_ERROR_DEVICE, "no %s here", "device"); }) == TS_ERROR_DEVICE);
  CHECK(std::string(ts_last_error()) == "no device here");
  CHECK(guarded([] { throw std::bad_alloc(); }) == TS_ERROR_OUT_OF_MEMORY);
  CHECK(std::string(ts_last_error()) == "out of host memory");
  CHECK(guarded([] { throw std::runtime_error("a defect"); }) == TS_ERROR_INTERNAL);
  CHECK(std::string(ts_last_error()) == "a defect");
  CHECK(guarded([] { throw 7; }) == TS_ERROR_INTERNAL);
  CHECK(std::string(ts_last_error()) == "unknown exception");
  CHECK(guarded([] {}) == TS_OK);
  CHECK(std::string(ts_last_error()) == "unknown exception");  // calls that succeed leave it
  // Longer messages are cut to what the header promises.
  const std::string longest(2000, 'x');
  CHECK(guarded([&] { throw Error(TS_ERROR_INTERNAL, "%s", longest.c_str()); }) == TS_ERROR_INTERNAL);
  CHECK(std::string(ts_last_error()) == longest.substr(0, 511));
  CHECK(guarded([&] { throw std::runtime_error(longest); }) == TS_ERROR_INTERNAL);
  CHECK(std::string(ts_last_error()) == longest.substr(0, 511));
}

}  // namespace ts
