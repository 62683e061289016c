"""Cofactors over joins, and models fitted from them, against numpy on the join itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dlog.errors import DlogError
from dlog.m3.syntax.parse import parse
from dlog.views.m3.program import EXPORTED, NATIVE, NONE, Style, m3_text
from dlog.views.orders.orders import find_order
from dlog.views.query import Query
from dlog.views.regression import Cofactor, cofactor_query, fit, lift, merged_lifts
from dlog.views.run.maintained import Maintained
from dlog.views.tree.build import view_tree
from tests.views.schemas import schema

RELATIONS = {"R": ("a", "b", "f"), "S": ("a", "c", "d"), "T": ("c", "e")}
NAMES = ("a", "b", "f", "c", "d", "e")


def joined(relations: dict[str, list[tuple]]) -> np.ndarray:
    found = []
    for (a, b, f), (a2, c, d), (c2, e) in itertools.product(*relations.values()):
        if a == a2 and c == c2:
            found.append((a, b, f, c, d, e))
    return np.array(found, float).reshape(-1, len(NAMES))


@pytest.mark.parametrize("style", [NATIVE, EXPORTED, Style(inline=NONE), Style(batch=False)])
def test_oracle_numpy(style: Style) -> None:
    rng = np.random.default_rng(3)
    query = cofactor_query(Query(**schema(RELATIONS), aggregates=()), NAMES)
    kept = Maintained(query, style=style)
    present: dict[str, list[tuple]] = {name: [] for name in RELATIONS}
    for step in range(5):
        for name, columns in RELATIONS.items():
            new = [tuple(map(int, rng.integers(0, 4, len(columns)))) for _ in range(6)]
            old = present[name][:3] if step else []
            kept.apply(name, new + old, [1] * len(new) + [-1] * len(old))
            present[name] = present[name][len(old) :] + new
        rows, found = joined(present), Cofactor.of(kept)
        order = [NAMES.index(name) for name in found.names]
        assert sorted(order) == list(range(len(NAMES)))
        assert found.count == len(rows)
        assert found.sums == pytest.approx(rows[:, order].sum(axis=0))
        assert found.products == pytest.approx(rows[:, order].T @ rows[:, order])
    model = fit(found, "e")
    inputs = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    weights, *_ = np.linalg.lstsq(inputs, rows[:, -1], rcond=None)
    assert [model.intercept, *(model.slopes[n] for n in NAMES[:-1])] == pytest.approx(weights.tolist())
    assert model.error == pytest.approx(np.mean((inputs @ weights - rows[:, -1]) ** 2))


def test_lifts_of_one_view_are_one() -> None:
    """As F-IVM writes it."""
    query = cofactor_query(Query(**schema(RELATIONS), aggregates=()), NAMES)
    text = m3_text(query, view_tree(query, find_order(query)), EXPORTED)
    assert "[lift<1>: RingCofactor<1, double, 2>](b, f)" in text
    assert parse(text).types[0].name == "RingCofactor"
    same = [lift(0, "a"), lift(0, "a")]
    assert merged_lifts(same) == same  # the square of an element is not an element of two variables


def test_errors() -> None:
    empty = Cofactor(("x", "y"), 0.0, np.zeros(2), np.zeros((2, 2)))
    with pytest.raises(DlogError, match="no rows"):
        fit(empty, "y")
    with pytest.raises(DlogError, match="z is not among x, y"):
        fit(empty, "z")
    with pytest.raises(DlogError, match="z is not in any relation"):
        cofactor_query(Query(**schema(RELATIONS), aggregates=()), ["z"])
