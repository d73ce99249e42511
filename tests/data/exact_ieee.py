# SPDX-License-Identifier: Apache-2.0
"""IEEE-754 arithmetic by exact rationals: every operation is computed without error, then rounded once to nearest even.

Slow and obvious on purpose: it is what the C++ and CUDA arithmetic of the contract is compared with, so it uses no
floating-point operation of the machine.
"""
import struct
from fractions import Fraction

INFINITY = "infinity"
NAN = "nan"


class Number:
    """A sign (0 or 1) and a magnitude: an exact Fraction, INFINITY or NAN."""

    __slots__ = ("sign", "magnitude")

    def __init__(self, sign, magnitude):
        self.sign = sign
        self.magnitude = magnitude

    def is_nan(self):
        return self.magnitude is NAN

    def is_infinite(self):
        return self.magnitude is INFINITY

    def exact(self):
        """The value of a finite number as a Fraction (-0 is 0)."""
        return -self.magnitude if self.sign else self.magnitude

    def less(self, other):
        """IEEE `<`; false if either is NaN."""
        if self.is_nan() or other.is_nan():
            return False
        if self.is_infinite() or other.is_infinite():
            rank = [(-1 if n.sign else 1) if n.is_infinite() else 0 for n in (self, other)]
            return rank[0] < rank[1]
        return self.exact() < other.exact()

    def negated(self):
        return Number(1 - self.sign, self.magnitude)


def exponent_of(value):
    """floor(log2(value)) of a positive Fraction."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if value >= Fraction(2) ** e else e - 1


class Format:
    """A binary interchange format with `width` bits, of which precision - 1 are the stored fraction."""

    def __init__(self, width, precision):
        self.width = width
        self.precision = precision
        self.fraction_bits = precision - 1
        self.bias = (1 << (width - precision - 1)) - 1
        self.exponent_mask = (1 << (width - precision)) - 1

    # Bits.

    def decode(self, bits):
        sign = bits >> (self.width - 1)
        exponent = (bits >> self.fraction_bits) & self.exponent_mask
        fraction = bits & ((1 << self.fraction_bits) - 1)
        if exponent == self.exponent_mask:
            return Number(sign, NAN if fraction else INFINITY)
        if exponent == 0:
            exponent = 1
        else:
            fraction |= 1 << self.fraction_bits
        return Number(sign, fraction * Fraction(2) ** (exponent - self.bias - self.fraction_bits))

    def encode(self, number):
        sign = number.sign << (self.width - 1)
        if number.is_nan():
            return self.exponent_mask << self.fraction_bits | 1 << (self.fraction_bits - 1)
        if number.is_infinite():
            return sign | self.exponent_mask << self.fraction_bits
        if number.magnitude == 0:
            return sign
        exponent = max(exponent_of(number.magnitude), 1 - self.bias)
        scaled = number.magnitude / Fraction(2) ** (exponent - self.fraction_bits)
        assert scaled.denominator == 1, "not a number of this format"
        if scaled.numerator >> self.fraction_bits == 0:
            return sign | scaled.numerator
        return sign | (exponent + self.bias - 1 << self.fraction_bits) + scaled.numerator

    def literal(self, text):
        """A C hexadecimal floating literal that this format holds exactly."""
        (bits,) = struct.unpack("<Q", struct.pack("<d", float.fromhex(text)))
        number = BINARY64.decode(bits)
        assert self.round(number.sign, number.magnitude).magnitude == number.magnitude, text
        return number

    def integer(self, value):
        return self.round(int(value < 0), Fraction(abs(value)))

    # Rounding.

    def round(self, sign, magnitude):
        """The nearest number of the format; ties go to the even one; too large becomes infinite."""
        if magnitude == 0:
            return Number(sign, Fraction(0))
        exponent = max(exponent_of(magnitude), 1 - self.bias)
        quantum = Fraction(2) ** (exponent - self.fraction_bits)
        scaled = magnitude / quantum
        whole = scaled.numerator // scaled.denominator
        rest = scaled - whole
        if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1):
            whole += 1
        result = whole * quantum
        if result >= Fraction(2) ** (self.bias + 1):
            return Number(sign, INFINITY)
        return Number(sign, result)

    def round_value(self, value):
        return self.round(int(value < 0), abs(value))

    def convert(self, number):
        if number.is_nan() or number.is_infinite():
            return number
        return self.round(number.sign, number.magnitude)

    # Operations.

    def add(self, a, b):
        return self.fma(a, ONE, b)

    def subtract(self, a, b):
        return self.fma(a, ONE, b.negated())

    def multiply(self, a, b):
        sign = a.sign ^ b.sign
        if a.is_nan() or b.is_nan():
            return Number(0, NAN)
        if a.is_infinite() or b.is_infinite():
            return Number(0, NAN) if 0 in (a.magnitude, b.magnitude) else Number(sign, INFINITY)
        return self.round(sign, a.magnitude * b.magnitude)

    def divide(self, a, b):
        assert not (a.is_nan() or a.is_infinite() or b.is_nan() or b.is_infinite() or b.magnitude == 0)
        return self.round(a.sign ^ b.sign, a.magnitude / b.magnitude)

    def fma(self, a, b, c):
        """a * b + c, rounded once."""
        if a.is_nan() or b.is_nan() or c.is_nan():
            return Number(0, NAN)
        product_sign = a.sign ^ b.sign
        if a.is_infinite() or b.is_infinite():
            if 0 in (a.magnitude, b.magnitude) or (c.is_infinite() and c.sign != product_sign):
                return Number(0, NAN)
            return Number(product_sign, INFINITY)
        if c.is_infinite():
            return c
        product = a.magnitude * b.magnitude
        total = (-product if product_sign else product) + c.exact()
        if total == 0:
            # A zero sum is +0 unless both terms are negative zeros.
            return Number(product_sign & c.sign if product == 0 else 0, Fraction(0))
        return self.round_value(total)


ONE = Number(0, Fraction(1))
BINARY16 = Format(16, 11)
BFLOAT16 = Format(16, 8)
BINARY32 = Format(32, 24)
BINARY64 = Format(64, 53)
