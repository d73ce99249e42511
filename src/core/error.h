// SPDX-License-Identifier: Apache-2.0
// The one exception of the library: a status code and the message that ts_last_error() returns.
#pragma once

#include <exception>

#include "tssample.h"

namespace ts {

class Error : public std::exception {
 public:
  // Formats like printf; longer messages are cut to what ts_last_error() promises.
  [[gnu::format(printf, 3, 4)]] Error(ts_status status, const char* format, ...);

  ts_status status() const noexcept { return status_; }
  const char* what() const noexcept override { return message_; }

 private:
  ts_status status_;
  char message_[512];
};

}  // namespace ts
