// SPDX-License-Identifier: Apache-2.0
// main() of the Catch2 programs: ends with 77 and the word "skipped" when the device that TS_TEST_DEVICE names is not
// there, so that tests which did not run are not taken for tests that passed.
#define CATCH_CONFIG_RUNNER
#include "support/catch.h"
#include "support/device_memory.h"

int main(int argc, char** argv) {
  const std::string missing = ts::test::missing_device();
  if (!missing.empty()) {
    std::printf("skipped: %s\n", missing.c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
