"""Owns the meaning of a text cell: what each type accepts, and why a cell is refused.

Correct output: for each cell either its value or the reason why it has none; never a wrong value.
Whatever pyarrow's CSV reader accepts for a type is accepted here with the same value, so a row is judged
alike whether it was read by the fast path or by this one.  Knows nothing of lines and files.

Accepted: `12 -12 +12 0x1f 0b101` (a hexadecimal or binary number of 64 bits is the bit pattern),
`1.5 1e-3 inf nan`, `true false 1 0`, `2024-01-31`, `2024-01-31T12:00:00.5` (a zone is converted to UTC).
Spaces around anything but a string are ignored; a string is taken as it stands.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.io.columns import arrow_type, fits
from dlog.types import BOOL, DATE, DATETIME, FLOAT, INT, STRING, UNSIGNED, Type

TRUE_TEXTS = ("true", "True", "TRUE", "1")
FALSE_TEXTS = ("false", "False", "FALSE", "0")

INT_RANGE = (-(1 << 63), (1 << 63) - 1)
UNSIGNED_RANGE = (0, (1 << 64) - 1)

_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan(\([0-9a-z_]*\))?)", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})0*)?)?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)

# Cells that match convert in one Arrow cast, and the cast fails on no number that matches.
_PLAIN = {
    INT: "^-?[0-9]{1,18}$",
    UNSIGNED: "^[0-9]{1,19}$",
    FLOAT: r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
    BOOL: "^(true|false|0|1)$",
    DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    DATETIME: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$",
}


class Misfit(ValueError):
    """A value that its type does not hold; the text is the reason."""


@dataclass(frozen=True)
class Misfits:
    """The cells of a column that have no value: their places, rising, and the reason for each."""

    places: np.ndarray
    codes: np.ndarray  # places[i] has the reason reasons[codes[i]]
    reasons: Sequence[str]

    def reason(self, place: int) -> str | None:
        at = int(np.searchsorted(self.places, place))
        found = at < len(self.places) and self.places[at] == place
        return self.reasons[self.codes[at]] if found else None

    def shifted(self, places: np.ndarray) -> Misfits:
        """The same for a column where cell i of this one stands at places[i]."""
        return Misfits(places[self.places], self.codes, self.reasons)

    def check(self) -> None:
        assert len(self.places) == len(self.codes) and (np.diff(self.places) > 0).all()


NO_MISFITS = Misfits(np.empty(0, np.int64), np.empty(0, np.int64), [])
NOT_UTF8 = "is not UTF-8 text"


def convert(cells: pa.Array, type: Type) -> tuple[pa.Array, Misfits]:
    """The typed column of text or binary cells, null where a cell has no value, and the reasons.

    One cast for plain cells; one Python call for each distinct other cell.

    >>> column, misfits = convert(pa.array(["7", "0x10", "", "7 apples"]), INT)
    >>> column.to_pylist(), misfits.reason(3)
    ([7, 16, None, None], '"7 apples" is not an int')
    """
    try:
        cells = cells.cast(pa.string())
    except pa.ArrowInvalid:
        return _convert_where_utf8(cells, type)
    if type == STRING:
        return cells, NO_MISFITS
    cells = pc.ascii_trim_whitespace(cells)
    plain = pc.match_substring_regex(cells, _plain_pattern(type))
    values = _cast_plain(cells, plain, type)
    if values is None:
        return _convert_distinct(cells, type)
    odd = pc.indices_nonzero(pc.invert(plain))
    if not len(odd):
        return values, NO_MISFITS
    odd_values, misfits = _convert_distinct(cells.take(odd), type)
    filled = pc.replace_with_mask(values, pc.invert(plain), odd_values)
    return filled, misfits.shifted(odd.to_numpy().astype(np.int64))


def _convert_where_utf8(cells: pa.Array, type: Type) -> tuple[pa.Array, Misfits]:
    """Cells that are no text get the empty text and their own reason."""
    valid = np.array([_is_utf8(cell) for cell in cells.to_pylist()], bool)
    column, misfits = convert(pc.if_else(pa.array(valid), cells, b""), type)
    places = np.flatnonzero(~valid)
    kept = ~np.isin(misfits.places, places)
    all_places = np.concatenate([misfits.places[kept], places])
    all_codes = np.concatenate([misfits.codes[kept], np.full(len(places), len(misfits.reasons))])
    order = np.argsort(all_places)
    return column, Misfits(all_places[order], all_codes[order], [*misfits.reasons, NOT_UTF8])


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _plain_pattern(type: Type) -> str:
    if not type.is_decimal:
        return _PLAIN[type]
    whole = f"[0-9]{{1,{type.precision - type.scale}}}" if type.precision > type.scale else "0"
    return rf"^-?{whole}(\.[0-9]{{1,{type.scale}}})?$" if type.scale else f"^-?{whole}$"


def _cast_plain(cells: pa.Array, plain: pa.Array, type: Type) -> pa.Array | None:
    """The plain cells cast, null elsewhere; None when one of them looks right and is not (30 February)."""
    try:
        values = pc.if_else(plain, cells, None).cast(arrow_type(type))
    except pa.ArrowInvalid:
        return None
    return values if fits(values.drop_null(), type) is None else None


def _convert_distinct(cells: pa.Array, type: Type) -> tuple[pa.Array, Misfits]:
    """Cell by cell, each distinct text once."""
    encoded = pc.dictionary_encode(cells)
    values: list[Any] = []
    reasons = []
    for text in encoded.dictionary.to_pylist():
        try:
            values.append(parse(text, type))
            reasons.append("")
        except Misfit as misfit:
            values.append(None)
            reasons.append(str(misfit))
    column = pa.array(values, arrow_type(type)).take(encoded.indices)
    if not any(reasons):
        return column, NO_MISFITS
    places = pc.indices_nonzero(column.is_null()).to_numpy().astype(np.int64)
    return column, Misfits(places, encoded.indices.to_numpy()[places], reasons)


def parse(text: str, type: Type) -> Any:
    """The Python value of one cell, or Misfit with the reason.  REQUIRES: not the string type.

    >>> parse("-0x10", INT)
    -16
    """
    text = text.strip()
    if not text:
        raise Misfit(f"is empty, {type} expected")
    parser: Callable[[str, Type], Any] = _parse_decimal if type.is_decimal else _PARSERS[type.name]
    return parser(text, type)


def _parse_integer(text: str, type: Type) -> int:
    if not _INTEGER.fullmatch(text):
        raise not_a(text, type)
    digits = text.lstrip("+-")
    base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
    if len(digits) > 80:  # far outside; Python refuses to convert some thousand digits
        raise outside(text, type)
    value = -int(digits, base) if text.startswith("-") else int(digits, base)
    if type == INT and base != 10 and not text.startswith(("-", "+")) and 1 << 63 <= value < 1 << 64:
        value -= 1 << 64
    low, high = INT_RANGE if type == INT else UNSIGNED_RANGE
    if not low <= value <= high:
        raise outside(text, type)
    return value


def _parse_float(text: str, type: Type) -> float:
    if _NOT_FINITE.fullmatch(text):
        return float(text.split("(")[0])
    if not _FLOAT.fullmatch(text):
        raise not_a(text, type)
    value = float(text)
    if math.isinf(value):
        raise outside(text, type)
    return value


def _parse_decimal(text: str, type: Type) -> Decimal:
    if not _FLOAT.fullmatch(text):
        raise not_a(text, type)
    try:
        return exact_decimal(Decimal(text), type)
    except InvalidOperation:  # an exponent beyond Decimal's own
        raise outside(text, type) from None


def exact_decimal(value: Decimal, type: Type) -> Decimal:
    """The decimal at the type's scale, or Misfit: nothing is rounded.

    >>> exact_decimal(Decimal("1.50"), Type("decimal", 1))
    Decimal('1.5')
    """
    if value and value.adjusted() >= type.precision - type.scale:
        raise outside(str(value), type)
    with localcontext() as context:
        context.prec = 60  # the default of 28 digits would round a long fraction before it is compared
        scaled = value.quantize(Decimal(1).scaleb(-type.scale), context=context)
    if scaled != value:
        raise Misfit(f"{value} has more than {type.scale} digits after the point")
    return scaled


def _parse_bool(text: str, type: Type) -> bool:
    if text in TRUE_TEXTS:
        return True
    if text in FALSE_TEXTS:
        return False
    raise not_a(text, type)


def _parse_date(text: str, type: Type) -> dt.date:
    if not _DATE.fullmatch(text):
        raise not_a(text, type)
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise not_a(text, type) from None


def _parse_datetime(text: str, type: Type) -> dt.datetime:
    match = _DATETIME.fullmatch(text)
    if not match:
        raise not_a(text, type)
    day, hours, minutes, seconds, fraction, zone = match.groups()
    clock = f"{hours or '00'}:{minutes or '00'}:{seconds or '00'}.{(fraction or '0'):0<6}"
    try:
        moment = dt.datetime.fromisoformat(f"{day}T{clock}{zone or ''}")
        return moment if zone is None else moment.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise not_a(text, type) from None


_PARSERS: dict[str, Callable[[str, Type], Any]] = {
    INT.name: _parse_integer,
    UNSIGNED.name: _parse_integer,
    FLOAT.name: _parse_float,
    BOOL.name: _parse_bool,
    DATE.name: _parse_date,
    DATETIME.name: _parse_datetime,
}

_FORMS = {
    "bool": " (true or false)",
    "date": " (YYYY-MM-DD)",
    "datetime": " (YYYY-MM-DDTHH:MM:SS)",
}


def not_a(text: str, type: Type) -> Misfit:
    article = "an" if str(type)[0] in "aiu" else "a"
    return Misfit(f"{quoted(text)} is not {article} {type}{_FORMS.get(type.name, '')}")


def outside(text: str, type: Type) -> Misfit:
    limits = " (64 bits)" if type in (INT, UNSIGNED) else ""
    return Misfit(f"{shortened(text)} is outside the range of {type}{limits}")


def quoted(text: str) -> str:
    return f'"{shortened(text)}"'


def shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
