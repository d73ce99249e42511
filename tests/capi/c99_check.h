/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the C99 programs: counted, and printed where they fail. */
#pragma once

#include <stdio.h>

#include "tssample.h"

static int n_checks = 0;
static int n_failures = 0;

static void check(int ok, const char* what, int line) {
  /* Why atomic: threads check too. */
  __sync_fetch_and_add(&n_checks, 1);
  if (!ok) {
    __sync_fetch_and_add(&n_failures, 1);
    printf("FAILED line %d: %s (last error: %s)\n", line, what, ts_last_error());
  }
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

/* The exit status of main. */
static int checks_end(void) {
  printf("%d passed, %d failed\n", n_checks - n_failures, n_failures);
  return n_failures == 0 ? 0 : 1;
}
