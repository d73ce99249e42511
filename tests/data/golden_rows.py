# SPDX-License-Identifier: Apache-2.0
"""Small rows of logits with every kind of parameter, and the outputs that the contract gives for them."""
from fractions import Fraction

import contract_model as model
from exact_ieee import BFLOAT16, BINARY16, BINARY32

FORMATS = {"fp32": BINARY32, "bf16": BFLOAT16, "fp16": BINARY16}
NON_FINITE = {"fp32": ("7fc00000", "7f800000", "ff800000"), "bf16": ("7fc0", "7f80", "ff80"),
              "fp16": ("7e00", "7c00", "fc00")}  # NaN, +inf, -inf
OUTPUTS = ("token", "n_kept", "rank", "logprob", "flags")


def f32(value):
    return f"{BINARY32.encode(BINARY32.round_value(Fraction(value))):08x}"


def encode(kind, values):
    form = FORMATS[kind]
    return [f"{form.encode(form.round_value(Fraction(value))):0{form.width // 4}x}" for value in values]


def random_logits(rng, kind, vocab, spread, step):
    """Multiples of `step` within +-spread: a coarse step makes ties."""
    count = int(spread / step)
    return encode(kind, [(rng.randrange(2 * count + 1) - count) * step for _ in range(vocab)])


def row(name, logits, kind="fp32", temperature=1, top_k=0, top_p=1, min_p=0, seed=None, position=0, n_valid=0,
        mask=None, invalid_token=0, request_id=1, sampler_seed=0):
    return {"name": name, "type": kind, "logits": logits, "temperature": f32(temperature), "top_k": top_k,
            "top_p": f32(top_p), "min_p": f32(min_p), "seed": None if seed is None else f"{seed:016x}",
            "position": f"{position:016x}", "n_valid": n_valid, "mask": mask, "invalid_token": invalid_token,
            "request_id": f"{request_id:016x}", "sampler_seed": f"{sampler_seed:016x}"}


