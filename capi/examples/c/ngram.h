/* SPDX-License-Identifier: Apache-2.0 */
/* A word model of order 3 over a text, with logits that are the same to the bit in C and in Python. */
#ifndef NGRAM_H_
#define NGRAM_H_

#include <stddef.h>
#include <stdint.h>

struct word {
  const char* text; /* in the text that the model was made of */
  size_t length;    /* bytes */
};

/* Successor counts of contexts: keys context << 22 | word in increasing order, each with its count. */
struct successors {
  uint64_t* keys;
  uint32_t* counts;
  size_t n;
};

struct ngram {
  size_t n_words;            /* words of the text */
  int32_t n_distinct;        /* the vocabulary: distinct words, numbered by their first place in the text */
  struct word* vocab;        /* [n_distinct] */
  int32_t history[2];        /* the last two words: the text is read as a ring, so that every context has a successor */
  uint32_t* frequency;       /* [n_distinct] */
  struct successors pairs;   /* context: a word */
  struct successors triples; /* context: the index of a pair in `pairs` */
};

/* Makes the model. The words are what whitespace separates, at least one; `text` must outlive the model. */
void ngram_build(struct ngram* model, const char* text, size_t size);
void ngram_free(struct ngram* model);

/* The logits of every word by itself. */
void ngram_base_logits(const struct ngram* model, float* logits);

/* Turns base logits into those after the words `history`, or back. */
void ngram_apply(const struct ngram* model, const int32_t history[2], float* logits);
void ngram_revert(const struct ngram* model, const int32_t history[2], float* logits);

#endif /* NGRAM_H_ */
