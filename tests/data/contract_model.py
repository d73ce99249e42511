# SPDX-License-Identifier: Apache-2.0
"""The sampling contract once more, written from its text and formulas over exact_ieee: the oracle of golden vectors.

It shares no code with src/contract/ and calls none of it. Where the text says "rounded once", it computes the value to
60 digits and rounds it once.
"""
from decimal import Context, Decimal
from fractions import Fraction

from exact_ieee import BFLOAT16, BINARY16, BINARY32, BINARY64, ONE, Number, exponent_of

F32, F64 = BINARY32, BINARY64
DIGITS = Context(prec=60)

TARGET, INDEPENDENT_DRAFT, ACCEPT, RESIDUAL = range(4)
FLAG_NAN, FLAG_INF, FLAG_EMPTY = 1, 2, 4
FLOAT_MAX = F32.decode(0x7F7FFFFF)
MINUS_INFINITY = F32.decode(0xFF800000)


def exact_ln(value):
    """ln of a positive Fraction to about 60 digits, as a Fraction."""
    quotient = DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(DIGITS.ln(quotient))


LOG2_E = 1 / exact_ln(Fraction(2))

# ---- Philox4x32-10 (Salmon et al., SC'11) ----


def philox4x32_10(counter, key):
    mask = 0xFFFFFFFF
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        low_product = 0xD2511F53 * c0
        high_product = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (high_product >> 32 ^ c1 ^ k0, high_product & mask, low_product >> 32 ^ c3 ^ k1,
                          low_product & mask)
        k0 = k0 + 0x9E3779B9 & mask
        k1 = k1 + 0xBB67AE85 & mask
    return [c0, c1, c2, c3]


# ---- Logarithms ----

ATANH = [F64.literal(text) for text in (
    "0x1.5555555555592p-1", "0x1.999999997fdb7p-2", "0x1.24924941f124fp-2", "0x1.c71c52095d1a0p-3",
    "0x1.74663ee86df76p-3", "0x1.39a1bab74c93ep-3", "0x1.2f056385b8480p-3")]
SQRT_HALF = F64.decode(0x3FE6A09E667F3BCD).magnitude
LN_2 = F64.literal("0x1.62e42fefa39efp-1")
TWO = F64.integer(2)


def ln_one_plus_small(f):
    """2 atanh(s) with s = f / (2 + f); pairs of coefficients first, then pairs of pairs."""
    s = F64.divide(f, F64.add(TWO, f))
    z = F64.multiply(s, s)
    z2 = F64.multiply(z, z)
    pair01 = F64.fma(z, ATANH[1], ATANH[0])
    pair23 = F64.fma(z, ATANH[3], ATANH[2])
    pair45 = F64.fma(z, ATANH[5], ATANH[4])
    upper = F64.fma(z2, ATANH[6], pair45)
    lower = F64.fma(z2, pair23, pair01)
    r = F64.multiply(z, F64.fma(F64.multiply(z2, z2), upper, lower))
    return F64.fma(s, r, F64.add(s, s))


def ln(x):
    # x = m * 2^e with sqrt(1/2) <= m < sqrt(2).
    e = exponent_of(x.magnitude)
    m = x.magnitude / Fraction(2) ** e
    if m >= 2 * SQRT_HALF:
        e, m = e + 1, m / 2
    assert x.sign == 0 and SQRT_HALF <= m < 2 * SQRT_HALF
    return F64.fma(F64.integer(e), LN_2, ln_one_plus_small(F64.subtract(Number(0, m), ONE)))


def ln_one_minus(v):
    if v.magnitude < Fraction(1, 4):
        return ln_one_plus_small(v.negated())
    return ln(F64.subtract(ONE, v))


# ---- Weights and masses ----

EXP2 = [F32.literal(text) for text in (
    "0x1.e974fap-10", "0x1.277856p-7", "0x1.c91cdep-5", "0x1.ebdb5ap-3", "0x1.62e4bap-1", "0x1.0p+0")]
BELOW_TWO = F32.literal("0x1.fffffep+0")


def exp2_fraction(f):
    p = EXP2[0]
    for coefficient in EXP2[1:]:
        p = F32.fma(p, f, coefficient)
    return p if p.less(BELOW_TWO) else BELOW_TWO


def weight(d, log2e_over_t):
    z = F32.multiply(d, log2e_over_t)
    if z.is_nan() or z.is_infinite() or z.exact() < -40:
        return 0
    n = z.exact().numerator // z.exact().denominator  # floor
    p = exp2_fraction(F32.subtract(z, F32.integer(n)))
    mantissa = p.magnitude * 2 ** 23
    assert mantissa.denominator == 1 and 2 ** 23 <= mantissa < 2 ** 24
    return mantissa.numerator * 2 ** 16 // 2 ** -n


