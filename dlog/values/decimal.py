"""The type `decimal(precision, scale)`: exact, up to 18 digits.  Its code is the number without its point.

Rules compute with decimals exactly, in wide columns (`dlog.column_functions`), and heads round to the
scale of their column.  A declared scale prints all its digits, the default one no trailing zeros except the
first.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, localcontext
from functools import partial
from typing import Any

from dlog.values.arrows import cast_or_look, look
from dlog.values.float import NUMERAL
from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import BadValue, Misfit, is_not, not_a, outside, shown, wrong_kind
from dlog.values.type import MAX_PRECISION, Codes, Converted, Literal, Type

DECIMAL_DIGITS = 18  # of every Arrow decimal that is returned
DEFAULT_SCALE = 6
_WIDE = Context(prec=100)


class DecimalType(Type):
    names = ("decimal",)
    elsewhere = ("numeric",)
    preference = 4
    groups = frozenset({"numeric", "signed", "rounded"})
    conversion = "to_decimal"
    converts = ("string", "int", "float", "decimal")
    readable = r"^[+-]?[0-9]+(\.[0-9]+)?$"
    literals = ("int", "float")
    python = (Decimal, int)
    exact_json = True
    no_field = "use float, or an int that counts the smallest unit"

    def __str__(self) -> str:
        return "decimal" if self == DECIMAL else f"decimal({self.precision}, {self.scale})"

    @property
    def is_decimal(self) -> bool:
        return True

    def arrow(self) -> pa.DataType:
        return pa.decimal128(DECIMAL_DIGITS, self.scale)

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if pa.types.is_floating(values.type):
            return self._rounded_floats(values)
        if pa.types.is_integer(values.type):
            numbers = values.to_numpy(zero_copy_only=False)
            most = 10 ** (self.precision - self.scale) - 1
            self.require(_between(numbers, -most, most), values)
            return numbers.astype(np.int64) * np.int64(10**self.scale)
        if not pa.types.is_decimal(values.type):
            raise self.wrong_column(values)
        try:
            found = halves(values.cast(pa.decimal128(38, self.scale)))
        except pa.ArrowInvalid:
            return np.array([self._scaled(i, v.as_py()) for i, v in enumerate(values)], np.int64)
        low, high = found[:, 0], found[:, 1]
        most = 10**self.precision - 1
        self.require((high == low >> 63) & _between(low, -most, most), values)
        return low

    def _scaled(self, row: int, value: Decimal) -> int:
        """One decimal, exactly, or the reason why it does not fit."""
        number = value.scaleb(self.scale, _WIDE)
        if number != number.to_integral_value():
            raise BadValue(row, f"{value} has more than {self.scale} digits after the point")
        if abs(number) >= 10**self.precision:
            raise BadValue(row, is_not(value, self))
        return int(number)

    def _rounded_floats(self, values: pa.Array) -> Codes:
        """Floats to the nearest decimal, half to even: they were not exact before."""
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        scaled = numbers * 10.0**self.scale
        self.require(np.abs(scaled) < 10.0**self.precision, values)  # false for NaN too
        codes = np.rint(scaled).astype(np.int64)
        # Beyond 2**52 the product is no longer the nearest number: use the float's shortest text.
        for i in np.flatnonzero(np.abs(scaled) >= 2.0**52):
            text = Decimal(repr(float(numbers[i]))).scaleb(self.scale, _WIDE)
            codes[i] = int(text.to_integral_value(ROUND_HALF_EVEN))
        self.require(np.abs(codes) < 10**self.precision, values)
        return codes

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return decimals_of(codes, self.scale).chunk(0)

    def inside(self, column: pa.Array | pa.ChunkedArray) -> Any:
        both, limit = halves(column), 10**self.precision - 1
        low = both[:, 0]
        return (low >= -limit) & (low <= limit) & (both[:, 1] == low >> 63)

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"decimal": pa.types.is_decimal}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {
            "integer": self._from_integer,
            "float": self._from_float,
            "decimal": partial(cast_or_look, type=self),
        }

    def _from_integer(self, column: pa.ChunkedArray) -> Converted:
        limit = 10 ** (self.precision - self.scale) - 1
        wide = column.cast(pa.uint64() if pa.types.is_unsigned_integer(column.type) else pa.int64())
        good = pc.less_equal(wide, pa.scalar(limit, wide.type))
        if pa.types.is_signed_integer(wide.type):
            good = pc.and_(good, pc.greater_equal(wide, -limit))
        numbers = pc.if_else(pc.fill_null(good, False), wide, pa.scalar(0, wide.type)).to_numpy()
        return decimals_of(numbers.astype(np.int64) * 10**self.scale, self.scale), good

    def _from_float(self, column: pa.ChunkedArray) -> Converted:
        """A float is the decimal it prints as.

        Up to 15 digits that is the one that divides to the float again, as both steps round correctly.
        """
        floats = column.cast(pa.float64()).to_numpy()
        unit = 10.0**self.scale
        with np.errstate(invalid="ignore", over="ignore"):
            numbers = np.rint(floats * unit)
            if (np.abs(numbers) < 1e15).all() and (numbers / unit == floats).all():
                return decimals_of(numbers.astype(np.int64), self.scale), None
        return look(column.cast(pa.float64()), self)

    def plain(self) -> str:
        digits = self.precision - self.scale
        whole = f"[0-9]{{1,{digits}}}" if digits else "0"
        return rf"^-?{whole}(\.[0-9]{{1,{self.scale}}})?$" if self.scale else f"^-?{whole}$"

    def parse(self, text: str) -> Decimal:
        if not NUMERAL.fullmatch(text):
            raise not_a(text, self)
        try:
            return self.exact(Decimal(text))
        except InvalidOperation:  # an exponent beyond Decimal's range
            raise outside(text, self) from None

    def exact(self, value: Decimal) -> Decimal:
        """The decimal at the type's scale, or Misfit: nothing is rounded.

        >>> DecimalType("decimal", 1).exact(Decimal("1.50"))
        Decimal('1.5')
        """
        if value and value.adjusted() >= self.precision - self.scale:
            raise outside(str(value), self)
        with localcontext() as context:
            context.prec = 60  # the default of 28 digits would round a long fraction before it is compared
            scaled = value.quantize(Decimal(1).scaleb(-self.scale), context=context)
        if scaled != value:
            raise Misfit(f"{value} has more than {self.scale} digits after the point")
        return scaled

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        """Arrow's own texts use exponents for small values."""
        numbers = unscaled(column)
        size, unit = np.abs(numbers), 10**self.scale
        sign = pc.if_else(pa.array(numbers < 0), "-", "")
        whole = pa.array(size // unit).cast(pa.string())
        if not self.scale:
            return pc.binary_join_element_wise(sign, whole, "")
        fraction = pc.utf8_lpad(pa.array(size % unit).cast(pa.string()), self.scale, "0")
        if self == DECIMAL:
            fraction = pc.replace_substring_regex(fraction, "([0-9])0*$", r"\1")
        return pc.binary_join_element_wise(sign, whole, ".", fraction, "")

    def take(self, value: Any) -> Decimal:
        if isinstance(value, str):
            return self.parse(value.strip())
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise wrong_kind(value, self)
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not number.is_finite():
            raise outside(shown(value), self)
        return self.exact(number)

    def literal(self, kind: str, value: Literal) -> Decimal:
        number = Decimal(value)
        try:
            exact = number.quantize(Decimal(1).scaleb(-self.scale), context=_WIDE)
        except InvalidOperation:  # more digits than any decimal has
            raise ValueError(f"does not fit {self}") from None
        if exact != number:
            raise ValueError(f"has more than {self.scale} digits after the point")
        if abs(exact.scaleb(self.scale, context=_WIDE)) >= Decimal(10) ** self.precision:
            raise ValueError(f"does not fit {self}")
        return exact

    def literal_text(self, value: Any) -> str:
        return f"{Decimal(value):f}"

    def spark(self) -> str:
        return f"decimal({DECIMAL_DIGITS},{self.scale})"

    def spark_words(self, values: pa.Array) -> Any:
        return np.ascontiguousarray(halves(values)[:, 0])


DECIMAL = DecimalType("decimal", scale=DEFAULT_SCALE)


def decimal(precision: int, scale: int) -> Type:
    """REQUIRES: 0 <= scale <= precision <= MAX_PRECISION."""
    assert 0 <= scale <= precision <= MAX_PRECISION
    return Type("decimal", scale, precision)


def unscaled(column: pa.ChunkedArray | pa.Array) -> Any:
    """The integers of a decimal128 column, as int64: the value times 10^scale.  Nulls give 0.

    REQUIRES: they fit an int64 (`DecimalType.inside` says whether they do).
    """
    return halves(column)[:, 0]


def decimals_of(numbers: Any, scale: int) -> pa.ChunkedArray:
    """The decimal128(18, scale) column with these int64 numbers as its unscaled values.

    >>> decimals_of(np.array([150, -1]), 2)[1].as_py()
    Decimal('-0.01')
    """
    buffer = pa.py_buffer(np.ascontiguousarray(np.column_stack([numbers, numbers >> 63])))
    arrow = pa.decimal128(DECIMAL_DIGITS, scale)
    return pa.chunked_array([pa.Array.from_buffers(arrow, len(numbers), [None, buffer])])


def halves(column: pa.ChunkedArray | pa.Array) -> Any:
    """Lower and upper words of 128-bit decimals; nulls give 0."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_halves_of_array(chunk) for chunk in chunks]
    return np.concatenate(parts) if parts else np.empty((0, 2), np.int64)


def _halves_of_array(array: pa.Array) -> Any:
    if not len(array):
        return np.empty((0, 2), np.int64)
    whole = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    found = whole[array.offset : array.offset + len(array)]
    if array.null_count:
        found = np.where(array.is_valid().to_numpy(zero_copy_only=False)[:, None], found, 0)
    return found


def _between(numbers: Any, low: int, high: int) -> Any:
    """low <= numbers <= high, also for types that cannot hold the bounds."""
    limits = np.iinfo(numbers.dtype)
    return (numbers >= max(low, limits.min)) & (numbers <= min(high, limits.max))
