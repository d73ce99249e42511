/* SPDX-License-Identifier: Apache-2.0 */
/* FAULTS.md D4 from C99: samplers of threads that run at the same time are independent, and so are the threads' error
 * messages; one sampler serves all threads, one call at a time. */
#define _POSIX_C_SOURCE 200112L
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "c99_check.h"
#include "tssample.h"

enum { VOCAB = 10000, REQUESTS = 8, THREADS = 4, STEPS = 100 };

struct worker {
  int number;
  float* logits; /* [REQUESTS, VOCAB], row r with its largest logit at peak(number, r) */
  ts_sampler* shared;
  pthread_mutex_t* shared_lock;
  pthread_barrier_t* meeting; /* NULL: no other thread */
  int32_t tokens[STEPS][REQUESTS];
};

static int32_t peak(int number, int r) { return 701 * number + 13 * r; }

static ts_sampler* make_sampler(void) {
  ts_config config;
  ts_sampler* sampler = NULL;
  memset(&config, 0, sizeof(config));
  config.struct_size = sizeof(config);
  config.device = TS_DEVICE_CPU;
  config.vocab_size = VOCAB;
  config.n_slots = REQUESTS;
  CHECK(ts_sampler_create(&config, &sampler) == TS_OK);
  return sampler;
}

/* A step of new requests: all greedy, or the first greedy and the rest with and without top_k and top_p. */
static void run_step(const struct worker* w, ts_sampler* sampler, int i, int greedy, int32_t* tokens) {
  const int32_t slots[REQUESTS] = {2, 0, 3, 1, 7, 6, 4, 5};
  const int32_t positions[REQUESTS] = {i, i, i, i, i, i, i, i};
  uint64_t ids[REQUESTS];
  ts_request_params params[REQUESTS];
  ts_step step;
  ts_rows rows;
  ts_sample_out out;
  int r;
  memset(params, 0, sizeof(params));
  memset(&step, 0, sizeof(step));
  memset(&rows, 0, sizeof(rows));
  memset(&out, 0, sizeof(out));
  for (r = 0; r < REQUESTS; ++r) {
    ids[r] = (uint64_t)((w->number * STEPS + i) * REQUESTS + r) * 2 + (uint64_t)greedy;
    params[r].struct_size = sizeof(params[r]);
    params[r].temperature = greedy || r == 0 ? 0.0f : 1.0f;
    params[r].top_k = r % 2 == 0 ? 300 : 0;
    params[r].top_p = r >= 4 ? 0.9f : 1.0f;
  }
  step.struct_size = sizeof(step);
  step.n_requests = REQUESTS;
  step.request_ids = ids;
  step.slots = slots;
  step.params = params;
  rows.struct_size = sizeof(rows);
  rows.n_requests = REQUESTS;
  rows.logits = w->logits;
  rows.slots = slots;
  rows.positions = positions;
  out.struct_size = sizeof(out);
  out.tokens = tokens;
  CHECK(ts_sampler_prepare_step(sampler, &step, NULL) == TS_OK);
  CHECK(ts_sampler_sample(sampler, &rows, &out, NULL) == TS_OK);
}

static void* work(void* argument) {
  struct worker* w = (struct worker*)argument;
  char expected[64];
  int i, r;
  snprintf(expected, sizeof(expected), "n_requests = %d:", -1 - w->number);
  CHECK(strcmp(ts_last_error(), "") == 0);
  for (i = 0; i < STEPS; ++i) {
    int32_t greedy[REQUESTS];
    ts_sampler* own = make_sampler();
    run_step(w, own, i, 0, w->tokens[i]);
    CHECK(w->tokens[i][0] == peak(w->number, 0));
    CHECK(ts_sampler_prepare_capture(own, -1 - w->number, 1, "plain", NULL) == TS_ERROR_INVALID_ARGUMENT);
    ts_sampler_destroy(own);
    /* All threads have had an error when each looks at its own. */
    if (w->meeting != NULL) pthread_barrier_wait(w->meeting);
    CHECK(strncmp(ts_last_error(), expected, strlen(expected)) == 0);
    pthread_mutex_lock(w->shared_lock);
    run_step(w, w->shared, i, 1, greedy);
    pthread_mutex_unlock(w->shared_lock);
    for (r = 0; r < REQUESTS; ++r) CHECK(greedy[r] == peak(w->number, r));
  }
  return NULL;
}

/* Each worker in a thread of its own: at the same time, or each after the end of the one before. */
static void run_threads(struct worker* workers, int together) {
  pthread_t threads[THREADS];
  pthread_barrier_t meeting;
  int i;
  CHECK(pthread_barrier_init(&meeting, NULL, THREADS) == 0);
  for (i = 0; i < THREADS; ++i) {
    workers[i].meeting = together ? &meeting : NULL;
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    if (!together) CHECK(pthread_join(threads[i], NULL) == 0);
  }
  for (i = 0; together && i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  pthread_barrier_destroy(&meeting);
}

int main(void) {
  static struct worker alone[THREADS], together[THREADS];
  static float logits[THREADS][REQUESTS * VOCAB];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  ts_sampler* shared = make_sampler();
  int w, r, i;
  for (w = 0; w < THREADS; ++w) {
    for (r = 0; r < REQUESTS; ++r) {
      for (i = 0; i < VOCAB; ++i) logits[w][r * VOCAB + i] = (float)((i * 29 + w * 7 + r) % 83) * 0.125f;
      logits[w][r * VOCAB + peak(w, r)] = 11.0f;
    }
    alone[w].number = w;
    alone[w].logits = logits[w];
    alone[w].shared = shared;
    alone[w].shared_lock = &lock;
    together[w] = alone[w];
  }
  CHECK(ts_sampler_prepare_step(shared, NULL, NULL) == TS_ERROR_INVALID_ARGUMENT);
  run_threads(alone, 0);
  run_threads(together, 1);
  for (w = 0; w < THREADS; ++w) {
    CHECK(memcmp(alone[w].tokens, together[w].tokens, sizeof(alone[w].tokens)) == 0);
    /* Tokens that another thread's could be would show nothing. */
    CHECK(memcmp(alone[w].tokens, alone[(w + 1) % THREADS].tokens, sizeof(alone[w].tokens)) != 0);
  }
  CHECK(strcmp(ts_last_error(), "ts_step is NULL") == 0);
  ts_sampler_destroy(shared);
  return checks_end();
}
