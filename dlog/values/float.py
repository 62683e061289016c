"""The type `float`: 64 bits.  -0.0 is 0.0, and there is one NaN, which is last.

The code is the bit pattern, with the lower bits inverted when it is negative, so that codes have the order of
the numbers.  Numbers print as Soufflé prints them, with 9 significant digits (`%.9g`), unless the full,
shortest text that reads back as the same float is asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from struct import Struct
from typing import Any

from dlog.values.arrows import cast
from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import not_a, outside, shown, wrong_kind
from dlog.values.type import Codes, Converted, Literal, Type

FLOAT_DIGITS = 9  # max_digits10 of the 32-bit float of Soufflé
NUMERAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE = ("inf", "-inf", "nan")  # texts that denote a float where one is expected
LOWER_BITS = 2**63 - 1
_NOT_FINITE_CELL = re.compile(r"[+-]?(inf|infinity|nan(\([0-9a-z_]*\))?)", re.IGNORECASE)
_FLOAT, _BITS = Struct("<d"), Struct("<q")


class FloatType(Type):
    names = ("float",)
    elsewhere = ("double", "real", "float32", "float64")
    m3 = "double"
    preference = 1
    kernel = "float"
    groups = frozenset({"numeric", "signed", "powers", "ranges", "rounded", "real"})
    conversion = "to_float"
    converts = ("string", "int", "unsigned", "float", "decimal")
    readable = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
    literals = ("int", "float")
    python = (float,)
    sqlite = "REAL"

    def arrow(self) -> pa.DataType:
        return pa.float64()

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
            raise self.wrong_column(values)
        return float_codes(values.to_numpy(zero_copy_only=False).astype(np.float64))

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array(float_values(codes))

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"float": pa.types.is_floating}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return dict.fromkeys(("integer", "float", "decimal"), partial(cast, type=self))

    def plain(self) -> str:
        return r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"

    def parse(self, text: str) -> float:
        if _NOT_FINITE_CELL.fullmatch(text):
            return float(text.split("(")[0])
        if not NUMERAL.fullmatch(text):
            raise not_a(text, self)
        value = float(text)
        if math.isinf(value):
            raise outside(text, self)
        return value

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        return shortest_float_texts(column) if full_precision else float_texts(column)

    def doubtful(self, column: pa.ChunkedArray) -> bool:
        """1e400 reads as infinity: check the texts again."""
        return bool(pc.any(pc.is_inf(column)).as_py())

    def json(self, column: pa.Array) -> list[pa.Array | str]:
        """Numbers that are not finite are strings."""
        quote = pc.if_else(pc.is_finite(column), "", '"')
        return [quote, self.texts(column, full_precision=True), quote]

    def sqlite_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        """SQLite has no NaN: it is a text."""
        return ["nan" if value != value else value for value in column.to_pylist()]

    def take(self, value: Any) -> float:
        if isinstance(value, str) and value.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise wrong_kind(value, self)
        try:
            result = float(value)
        except (OverflowError, ValueError):
            raise outside(shown(value), self) from None
        if isinstance(value, Decimal) and value.is_finite() and math.isinf(result):
            raise outside(shown(value), self)
        return result

    def literal(self, kind: str, value: Literal) -> float:
        if value in NOT_FINITE:
            return float(value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise ValueError("is too large for a float")
        return number

    def literal_text(self, value: float) -> str:
        text = repr(value)
        if not math.isfinite(value):
            return f'"{text}"'
        if "." in text:
            return text
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa}.0e{exponent}" if exponent else f"{mantissa}.0"

    def spark(self) -> str:
        return "double"

    def spark_words(self, values: pa.Array) -> Any:
        numbers = np.array(values.to_numpy(zero_copy_only=False), np.float64)
        numbers += 0.0  # -0.0 becomes 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.int64)


FLOAT = FloatType("float")


def float_codes(numbers: Any) -> Codes:
    """Order-preserving codes of a float64 array."""
    numbers = numbers + 0.0  # -0.0 + 0.0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(LOWER_BITS))


def float_code(number: float) -> int:
    """The same for one number."""
    (bits,) = _BITS.unpack(_FLOAT.pack(number + 0.0 if number == number else math.nan))
    return int(bits if bits >= 0 else bits ^ LOWER_BITS)


def float_values(codes: Codes) -> Any:
    """The float64 array of such codes."""
    return (codes ^ ((codes >> 63) & np.int64(LOWER_BITS))).view(np.float64)


def shortest_float_texts(column: pa.Array) -> pa.Array:
    """The shortest texts that read back as the same floats: up to 17 digits.

    >>> shortest_float_texts(pa.array([0.1 + 0.2, 3.0, 1e20])).to_pylist()
    ['0.30000000000000004', '3', '1e+20']
    """
    return pc.add(column, 0.0).cast(pa.string())  # adding 0.0 makes -0.0 print as 0


def float_texts(column: pa.Array) -> pa.Array:
    """The texts of C's `%.9g`.

    The number nearest to a value among those of 9 digits, printed by Arrow in its shortest text, is that
    text: 0.1 microseconds a value, where one Python format call takes 0.4.  Values too near the middle
    between two such numbers to be rounded by one multiplication, or printed with an exponent, or not
    finite, are formatted one by one.

    >>> float_texts(pa.array([1.5, 3.0, 1e20, 1 / 3, 1e-7])).to_pylist()
    ['1.5', '3', '1e+20', '0.333333333', '1e-07']
    """
    with np.errstate(invalid="ignore"):  # a signalling NaN
        values = column.to_numpy(zero_copy_only=False) + 0.0
    rounded, sure = _rounded(values)
    result = pa.array(rounded).cast(pa.string())
    if sure.all():
        return result
    unsure = pa.array([format(v, ".9g") for v in values[~sure].tolist()], pa.string())
    return pc.replace_with_mask(result, pa.array(~sure), unsure)


def _rounded(values: Any) -> tuple[Any, Any]:
    """Each value rounded to 9 digits, and whether that is sure and printed without an exponent."""
    size = np.abs(values)
    sure = (size >= 1e-4) & (size < 1e9)  # outside, `%.9g` writes an exponent
    safe = np.where(sure, values, 1.0)
    power = FLOAT_DIGITS - 1 - np.floor(np.log10(np.abs(safe))).astype(np.int64)
    # These are exact floats, so one product or quotient with them is correctly rounded.
    powers = np.array([float(f"1e{k}") for k in range(FLOAT_DIGITS - 1 + 5)])
    scale = powers[power]
    scaled = safe * scale
    digits = np.rint(scaled)
    # The product is off by at most 1e10 * 2^-53, about 1e-6; log10 may be off by one digit near a power.
    sure &= np.abs(np.abs(scaled - digits) - 0.5) > 1e-5
    sure &= (np.abs(digits) >= 10 ** (FLOAT_DIGITS - 1)) & (np.abs(digits) < 10**FLOAT_DIGITS)
    return np.where(values == 0.0, 0.0, digits / scale), sure | (values == 0.0)
