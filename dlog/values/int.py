"""The type `int`: 64 bits with a sign.  Its codes are its values.

Also owns what `int` and `unsigned` share: the texts `12 -12 +12 0x1f 0b101`, where a hexadecimal or binary
number of 64 bits is the bit pattern, and floats and decimals that are whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from dlog.values.arrows import cast_or_look
from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import Misfit, not_a, outside, shown, wrong_kind
from dlog.values.type import Codes, Converted, Literal, Type

RANGE = (-(1 << 63), (1 << 63) - 1)
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")


class IntegerType(Type):
    """What `int` and `unsigned` share."""

    article = "an"
    range_note = " (64 bits)"
    groups = frozenset({"numeric", "integral", "powers", "ranges"})
    readable = r"^[+-]?([0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+)$"
    python = (int,)
    limits = RANGE
    sqlite = "INTEGER"
    patterns = False  # whether a hexadecimal or binary number may set the sign bit

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"integer": pa.types.is_integer}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {
            "integer": self._from_integer,
            "float": self._from_float,
            "decimal": partial(cast_or_look, type=self),
        }

    def _from_integer(self, column: pa.ChunkedArray) -> Converted:
        try:
            return column.cast(self.arrow()), None
        except pa.ArrowInvalid:
            # Only negative numbers and those beyond 2^63 fail, and both have the highest bit set.
            good = pc.greater_equal(column.cast(pa.int64(), safe=False), 0)
            return column.cast(self.arrow(), safe=False), good

    def _from_float(self, column: pa.ChunkedArray) -> Converted:
        low, beyond = float(self.limits[0]), float(self.limits[1] + 1)
        column = column.cast(pa.float64())
        inside = pc.and_(pc.greater_equal(column, low), pc.less(column, beyond))
        good = pc.and_(inside, pc.equal(pc.floor(column), column))
        whole = pc.if_else(pc.fill_null(good, False), column, 0.0)
        return whole.cast(self.arrow(), safe=False), good

    def sqlite_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        return column.to_pylist()

    def whole_numbers(self, values: pa.Array) -> Any:
        """Whole floats in range: a data frame that once had a gap stores its integers this way."""
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        inside = (numbers >= float(self.limits[0])) & (numbers < float(self.limits[1] + 1))
        self.require((numbers == np.floor(numbers)) & inside, values)
        return numbers

    def parse(self, text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise not_a(text, self)
        digits = text.lstrip("+-")
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
        if len(digits) > 80:  # far out of range; Python refuses to convert thousands of digits
            raise outside(text, self)
        value = -int(digits, base) if text.startswith("-") else int(digits, base)
        if self.patterns and base != 10 and not text.startswith(("-", "+")) and 1 << 63 <= value < 1 << 64:
            value -= 1 << 64
        if not self.limits[0] <= value <= self.limits[1]:
            raise outside(text, self)
        return value

    def take(self, value: Any) -> int:
        if isinstance(value, float | Decimal) and not isinstance(value, bool):
            value = self._whole(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_kind(value, self)
        if not self.limits[0] <= value <= self.limits[1]:
            raise outside(shown(value), self)
        return int(value)

    def _whole(self, value: float | Decimal) -> int:
        try:
            whole = int(value)
        except (ValueError, OverflowError):
            raise outside(shown(value), self) from None
        if whole != value:
            raise Misfit(f"{shown(value)} has a fraction, {self} expected")
        return whole


class IntType(IntegerType):
    names = ("int", "number")
    elsewhere = ("integer", "long", "bigint", "int32", "int64")
    preference = 0
    groups = IntegerType.groups | {"signed"}
    conversion = "to_number"
    converts = ("string", "int", "unsigned", "float", "decimal")
    literals = ("int",)
    literal_is_value = True
    widens_to = ("decimal", "float")
    patterns = True
    codes_add_up = True
    m3 = "long"

    def arrow(self) -> pa.DataType:
        return pa.int64()

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if pa.types.is_uint64(values.type):
            numbers = values.to_numpy()
            self.require(numbers <= np.uint64(2**63 - 1), values, "does not fit 64 bits with a sign")
            return numbers.view(np.int64)
        if pa.types.is_integer(values.type):
            return values.to_numpy(zero_copy_only=False)
        if pa.types.is_floating(values.type):
            return self.whole_numbers(values).astype(np.int64)
        raise self.wrong_column(values)

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array(codes)

    def plain(self) -> str:
        return "^-?[0-9]{1,18}$"

    def literal(self, kind: str, value: Literal) -> int:
        if not -(2**63) <= int(value) < 2**63:
            raise ValueError("does not fit 64 bits")
        return int(value)

    def plain_literal(self, kind: str, value: Any) -> bool:
        return kind == "int" and -(2**63) <= value < 2**63

    def spark(self) -> str:
        return "bigint"


INT = IntType("int")
