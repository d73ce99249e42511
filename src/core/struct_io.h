// SPDX-License-Identifier: Apache-2.0
// Reading public structs that an older or newer header may have laid out: the only place that knows struct_size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace ts {

// sizeof each struct in the first release. Later fields come after these bytes.
template <class T>
struct FirstSize;
template <>
struct FirstSize<ts_broadcast> {
  static constexpr uint32_t value = 40;
};
template <>
struct FirstSize<ts_capabilities> {
  static constexpr uint32_t value = 32;
};
template <>
struct FirstSize<ts_config> {
  static constexpr uint32_t value = 48;
};
template <>
struct FirstSize<ts_request_params> {
  static constexpr uint32_t value = 32;
};
template <>
struct FirstSize<ts_step> {
  static constexpr uint32_t value = 48;
};
template <>
struct FirstSize<ts_rows> {
  static constexpr uint32_t value = 88;
};
template <>
struct FirstSize<ts_sample_out> {
  static constexpr uint32_t value = 48;
};
template <>
struct FirstSize<ts_draft> {
  static constexpr uint32_t value = 24;
};
template <>
struct FirstSize<ts_verify_out> {
  static constexpr uint32_t value = 64;
};

// Throws unless a struct of this struct_size can be read (its tail is checked by read_struct). name: the argument's, in
// messages; type: the struct's.
void check_struct_size(uint32_t struct_size, uint32_t first_size, const char* name, const char* type);

// The same for T. Why the alignment: no release had a struct that ends inside a field, and half a pointer is a wild one.
template <class T>
void check_size_of(uint32_t struct_size, const char* name, const char* type) {
  check_struct_size(struct_size, FirstSize<T>::value, name, type);
  if (struct_size < sizeof(T) && struct_size % alignof(T) != 0) {
    throw Error(TS_ERROR_STRUCT_SIZE, "%s.struct_size = %u: not the size of any release; set it to sizeof(%s)", name,
                struct_size, type);
  }
}

// Throws unless the bytes past the known size are zero.
void check_unknown_tail(const void* data, uint32_t struct_size, uint32_t known_size, const char* name);

// The struct_size of a caller's struct, checked.
template <class T>
uint32_t read_struct_size(const T* in, const char* name, const char* type) {
  if (in == nullptr) throw Error(TS_ERROR_INVALID_ARGUMENT, "%s is NULL", name);
  if (reinterpret_cast<uintptr_t>(in) % alignof(T) != 0) {
    throw Error(TS_ERROR_INVALID_ARGUMENT, "%s = %p: not aligned to %zu bytes", name, static_cast<const void*>(in),
                alignof(T));
  }
  uint32_t size;
  std::memcpy(&size, in, sizeof(size));
  check_size_of<T>(size, name, type);
  return size;
}

// The caller's struct in this library's layout: missing fields zero, unknown ones checked to be zero.
template <class T>
T read_struct(const T* in, const char* name, const char* type) {
  const uint32_t size = read_struct_size(in, name, type);
  T out{};
  std::memcpy(static_cast<void*>(&out), in, size < sizeof(T) ? size : sizeof(T));
  check_unknown_tail(in, size, sizeof(T), name);
  return out;
}

// An argument of its own is called by its type.
template <class T>
T read_struct(const T* in, const char* type) {
  return read_struct(in, type, type);
}

// An array of structs with the caller's stride; 0: the first one's struct_size, which is then checked
// before any entry is read.
template <class T>
class StructArray {
 public:
  StructArray(const T* first, uint32_t stride, const char* name, const char* type)
      : first_(first), stride_(stride), name_(name), type_(type) {
    if (first == nullptr) return;
    if (reinterpret_cast<uintptr_t>(first) % alignof(T) != 0) {
      throw Error(TS_ERROR_INVALID_ARGUMENT, "%s = %p: not aligned to %zu bytes", name, static_cast<const void*>(first),
                  alignof(T));
    }
    if (stride % alignof(T) != 0) {
      throw Error(TS_ERROR_INVALID_ARGUMENT, "%s_stride = %u: not a multiple of %zu", name, stride, alignof(T));
    }
  }

  T read(int32_t i) {
    if (stride_ == 0) stride_ = default_stride();
    const auto* at = reinterpret_cast<const unsigned char*>(first_) + static_cast<size_t>(i) * stride_;
    const Name label(name_, i);
    uint32_t size;
    std::memcpy(&size, at, sizeof(size));
    check_size_of<T>(size, label.text, type_);
    if (size > stride_) {
      throw Error(TS_ERROR_STRUCT_SIZE, "%s.struct_size = %u: does not fit the stride of %u bytes", label.text, size,
                  stride_);
    }
    return read_struct(reinterpret_cast<const T*>(at), label.text, type_);
  }

 private:
  // An entry's name in messages.
  struct Name {
    Name(const char* array, int32_t i) { std::snprintf(text, sizeof(text), "%s[%d]", array, i); }
    char text[64];
  };

  uint32_t default_stride() const {
    uint32_t size;
    std::memcpy(&size, first_, sizeof(size));
    const Name label(name_, 0);
    check_size_of<T>(size, label.text, type_);
    if (size % alignof(T) != 0) {
      throw Error(TS_ERROR_STRUCT_SIZE, "%s.struct_size = %u: as the stride it must be a multiple of %zu", label.text,
                  size, alignof(T));
    }
    return size;
  }

  const T* first_;
  uint32_t stride_;
  const char* name_;
  const char* type_;
};

}  // namespace ts
