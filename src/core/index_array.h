// SPDX-License-Identifier: Apache-2.0
// Reading int32 or int64 index arrays (slots, positions) in host memory.
#pragma once

#include <cstdint>

#include "tssample.h"

namespace ts {

class IndexArray {
 public:
  IndexArray(const void* data, int32_t type) : data_(data), type_(type) {}

  bool null() const { return data_ == nullptr; }
  int64_t operator[](int64_t i) const {
    return type_ == TS_INT64 ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_;
  int32_t type_;
};

}  // namespace ts
