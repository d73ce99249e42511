# SPDX-License-Identifier: Apache-2.0
"""`demo.py text`: text from a word model, one token at a time through the library, as an engine would call it."""
import sys
import time
from array import array

import tssample
from ngram import Ngram

LINE_WIDTH = 78


class Progress:
    """Prints a line to stderr if two seconds have gone since the last one, or since the start."""

    def __init__(self):
        self.last = time.monotonic()

    def __call__(self, message):
        now = time.monotonic()
        if now - self.last >= 2:
            self.last = now
            print("demo.py:", message, file=sys.stderr)


class Wrapper:
    """Prints words, each on a new line where it does not fit. Continuation bytes of UTF-8 take no place."""

    def __init__(self):
        self.column = 0

    def print(self, word):
        width = sum(byte & 0xC0 != 0x80 for byte in word)
        if self.column:
            fits = self.column + 1 + width <= LINE_WIDTH
            sys.stdout.buffer.write(b" " if fits else b"\n")
            self.column = self.column + 1 if fits else 0
        sys.stdout.buffer.write(word)
        self.column += width


def run_text(options):
    progress = Progress()
    with open(options.file, "rb") as file:
        text = file.read()
    if b"\0" in text:
        sys.exit(f"demo.py: {options.file}: not a text: byte {text.index(0)} is 0")
    if not text.strip():
        sys.exit(f"demo.py: {options.file}: no words")
    model = Ngram(text, progress)

    logits = model.base_logits()
    params = tssample.RequestParams(options.temperature, options.top_k, options.top_p, options.min_p, options.seed)
    wrapper = Wrapper()
    u, v = model.history
    with tssample.Sampler(len(model.vocab), device="cpu", n_slots=1) as sampler:
        slots, position, out = array("i", [0]), array("q", [0]), tssample.SampleResult(tokens=array("i", [0]))
        sampler.prepare_step([1], slots, params)  # one request in slot 0: the step stays the same
        begin = time.monotonic()
        for i in range(options.tokens):
            position[0] = i  # the noise of each place is its own
            model.apply((u, v), logits)
            sampler.sample(logits, slots, positions=position, out=out)
            model.revert((u, v), logits)
            u, v = v, out.tokens[0]
            wrapper.print(model.vocab[v])
            progress(f"{i + 1} of {options.tokens} tokens")
        taken = time.monotonic() - begin
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()
    print(f"demo.py: {options.tokens} tokens, {len(model.vocab)} words to choose from, {taken:.3f} s: "
          f"{options.tokens / (taken or 1e-9):.0f} tokens/s", file=sys.stderr)
