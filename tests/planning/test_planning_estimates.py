"""Statistics and sizes are estimated well enough to choose by, on even and on skewed data."""

from __future__ import annotations

import numpy as np
import pytest

import dlog
from dlog.engine.body.readable import Readable
from dlog.engine.maintain.body_changes import Standing
from dlog.ir.rules import Atom, Var
from dlog.planning.compile import estimate_join
from dlog.planning.versions import inserted_name

ROWS, VALUES = 60_000, 6_000


def graph(exponent: float) -> np.ndarray:
    """Distinct edges whose ends are drawn with weight rank ** -exponent."""
    random = np.random.default_rng(4)
    weights = np.arange(1, VALUES + 1) ** -exponent
    ends = random.choice(VALUES, (ROWS, 2), p=weights / weights.sum())
    return np.unique(random.permutation(VALUES)[ends], axis=0)


@pytest.fixture(params=[0.0, 0.6, 0.9], ids=["even", "skewed", "very skewed"])
def edges(request: pytest.FixtureRequest) -> np.ndarray:
    return graph(request.param)


def loaded(edges: np.ndarray) -> dlog.Database:
    database = dlog.Database(source="e(x, y) -> int(x), int(y).", evaluated=False)
    database.store.relations["e"].apply_in_place(inserts=edges)
    return database


def within(estimate: float, truth: float, factor: float) -> bool:
    return truth / factor <= estimate <= truth * factor


def test_distinct_values_and_partners(edges: np.ndarray) -> None:
    store = loaded(edges).store
    for column in (0, 1):
        _, counts = np.unique(edges[:, column], return_counts=True)
        assert within(store.distinct("e", column), len(counts), 2)
        assert within(store.partners("e", column), (counts**2).sum() / len(edges), 1.5)


def test_distinct_values_and_partners_after_changes() -> None:
    """Rows in thousands of leaves, of many sizes: neighbours in a leaf are not taken for rows at random."""
    values, each = 50_000, 10
    edges = np.stack([np.repeat(np.arange(values), each), np.arange(values * each) * 7 % values], axis=1)
    store = loaded(edges).store
    for row in np.random.default_rng(6).permutation(edges)[:3000].tolist():
        store.relations["e"] = store.relations["e"].erase_row(row).insert_row(row)
    for column in (0, 1):
        assert within(store.distinct("e", column), values, 2)
        assert within(store.partners("e", column), each, 1.5)


def test_sizes_of_joins(edges: np.ndarray) -> None:
    """2-paths by degrees; how many ends they have, by counting."""
    database = loaded(edges)
    atoms = [Atom("e", (Var("a"), Var("b")), 2), Atom("e", (Var("b"), Var("c")), 2)]
    order = estimate_join(atoms, ("a", "c"), True, Readable(database.store, {}))
    truth = np.bincount(edges[:, 1], minlength=VALUES) @ np.bincount(edges[:, 0], minlength=VALUES)
    assert within(order.sizes[-1], float(truth), 3)


def test_semijoin_that_alone_has_a_variable() -> None:
    """Where the atoms that a semijoin was made of are not there, it counts as any atom."""
    database = loaded(graph(0.0))
    e, f = (Atom("e", (Var(x), Var(y)), 2) for x, y in ("ab", "db"))
    view = Readable(database.store, {})
    implied = {f: frozenset("abd")}
    alone = estimate_join([e, f], ("a", "d"), True, view, None, implied).sizes[-1]
    assert alone == estimate_join([e, f], ("a", "d"), True, view).sizes[-1] > 5 * database.store.rows("e")
    other = Atom("e", (Var("d"), Var("a")), 2)
    without = estimate_join([e, other], ("b", "d"), True, view).sizes[-1]
    beside = estimate_join([e, other, f], ("b", "d"), True, view, None, implied).sizes[-1]
    assert beside == pytest.approx(without, rel=0.1)


@pytest.mark.parametrize("changed", range(3))
def test_a_changed_edge_binds_both_its_ends_before_the_third_corner(edges: np.ndarray, changed: int) -> None:
    """However skewed: the neighbours of two vertices are met, not one's looked up in all edges one by one."""
    database = loaded(edges)
    atoms = [Atom("e", (Var(a), Var(b)), 2) for a, b in ("xy", "yz", "xz")]
    atoms[changed] = Atom(inserted_name("e"), atoms[changed].args, 2)
    order = estimate_join(atoms, tuple("xyz"), True, Standing(database.store, None))
    assert order.variables[-1] == "zxy"[changed]
