"""Random natural joins kept up to date by M3 triggers, in batches of 1, 3 and 1,000, against DuckDB."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.m3 import parse
from dlog.m3.runtime.runtime import Runtime

VARIABLES = "abcde"


@dataclass(frozen=True)
class Join:
    """Relations by their columns, the columns to group by, and those whose product is summed."""

    relations: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...]
    factors: tuple[str, ...]

    def program(self, batch: bool) -> str:
        """A map of each relation, and the delta rule of the join for each: no views in between."""
        text = [
            f"CREATE STREAM R{i}({', '.join(f'{c} int' for c in r)});" for i, r in enumerate(self.relations)
        ]
        text.append(f"DECLARE MAP Q(long)[][{', '.join(f'{k}: int' for k in self.keys)}] := 0;")
        for i, columns in enumerate(self.relations):
            text.append(f"DECLARE MAP M{i}(long)[][{', '.join(f'{c}: int' for c in columns)}] := 0;")
        text.append(f"DECLARE QUERY Q := Q(long)[][{', '.join(self.keys)}];")
        for i, columns in enumerate(self.relations):
            others = [f"M{j}(long)[][{', '.join(r)}]" for j, r in enumerate(self.relations) if j != i]
            names, keys = ", ".join(columns), ", ".join(self.keys)
            if batch:
                product = " * ".join([f"(DELTA R{i})({names})", *others, *self.factors])
                text.append(
                    f"ON BATCH UPDATE OF R{i} {{ Q[][{keys}] += AggSum([{keys}], {product});"
                    f" M{i}[][{names}] += (DELTA R{i})({names}); }}"
                )
                continue
            for event, sign in (("+", "1"), ("-", "-1")):
                product = " * ".join([sign, *others, *self.factors])
                text.append(
                    f"ON {event} R{i}({names}) {{ Q[][{keys}] += AggSum([{keys}], {product});"
                    f" M{i}[][{names}] += {sign}; }}"
                )
        return "\n".join(text)

    def sql(self) -> str:
        product = " * ".join(["1", *self.factors])
        keys = "".join(f"{k}, " for k in self.keys)
        tables = " NATURAL JOIN ".join(f"r{i}" for i in range(len(self.relations)))
        return f"SELECT {keys} sum({product}) FROM {tables} {'GROUP BY ALL' if self.keys else ''}"


@st.composite
def joins(draw) -> Join:
    """Each relation has a column in common with one before it, so that results stay small."""
    found: list[tuple[str, ...]] = []
    for _ in range(draw(st.integers(1, 4))):
        columns = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=3, unique=True))
        seen = {c for r in found for c in r}
        if found and not seen & set(columns):
            columns[0] = draw(st.sampled_from(sorted(seen)))
        found.append(tuple(dict.fromkeys(columns)))
    used = sorted({c for r in found for c in r})
    keys = tuple(draw(st.lists(st.sampled_from(used), max_size=2, unique=True)))
    return Join(tuple(found), keys, tuple(draw(st.lists(st.sampled_from(used), max_size=2))))


def stream(rng: np.random.Generator, width: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows come, and a third of those that came go again."""
    came = rng.integers(-2, 12, (rows, width))
    gone = came[rng.permutation(rows)[: rows // 3]]
    return np.concatenate([came, gone]), np.repeat([1, -1], [len(came), len(gone)])


@pytest.mark.parametrize("batch", [1, 3, 1000])
@settings(max_examples=12)
@given(join=joins(), seed=st.integers(0, 99), whole=st.booleans())
def test_oracle_duckdb(batch: int, join: Join, seed: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    runtime = Runtime(parse(join.program(whole)))
    streams = [
        stream(rng, len(r), 30 if batch < 1000 else 1500 // len(join.relations)) for r in join.relations
    ]
    longest = max(len(rows) for rows, _ in streams)
    for start in range(0, longest, batch):
        for i, (rows, counts) in enumerate(streams):
            if len(rows[start : start + batch]):
                runtime.apply(f"R{i}", rows[start : start + batch], counts[start : start + batch])
    runtime.check()
    with duckdb.connect() as db:
        for i, ((rows, _), columns) in enumerate(zip(streams, join.relations, strict=True)):
            db.register(f"r{i}", left(rows, columns))
        expected = {row[:-1]: row[-1] for row in db.sql(join.sql()).fetchall() if row[-1]}
    columns = [column.to_pylist() for column in runtime["Q"].columns]
    assert {row[:-1]: row[-1] for row in zip(*columns, strict=True) if row[-1]} == expected


def left(rows: np.ndarray, columns: tuple[str, ...]) -> pa.Table:
    """What is there in the end: the last quarter of the rows are deletions."""
    came = len(rows) - len(rows) // 4
    counts: dict[tuple[int, ...], int] = {}
    for place, row in enumerate(map(tuple, rows.tolist())):
        counts[row] = counts.get(row, 0) + (1 if place < came else -1)
    there = [row for row, times in counts.items() for _ in range(times)]
    return pa.table({c: pa.array([row[i] for row in there], pa.int64()) for i, c in enumerate(columns)})
