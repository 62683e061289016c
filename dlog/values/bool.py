"""The type `bool`: false and true, which have the codes 0 and 1.  Texts may also be 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlog.values.arrows import same
from dlog.values.heavy import np, pa
from dlog.values.misfit import not_a, wrong_kind
from dlog.values.type import Codes, Converted, Literal, Type

TRUE_TEXTS = ("true", "True", "TRUE", "1")
FALSE_TEXTS = ("false", "False", "FALSE", "0")


class BoolType(Type):
    names = ("bool",)
    elsewhere = ("boolean",)
    preference = 5
    form = " (true or false)"
    literals = ("bool",)
    some_literal = ("bool", False)
    python = (bool,)
    sqlite = "INTEGER"
    spark_bytes = 4

    def arrow(self) -> pa.DataType:
        return pa.bool_()

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if not pa.types.is_boolean(values.type):
            raise self.wrong_column(values)
        return values.to_numpy(zero_copy_only=False).astype(np.int64)

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array(codes != 0)

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"bool": pa.types.is_boolean}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {"bool": same}

    def plain(self) -> str:
        return "^(true|false|0|1)$"

    def parse(self, text: str) -> bool:
        if text in TRUE_TEXTS:
            return True
        if text in FALSE_TEXTS:
            return False
        raise not_a(text, self)

    def take(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise wrong_kind(value, self)
        return value

    def literal(self, kind: str, value: Literal) -> bool:
        return bool(value)

    def literal_text(self, value: Any) -> str:
        return "true" if value else "false"

    def shown(self, value: bool) -> str:
        return self.literal_text(value)

    def sqlite_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        return column.cast(pa.int8()).to_pylist()

    def of_sqlite(self, value: Any) -> Any:
        return bool(value) if value in (0, 1) else value

    def spark(self) -> str:
        return "boolean"

    def spark_words(self, values: pa.Array) -> Any:
        return values.cast(pa.int8()).to_numpy(zero_copy_only=False)


BOOL = BoolType("bool")