def top_p_to_fixed(top_p):
    return int((top_p.exact() * 2 ** 32 + Fraction(1, 2)) // 1)


def mass_limit(p_fixed, total):
    return p_fixed * total // 2 ** 32


# ---- Noise ----


def noise_block(seed, position, purpose, index, level):
    mask = 0xFFFFFFFF
    return philox4x32_10((index, position & mask, position >> 32, purpose * 2 + level), (seed & mask, seed >> 32))


def coarse_bits(seed, position, purpose, token):
    block = noise_block(seed, position, purpose, token // 8, 0)
    halfwords = [half for word in block for half in (word & 0xFFFF, word >> 16)]
    return halfwords[token % 8]


def uniform_bits(seed, position, purpose, token):
    x, y = noise_block(seed, position, purpose, token, 1)[:2]
    return coarse_bits(seed, position, purpose, token) << 48 | (x & 0xFFFF) << 32 | y


def gumbel(u):
    """-ln(-ln(1 - v)), v = (u + 1/2) / 2^64, whose upper half is taken through the complement of u."""
    half = Number(0, Fraction(1, 2))
    scale = Number(0, Fraction(1, 2 ** 64))
    below_half = u < 2 ** 63
    integer = F64.integer(u if below_half else 2 ** 64 - 1 - u)
    v = F64.multiply(F64.add(integer, half), scale)
    e = (ln_one_minus(v) if below_half else ln(v)).negated()
    return ln(e).negated()


# ---- Logits ----


def clean_logit(logit):
    """The logit as it counts, and the flag that it raises."""
    if logit.is_nan():
        return MINUS_INFINITY, FLAG_NAN
    if logit.is_infinite() and logit.sign == 0:
        return FLOAT_MAX, FLAG_INF
    return logit, 0


def order_key(logit, token):
    """Ranks all fp32 values by sign and magnitude; -0 counts as +0."""
    bits = F32.encode(logit)
    if bits == 0x80000000:
        bits = 0
    rank = 2 ** 31 + bits if bits < 2 ** 31 else 2 ** 32 - 1 - bits
    return rank * 2 ** 32 + (2 ** 32 - 1 - token)


# ---- A whole row ----

GREEDY_BELOW = F32.round_value(Fraction(1, 10 ** 6))
LOGIT_FORMATS = {"fp32": F32, "bf16": BFLOAT16, "fp16": BINARY16}


def request_seed(request_id, sampler_seed):
    """The seed of a request that brings none."""
    mask = 0xFFFFFFFF
    block = philox4x32_10((request_id & mask, request_id >> 32, 0, mask), (sampler_seed & mask, sampler_seed >> 32))
    return block[1] << 32 | block[0]


def kept_prefix(order, logits, row, temperature):
    """The prefix of `order` that top-k, top-p and min-p leave."""
    kept = order
    if 0 < row["top_k"] < len(logits):
        kept = kept[:row["top_k"]]
    best = logits[order[0]]
    differences = {token: F32.subtract(logits[token], best) for token in kept}
    top_p = F32.decode(int(row["top_p"], 16))
    if top_p.less(ONE):
        factor = F32.round_value(LOG2_E / temperature.exact())
        assert F32.encode(factor) == F32.encode(F32.convert(F64.divide(F64.round_value(LOG2_E), temperature)))
        weights = [weight(differences[token], factor) for token in kept]
        p_fixed = top_p_to_fixed(top_p) if top_p.exact() > 0 else 0
        limit = mass_limit(p_fixed, sum(weights))
        count, before = 0, 0
        while count < len(kept) and before < limit:
            before += weights[count]
            count += 1
        kept = kept[:max(count, 1)]
    min_p = F32.decode(int(row["min_p"], 16))
    if min_p.exact() > 0:
        threshold = F32.round_value(temperature.exact() * exact_ln(min_p.exact()))
        assert F32.encode(threshold) == F32.encode(F32.convert(F64.multiply(temperature, ln(min_p))))
        kept = [token for token in kept if not differences[token].less(threshold)]
    return kept


def log_probability(logits, candidates, best, token):
    total = sum(weight(F32.subtract(logits[i], best), F32.round_value(LOG2_E)) for i in candidates)
    difference = F64.subtract(logits[token], best)
    log_total = ln(F64.multiply(F64.integer(total), Number(0, Fraction(1, 2 ** 39))))
    return F32.convert(F64.subtract(difference, log_total))


def sample_row(row):
    """The outputs that ts_sampler_sample gives for one row of a request."""
    form = LOGIT_FORMATS[row["type"]]
    raw = [form.decode(int(bits, 16)) for bits in row["logits"]]
    cleaned = [clean_logit(logit) for logit in raw]
    flags = 0
    for _, flag in cleaned:
        flags |= flag
    logits = [logit for logit, _ in cleaned]
    n_valid = row["n_valid"] or len(logits)
    for token in range(len(logits)):
        words = row["mask"]
        allowed = words is None or (token // 32 < len(words) and int(words[token // 32], 16) >> token % 32 & 1)
        if token >= n_valid or not allowed:
            logits[token] = MINUS_INFINITY
    candidates = [token for token, logit in enumerate(logits) if not logit.is_infinite()]
    if not candidates:
        return {"token": row["invalid_token"], "n_kept": 0, "rank": 0, "logprob": "nan", "flags": flags | FLAG_EMPTY,
                "unfiltered": row["invalid_token"]}
    order = sorted(candidates, key=lambda token: (-logits[token].exact(), token))
    temperature = F32.decode(int(row["temperature"], 16))
    if temperature.less(GREEDY_BELOW):
        kept, token, unfiltered = order[:1], order[0], order[0]
    else:
        seed = int(row["seed"], 16) if row["seed"] else request_seed(int(row["request_id"], 16),
                                                                      int(row["sampler_seed"], 16))
        position = int(row["position"], 16)
        inverse = F64.divide(ONE, temperature)
        scores = {}
        for i in candidates:
            x = F64.multiply(logits[i], inverse)
            scores[i] = F64.add(x, gumbel(uniform_bits(seed, position, TARGET, i))).exact()
        kept = kept_prefix(order, logits, row, temperature)
        token, unfiltered = (max(tokens, key=lambda i: (scores[i], -i)) for tokens in (kept, candidates))
    best = logits[order[0]]
    rank = 1 + sum(logits[i].exact() > logits[token].exact() for i in candidates)
    logprob = log_probability(logits, candidates, best, token)
    return {"token": token, "n_kept": len(kept), "rank": rank, "logprob": f"{F32.encode(logprob):08x}",
            "flags": flags, "unfiltered": unfiltered}

