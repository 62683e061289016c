"""Owns text cells as typed columns: the value of each cell, or the reason why it has none.

Correct output: for each cell either its value or the reason why it has none; never a wrong value.  What a
cell means is up to the type (`dlog.values`).  Whatever pyarrow's CSV reader accepts for a type is accepted
here with the same value, so a row is treated the same whether it is read by the fast path or by this one.
Spaces around anything but a string are ignored; a string is taken verbatim.  Knows nothing of lines and
files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.values import Type
from dlog.values.arrows import fits
from dlog.values.heavy import pc
from dlog.values.misfit import Misfit
from dlog.values.string import NOT_UTF8, utf8_cells


@dataclass(frozen=True)
class Misfits:
    """The cells of a column that have no value: their places, ascending, and the reason for each."""

    places: np.ndarray
    codes: np.ndarray  # places[i] has the reason reasons[codes[i]]
    reasons: Sequence[str]

    def reason(self, place: int) -> str | None:
        at = int(np.searchsorted(self.places, place))
        found = at < len(self.places) and self.places[at] == place
        return self.reasons[self.codes[at]] if found else None

    def shifted(self, places: np.ndarray) -> Misfits:
        """The same for a column where cell i of this one is at places[i]."""
        return Misfits(places[self.places], self.codes, self.reasons)

    def check(self) -> None:
        assert len(self.places) == len(self.codes) and (np.diff(self.places) > 0).all()


NO_MISFITS = Misfits(np.empty(0, np.int64), np.empty(0, np.int64), [])


def convert(cells: pa.Array, type: Type) -> tuple[pa.Array, Misfits]:
    """The typed column of text or binary cells, null where a cell has no value, and the reasons.

    One cast for plain cells; one Python call for each distinct other cell.

    >>> from dlog.values import INT
    >>> column, misfits = convert(pa.array(["7", "0x10", "", "7 apples"]), INT)
    >>> column.to_pylist(), misfits.reason(3)
    ([7, 16, None, None], '"7 apples" is not an int')
    """
    try:
        cells = cells.cast(pa.string())
    except pa.ArrowInvalid:
        return _convert_where_utf8(cells, type)
    if type.verbatim:
        return cells, NO_MISFITS
    cells = pc.ascii_trim_whitespace(cells)
    pattern = type.plain()
    if not pattern:
        return _convert_distinct(cells, type)
    plain = pc.match_substring_regex(cells, pattern)
    values = _cast_plain(cells, plain, type)
    if values is None:
        return _convert_distinct(cells, type)
    odd = pc.indices_nonzero(pc.invert(plain))
    if not len(odd):
        return values, NO_MISFITS
    odd_values, misfits = _convert_distinct(cells.take(odd), type)
    places = odd.to_numpy().astype(np.int64)
    order = np.arange(len(values))
    order[places] = len(values) + np.arange(len(places))
    return pa.concat_arrays([values, odd_values]).take(pa.array(order)), misfits.shifted(places)


def _convert_where_utf8(cells: pa.Array, type: Type) -> tuple[pa.Array, Misfits]:
    """Cells that are not text get the empty text and their own reason."""
    valid = utf8_cells(cells)
    column, misfits = convert(pc.if_else(pa.array(valid), cells, b""), type)
    places = np.flatnonzero(~valid)
    kept = ~np.isin(misfits.places, places)
    all_places = np.concatenate([misfits.places[kept], places])
    all_codes = np.concatenate([misfits.codes[kept], np.full(len(places), len(misfits.reasons))])
    order = np.argsort(all_places)
    return column, Misfits(all_places[order], all_codes[order], [*misfits.reasons, NOT_UTF8])


def _cast_plain(cells: pa.Array, plain: pa.Array, type: Type) -> pa.Array | None:
    """The plain cells cast, null elsewhere; None when one of them looks right but is not (30 February)."""
    try:
        values = type.read_plain(pc.if_else(plain, cells, None))
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
    column = pa.array(values, type.arrow()).take(encoded.indices)
    if not any(reasons):
        return column, NO_MISFITS
    places = pc.indices_nonzero(column.is_null()).to_numpy().astype(np.int64)
    return column, Misfits(places, encoded.indices.to_numpy()[places], reasons)


def parse(text: str, type: Type) -> Any:
    """The Python value of one cell, or Misfit with the reason.  REQUIRES: not the string type.

    >>> from dlog.values import INT
    >>> parse("-0x10", INT)
    -16
    """
    text = text.strip()
    if not text:
        raise Misfit(f"is empty, {type} expected")
    return type.parse(text)
