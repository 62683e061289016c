"""Products of chains of matrices, maintained as joins: against numpy's product of the matrices as they are,
after entries, batches of entries, and products of a column and a row were added or removed.
"""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.views.m3.program import NATIVE, Style
from dlog.views.query import Query
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql
from tests.examples import relaxed

Matrix = np.ndarray


def chain(length: int, factorised: bool = False) -> Query:
    """Entries are rows (i, j, x), or, as products of a column and a row, (i, u, j, v)."""
    columns = (
        "r{0} int, u{0} double, r{1} int, v{0} double" if factorised else "r{0} int, r{1} int, x{0} double"
    )
    streams = [f"CREATE STREAM A{n}({columns.format(n, n + 1)});" for n in range(length)]
    value = " * ".join(f"u{n} * v{n}" if factorised else f"x{n}" for n in range(length))
    joined = " NATURAL JOIN ".join(f"A{n}" for n in range(length))
    select = f"SELECT r0, r{length}, SUM({value}) AS entry FROM {joined} GROUP BY r0, r{length};"
    return parse_sql(" ".join([*streams, select]))


def product(matrices: list[Matrix]) -> Matrix:
    return reduce(lambda left, right: left @ right, matrices)


def found(kept: Maintained, shape: tuple[int, ...]) -> Matrix:
    out = np.zeros(shape)
    for i, j, entry in (row.values() for row in kept.result().to_pylist()):
        out[i, j] = entry
    return out


@st.composite
def chains(draw: Any) -> tuple[list[Matrix], list[tuple[int, Matrix, Matrix]]]:
    """Matrices, and changes: of which one, a column and a row."""
    halves = st.integers(-6, 6).map(lambda n: n / 2)
    sizes = draw(st.lists(st.integers(1, 4), min_size=3, max_size=6))

    def some(*shape: int) -> Matrix:
        n = int(np.prod(shape))
        return np.array(draw(st.lists(halves, min_size=n, max_size=n))).reshape(shape)

    matrices = [some(*shape) for shape in itertools.pairwise(sizes)]
    which = draw(st.lists(st.integers(0, len(matrices) - 1), min_size=1, max_size=4))
    return matrices, [(n, some(sizes[n]), some(sizes[n + 1])) for n in which]


def entries(matrix: Matrix) -> list[tuple[int, int, float]]:
    return [(i, j, float(matrix[i, j])) for i, j in np.argwhere(matrix).tolist()]


@pytest.mark.parametrize("style", [NATIVE, Style(batch=False)], ids=["batches", "single rows"])
@relaxed(12)
@given(case=chains())
def test_oracle_entries(style: Style, case: Any) -> None:
    """A change is the deletion of old entries and the insertion of new ones."""
    matrices, changes = case
    shape = (len(matrices[0]), matrices[-1].shape[1])
    kept = Maintained(chain(len(matrices)), style=style)
    for n, matrix in enumerate(matrices):
        kept.apply(f"A{n}", entries(matrix))
    assert (found(kept, shape) == product(matrices)).all()
    for n, column, row in changes:
        old, matrices[n] = matrices[n], matrices[n] + np.outer(column, row)
        gone, new = entries(old), entries(matrices[n])
        kept.apply(f"A{n}", gone + new, [-1] * len(gone) + [1] * len(new))
        assert (found(kept, shape) == product(matrices)).all()
        i, j = np.unravel_index(np.argmax(np.abs(matrices[n])), matrices[n].shape)
        one = (int(i), int(j), float(matrices[n][i, j]))
        if one[2]:
            kept.apply(f"A{n}", [one], [-1])  # one row alone
            matrices[n][i, j] = 0
            assert (found(kept, shape) == product(matrices)).all()
        kept.runtime.check()


@relaxed(12)
@given(case=chains())
def test_oracle_changes_of_rank_1(case: Any) -> None:
    """A column times a row, added and partly taken back, as an update that factorises."""
    matrices, changes = case
    shape = (len(matrices[0]), matrices[-1].shape[1])
    parts = {f"A{n}": [[f"r{n}", f"u{n}"], [f"r{n + 1}", f"v{n}"]] for n in range(len(matrices))}
    kept = Maintained(chain(len(matrices), factorised=True), products=parts)
    for n, matrix in enumerate(matrices):
        kept.apply(f"A{n}", [(i, x, j, 1.0) for i, j, x in entries(matrix)])
    for n, column, row in changes:
        left = [(i, float(u)) for i, u in enumerate(column) if u]
        right = [(j, float(v)) for j, v in enumerate(row) if v]
        for sign in (1, 1, -1):
            times = [[sign] * len(left), [1] * len(right)]
            kept.apply_product(f"A{n}", left, right, multiplicities=times)
            matrices[n] = matrices[n] + sign * np.outer(column, row)
            assert (found(kept, shape) == product(matrices)).all()
        kept.runtime.check()
