/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the demo share: options, errors, files, and the numbers of a json list. */
#ifndef DEMO_H_
#define DEMO_H_

#include <stddef.h>
#include <stdint.h>

#include "tssample.h"

/* ---- demo.c */
struct text_options {
  const char* file;
  long long tokens;
  ts_request_params params;
};

/* Print "demo: ..." to stderr and end the program: the process is the demo, and it owns nothing worth saving. */
void fail(const char* format, ...);
void check(ts_status status); /* fails with the library's message unless status is TS_OK */

/* Prints a line to stderr if two seconds have gone since the last one, or since the start. */
void progress(const char* format, ...);
double seconds(void); /* of a clock that never goes back */

void* allocate(size_t n, size_t size);           /* zero-filled; fails when there is no memory */
char* read_file(const char* path, size_t* size); /* with a NUL after the last byte; fails when it cannot be read */

/* ---- json_numbers.c: the numbers of "key": 1 or "key": [[1, 2], [3]], as one line. Returns how many there are,
 * of which the first `capacity` are stored; 0 when the key is not there. */
size_t json_numbers(const char* text, const char* key, long long* out, size_t capacity);

/* ---- rows.c, text.c: the two halves of the demo */
void run_rows(const char* data_path, const char* json_path);
void run_text(const struct text_options* options);

#endif /* DEMO_H_ */
