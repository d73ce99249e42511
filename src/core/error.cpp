// SPDX-License-Identifier: Apache-2.0
// Formatting of error messages.
#include "core/error.h"

#include <cstdarg>
#include <cstdio>

namespace ts {

Error::Error(ts_status status, const char* format, ...) : status_(status), message_{} {
  va_list args;
  va_start(args, format);
  std::vsnprintf(message_, sizeof(message_), format, args);
  va_end(args);
}

}  // namespace ts
