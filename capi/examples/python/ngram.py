# SPDX-License-Identifier: Apache-2.0
"""A word model of order 3 over a text: integer counts, and logits that are the same to the bit as those of ngram.c."""
import math
import sys
from array import array
from bisect import bisect_left
from collections import Counter

PAIR_WEIGHT, TRIPLE_WEIGHT, WORD_BITS = 8, 64, 22
MAX_WORDS = (1 << WORD_BITS) - 1


class Successors:
    """Successor counts of contexts: sorted keys, context << 22 | word, each with its count."""

    def __init__(self, contexts, words):
        counted = Counter([context << WORD_BITS | word for context, word in zip(contexts, words)])
        self.keys = array("Q", sorted(counted))
        self.counts = [counted[key] for key in self.keys]

    def of(self, context):
        """The successors of a context, as {word: count}."""
        first = bisect_left(self.keys, context << WORD_BITS)
        last = bisect_left(self.keys, (context + 1) << WORD_BITS, first)
        return {self.keys[i] & MAX_WORDS: self.counts[i] for i in range(first, last)}

    def index(self, context, word):
        """The place of a pair, or None."""
        key = context << WORD_BITS | word
        i = bisect_left(self.keys, key)
        return i if i < len(self.keys) and self.keys[i] == key else None


class Ngram:
    """weight(w | u v) = count(w) + 8 * N / count(v) * count(v w) + 64 * N / count(u v) * count(u v w), N words in the
    text, divisions rounded down; a logit is log(weight) in double, then float. The text is read as a ring."""

    def __init__(self, text, progress):
        words = text.split()
        numbers = {}
        sequence = [numbers.setdefault(word, len(numbers)) for word in words]
        self.n_words = len(words)
        self.vocab = list(numbers)
        if len(self.vocab) > MAX_WORDS:
            sys.exit(f"demo.py: {len(self.vocab)} distinct words; at most {MAX_WORDS}")
        self.history = [sequence[-2 % len(words)], sequence[-1]]
        frequency = Counter(sequence)
        self.frequency = [frequency[w] for w in range(len(self.vocab))]
        progress(f"numbered {self.n_words} words")

        second = sequence[1:] + sequence[:1]
        third = second[1:] + second[:1]
        self.pairs = Successors(sequence, second)
        progress(f"counted pairs of {self.n_words} words")
        places = {key: i for i, key in enumerate(self.pairs.keys)}
        self.triples = Successors([places[u << WORD_BITS | v] for u, v in zip(sequence, second)], third)
        progress(f"counted triples of {self.n_words} words")

    def base_logits(self):
        """The logits of every word by itself."""
        return array("f", [math.log(n) for n in self.frequency])

    def apply(self, history, logits):
        """Turns base logits into those after the words `history`."""
        u, v = history
        pairs = self.pairs.of(v)
        pair = self.pairs.index(u, v)
        triples = self.triples.of(pair) if pair is not None else {}
        pair_scale = PAIR_WEIGHT * self.n_words // sum(pairs.values())
        triple_scale = TRIPLE_WEIGHT * self.n_words // max(1, sum(triples.values()))
        for w, n in pairs.items():
            logits[w] = math.log(self.frequency[w] + pair_scale * n + triple_scale * triples.get(w, 0))

    def revert(self, history, logits):
        for w in self.pairs.of(history[1]):
            logits[w] = math.log(self.frequency[w])
