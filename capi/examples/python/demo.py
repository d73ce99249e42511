# SPDX-License-Identifier: Apache-2.0
"""The demo in Python: options, errors and real logits (`demo.py rows`). Prints what capi/examples/c prints."""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, os.pardir, "python"))

import tssample  # noqa: E402
from tssample import RequestParams  # noqa: E402

SETTINGS = {
    "greedy": dict(temperature=0.0),
    "T=1": dict(temperature=1.0),
    "T=0.8 top_k=50": dict(temperature=0.8, top_k=50),
    "T=1 top_p=0.9": dict(temperature=1.0, top_p=0.9),
    "T=1 min_p=0.05": dict(temperature=1.0, min_p=0.05),
    "T=0.7 top_k=100 top_p=0.95 min_p=0.05": dict(temperature=0.7, top_k=100, top_p=0.95, min_p=0.05),
}
PLAIN, N_SEEDS = "T=1", 100


def fail(message):
    sys.exit(f"demo.py: {message}")


def read_rows(data_path, json_path):
    with open(json_path, encoding="utf-8") as file:
        try:
            about = json.load(file)
            vocab, rows_per_request = int(about["vocab"]), int(about["rows_per_request"])
            candidates = [[int(token) for token in row] for row in about["candidates"]]
        except (ValueError, KeyError, TypeError) as error:
            fail(f"{json_path}: {error!r}")
    if min(vocab, rows_per_request) < 1:
        fail(f"{json_path}: \"vocab\" and \"rows_per_request\" must be 1 or more")
    with open(data_path, "rb") as file:
        logits = file.read()
    n_requests, rest = divmod(len(logits), 2 * vocab * rows_per_request)
    if n_requests == 0 or rest:
        fail(f"{data_path}: {len(logits)} bytes are not requests of {rows_per_request} rows of {vocab} bf16 logits")
    if [len(row) for row in candidates] != [rows_per_request] * n_requests:
        fail(f"{json_path}: \"candidates\" does not have {n_requests} times {rows_per_request} ids")
    return logits, vocab, candidates


class Rows:
    """The rows and their sampler."""

    def __init__(self, options):
        self.logits, vocab, self.candidates = read_rows(options.data, options.json)
        self.vocab, self.rows_per_request = vocab, len(self.candidates[0])
        self.slots = list(range(len(self.candidates)))
        self.next_request_id = 1
        self.sampler = tssample.Sampler(vocab, device="cpu", n_slots=len(self.slots),
                                        max_rows_per_request=self.rows_per_request)

    def prepare(self, setting, seed):
        """A step of all rows with one setting; request r has the seed `seed` + r."""
        # New request ids: the requests of the last call leave their slots to those of this one.
        ids = range(self.next_request_id, self.next_request_id + len(self.slots))
        self.next_request_id = ids.stop
        self.sampler.prepare_step(ids, self.slots, [RequestParams(**setting, seed=seed + r) for r in self.slots],
                                  self.rows_per_request)

    def sample(self):
        return self.sampler.sample(self.logits, self.slots, dtype="bf16", want=["logprobs", "ranks", "n_kept"])

    def verify(self):
        return self.sampler.verify(self.logits, self.slots, self.candidates, dtype="bf16", want=["logprobs"])


def print_chain(rows, verified, r):
    print(f"\nrequest {r}, drafts", *rows.candidates[r][1:])
    print("%-38s  accepted  tokens (logprob)" % "setting")
    for name, out in zip(SETTINGS, verified):
        first = r * rows.rows_per_request
        emitted = range(first, first + out.accept_length[r])
        print("%-38s  %8d " % (name, out.accept_length[r] - 1),
              *["%d (%.4f)" % (out.predict[row], out.logprobs[row]) for row in emitted])


def print_acceptance(rows):
    """How often 0, 1, 2, ... drafts are accepted at temperature 1."""
    times = [[0] * rows.rows_per_request for _ in rows.slots]
    for seed in range(1, N_SEEDS + 1):
        rows.prepare(SETTINGS[PLAIN], seed)
        for r, length in enumerate(rows.verify().accept_length):
            times[r][length - 1] += 1
    print(f"\n{PLAIN}, {N_SEEDS} seeds: how often 0 to {rows.rows_per_request - 1} drafts were accepted")
    for r in rows.slots:
        print(f"request {r}: ", *["%3d" % n for n in times[r]])


def run_rows(options):
    rows = Rows(options)
    sampled, verified = [], []
    for setting in SETTINGS.values():
        rows.prepare(setting, seed=1)
        sampled.append(rows.sample())
        verified.append(rows.verify())
    n_rows = len(rows.slots) * rows.rows_per_request
    print(f"{n_rows} rows of {rows.vocab} logits, sampled\n")
    print("row  %-38s  token   logprob    rank    kept" % "setting")
    for row in range(n_rows):
        for name, out in zip(SETTINGS, sampled):
            print("%3d  %-38s %6d  %8.4f  %6d  %6d" % (row, name, out.tokens[row], out.logprobs[row], out.ranks[row],
                                                       out.n_kept[row]))
    print(f"\n{len(rows.slots)} drafted chains, verified")
    for r in rows.slots:
        print_chain(rows, verified, r)
    print_acceptance(rows)


def whole_number(low, high):
    def convert(text):
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"outside {low} to {high}: {text}")
        return value

    convert.__name__ = "whole number"  # argparse: "invalid whole number value: 'x'"
    return convert


def parse_arguments():
    shared = dict(allow_abbrev=False, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser = argparse.ArgumentParser(prog="demo.py", description="Logits in, tokens out.", **shared)
    demos = parser.add_subparsers(dest="demo", required=True, metavar="rows | text")
    rows = demos.add_parser("rows", help="sample and verify real next-token logits at several settings", **shared)
    rows.add_argument("--data", metavar="FILE", default="tests/data/lm_rows_8x128256.bf16",
                      help="logits, bf16 [rows, vocab]")
    rows.add_argument("--json", metavar="FILE", default="tests/data/lm_rows_8x128256.json", help="what they are")
    text = demos.add_parser("text", help="write text with a word model of order 3 of any text file", **shared)
    text.add_argument("--file", metavar="FILE", default="README.md", help="the text to learn from")
    text.add_argument("--tokens", metavar="N", type=whole_number(1, 10**9), default=120, help="words to write")
    text.add_argument("--temperature", metavar="T", type=float, default=0.8, help="0: the likeliest word")
    text.add_argument("--top-k", metavar="K", type=whole_number(-2**31, 2**31 - 1), default=0,
                      help="keep the K likeliest; 0: off")
    text.add_argument("--top-p", metavar="P", type=float, default=1.0, help="keep this much probability; 1: off")
    text.add_argument("--min-p", metavar="M", type=float, default=0.02, help="keep M times the largest; 0: off")
    text.add_argument("--seed", metavar="S", type=whole_number(0, 2**64 - 1), default=1, help="same seed, same text")
    return parser.parse_args()


def main():
    options = parse_arguments()
    try:
        if options.demo == "rows":
            run_rows(options)
        else:
            from demo_text import run_text
            run_text(options)
        sys.stdout.flush()
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else error)
    except tssample.TsError as error:
        fail(error)


if __name__ == "__main__":
    main()
