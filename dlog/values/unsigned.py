"""The type `unsigned`: 64 bits without a sign.  Its code is the number with the top bit inverted."""

from __future__ import annotations

from typing import Any

from dlog.values.heavy import np, pa
from dlog.values.int import RANGE, IntegerType
from dlog.values.type import Codes, Literal

TOP_BIT = -(2**63)


class UnsignedType(IntegerType):
    names = ("unsigned",)
    elsewhere = ("uint", "uint64")
    preference = 3
    kernel = "unsigned"
    conversion = "to_unsigned"
    converts = ("string", "int", "unsigned", "float")
    literals = ("int", "unsigned")
    limits = (0, (1 << 64) - 1)
    sqlite = "BLOB"  # SQLite has integers up to 2^63 - 1, and leaves the values of such a column as they are

    @property
    def called(self) -> str:
        return "an unsigned number"

    def arrow(self) -> pa.DataType:
        return pa.uint64()

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if pa.types.is_floating(values.type):
            numbers = self.whole_numbers(values).astype(np.uint64)
        elif pa.types.is_integer(values.type):
            numbers = values.to_numpy(zero_copy_only=False)
            self.require(numbers >= 0, values)
            numbers = numbers.astype(np.uint64)
        else:
            raise self.wrong_column(values)
        return numbers.view(np.int64) ^ np.int64(TOP_BIT)

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array((codes ^ np.int64(TOP_BIT)).view(np.uint64))

    def sqlite_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        return [value if value <= RANGE[1] else str(value) for value in column.to_pylist()]

    def plain(self) -> str:
        return "^[0-9]{1,19}$"

    def literal(self, kind: str, value: Literal) -> int:
        if not 0 <= int(value) < 2**64:
            raise ValueError("is negative" if int(value) < 0 else "does not fit 64 bits")
        return int(value)

    def spark(self) -> str:
        return "decimal(20,0)"

    def to_spark(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column.cast(pa.decimal128(20, 0))


UNSIGNED = UnsignedType("unsigned")
