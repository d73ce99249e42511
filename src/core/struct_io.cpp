// SPDX-License-Identifier: Apache-2.0
// Checks of struct sizes.
#include "core/struct_io.h"

namespace ts {

void check_struct_size(uint32_t struct_size, uint32_t first_size, const char* name, const char* type) {
  // Why: a size beyond a page is not a newer header, it is an unset field.
  if (struct_size < first_size || struct_size > 4096) {
    throw Error(TS_ERROR_STRUCT_SIZE, "%s.struct_size = %u: set it to sizeof(%s), at least %u bytes", name, struct_size,
                type, first_size);
  }
}

void check_unknown_tail(const void* data, uint32_t struct_size, uint32_t known_size, const char* name) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (uint32_t i = known_size; i < struct_size; ++i) {
    if (bytes[i] != 0) {
      throw Error(
          TS_ERROR_STRUCT_SIZE,
          "%s.struct_size = %u: a newer header's field at byte %u is set, which this library (%u bytes) does not know",
          name, struct_size, i, known_size);
    }
  }
}

}  // namespace ts
