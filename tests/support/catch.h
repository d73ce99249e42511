// SPDX-License-Identifier: Apache-2.0
// Catch2, whichever of versions 2 and 3 the system has, with one name for what the two call differently.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
namespace ts {
using Catch::Approx;
inline auto says(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
}  // namespace ts
#else
#include <catch2/catch.hpp>
namespace ts {
inline auto says(const std::string& text) { return Catch::Matchers::Contains(text); }
}  // namespace ts
#endif
