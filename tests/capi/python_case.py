# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python binding share: where the binding is, rows with known answers, and the test case."""
import os
import random
import sys
import unittest
from array import array

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
sys.path.insert(0, os.path.join(ROOT, "capi", "python"))

from tssample import RequestParams, Sampler  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

GREEDY = RequestParams(temperature=0.0)
ALL = ["logprobs", "ranks", "n_kept", "row_flags"]
NAN, INF = float("nan"), float("inf")


def rows_with_peaks(vocab, peaks):
    """Packed fp32 rows whose largest logit is at the given ids."""
    logits = array("f", bytes(4 * vocab * len(peaks)))
    for row, peak in enumerate(peaks):
        logits[row * vocab + peak] = 9.0
    return logits


def random_rows(vocab, rows, seed=5):
    generator = random.Random(seed)
    return array("f", [generator.gauss(0, 2) for _ in range(vocab * rows)])


def greedy_tokens(sampler, logits, n, slots=None, **options):
    """The tokens of n greedy requests, as a list."""
    slots = slots or list(range(n))
    sampler.prepare_step(range(100, 100 + n), list(range(n)), GREEDY)
    return list(sampler.sample(logits, slots, **options).tokens)


class Case(unittest.TestCase):
    VOCAB = 8

    def setUp(self):
        self.sampler = self.make(self.VOCAB)

    def make(self, vocab, **options):
        sampler = Sampler(vocab, device="cpu", **{"n_slots": 16, **options})
        self.addCleanup(sampler.close)
        return sampler

    def raises(self, kind, name, call, *args, **kwargs):
        """The call raises exactly this kind of error, and the message starts with the argument's name."""
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        self.assertIs(type(caught.exception), kind)
        self.assertTrue(str(caught.exception).startswith(name), str(caught.exception))
