"""The type `string`: UTF-8 text.  Its codes are those of a dictionary, which also has the order of texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import Misfit, shown, wrong_kind
from dlog.values.type import Codes, Converted, Literal, Type

NOT_UTF8 = "is not UTF-8 text"


class StringType(Type):
    names = ("string", "symbol")
    elsewhere = ("varchar", "text", "str", "char")
    preference = 2
    ordered_codes = False
    kernel = "string"
    literals = ("string",)
    literal_is_value = True
    m3 = "string"
    quoted_literal = True
    verbatim = True
    has_marks = True
    field_kind = 1
    some_literal = ("string", "")
    python = (str,)
    unreadable = NOT_UTF8
    spark_bytes = 0

    def arrow(self) -> pa.DataType:
        return pa.string()

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise self.wrong_column(values)
        return dictionary.encode(values)

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return dictionary.decode(codes)

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {
            "string": lambda t: pa.types.is_string(t) or pa.types.is_large_string(t),
            "binary": lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t),
        }

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {"string": self._from_string, "binary": self._from_binary}

    def _from_string(self, column: pa.ChunkedArray) -> Converted:
        """Arrow and Parquet files may have strings that are not valid UTF-8."""
        try:
            column.validate(full=True)
            return column, None
        except pa.ArrowInvalid:
            return self._from_binary(column.cast(pa.large_binary()))

    def _from_binary(self, column: pa.ChunkedArray) -> Converted:
        cells = pc.fill_null(column, b"").combine_chunks()
        try:
            return pa.chunked_array([cells.cast(pa.string())]), None
        except pa.ArrowInvalid:
            valid = pa.array(utf8_cells(cells))
            return pa.chunked_array([pc.if_else(valid, cells, b"").cast(pa.string())]), valid

    def parse(self, text: str) -> str:
        return text

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        return column

    def json(self, column: pa.Array) -> list[pa.Array | str]:
        """Backslashes, quotes and control characters as JSON writes them."""
        column = pc.replace_substring(column, "\\", "\\\\")
        column = pc.replace_substring(column, '"', '\\"')
        if pc.any(pc.match_substring_regex(column, "[\\x00-\\x1f]")).as_py():
            for code in range(32):
                column = pc.replace_substring(column, chr(code), json.dumps(chr(code))[1:-1])
        return ['"', column, '"']

    def of_sqlite(self, value: Any) -> Any:
        return str(value) if isinstance(value, int | float) else value

    def take(self, value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_kind(value, self)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misfit(f"{shown(value)} contains half a surrogate pair, which has no UTF-8 form") from None
        return str(value)

    def literal(self, kind: str, value: Literal) -> str:
        return str(value)

    def plain_literal(self, kind: str, value: Any) -> bool:
        return kind == "string"

    def spark(self) -> str:
        return "string"


STRING = StringType("string")


def utf8_cells(cells: pa.Array) -> Any:
    """Which binary cells are UTF-8."""
    return np.array([_is_utf8(cell) for cell in cells.to_pylist()], bool)


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True
