// SPDX-License-Identifier: Apache-2.0
// main() of a Catch2 version 2 program.
#define CATCH_CONFIG_MAIN
#include "support/catch.h"
