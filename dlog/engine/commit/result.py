"""Owns results for readers: rows of a predicate or a query, decoded on demand, sorted by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dlog.engine.commit.record_uses import codes_in_rows, record_columns
from dlog.io import arrow_schema, nullary_table
from dlog.io.options import ARROW, PARQUET
from dlog.ir.rules import Column
from dlog.jit import Words
from dlog.storage.dictionary.dictionary import MOST_STRING_BYTES, Dictionary, codes_of
from dlog.storage.index.sort import sorted_columns
from dlog.storage.relation.deferred import NO_TEXTS
from dlog.storage.values import decode
from dlog.values import RecordType

if TYPE_CHECKING:
    import pandas
    import polars


class Result:
    """The rows as they were when requested; later commits do not change them.

    >>> import dlog
    >>> db = dlog.Database(source='name(1, "one"). name(2, "two").')
    >>> db["name"].rows()
    [(1, 'one'), (2, 'two')]
    """

    def __init__(
        self,
        name: str,
        columns: tuple[Column, ...],
        codes: np.ndarray,
        dictionary: Dictionary,
        texts: Mapping[int, pa.Array] = NO_TEXTS,
    ):
        """A column of `texts` has numbers of texts in place of codes, and follows from earlier columns."""
        self.name = name
        self._texts = texts
        self.columns = columns
        self._codes = codes
        self._dictionary = dictionary
        self._table: pa.Table | None = None
        self._exported: pa.Table | None = None
        if record_columns(columns):
            dictionary.records.holders.add(self)

    def held_records(self) -> Iterator[Words]:
        """The codes of its records."""
        return codes_in_rows(self.columns, [self._codes])

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __contains__(self, row: object) -> bool:
        return row in set(self.rows())

    def __repr__(self) -> str:
        names = ", ".join(f"{c.name}: {c.type}" for c in self.columns)
        return f"<{self.name}({names}): {len(self):,} rows>"

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values, sorted."""
        if not self.columns:
            return [()] * len(self)
        typed = zip(self.columns, self.exact_table().columns, strict=True)
        return list(zip(*(c.type.python_values(values) for c, values in typed), strict=True))

    def to_arrow(self) -> pa.Table:
        """A pyarrow Table, sorted; integers, dates and the like without copying their codes again.  Records
        are structs, unless their type mentions itself: then they are texts."""
        if not any(isinstance(c.type, RecordType) and c.type.has_structs for c in self.columns):
            return self.exact_table()
        if self._exported is None:
            arrays = [
                c.type.exported(codes, self._dictionary) if c.type.is_record else self._values(i, codes)
                for i, (c, codes) in enumerate(zip(self.columns, self._ordered(), strict=True))
            ]
            self._exported = pa.Table.from_arrays(arrays, names=[c.name for c in self.columns])
        return self._exported

    def table_for(self, format: str) -> pa.Table:
        """As files of a format have it: Parquet and Arrow files have structs."""
        return self.to_arrow() if format in (ARROW, PARQUET) else self.exact_table()

    def exact_table(self) -> pa.Table:
        """The same with each column of the one Arrow type that `dlog.io.columns` says: records are texts."""
        if self._table is None:
            self._table = self._decoded()
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def _decoded(self) -> pa.Table:
        if not self.columns:
            return nullary_table(len(self))
        codes = self._ordered()
        arrays = [self._values(i, codes[i]) for i in range(len(codes))]
        return pa.Table.from_arrays(arrays, schema=arrow_schema([(c.name, c.type) for c in self.columns]))

    def _ordered(self) -> list[np.ndarray]:
        """The columns as codes, rows sorted by value."""
        codes = [np.ascontiguousarray(self._codes[:, i]) for i in range(len(self.columns))]
        if any(c.type.is_record for c in self.columns):
            return self._sorted(codes)
        if not all(c.type.ordered_codes for c in self.columns):
            return self._in_order(codes)
        return codes

    def _values(self, i: int, codes: np.ndarray) -> pa.Array:
        if i in self._texts:
            texts = self._texts[i].take(pa.array(codes))
            return texts.cast(pa.string()) if texts.nbytes < MOST_STRING_BYTES else texts
        return decode(codes, self.columns[i].type, self._dictionary)

    def _sorted(self, codes: list[np.ndarray]) -> list[np.ndarray]:
        """Rows sorted by value, some of them records."""
        keys = []
        for i, (column, of) in enumerate(zip(codes, self.columns, strict=True)):
            if isinstance(of.type, RecordType):
                keys.append(self._dictionary.records.ranks(column, of.type, self._dictionary))
            elif of.type.ordered_codes or i in self._texts:
                keys.append(column)
            else:
                keys.append(self._dictionary.ranks(column)[0])
        rows = np.lexsort(keys[::-1])
        return [column[rows] for column in codes]

    def _in_order(self, codes: list[np.ndarray]) -> list[np.ndarray]:
        """Rows sorted by value: strings by rank, which is turned back into codes."""
        strings = [not c.type.ordered_codes and i not in self._texts for i, c in enumerate(self.columns)]
        texts = [c for c, text in zip(codes, strings, strict=True) if text]
        rank, order = self._dictionary.ranking(codes_of(texts))
        keys = [rank[c] if text else c for c, text in zip(codes, strings, strict=True)]
        return [order[k] if text else k for k, text in zip(sorted_columns(keys), strings, strict=True)]
