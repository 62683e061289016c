"""Owns what every primitive of the language means, on Python values.

A function gets the type of its result and its arguments, and gives one value; a generator gives several; a
relation is true or false.  `Undefined` means that there is no value, so that the literal is false.

Where the language's description is silent a choice had to be made, and an engine that differs there is not
wrong before someone decides:
  - taken from `dlog.lftj`, so no second opinion on it: a float division by zero is undefined, a negative
    integer power is the truncated quotient, a float power that is no real number is NaN, `range` without a
    step goes towards its end, and a zero step gives the start alone;
  - chosen here: `weekday` counts from Monday = 1, `round` goes
    half to even, `sqrt` and `log` are undefined where they are no real number, `starts_with` and `ends_with`
    take the part first, `to_decimal` rounds, and `days_between` moments counts whole days.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from dlog.ir.functors import is_call
from dlog.ir.record_forms import field_of, is_record_form
from dlog.values import Type

from . import functors, records
from .values import EXACT, LONGEST, Value, canonical, greatest, least, order, rounded, wrap


class Undefined(Exception):
    """A partial function has no value here."""


def _undefined() -> Value:
    raise Undefined


def holds(name: str, args: tuple[Value, ...]) -> bool:
    """Whether a relation holds.  An undefined one does not."""
    try:
        return RELATIONS[name](*args)
    except Undefined:
        return False


def results(name: str, type: Type, args: tuple[Value, ...]) -> Iterator[Value]:
    """The values of a function: none where it is undefined, one, or those of a generator."""
    if is_record_form(name):
        yield from _record(name, args)
        return
    if is_call(name):
        value = functors.value(name[1:], args)
        yield from () if value is None else (canonical(value),)
        return
    try:
        if (name, len(args)) in GENERATORS:
            yield from map(canonical, GENERATORS[name, len(args)](*args))
        else:
            yield canonical(FUNCTIONS[name](type, *args))
    except Undefined:
        return


def _record(name: str, args: tuple[Value, ...]) -> tuple[Value, ...]:
    """A record that is made, or a field of one, if it is of that branch."""
    found = field_of(name)
    if found is None:
        return (records.made(name[1:], args),)
    return records.field(*found, args[0])


def _match(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        raise Undefined from None


def _match_or_bad(pattern: str, text: str) -> bool:
    """What `match` is under a negation, which a bad pattern makes false."""
    try:
        return _match(pattern, text)
    except Undefined:
        return True


RELATIONS: dict[str, Callable[..., bool]] = {
    "eq": lambda a, b: order(a) == order(b),
    "ne": lambda a, b: order(a) != order(b),
    "lt": lambda a, b: order(a) < order(b),
    "le": lambda a, b: order(a) == order(b) or order(a) < order(b),
    "gt": lambda a, b: order(a) > order(b),
    "ge": lambda a, b: order(a) >= order(b),
    "contains": lambda part, text: part in text,
    "match": _match,
    "match_or_bad_pattern": _match_or_bad,
    "starts_with": lambda part, text: text.startswith(part),
    "ends_with": lambda part, text: text.endswith(part),
}


# Arithmetic.  `type` is that of the result; where it is decimal an operand may be an int.


_TIMES = (datetime.datetime, datetime.timedelta)


def _timed(operation: Callable[[], Value]) -> Value:
    """A time or duration; undefined outside what the types hold."""
    try:
        result = operation()
    except OverflowError:
        raise Undefined from None
    if isinstance(result, datetime.timedelta) and abs(result) > LONGEST:
        raise Undefined
    return result


def _ticks(length: datetime.timedelta) -> int:
    """Microseconds."""
    return (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds


def _arithmetic(operation: Callable, exact: Callable) -> Callable:
    def function(type: Type, a: Value, b: Value) -> Value:
        if isinstance(a, _TIMES) or isinstance(b, _TIMES):
            return _timed(lambda: operation(a, b))
        if type.name == "decimal":
            return exact(Decimal(a), Decimal(b))
        return operation(a, b) if type.name == "float" else wrap(operation(a, b), type)

    return function


def _divide(type: Type, a: Value, b: Value) -> Value:
    if not b:
        raise Undefined
    if isinstance(b, datetime.timedelta):
        return _truncated(Fraction(_ticks(a), _ticks(b)))
    if isinstance(a, datetime.timedelta):
        return datetime.timedelta(microseconds=_truncated(Fraction(_ticks(a), b)))
    if type.name == "float":
        return a / b
    if type.name == "decimal":
        return _to_scale(Fraction(a) / Fraction(b), type.scale)
    return wrap(_truncated(Fraction(a, b)), type)


def _to_scale(number: Fraction, scale: int) -> Decimal:
    return Decimal(round(number * 10**scale)).scaleb(-scale, EXACT)  # round() is half to even


def _truncated(number: Fraction) -> int:
    return int(number)  # towards zero


def _remainder(type: Type, a: int, b: int) -> int:
    return wrap(a - b * _truncated(Fraction(a, b)), type) if b else _undefined()


def _power(type: Type, a: Value, b: Value) -> Value:
    if a == 0 and b < 0:
        raise Undefined
    if type.name == "float":
        return _float_power(a, b)
    if b >= 0:
        return wrap(pow(a, b, 2**64), type)
    return a ** (b % 2) if a in (1, -1) else 0  # 1 / a^-b, truncated


def _float_power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:  # a root of a negative number
        return math.nan
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _negate(type: Type, a: Value) -> Value:
    if isinstance(a, datetime.timedelta):
        return -a
    return _minus(type, Decimal(0) if type.name == "decimal" else 0, a)


def _absolute(type: Type, a: Value) -> Value:
    if isinstance(a, datetime.timedelta):
        return max(a, -a)
    if type.name == "decimal":
        return a.copy_abs()
    return math.fabs(a) if type.name == "float" else wrap(abs(a), type)


_plus = _arithmetic(lambda a, b: a + b, EXACT.add)
_minus = _arithmetic(lambda a, b: a - b, EXACT.subtract)
_times = _arithmetic(lambda a, b: a * b, EXACT.multiply)


def _float_function(function: Callable[[float], float], defined: Callable[[float], bool]) -> Callable:
    def partial(_: Type, a: float) -> float:
        if math.isnan(a):
            return a
        if not defined(a):
            raise Undefined
        try:
            return function(a)
        except OverflowError:
            return math.inf

    return partial


def _rounding(mode: str) -> Callable:
    def function(type: Type, a: Value) -> Value:
        if type.name == "float" and not math.isfinite(a):
            return a
        whole = Decimal(a).to_integral_value(mode, EXACT)
        return float(whole) if type.name == "float" else whole

    return function


# Bits


def _shift_right(type: Type, a: int, b: int) -> int:
    return wrap(a >> (b & 63), type)  # of an int, Python's shift copies the sign


def _shift_right_unsigned(type: Type, a: int, b: int) -> int:
    return wrap((a % 2**64) >> (b & 63), type)


# Text


def _substr(_: Type, text: str, start: int, length: int) -> str:
    """Nothing from a start outside of the text; all that is left for a negative length."""
    if not 0 <= start <= len(text):
        return ""
    return text[start:] if length < 0 else text[start : start + length]


def _part(_: Type, text: str, separator: str, index: int) -> str:
    parts = _parts(text, separator)
    return parts[index] if 0 <= index < len(parts) else _undefined()


def _parts(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else _undefined()


def _to_string(_: Type, a: Value) -> str:
    if isinstance(a, bool):
        return "true" if a else "false"
    if isinstance(a, float):
        return f"{a:f}"
    if isinstance(a, Decimal):
        whole, _dot, digits = f"{a:f}".partition(".")
        return f"{whole}.{digits.rstrip('0') or '0'}"
    if isinstance(a, datetime.timedelta):
        return _duration_text(a)
    if isinstance(a, datetime.datetime) and a.tzinfo is not None:
        return a.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(a, datetime.date):
        return a.isoformat()
    return str(a)


def _duration_text(a: datetime.timedelta) -> str:
    """Unit by unit, from the largest; what is left over are seconds."""
    left, text, time = abs(_ticks(a)), "P", ""
    for letter, size in (("D", 86_400_000_000), ("H", 3_600_000_000), ("M", 60_000_000)):
        if left >= size:
            if letter == "D":
                text += f"{left // size}D"
            else:
                time += f"{left // size}{letter}"
            left %= size
    if left or (text == "P" and not time):
        time += f"{Decimal(left).scaleb(-6).normalize():f}S"
    return ("-" if _ticks(a) < 0 else "") + text + (f"T{time}" if time else "")


# Conversions


def _to_integer(type: Type, a: Value) -> int:
    if isinstance(a, str):
        if not re.fullmatch(r"[+-]?[0-9]+", a):
            raise Undefined
        return _in_range(type, int(a))
    if isinstance(a, float):
        return _in_range(type, int(a)) if math.isfinite(a) else _undefined()
    if isinstance(a, Decimal):
        return _in_range(type, int(a.to_integral_value(ROUND_DOWN, EXACT)))
    return wrap(a, type)


def _in_range(type: Type, number: int) -> int:
    return number if wrap(number, type) == number else _undefined()


def _to_float(_: Type, a: Value) -> float:
    if isinstance(a, str) and not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", a):
        raise Undefined
    return float(a)


def _to_decimal(type: Type, a: Value) -> Decimal:
    if isinstance(a, str) and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", a):
        raise Undefined
    if isinstance(a, float) and not math.isfinite(a):
        raise Undefined
    return rounded(Decimal(a), type.scale)


def _to_date(_: Type, a: Value) -> datetime.date:
    if isinstance(a, datetime.datetime):
        return a.date()
    try:
        return datetime.date.fromisoformat(a)
    except ValueError:
        raise Undefined from None


def _to_datetime(_: Type, a: Value) -> datetime.datetime:
    if isinstance(a, datetime.datetime):
        return a.replace(tzinfo=None)
    if isinstance(a, datetime.date):
        return datetime.datetime.combine(a, datetime.time())
    return _moment(a, aware=False)


def _to_timestamp(_: Type, a: Value) -> datetime.datetime:
    return a.replace(tzinfo=datetime.UTC) if isinstance(a, datetime.datetime) else _moment(a, aware=True)


def _moment(text: str, aware: bool) -> datetime.datetime:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Undefined from None
    if (moment.tzinfo is not None) != aware:
        raise Undefined
    return moment


def _to_duration(_: Type, a: str) -> datetime.timedelta:
    """A number and its unit at a time."""
    sign, _p, rest = a.partition("P")
    date, t, time = rest.partition("T")
    parts = re.findall(r"([0-9.]+)([WDHMS])", date + time)
    units = "".join(unit for _, unit in parts)
    written = "".join(n + u for n, u in parts) == date + time and units == "".join(
        sorted(units, key="WDHMS".find)
    )
    fine = (
        written and len(set(units)) == len(units) and bool(units) and bool(t) == bool(set(units) & set("HMS"))
    )
    if sign not in ("", "+", "-") or not fine or any("." in n and u != "S" for n, u in parts):
        raise Undefined
    sizes = {"W": 604_800, "D": 86_400, "H": 3600, "M": 60, "S": 1}
    total = sum(Fraction(n) * sizes[u] for n, u in parts) * 1_000_000
    if total.denominator != 1 or total > _ticks(LONGEST):
        raise Undefined
    return datetime.timedelta(microseconds=int(total)) * (-1 if sign == "-" else 1)


# Dates


def _add_days(_: Type, a: Value, days: int) -> Value:
    try:
        return a + datetime.timedelta(days=days)
    except OverflowError:
        raise Undefined from None


def _days_between(_: Type, a: Value, b: Value) -> int:
    return _truncated(Fraction((b - a) // datetime.timedelta.resolution, 86_400_000_000))


# Generators


def _range(start: Value, end: Value, step: Value | None = None) -> Iterator[Value]:
    """start, start + step, ... before the end.  The step is 1 or -1 where none is given; a step of zero gives
    the start alone."""
    if any(isinstance(v, float) and math.isnan(v) for v in (start, end, step)) or start == end:
        return
    if step is None:
        step = 1 if start < end else -1
    if step == 0:
        yield start
        return
    value = start
    while value < end if step > 0 else value > end:
        yield value
        if value + step == value:  # a float that a small step does not change
            return
        value += step


GENERATORS: dict[tuple[str, int], Callable] = {
    ("range", 2): _range,
    ("range", 3): _range,
    ("split", 2): _parts,
}

FUNCTIONS: dict[str, Callable] = {
    "add": _plus,
    "sub": _minus,
    "mul": _times,
    "div": _divide,
    "mod": _remainder,
    "pow": _power,
    "neg": _negate,
    "abs": _absolute,
    "band": lambda type, a, b: wrap(a & b, type),
    "bor": lambda type, a, b: wrap(a | b, type),
    "bxor": lambda type, a, b: wrap(a ^ b, type),
    "bnot": lambda type, a: wrap(~a, type),
    "bshl": lambda type, a, b: wrap(a << (b & 63), type),
    "bshr": _shift_right,
    "bshru": _shift_right_unsigned,
    "land": lambda _, a, b: int(a != 0 and b != 0),
    "lor": lambda _, a, b: int(a != 0 or b != 0),
    "lxor": lambda _, a, b: int((a != 0) != (b != 0)),
    "lnot": lambda _, a: int(a == 0),
    "min": lambda _, a, b: least((a, b)),
    "max": lambda _, a, b: greatest((a, b)),
    "cat": lambda _, a, b: a + b,
    "strlen": lambda _, a: len(a),
    "substr": _substr,
    "lower": lambda _, a: a.lower(),
    "upper": lambda _, a: a.upper(),
    "trim": lambda _, a: a.strip(),
    "replace": lambda _, text, old, new: text.replace(old, new) if old else text,
    "split": _part,
    "to_string": _to_string,
    "to_number": _to_integer,
    "to_unsigned": _to_integer,
    "to_float": _to_float,
    "to_decimal": _to_decimal,
    "to_date": _to_date,
    "to_datetime": _to_datetime,
    "to_timestamp": _to_timestamp,
    "to_duration": _to_duration,
    "as_int": lambda type, a: wrap(a, type),
    "as_unsigned": lambda type, a: wrap(a, type),
    "floor": _rounding(ROUND_FLOOR),
    "ceil": _rounding(ROUND_CEILING),
    "round": _rounding(ROUND_HALF_EVEN),
    "sqrt": _float_function(math.sqrt, lambda a: a >= 0),
    "exp": _float_function(math.exp, lambda a: True),
    "log": _float_function(math.log, lambda a: a > 0),
    "year": lambda _, a: a.year,
    "month": lambda _, a: a.month,
    "day": lambda _, a: a.day,
    "weekday": lambda _, a: a.isoweekday(),
    "hour": lambda _, a: a.hour,
    "minute": lambda _, a: a.minute,
    "second": lambda _, a: a.second,
    "add_days": _add_days,
    "days_between": _days_between,
}  # `ord` is missing: it is the engine's own code of a string
