// SPDX-License-Identifier: Apache-2.0
// No exception crosses the C border: each becomes a code and a message.
#include <new>
#include <stdexcept>
#include <string>

#include "../../capi/guard.h"
#include "support/catch.h"
#include "tssample.h"

namespace ts {

TEST_CASE("exceptions become codes") {
  CHECK(guarded([] {}) == TS_OK);
  CHECK(guarded([] { throw Error(TS_ERROR_UNSUPPORTED, "argument %d", 7); }) == TS_ERROR_UNSUPPORTED);
  CHECK(std::string(ts_last_error()) == "argument 7");
  CHECK(guarded([] { throw std::bad_alloc(); }) == TS_ERROR_OUT_OF_MEMORY);
  CHECK(std::string(ts_last_error()) == "out of host memory");
  CHECK(guarded([] { throw std::logic_error("a defect"); }) == TS_ERROR_INTERNAL);
  CHECK(std::string(ts_last_error()) == "a defect");
  CHECK(guarded([] { throw 5; }) == TS_ERROR_INTERNAL);
  CHECK(std::string(ts_last_error()) == "unknown exception");
  CHECK(guarded([] {}) == TS_OK);
  CHECK(std::string(ts_last_error()) == "unknown exception");
}

}  // namespace ts
