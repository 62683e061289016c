"""Owns arithmetic and comparison on codes inside the machine: one kernel for each kind of operand.

Codes have the order of values: an int is its own code; an unsigned is its bits with the highest one flipped;
a float is its bits, with all but the sign flipped if it is negative, after -0.0 became 0.0 and every NaN the
one that is ordered last.  What each operation means, and where it is undefined, is in
`dlog.lftj.plan.Compute`.

Each kernel returns the code of the result; an undefined one raises state[UNDEFINED] and the caller looks
there.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.lftj.opcodes import UNDEFINED
from dlog.lftj.plan import BINARY_OPS, UNARY_OPS

SIGN = np.int64(-(2**63))
MAX = np.int64(2**63 - 1)
NAN_CODE = np.int64(0x7FF8 << 48)  # the one NaN, as storage.values codes it: after all numbers
TWO63 = 2.0**63

OPERATION = {op: i for i, op in enumerate(BINARY_OPS + UNARY_OPS)}
ADD, SUB, MUL, DIV, MOD, POW = (OPERATION[op] for op in ("add", "sub", "mul", "div", "mod", "pow"))
MINIMUM, MAXIMUM, COPY, NEG = (OPERATION[op] for op in ("min", "max", "copy", "neg"))
BAND, BOR, BXOR, BNOT = (OPERATION[op] for op in ("band", "bor", "bxor", "bnot"))
BSHL, BSHR, BSHRU = (OPERATION[op] for op in ("bshl", "bshr", "bshru"))
LAND, LOR, LXOR, LNOT = (OPERATION[op] for op in ("land", "lor", "lxor", "lnot"))
TO_INT, TO_UNSIGNED, TO_FLOAT = (OPERATION[op] for op in ("to_int", "to_unsigned", "to_float"))
DIV_HALF_EVEN = OPERATION["div_half_even"]
INT, UNSIGNED, FLOAT, STRING = range(4)


@helper
def float_of(code):
    """The float that a code stands for.  O(1)."""
    bits = code if code >= 0 else code ^ MAX
    return np.int64(bits).view(np.float64)


@helper
def code_of(value):
    """The code of a float.  O(1)."""
    if value != value:
        return NAN_CODE
    bits = np.float64(value + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return bits if bits >= 0 else bits ^ MAX


@helper
def compare(op, a, b):
    """Whether `a op b`, with op as in COMPARISON.  O(1)."""
    if op == 0:
        return a == b
    if op == 1:
        return a != b
    if op == 2:
        return a < b
    if op == 3:
        return a <= b
    if op == 4:
        return a > b
    return a >= b


@helper
def compute(op, kind, a, b, state, ranks):
    """The code of `a op b`.  O(1), and O(log b) for integer powers."""
    if op == COPY:
        return a
    if op in (MINIMUM, MAXIMUM):
        less = ranks[a] < ranks[b] if kind == STRING else a < b
        return a if less == (op == MINIMUM) else b
    if kind == FLOAT:
        return compute_float(op, float_of(a), float_of(b), state)
    if kind == UNSIGNED:
        return compute_unsigned(op, a ^ SIGN, b ^ SIGN, state)
    return compute_int(op, a, b, state)


@helper
def add(a, b):
    """a + b, wrapping.  With unsigned numbers: the compiler assumes that signed ones do not wrap."""
    return np.uint64(np.int64(a).view(np.uint64) + np.int64(b).view(np.uint64)).view(np.int64)


@helper
def subtract(a, b):
    """a - b, wrapping."""
    return np.uint64(np.int64(a).view(np.uint64) - np.int64(b).view(np.uint64)).view(np.int64)


@helper
def multiply(a, b):
    """a * b, wrapping."""
    return np.uint64(np.int64(a).view(np.uint64) * np.int64(b).view(np.uint64)).view(np.int64)


@helper
def compute_int(op, a, b, state):
    if op == ADD:
        return add(a, b)
    if op == SUB:
        return subtract(a, b)
    if op == MUL:
        return multiply(a, b)
    if op == NEG:
        return subtract(np.int64(0), a)
    if op == TO_UNSIGNED:
        return a ^ SIGN
    if op == TO_FLOAT:
        return code_of(float(a))
    if op == POW:
        return _power_int(a, b, state)
    if op in (DIV, MOD, DIV_HALF_EVEN):
        return _divide(op, a, b, state)
    if op == BSHR:
        return a >> (b & 63)
    return _bits(op, a, b)


@helper
def compute_unsigned(op, a, b, state):
    """`a` and `b` are the bits of values; the result is a code.  Sums and products wrap like signed ones."""
    if op == ADD:
        return add(a, b) ^ SIGN
    if op == SUB:
        return subtract(a, b) ^ SIGN
    if op == MUL:
        return multiply(a, b) ^ SIGN
    if op == NEG:
        return subtract(np.int64(0), a) ^ SIGN
    if op == TO_INT:
        return a
    if op == TO_FLOAT:
        return code_of(float(np.int64(a).view(np.uint64)))
    if op == POW:
        return _power(a, b) ^ SIGN
    if op in (DIV, MOD, DIV_HALF_EVEN):
        return _divide_unsigned(op, a, b, state) ^ SIGN
    if op == BSHR:
        return _shift_right(a, b) ^ SIGN
    return _bits(op, a, b) ^ SIGN


@helper
def compute_float(op, a, b, state):
    if op == ADD:
        return code_of(a + b)
    if op == SUB:
        return code_of(a - b)
    if op == MUL:
        return code_of(a * b)
    if op == NEG:
        return code_of(-a)
    if op == TO_INT:
        return _float_to_int(a, state)
    if op == TO_UNSIGNED:
        return _float_to_unsigned(a, state)
    if op == POW:
        if a == 0.0 and b < 0.0:
            return _undefined(state)
        return code_of(a**b)
    if b == 0.0:
        return _undefined(state)
    if op == DIV:
        return code_of(a / b)
    return code_of(np.fmod(a, b))


@helper
def _undefined(state):
    state[UNDEFINED] += 1
    return np.int64(0)


@helper
def _divide(op, a, b, state):
    if b == 0:
        return _undefined(state)
    if b == -1:  # the hardware traps on MIN / -1
        return np.int64(0) if op == MOD else subtract(np.int64(0), a)
    quotient = _quotient(a, b)
    rest = a - quotient * b
    if op == MOD:
        return rest
    if op == DIV:
        return quotient
    return quotient + _round_up(rest, b, quotient) * (1 if (a < 0) == (b < 0) else -1)


@helper
def _quotient(a, b):
    """a / b truncated towards zero.  REQUIRES: b is neither 0 nor -1."""
    floor = a // b
    return floor + 1 if floor < 0 and floor * b != a else floor


@helper
def _round_up(rest, b, quotient):
    """1 if |rest| is over half of |b|, or is the half and the quotient is odd; else 0.  Without overflow."""
    rest = rest if rest < 0 else -rest  # negative numbers reach further
    half = b if b < 0 else -b
    left = half - rest
    return np.int64(1) if rest < left or (rest == left and quotient & 1 == 1) else np.int64(0)


@helper
def _divide_unsigned(op, a, b, state):
    if b == 0:
        return _undefined(state)
    x = np.int64(a).view(np.uint64)
    y = np.int64(b).view(np.uint64)
    quotient = x // y
    rest = x - quotient * y
    if op == MOD:
        return np.uint64(rest).view(np.int64)
    bits = np.uint64(quotient).view(np.int64)
    if op == DIV_HALF_EVEN and (rest > y - rest or (rest == y - rest and bits & 1 == 1)):
        bits = add(bits, np.int64(1))
    return bits


@helper
def _power_int(a, b, state):
    if b >= 0:
        return _power(a, b)
    if a == 0:
        return _undefined(state)
    if a == 1 or a == -1:
        return a if b & 1 == 1 else np.int64(1)
    return np.int64(0)


@helper
def _power(a, b):
    """a to the power of the 64 bits b, wrapping."""
    result = np.int64(1)
    while b != 0:
        if b & 1 == 1:
            result = multiply(result, a)
        a = multiply(a, a)
        b = _shift_right(b, np.int64(1))
    return result


@helper
def _shift_right(a, b):
    """Logical shift: zeros come in."""
    return np.uint64(np.int64(a).view(np.uint64) >> np.uint64(b & 63)).view(np.int64)


@helper
def _bits(op, a, b):
    """Operations that are the same on the bits of ints and unsigneds."""
    if op == BAND:
        return a & b
    if op == BOR:
        return a | b
    if op == BXOR:
        return a ^ b
    if op == BNOT:
        return ~a
    if op == BSHL:
        return a << (b & 63)
    if op == BSHRU:
        return _shift_right(a, b)
    if op == LNOT:
        truth = a == 0
    elif op == LAND:
        truth = a != 0 and b != 0
    elif op == LOR:
        truth = a != 0 or b != 0
    elif op == LXOR:
        truth = (a != 0) != (b != 0)
    else:  # a conversion to its own kind
        return a
    return np.int64(1) if truth else np.int64(0)


@helper
def _float_to_int(a, state):
    if not (-TWO63 <= a < TWO63):
        return _undefined(state)
    return np.int64(a)


@helper
def _float_to_unsigned(a, state):
    if not (-1.0 < a < 2.0 * TWO63):
        return _undefined(state)
    if a < TWO63:
        return np.int64(a) ^ SIGN
    return np.int64(a - TWO63)


# ---- ranges


@helper
def range_step(start, end, step, given, kind):
    """The step of a range, an int or the bits of a float; by default it leads from start to end."""
    if not given:
        direction = 1 if start < end else -1
        return np.float64(direction).view(np.int64) if kind == FLOAT else np.int64(direction)
    if kind == FLOAT:
        return np.float64(float_of(step)).view(np.int64)
    return step ^ SIGN if kind == UNSIGNED else step


@helper
def range_direction(start, end, step, given, kind):
    """1 or -1, the direction of the range, and 0 for a zero step; 2 if the range is empty.  O(1)."""
    if kind == FLOAT and (start == NAN_CODE or end == NAN_CODE or (given and step == NAN_CODE)):
        return 2
    if not given:
        direction = 1 if start < end else -1
    elif kind == UNSIGNED:
        direction = 0 if step == SIGN else 1
    else:
        direction = 0 if step == 0 else (1 if step > 0 else -1)
    if start == end or (direction == 1 and start > end) or (direction == -1 and start < end):
        return 2
    return direction


@helper
def range_next(value, end, step, direction, kind):
    """The value after `value`, or `value` itself if the range ends, also by wrapping.  O(1)."""
    if kind == FLOAT:
        following = code_of(float_of(value) + np.int64(step).view(np.float64))
    else:
        following = add(value, step)
    if (direction == 1 and value < following < end) or (direction == -1 and end < following < value):
        return following
    return value