def edge_rows(rng):
    kind = "fp32"
    nan, plus_inf, minus_inf = NON_FINITE[kind]
    minus_zero, plus_zero = "80000000", "00000000"
    float_max, minus_float_max = "7f7fffff", "ff7fffff"
    ten = encode(kind, range(10))
    equal = encode(kind, [Fraction(3, 2)] * 40)
    boundary, tenths = Fraction(1, 10 ** 6), Fraction(7, 10)
    wide = random_logits(rng, kind, 70, 8, Fraction(1, 1024))
    return [
        row("one id", encode(kind, [-5]), seed=1),
        row("one id, masked", encode(kind, [-5]), seed=1, mask=["00000000"]),
        row("all NaN", [nan] * 5, seed=1, invalid_token=3),
        row("all -inf, greedy", [minus_inf] * 33, temperature=0, invalid_token=32),
        row("one allowed id is -inf", [plus_inf, minus_inf, plus_zero], seed=1, mask=["00000002"]),
        row("signed zeros tie, greedy", [minus_inf, minus_zero, plus_zero, minus_zero], temperature=0),
        row("signed zeros tie, top-k 2", [minus_zero, plus_zero, minus_zero, plus_zero], top_k=2, seed=7),
        row("two +inf tie", [plus_zero, plus_inf, float_max, plus_inf], temperature=0),
        row("+inf sampled among FLT_MAX", [plus_inf, float_max, minus_float_max], seed=3, position=9),
        row("d overflows fp32", [float_max, minus_float_max, minus_float_max], seed=4, temperature=Fraction(2) ** 100),
        row("NaN and +inf in padding", ten[:8] + [nan, plus_inf], n_valid=8, seed=5),
        row("temperature at the greedy limit", equal, temperature=boundary, seed=6),
        row("temperature below the limit", equal, temperature=boundary * Fraction(999, 1000), seed=6),
        row("largest temperature", wide, temperature=BINARY32.decode(0x7F7FFFFF).exact(), seed=8),
        row("hot: filtered winner differs", wide, temperature=100, top_k=5, seed=9),
        row("hot: top-p cuts the winner", wide, temperature=4, top_p=Fraction(1, 4), seed=10),
        row("hot: min-p cuts the winner", wide, temperature=3, min_p=Fraction(1, 2), seed=11),
        row("top-k at a tie", equal, top_k=13, seed=12),
        row("top-k is the width", ten, top_k=10, seed=13),
        row("top-k off by 2^30", ten, top_k=2 ** 30, seed=13),
        row("top-k negative", ten, top_k=-1, seed=13),
        row("top-p of equal weights, whole", equal, top_p=Fraction(1, 2), seed=14),
        row("top-p of equal weights, split", equal, top_p=Fraction(1, 2) + Fraction(1, 2 ** 20), seed=14),
        # Total 2^40 + 1, half of it 2^39 + 1/2: the limit is rounded down, so the second id goes.
        row("top-p limit is rounded down", encode(kind, [0, 0, -27]), top_p=Fraction(1, 2), seed=14),
        row("top-p 0", ten, top_p=0, seed=15),
        row("top-p negative", ten, top_p=-1, seed=15),
        row("top-p 2^-40 rounds to 0", ten, top_p=Fraction(1, 2 ** 40), seed=15),
        row("top-p just below 1", wide, top_p=1 - Fraction(1, 2 ** 24), seed=16),
        row("top-p takes top-k's total", equal, top_k=10, top_p=Fraction(1, 2), seed=17),
        row("min-p 1 keeps the ties", ten + ten, min_p=1, seed=18, temperature=2),
        row("min-p smallest", ten + encode(kind, [-200]), min_p=Fraction(1, 2 ** 149), seed=19),
        row("all filters", wide, temperature=2, top_k=30, top_p=Fraction(4, 5), min_p=Fraction(1, 20), seed=20),
        row("mask shorter than the row", wide, mask=["aaaaaaaa", "80000001"], seed=21, temperature=5),
        row("mask longer than the row", ten, mask=["fffffffe", "ffffffff"], seed=22),
        row("position above 2^32", ten, position=2 ** 32 + 5, temperature=10, seed=2 ** 64 - 1),
        row("position 2^62", ten, position=2 ** 62, temperature=10, seed=2 ** 63),
        # Found by search: fp64 scores that tie, though l / T + g or an fma would put the second id first.
        row("scores tie", ["401dd800", "b51904e6"], temperature=tenths, seed=464),
        row("scores tie, not with fma", ["3e9594e0", "3c1cf19f"], temperature=tenths, seed=2188),
        row("scores tie, not with fma, negative", ["3e8a94a0", "bc431661"], temperature=tenths, seed=2188),
        row("scores tie, not when divided by T", ["3e89e620", "bc58e661"], temperature=tenths, seed=2188),
        row("scores tie, not when divided by T, again", ["3e8c85e0", "bc04ee61"], temperature=tenths, seed=2188),
        row("seed of the request id", wide, temperature=50, request_id=77, sampler_seed=2 ** 40 + 1),
        row("seed of a large request id", wide, temperature=50, request_id=2 ** 64 - 2, sampler_seed=2 ** 64 - 1),
    ]


def random_rows(rng, count):
    rows = []
    for number in range(count):
        kind = ("fp32", "bf16", "fp16")[number % 3]
        vocab = rng.randrange(2, 71)
        step = Fraction(1, (4, 64, 1024)[rng.randrange(3)])
        logits = random_logits(rng, kind, vocab, rng.randrange(1, 20), step)
        if number % 4 == 0:
            for value in NON_FINITE[kind]:
                logits[rng.randrange(vocab)] = value
        words = (vocab + 31) // 32
        rows.append(row(
            f"random {number}", logits, kind, seed=rng.getrandbits(64), position=rng.getrandbits(20),
            temperature=Fraction(1 + rng.randrange(40), 10),
            top_k=rng.randrange(1, vocab + 1) if rng.randrange(2) else 0,
            top_p=Fraction(1 + rng.randrange(100), 100) if rng.randrange(2) else 1,
            min_p=Fraction(1 + rng.randrange(40), 200) if rng.randrange(3) == 0 else 0,
            mask=[f"{rng.getrandbits(32):08x}" for _ in range(words)] if rng.randrange(3) == 0 else None,
            n_valid=rng.randrange(1, vocab + 1) if rng.randrange(4) == 0 else 0))
    return rows


def row_vectors(rng):
    rows = edge_rows(rng) + random_rows(rng, 24)
    n_redrawn = 0
    for entry in rows:
        result = model.sample_row(entry)
        n_redrawn += result["token"] != result["unfiltered"]
        entry["out"] = {name: result[name] for name in OUTPUTS}
    assert n_redrawn >= 8, "too few rows whose unfiltered winner is filtered away"
    return rows
