/* SPDX-License-Identifier: Apache-2.0 */
/* The demo in C99: options, files and errors. What it shows is in rows.c and text.c; demo.py does the same. */
#define _POSIX_C_SOURCE 200112L /* clock_gettime */
#include "demo.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: demo_c rows [--data FILE.bf16] [--json FILE.json]\n"
    "       demo_c text [--file FILE] [--tokens N] [--temperature T] [--top-k K]\n"
    "                   [--top-p P] [--min-p M] [--seed S]\n"
    "\n"
    "rows  samples real next-token logits at several settings and verifies drafts.\n"
    "  --data FILE      logits, bf16 [rows, vocab]  (tests/data/lm_rows_8x128256.bf16)\n"
    "  --json FILE      what they are               (tests/data/lm_rows_8x128256.json)\n"
    "\n"
    "text  writes text with a word model of order 3 of any text file.\n"
    "  --file FILE      the text to learn from      (README.md)\n"
    "  --tokens N       words to write, 1 or more   (120)\n"
    "  --temperature T  0: the likeliest word       (0.8)\n"
    "  --top-k K        keep the K likeliest        (0: off)\n"
    "  --top-p P        keep this much probability  (1: off)\n"
    "  --min-p M        keep M times the largest    (0.02; 0: off)\n"
    "  --seed S         same seed, same text        (1)\n";

/* ---- Errors, time, memory, files */

static void print_error(const char* format, va_list arguments) {
  fflush(stdout);
  fputs("demo_c: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_error(format, arguments);
  va_end(arguments);
  exit(1);
}

void check(ts_status status) {
  if (status != TS_OK) fail("%s: %s", ts_status_string(status), ts_last_error());
}

static void fail_usage(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_error(format, arguments);
  va_end(arguments);
  fputs("demo_c --help shows the options\n", stderr);
  exit(2);
}

double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress(const char* format, ...) {
  static double last = 0.0;
  double now = seconds();
  va_list arguments;
  if (last == 0.0) last = now;
  if (now - last < 2.0) return;
  last = now;
  va_start(arguments, format);
  print_error(format, arguments);
  va_end(arguments);
}

void* allocate(size_t n, size_t size) {
  void* p = calloc(n > 0 ? n : 1, size);
  if (p == NULL) fail("no memory for %zu times %zu bytes", n, size);
  return p;
}

char* read_file(const char* path, size_t* size) {
  size_t capacity = 1 << 16, n = 0, got;
  char* bytes = allocate(capacity + 1, 1);
  FILE* f = fopen(path, "rb");
  if (f == NULL) fail("%s: %s", path, strerror(errno));
  while ((got = fread(bytes + n, 1, capacity - n, f)) > 0) {
    n += got;
    if (n < capacity) continue;
    capacity *= 2;
    bytes = realloc(bytes, capacity + 1);
    if (bytes == NULL) fail("%s: no memory for %zu bytes", path, capacity);
  }
  if (ferror(f)) fail("%s: %s", path, strerror(errno));
  fclose(f);
  bytes[n] = '\0';
  if (size != NULL) *size = n;
  return bytes;
}

/* ---- Options */

static float float_option(const char* name, const char* text) {
  char* end;
  double value = strtod(text, &end);
  if (*end != '\0' || end == text) fail_usage("%s: not a number: \"%s\"", name, text);
  return (float)value; /* out of the library's range: the library says so */
}

static long long integer_option(const char* name, const char* text, long long low, long long high) {
  char* end;
  long long value;
  errno = 0;
  value = strtoll(text, &end, 10);
  if (*end != '\0' || end == text) fail_usage("%s: not a whole number: \"%s\"", name, text);
  if (errno == ERANGE || value < low || value > high) fail_usage("%s: outside %lld to %lld: %s", name, low, high, text);
  return value;
}

static uint64_t seed_option(const char* name, const char* text) {
  char* end;
  unsigned long long value;
  errno = 0;
  value = strtoull(text, &end, 10);
  if (*end != '\0' || end == text) fail_usage("%s: not a whole number: \"%s\"", name, text);
  if (errno == ERANGE || text[0] == '-') fail_usage("%s: outside 0 to 2^64 - 1: %s", name, text);
  return value;
}

/* If argv[*i] is the option, returns its value, from behind '=' or the next argument, and steps to the last one used.
 */
static const char* option_value(const char* option, int argc, char** argv, int* i) {
  size_t length = strlen(option);
  const char* text = argv[*i];
  if (strncmp(text, option, length) != 0 || (text[length] != '\0' && text[length] != '=')) return NULL;
  if (text[length] == '=') return text + length + 1;
  if (*i + 1 >= argc) fail_usage("%s: a value is missing", option);
  return argv[++*i];
}

static void rows_command(int argc, char** argv) {
  const char* data = "tests/data/lm_rows_8x128256.bf16";
  const char* json = "tests/data/lm_rows_8x128256.json";
  const char* value;
  int i;
  for (i = 2; i < argc; i++) {
    if ((value = option_value("--data", argc, argv, &i)) != NULL)
      data = value;
    else if ((value = option_value("--json", argc, argv, &i)) != NULL)
      json = value;
    else
      fail_usage("unknown option %s", argv[i]);
  }
  run_rows(data, json);
}

static void text_command(int argc, char** argv) {
  static const ts_request_params defaults = TS_REQUEST_PARAMS_INIT;
  struct text_options o;
  const char* value;
  int i;
  o.file = "README.md";
  o.tokens = 120;
  o.params = defaults;
  o.params.temperature = 0.8f;
  o.params.min_p = 0.02f;
  o.params.flags = TS_PARAMS_SEEDED;
  o.params.seed = 1;
  for (i = 2; i < argc; i++) {
    if ((value = option_value("--file", argc, argv, &i)) != NULL)
      o.file = value;
    else if ((value = option_value("--tokens", argc, argv, &i)) != NULL)
      o.tokens = integer_option("--tokens", value, 1, 1000000000);
    else if ((value = option_value("--temperature", argc, argv, &i)) != NULL)
      o.params.temperature = float_option("--temperature", value);
    else if ((value = option_value("--top-k", argc, argv, &i)) != NULL)
      o.params.top_k = (int32_t)integer_option("--top-k", value, INT32_MIN, INT32_MAX);
    else if ((value = option_value("--top-p", argc, argv, &i)) != NULL)
      o.params.top_p = float_option("--top-p", value);
    else if ((value = option_value("--min-p", argc, argv, &i)) != NULL)
      o.params.min_p = float_option("--min-p", value);
    else if ((value = option_value("--seed", argc, argv, &i)) != NULL)
      o.params.seed = seed_option("--seed", value);
    else
      fail_usage("unknown option %s", argv[i]);
  }
  run_text(&o);
}

int main(int argc, char** argv) {
  int i;
  for (i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      fputs(usage, stdout);
      return 0;
    }
  }
  progress("%s", ""); /* starts its clock */
  if (argc < 2) fail_usage("which demo: rows or text?");
  if (strcmp(argv[1], "rows") == 0)
    rows_command(argc, argv);
  else if (strcmp(argv[1], "text") == 0)
    text_command(argc, argv);
  else
    fail_usage("unknown demo %s: rows or text?", argv[1]);
  if (fflush(stdout) != 0 || ferror(stdout)) fail("writing to standard output failed");
  return 0;
}
