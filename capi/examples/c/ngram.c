/* SPDX-License-Identifier: Apache-2.0 */
/* The word model: counts in sorted tables, and logits that are the logarithm of an integer weight.
 *
 * weight(w | u v) = count(w) + 8 * N / count(v) * count(v w) + 64 * N / count(u v) * count(u v w), N words in the text,
 * divisions rounded down: unigrams, pairs and triples mixed 1 : 8 : 64. A logit is log(weight) in double, then float.
 * Why integers: the Python program must come to the same bits. */
#include "ngram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

enum { PAIR_WEIGHT = 8, TRIPLE_WEIGHT = 64, WORD_BITS = 22 };
#define NO_CONTEXT UINT64_MAX

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* ---- Words to numbers: a hash table with open addressing */

static uint64_t hash(const char* text, size_t length) {
  uint64_t h = 14695981039346656037u; /* FNV-1a */
  size_t i;
  for (i = 0; i < length; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
  return h ^ h >> 32;
}

/* Numbers the words of the text; returns their sequence. */
static int32_t* number_words(struct ngram* model, const char* text, size_t size) {
  const char* end = text + size;
  const char* at;
  size_t n = 0, capacity = 16, i;
  int32_t *sequence, *table; /* table: a word's number + 1; 0: free */
  for (at = text; at < end; at++) n += !is_space(*at) && (at == text || is_space(at[-1]));
  while (capacity < 2 * n) capacity *= 2;
  sequence = allocate(n, sizeof *sequence);
  table = allocate(capacity, sizeof *table);
  model->vocab = allocate(n, sizeof *model->vocab);
  model->frequency = allocate(n, sizeof *model->frequency);
  model->n_words = n;
  model->n_distinct = 0;

  for (at = text, i = 0; i < n; i++) {
    struct word w;
    size_t place;
    while (is_space(*at)) at++;
    w.text = at;
    while (at < end && !is_space(*at)) at++;
    w.length = (size_t)(at - w.text);
    for (place = hash(w.text, w.length) & (capacity - 1); table[place] != 0; place = (place + 1) & (capacity - 1)) {
      const struct word* known = &model->vocab[table[place] - 1];
      if (known->length == w.length && memcmp(known->text, w.text, w.length) == 0) break;
    }
    if (table[place] == 0) {
      model->vocab[model->n_distinct++] = w;
      table[place] = model->n_distinct;
    }
    sequence[i] = table[place] - 1;
    model->frequency[sequence[i]]++;
  }
  free(table);
  return sequence;
}

/* ---- Tables of successors */

static int compare_keys(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

/* Sorts the keys in place and counts equal ones. Takes the keys over. */
static struct successors count_keys(uint64_t* keys, size_t n) {
  struct successors s = {keys, allocate(n, sizeof *s.counts), 0};
  size_t i;
  qsort(keys, n, sizeof *keys, compare_keys);
  for (i = 0; i < n; i++) {
    if (s.n == 0 || keys[i] != keys[s.n - 1]) keys[s.n++] = keys[i];
    s.counts[s.n - 1]++;
  }
  return s;
}

/* The first place whose key is not below `key`. */
static size_t lower_bound(const struct successors* s, uint64_t key) {
  size_t low = 0, high = s->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (s->keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static uint64_t pair_key(int32_t first, int32_t second) { return (uint64_t)first << WORD_BITS | (uint64_t)second; }

static uint64_t pair_index(const struct ngram* model, int32_t first, int32_t second) {
  uint64_t key = pair_key(first, second);
  size_t i = lower_bound(&model->pairs, key);
  return i < model->pairs.n && model->pairs.keys[i] == key ? i : NO_CONTEXT;
}

void ngram_build(struct ngram* model, const char* text, size_t size) {
  int32_t* words = number_words(model, text, size);
  size_t n = model->n_words, i;
  uint64_t *pairs, *triples;
  if (n == 0) fail("the text has no words");
  if (model->n_distinct > TS_MAX_VOCAB) fail("%d distinct words; at most %d", model->n_distinct, TS_MAX_VOCAB);
  model->history[0] = words[(2 * n - 2) % n];
  model->history[1] = words[n - 1];
  pairs = allocate(n, sizeof *pairs);
  triples = allocate(n, sizeof *triples);
  for (i = 0; i < n; i++) pairs[i] = pair_key(words[i], words[(i + 1) % n]);
  model->pairs = count_keys(pairs, n);
  progress("counted pairs of %zu words", n);
  for (i = 0; i < n; i++)
    triples[i] = pair_index(model, words[i], words[(i + 1) % n]) << WORD_BITS | (uint64_t)words[(i + 2) % n];
  model->triples = count_keys(triples, n);
  progress("counted triples of %zu words", n);
  free(words);
}

void ngram_free(struct ngram* model) {
  free(model->vocab);
  free(model->frequency);
  free(model->pairs.keys);
  free(model->pairs.counts);
  free(model->triples.keys);
  free(model->triples.counts);
}

/* ---- Logits */

void ngram_base_logits(const struct ngram* model, float* logits) {
  int32_t w;
  for (w = 0; w < model->n_distinct; w++) logits[w] = (float)log((double)model->frequency[w]);
}

/* The successors of a context: places first..last of the table, and how often the context comes. */
struct range {
  size_t first, last;
  uint64_t total;
};

static struct range find_range(const struct successors* s, uint64_t context) {
  struct range r = {0, 0, 0};
  size_t i;
  if (context == NO_CONTEXT) return r;
  r.first = lower_bound(s, context << WORD_BITS);
  r.last = lower_bound(s, (context + 1) << WORD_BITS);
  for (i = r.first; i < r.last; i++) r.total += s->counts[i];
  return r;
}

static int32_t word_of(uint64_t key) { return (int32_t)(key & ((1u << WORD_BITS) - 1)); }

void ngram_apply(const struct ngram* model, const int32_t history[2], float* logits) {
  struct range p = find_range(&model->pairs, (uint64_t)history[1]);
  struct range t = find_range(&model->triples, pair_index(model, history[0], history[1]));
  size_t i, j = t.first;
  /* Every third word of a triple follows its pair's second word too, and both tables are in the order of words. */
  for (i = p.first; i < p.last; i++) {
    int32_t w = word_of(model->pairs.keys[i]);
    uint64_t weight = model->frequency[w] + PAIR_WEIGHT * (uint64_t)model->n_words / p.total * model->pairs.counts[i];
    if (j < t.last && word_of(model->triples.keys[j]) == w)
      weight += TRIPLE_WEIGHT * (uint64_t)model->n_words / t.total * model->triples.counts[j++];
    logits[w] = (float)log((double)weight);
  }
}

void ngram_revert(const struct ngram* model, const int32_t history[2], float* logits) {
  struct range p = find_range(&model->pairs, (uint64_t)history[1]);
  size_t i;
  for (i = p.first; i < p.last; i++) {
    int32_t w = word_of(model->pairs.keys[i]);
    logits[w] = (float)log((double)model->frequency[w]);
  }
}
