/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one number, or the numbers of one list, from a json text: all that the demo needs of json. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

/* The text after "key":, or NULL. Strings are read as strings, so that a name in prose is not taken for a key. */
static const char* find_value(const char* text, const char* key) {
  size_t length = strlen(key);
  const char* at = text;
  while (*at != '\0') {
    const char* begin;
    if (*at++ != '"') continue;
    begin = at;
    while (*at != '\0' && *at != '"') at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    if (*at == '\0') break;
    if ((size_t)(at - begin) == length && memcmp(begin, key, length) == 0) {
      const char* after = at + 1;
      while (isspace((unsigned char)*after)) after++;
      if (*after == ':') return after + 1;
    }
    at++;
  }
  return NULL;
}

size_t json_numbers(const char* text, const char* key, long long* out, size_t capacity) {
  const char* at = find_value(text, key);
  size_t n = 0;
  int depth = 0;
  if (at == NULL) return 0;
  for (; *at != '\0'; at++) {
    if (*at == '[') depth++;
    if (*at == ']' && --depth == 0) break;
    if (*at == '-' || isdigit((unsigned char)*at)) {
      char* end;
      long long number = strtoll(at, &end, 10);
      if (n < capacity) out[n] = number;
      n++;
      if (depth == 0) break;
      at = end - (end > at);
    } else if (depth == 0 && !isspace((unsigned char)*at)) {
      break;
    }
  }
  return n;
}
