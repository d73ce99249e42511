// SPDX-License-Identifier: Apache-2.0
// Catch2, whichever of versions 2 and 3 the system has.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
