// SPDX-License-Identifier: Apache-2.0
// Where tests/data is: TS_TEST_DATA where a test was carried to another machine, else in the source tree.
#pragma once

#include <cstdlib>
#include <string>

namespace ts::test {

inline std::string data_path(const std::string& file) {
  const char* carried = std::getenv("TS_TEST_DATA");
  return std::string(carried != nullptr ? carried : TS_TEST_DATA_DIR) + "/" + file;
}

}  // namespace ts::test
