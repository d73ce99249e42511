#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes contract_vectors.json: golden vectors of the sampling contract, computed exactly by contract_model.py.

  make_contract_vectors.py          writes the file
  make_contract_vectors.py --check  compares it with what would be written; exit status 1 if it differs

Numbers are hexadecimal bit patterns or integers in strings. Needs Python's standard library only.
"""
import json
import pathlib
import random
import sys
from fractions import Fraction

import contract_model as model
import golden_rows
from exact_ieee import BFLOAT16, BINARY16, BINARY32, BINARY64

F32, F64 = BINARY32, BINARY64
PATH = pathlib.Path(__file__).with_name("contract_vectors.json")

# Random123 kat_vectors, "philox4x32 10": counter, key, output.
PUBLISHED_PHILOX = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
# Found by search: arguments whose result changes when one fma is replaced by two roundings or one coefficient is moved
# by one unit. What no argument of 1.5e8 shows is missing.
LN_WITNESSES = [
    0x3ff4271eed25e3c8, 0x3ff4a75df9f2269f, 0x3fe9a72a0b982808, 0x3ff5ca81a3939f0a, 0x3fe8a185ba04b41f,
    0x3fe6bc2b53b8f08d, 0x3c1caabaea4f41e4, 0x3f23565efa87e8f8, 0x3fe8251bb494b4d2, 0x3ff412fae9dd94b1,
    0x3fee5c3f8e9884b0, 0x3fed9f9d200a7a64, 0x3fe6fb4f6913a328, 0x3ff588284f9af232, 0x3fe74d01a210fc51,
    0x3ff5e9bef396ac32, 0x3ff5d1a2ddbba2e6, 0x3fe7a3185b1b158b, 0x3dcf60099f6aaabe, 0x3cb78a0a5962e6c3,
    0x3ff3b520a33f6916, 0x3fe80c83b8d29f01, 0x3fe8fe89cc368887, 0x3fe8fab2d85a484b, 0x3ff584b19dc5e8b1,
    0x3fe6e6a09d85a5cb, 0x3c9436c8fa46e6bd, 0x4012e7a50387d8fc,
]
EXP2_WITNESSES = [
    0x3f7ea156, 0x3f3a9beb, 0x3f75b0c3, 0x3f6318ac, 0x3f555fc1, 0x3f6baf44, 0x3f7ecc03, 0x3f5a2fb5, 0x3f182f07,
    0x3f111a2a, 0x3f49ff98, 0x3f7ea156, 0x3f49ff98, 0x3f6c33ec, 0x3efea8f2, 0x3f555fc1, 0x3f7d9806, 0x3f5a2fb5,
    0x3f182f07, 0x3e417838, 0x3f75b0c3, 0x3f3a9beb, 0x3f75b0c3, 0x3f63a4f0, 0x3f2d4a8d, 0x3f5c749e, 0x3f698d6c,
    0x3f5b63b2, 0x3f78eb23, 0x3f111a2a,
]
MIN_SUBNORMAL, MAX_SUBNORMAL, MIN_NORMAL = 0x00000001, 0x007FFFFF, 0x00800000
FLOAT_MAX, INFINITY, NEGATIVE = 0x7F7FFFFF, 0x7F800000, 0x80000000


def h16(value):
    return f"{value:04x}"


def h32(value):
    return f"{value:08x}"


def h64(value):
    return f"{value:016x}"


def f32(value):
    """Bits of the fp32 nearest to an exact value."""
    return F32.encode(F32.round_value(Fraction(value)))


def f64(value):
    return F64.encode(F64.round_value(Fraction(value)))


def around(bits, distance):
    """Bit patterns next to `bits`, itself included."""
    return [bits + i for i in range(-distance, distance + 1)]


def check_ulp(result, exact, limit):
    """Guards the model itself: `result` within `limit` units in the last place of the exact value."""
    if exact == 0:
        assert result.magnitude == 0
        return
    unit = Fraction(2) ** (model.exponent_of(abs(exact)) - 52)
    assert abs(result.exact() - exact) < limit * unit


def philox_vectors(rng):
    vectors = [[counter.split(), key.split(), output.split()] for counter, key, output in PUBLISHED_PHILOX]
    for counter, key, output in vectors:
        words = model.philox4x32_10([int(w, 16) for w in counter], [int(w, 16) for w in key])
        assert [h32(w) for w in words] == output, "the model's Philox is wrong"
    for _ in range(12):
        counter = [rng.getrandbits(32) for _ in range(4)]
        key = [rng.getrandbits(32) for _ in range(2)]
        vectors.append([[h32(w) for w in words] for words in (counter, key, model.philox4x32_10(counter, key))])
    return vectors


def ln_vectors(rng):
    inputs = []
    for exponent in range(-66, 24):
        inputs += [exponent + 1023 << 52, (exponent + 1023 << 52) + rng.getrandbits(52)]
    one = f64(1)
    sqrt_half, sqrt_two = 0x3FE6A09E667F3BCD, 0x3FF6A09E667F3BCD
    inputs += around(one, 6) + around(sqrt_half, 5) + around(sqrt_two, 5)
    inputs += [one + (1 << i) for i in range(3, 52, 4)] + [one - (1 << i) for i in range(3, 52, 4)]
    inputs += [0x0010000000000000, 0x7FEFFFFFFFFFFFFF, f64(Fraction(45)), f64(Fraction(1, 3))]
    inputs += [one + rng.getrandbits(53) - (1 << 52) for _ in range(48)] + LN_WITNESSES
    vectors = []
    for bits in inputs:
        x = F64.decode(bits)
        result = model.ln(x)
        check_ulp(result, model.exact_ln(x.exact()), 2)
        vectors.append([h64(bits), h64(F64.encode(result))])
    return vectors


def ln_one_minus_vectors(rng):
    quarter, half = f64(Fraction(1, 4)), f64(Fraction(1, 2))
    inputs = [f64(Fraction(1, 2 ** i)) for i in range(1, 66, 3)] + around(quarter, 4)
    inputs += [half - i for i in range(5)] + [0x0010000000000000, f64(Fraction(3, 2 ** 65))]
    inputs += [half - rng.getrandbits(58) for _ in range(40)]
    vectors = []
    for bits in inputs:
        v = F64.decode(bits)
        result = model.ln_one_minus(v)
        if v.magnitude > Fraction(1, 2 ** 100):
            check_ulp(result, model.exact_ln(1 - v.exact()), 2)
        vectors.append([h64(bits), h64(F64.encode(result))])
    return vectors


def exp2_vectors(rng):
    steps = [0, 1, 2, 3, 2 ** 22, 2 ** 23 - 1, 2 ** 23, 2 ** 23 + 1, 2 ** 24 - 2, 2 ** 24 - 1, 2 ** 24]
    steps += [rng.getrandbits(24) for _ in range(40)]
    inputs = [f32(Fraction(step, 2 ** 24)) for step in steps] + [MIN_SUBNORMAL, MIN_NORMAL, f32(Fraction(1, 2 ** 40))]
    inputs += EXP2_WITNESSES
    return [[h32(bits), h32(F32.encode(model.exp2_fraction(F32.decode(bits))))] for bits in inputs]


def weight_vectors(rng):
    one = f32(1)
    log2_e = f32(model.LOG2_E)
    pairs = []
    # With factor 1, z is d itself: whole numbers, the cut at -40 and the finest fractions.
    edges = [0, NEGATIVE, NEGATIVE | MIN_SUBNORMAL, NEGATIVE | MIN_NORMAL, NEGATIVE | FLOAT_MAX, NEGATIVE | INFINITY]
    edges += [f32(-Fraction(1, 2 ** i)) for i in (1, 2, 22, 23, 24, 25, 26, 30, 60)]
    for whole in (1, 2, 3, 7, 8, 15, 16, 23, 24, 31, 32, 37, 38, 39, 40, 41):
        edges += around(f32(-whole), 1)
    edges += [f32(-Fraction(39999, 1000)), f32(-Fraction(38999, 1000)), f32(-100), f32(-(2 ** 31)), f32(-(2 ** 40))]
    pairs += [(d, one) for d in edges]
    for d in edges[:15]:
        pairs += [(d, log2_e), (d, f32(model.LOG2_E * 10 ** 6)), (d, f32(model.LOG2_E / 10 ** 6))]
    pairs += [(NEGATIVE | INFINITY, 0), (NEGATIVE | FLOAT_MAX, MIN_SUBNORMAL), (NEGATIVE | FLOAT_MAX, FLOAT_MAX)]
    for _ in range(80):
        factor = f32(model.LOG2_E * Fraction(2 ** rng.randrange(24), 2 ** rng.randrange(24)) * rng.randrange(1, 97))
        z = -Fraction(rng.getrandbits(32) * 41, 2 ** 32)
        pairs.append((f32(z / F32.decode(factor).exact()), factor))
    return [[h32(d), h32(factor), h64(model.weight(F32.decode(d), F32.decode(factor)))] for d, factor in pairs]


def top_p_vectors(rng):
    one = f32(1)
    inputs = [0, MIN_SUBNORMAL, MIN_NORMAL, one - 1, one - 2] + [f32(Fraction(i, 100)) for i in (1, 10, 50, 90, 95, 99)]
    for exponent in range(-36, -30):
        inputs += around(f32(Fraction(2) ** exponent), 1)
    inputs += [rng.getrandbits(23) + (127 - 1 - rng.randrange(34) << 23) for _ in range(20)]
    return [[h32(bits), h64(model.top_p_to_fixed(F32.decode(bits)))] for bits in inputs]


def mass_limit_vectors(rng):
    p_values = [0, 1, 2 ** 31, 2 ** 32 - 256, 2 ** 32 - 1, 2 ** 32, 0xE6666660]
    totals = [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 39, 2 ** 39 + 1, 2 ** 61 - 1]
    pairs = [(p, total) for p in p_values for total in totals]
    pairs += [(rng.getrandbits(32), rng.getrandbits(61)) for _ in range(30)]
    return [[h64(p), h64(total), h64(model.mass_limit(p, total))] for p, total in pairs]


def gumbel_vectors(rng):
    top = 2 ** 64 - 1
    one_e = 11660566172440984352  # (1 - 1 / e) * 2^64: noise near 0
    inputs = list(range(4)) + [top - i for i in range(4)] + around(2 ** 63, 2) + around(2 ** 62, 2)
    for exponent in range(2, 64, 4):
        inputs += [2 ** exponent - 1, 2 ** exponent, top - 2 ** exponent, top - 2 ** exponent + 1]
    inputs += [one_e + offset for offset in (-(2 ** 40), -2048, -1, 0, 1, 2048, 2 ** 40)] + around(2 ** 53, 2)
    inputs += [rng.getrandbits(64) >> rng.randrange(0, 64, 4) for _ in range(40)]
    inputs += [top - (rng.getrandbits(64) >> rng.randrange(0, 64, 4)) for _ in range(40)]
    return [[h64(u), h64(F64.encode(model.gumbel(u)))] for u in inputs]


def noise_vectors(rng):
    seeds = [0, 1, 42, 2 ** 32 - 1, 2 ** 32, 0x123456789ABCDEF0, 2 ** 64 - 1]
    positions = [0, 1, 4095, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 7, 2 ** 63 - 1]
    tokens = [0, 1, 6, 7, 8, 9, 15, 16, 17, 128255, 2 ** 22 - 2]
    keys = [(seed, 5, token) for seed in seeds for token in tokens[:9]]
    keys += [(42, position, token) for position in positions for token in tokens]
    keys += [(rng.getrandbits(64), rng.getrandbits(63), rng.getrandbits(22)) for _ in range(30)]
    vectors = []
    for count, (seed, position, token) in enumerate(keys):
        purpose = count % 4 if count % 3 == 0 else model.TARGET
        vectors.append([h64(seed), h64(position), purpose, token,
                        h16(model.coarse_bits(seed, position, purpose, token)),
                        h64(model.uniform_bits(seed, position, purpose, token))])
    return vectors


def order_vectors(rng):
    magnitudes = [0, MIN_SUBNORMAL, MAX_SUBNORMAL, MIN_NORMAL, f32(1), f32(Fraction(45, 2)), FLOAT_MAX]
    logits = [sign | bits for sign in (0, NEGATIVE) for bits in magnitudes] + [NEGATIVE | INFINITY]
    pairs = [(bits, token) for bits in logits for token in (0, 1, 128255)]
    pairs += [(rng.getrandbits(32), rng.getrandbits(22)) for _ in range(30)]
    pairs = [pair for pair in pairs if pair[0] & 0x7FFFFFFF < INFINITY or pair[0] == NEGATIVE | INFINITY]
    return [[h32(bits), token, h64(model.order_key(F32.decode(bits), token))] for bits, token in pairs]


def half_vectors(form, rng):
    """16-bit patterns and the fp32 bits of the same value. NaN is left to the exhaustive unit test."""
    fraction_bits = form.fraction_bits
    infinity = form.exponent_mask << fraction_bits
    inputs = [0, 1, 2, (1 << fraction_bits) - 1, 1 << fraction_bits, infinity - 1, infinity]
    inputs += [rng.getrandbits(15) for _ in range(30)]
    inputs = [sign | bits for bits in inputs if bits <= infinity for sign in (0, 0x8000)]
    return [[h16(bits), h32(F32.encode(form.decode(bits)))] for bits in inputs]


def clean_vectors():
    inputs = [0, NEGATIVE, f32(1), FLOAT_MAX, NEGATIVE | FLOAT_MAX, INFINITY, NEGATIVE | INFINITY, MIN_SUBNORMAL]
    inputs += [INFINITY | 1, INFINITY | 0x400000, 0x7FFFFFFF, 0xFFFFFFFF, NEGATIVE | INFINITY | 1]
    vectors = []
    for bits in inputs:
        logit, flags = model.clean_logit(F32.decode(bits))
        vectors.append([h32(bits), h32(F32.encode(logit)), flags])
    return vectors


def seed_vectors(rng):
    pairs = [(0, 0), (1, 0), (0, 1), (2 ** 64 - 1, 2 ** 64 - 1), (rng.getrandbits(64), rng.getrandbits(64))]
    return [[h64(request), h64(seed), h64(model.request_seed(request, seed))] for request, seed in pairs]


def host_parameter_vectors(rng):
    """1/T in fp64, log2(e)/T and T * ln(min_p) in fp32, each the exact value rounded once."""
    greedy_below, float_max = F32.encode(model.GREEDY_BELOW), FLOAT_MAX
    temperatures = [greedy_below, float_max, f32(1), f32(Fraction(1, 3)), f32(Fraction(7, 10)), f32(2), f32(100)]
    temperatures += [rng.randrange(greedy_below, f32(1000)) for _ in range(40)]
    vectors = []
    for count, bits in enumerate(temperatures):
        min_p_bits = (MIN_SUBNORMAL, f32(1), f32(1) - 1, MIN_NORMAL, rng.randrange(1, f32(1)))[min(count, 4)]
        temperature, min_p = F32.decode(bits).exact(), F32.decode(min_p_bits).exact()
        vectors.append([h32(bits), h32(min_p_bits), h64(f64(1 / temperature)), h32(f32(model.LOG2_E / temperature)),
                        h32(f32(temperature * model.exact_ln(min_p)))])
    return vectors


def build():
    # Why a generator for each section: a new vector in one leaves the others as they are.
    sections = {
        "philox": philox_vectors, "ln": ln_vectors, "ln_one_minus": ln_one_minus_vectors,
        "exp2_fraction": exp2_vectors, "weight": weight_vectors, "top_p_to_fixed": top_p_vectors,
        "mass_limit": mass_limit_vectors, "gumbel": gumbel_vectors, "noise": noise_vectors,
        "order_key": order_vectors, "bf16": lambda rng: half_vectors(BFLOAT16, rng),
        "fp16": lambda rng: half_vectors(BINARY16, rng), "clean_logit": lambda rng: clean_vectors(),
        "request_seed": seed_vectors, "host_parameters": host_parameter_vectors,
        "rows": golden_rows.row_vectors,
    }
    return {name: make(random.Random("tssample " + name)) for name, make in sections.items()}


def text_of(data):
    """JSON with one vector a line."""
    parts = []
    for name, vectors in data.items():
        lines = ",\n".join("    " + json.dumps(vector) for vector in vectors)
        parts.append(f'  "{name}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    text = text_of(build())
    if sys.argv[1:] == ["--check"]:
        if PATH.read_text(encoding="ascii") != text:
            print(f"{PATH} differs from what {pathlib.Path(__file__).name} makes", file=sys.stderr)
            return 1
        print(f"{PATH.name}: {text.count(chr(10))} lines, as made")
        return 0
    PATH.write_text(text, encoding="ascii")
    print(f"{PATH}: {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
