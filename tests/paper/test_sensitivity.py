"""Incremental Maintenance for Leapfrog Triejoin, 1.1 and 4: traces, sensitivity sets and change oracles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import dlog
from dlog.engine.commit.oracle_report import OracleReport
from dlog.jit import Words
from dlog.lftj.plan import Emit, Leap, Plan
from dlog.sensitivity.intervals import Intervals, covered_changes
from dlog.sensitivity.upkeep import Upkeep
from dlog.sensitivity.watches import COARSE, EXACT, FREE, TRACED, WILD, Watch, Watched, watched
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.diff.surgery import surgeries
from dlog.storage.index.index import Index
from dlog.storage.scan.interval_tree import GREATEST, LEAST
from dlog.values import INT

ARENA = Arena(1 << 28)


def unary(values: tuple[int, ...]) -> Index:
    return Index.build(ARENA, [(v,) for v in values], 1)


# 4.1: A(x), B(x)

JOIN = Plan((1, 1), (Leap(0, ((0, 0), (1, 0))), Emit((0,))))
A, B = (0, 2, 4, 5, 6), (1, 2, 6, 7)
A_SENS = [(LEAST, 0), (1, 2), (2, 4), (6, 6), (6, GREATEST)]
B_SENS = [(LEAST, 1), (2, 2), (4, 6)]


def recorded() -> tuple[Upkeep, tuple[Index, Index]]:
    """With an index for both, though in practice none is needed: both are prefixes of the key order."""
    return Upkeep(watched(JOIN, EXACT, drop_free=False)), (unary(A), unary(B))


def test_sensitivity_sets_of_4_1() -> None:
    upkeep, indices = recorded()
    traced = upkeep.record(ARENA.A, [i.root for i in indices])
    assert traced.rows.tolist() == [[2], [6]]
    assert [list(map(tuple, note.tolist())) for note in traced.notes[:2]] == [A_SENS, B_SENS]


def test_maintenance_of_4_1_1() -> None:
    """Erase A(5), insert A(8), erase B(2), insert B(3)."""
    upkeep, (a, b) = recorded()
    intervals = upkeep.intervals(ARENA, upkeep.record(ARENA.A, [a.root, b.root]))
    a_new, b_new = a.apply(inserts=[(8,)], erases=[(5,)])[0], b.apply(inserts=[(3,)], erases=[(2,)])[0]
    contributions = {}
    for atom, keys in ((0, (5, 8)), (1, (2, 3))):
        for change in ((key,) for key in keys):
            matches = intervals[atom].stabbing([change]).rows
            contributions["AB"[atom], *change] = list(map(tuple, matches.tolist()))
    assert contributions == {
        ("A", 5): [],
        ("A", 8): [(6, GREATEST)],
        ("B", 2): [(2, 2)],
        ("B", 3): [],
    }
    oracle = upkeep.oracle({0: surgeries(a, a_new), 1: surgeries(b, b_new)}, intervals)
    assert oracle.intervals() == [[(2, 2), (6, GREATEST)]]
    shown = OracleReport.of("C", (("x", INT),), oracle, Dictionary())
    assert str(shown) == "C re-examined at x in [2, 2], [6, +inf]"
    result = upkeep.maintain(ARENA.A, oracle, ([a.root, b.root], [a_new.root, b_new.root]), intervals)
    assert (result.erased.tolist(), result.inserted.tolist()) == ([[2]], [])
    # At 2 nothing changes for A: what is left of [1, 2] joins what was noted at 2.  A at 6 continues to 8,
    # and there B ends.
    revised = [list(map(tuple, index.rows().tolist())) for index in result.intervals]
    assert revised[0] == [(LEAST, 0), (1, 2), (3, 4), (6, 6), (6, 8)]
    assert revised[1] == [(LEAST, 1), (2, 2), (4, 6), (8, GREATEST)]
    # The invariant: where both have a key both are sensitive, elsewhere one that lacks it is.
    has = [{0, 2, 4, 6, 8}, {1, 3, 6, 7}]
    for key in range(-2, 12):
        sensitive = [any(low <= key <= high for low, high in rows) for rows in revised]
        if key in has[0] & has[1]:
            assert all(sensitive), key
        else:
            assert any(s and key not in h for s, h in zip(sensitive, has, strict=True)), key


# 1.1: C[x] = z <- z = A[x] + B[x]


def test_trace_table_of_1_1() -> None:
    """Two changed values of A are two lines of the table, whatever its length."""
    text = "A[x] = y -> int(x), int(y). B[x] = y -> int(x), int(y). C[x] = z <- z = A[x] + B[x]."
    db = dlog.Database(source=text, strategy="trace-exact")
    before = {0: (0, 0), 1: (10, 0), 2: (0, 1), 3: (30, 1), 4: (0, 0), 5: (0, 0)}
    with db.transaction() as tx:
        tx.insert("A", [(x, a) for x, (a, _) in before.items()])
        tx.insert("B", [(x, b) for x, (_, b) in before.items()])
    assert db["C"].rows() == [(0, 0), (1, 10), (2, 1), (3, 31), (4, 0), (5, 0)]
    with db.transaction() as tx:
        tx.upsert("A", [(2, 20), (5, 50)])
    assert tx.commit_info is not None
    change = tx.commit_info.changes["C"]
    assert (change.erased.rows(), change.inserted.rows()) == ([(2, 1), (5, 0)], [(2, 21), (5, 50)])
    assert tx.commit_info.ways == {"C": "trace"}
    assert list(map(str, tx.commit_info.oracle_reports())) == ["C re-examined at x in [2, 2], [5, 5]"]


# 4.2: F(x, y) <- G(x, z), H(y, z), I(x, y, z), R(z) in the key order [x, y, z]

G, H, I, R = range(4)
X, Y, Z = range(3)
BODY = Plan(
    (2, 2, 3, 1),
    (
        Leap(X, ((G, 0), (I, 0))),
        Leap(Y, ((H, 0), (I, 1))),
        Leap(Z, ((G, 1), (H, 1), (I, 2), (R, 0))),
        Emit((X, Y, Z)),
    ),
)


def shapes(plan: Watched) -> dict[tuple[int, int], tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """(Variables before, the variable of the interval, other variables) of each level that has an index."""
    variable = {(G, 0): X, (G, 1): Z, (H, 0): Y, (H, 1): Z, (I, 0): X, (I, 1): Y, (I, 2): Z, (R, 0): Z}
    return {
        (w.atom, w.level): (w.prefix, variable[w.atom, w.level], w.others)
        for w in plan.watches
        if w.how == TRACED
    }


def test_eight_sensitivity_predicates_of_4_2() -> None:
    assert shapes(watched(BODY, EXACT, drop_free=False)) == {
        (G, 0): ((), X, ()),
        (G, 1): ((X,), Z, (Y,)),
        (H, 0): ((), Y, (X,)),
        (H, 1): ((Y,), Z, (X,)),
        (I, 0): ((), X, ()),
        (I, 1): ((X,), Y, ()),
        (I, 2): ((X, Y), Z, ()),
        (R, 0): ((), Z, (X, Y)),
    }


def test_dropped_predicates_of_4_2() -> None:
    """None for I, nor for G by x: their arguments are a prefix of the key order."""
    dropped = {(I, 0), (I, 1), (I, 2), (G, 0)}
    plan = watched(BODY, EXACT)
    assert {(w.atom, w.level) for w in plan.watches if w.how == FREE} == dropped
    assert set(shapes(plan)) == {(G, 1), (H, 0), (H, 1), (R, 0)}


def test_coarse_needs_no_index_where_few_values_go_with_a_row() -> None:
    """For a given x few y are in I: G by (x, z) lets y be anything."""
    plan = watched(BODY, COARSE, may_roam=lambda depths: True)
    assert {(w.atom, w.level) for w in plan.watches if w.how == WILD} == {(G, 1)}


def test_oracle_of_4_2_one_fact_of_r() -> None:
    """A retracted fact of R leads to the (x, y, z) where it was used."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 6, (40, k)) for k in (2, 2, 3, 1)]
    for granularity in (EXACT, COARSE):
        upkeep = Upkeep(watched(BODY, granularity))
        indices = [Index.build(ARENA, r, r.shape[1]) for r in rows]
        roots = [i.root for i in indices]
        traced = upkeep.record(ARENA.A, roots)
        intervals = upkeep.intervals(ARENA, traced)
        without = indices[R].erase_row((3,))
        assert without is not None
        oracle = upkeep.oracle({R: surgeries(indices[R], without)}, intervals)
        result = upkeep.maintain(ARENA.A, oracle, (roots, [*roots[:R], without.root]), intervals)
        used = sorted({tuple(row) for row in traced.rows.tolist() if row[Z] == 3})
        assert list(map(tuple, result.erased.tolist())) == used and used
        assert not len(result.inserted)


# The counter-example to removing whole intervals: I(x, z), R(z) in the key order [x, z]

PAIR = Upkeep(watched(Plan((2, 1), (Leap(0, ((0, 0),)), Leap(1, ((0, 1), (1, 0))), Emit((0, 1)))), EXACT))
R_SENS = [[LEAST, 5, 0], [10, 20, 0]]  # a, b, x


def pair() -> tuple[Index, Index, tuple[Intervals, ...]]:
    """I, R and what R is sensitive to; I is a prefix of the key order, and has no index."""
    i, r = Index.build(ARENA, [(0, 1), (0, 10), (0, 15)], 2), unary((5, 20))
    intervals = PAIR.intervals(ARENA, PAIR.record(ARENA.A, [i.root, r.root]))
    assert [index.rows().tolist() for index in intervals] == [R_SENS]
    return i, r, intervals


def points_only(
    self: Upkeep, watch: Watch, contexts: Words, intervals: Sequence[Intervals]
) -> tuple[Words, Words]:
    """In place of `Upkeep._widened`: the paper's oracle, where a changed key contributes itself alone."""
    return contexts, contexts[:, -1]


@pytest.mark.parametrize("widened", [True, False])
def test_oracle_of_the_counter_example(widened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Erase I(0, 10): the paper's oracle is the point 10, ours the interval of R that holds it."""
    if not widened:
        monkeypatch.setattr(Upkeep, "_widened", points_only)
    i, _, intervals = pair()
    i_new = i.erase_row((0, 10))
    assert i_new is not None
    oracle = PAIR.oracle({0: surgeries(i, i_new)}, intervals)
    assert oracle.intervals() == [[(0, 0)], [(10, 20) if widened else (10, 10)]]


@pytest.mark.parametrize(
    ("points", "left"),
    [
        ((10,), [(11, 20)]),
        ((20,), [(10, 19)]),
        ((10, 20), [(11, 19)]),
        ((15,), [(10, 20)]),  # one that is covered only inside stays whole
        (range(10, 20), [(20, 20)]),
        (range(10, 21), []),
    ],
    ids=str,
)
def test_only_the_covered_part_of_an_interval_goes(
    points: Sequence[int], left: list[tuple[int, int]]
) -> None:
    """Of [10, 20], when points of it are covered and nothing is noted there.  [-inf, 5] is not met."""
    _, r, (index,) = pair()
    covers, nothing = np.array([(z, z, 0) for z in points]), np.empty((0, 3), np.int64)
    later = index.apply(covered_changes(index, ARENA.A, r.root, covers, nothing))
    later.check()
    assert later.rows().tolist() == [R_SENS[0], *([a, b, 0] for a, b in left)]


@pytest.mark.parametrize("widened", [True, False])
def test_counter_example_to_removing_whole_intervals(widened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Erase I(0, 10), then insert R(15): it is not missed.

    Widened, the oracle covers all of [10, 20], and what is new there is noted again: an index that lost whole
    intervals would not be found out.  Without, which is as sound (see `test_sound_index`) and only leaves
    more pieces, what is left of [10, 20] is all that leads to 15.
    """
    if not widened:
        monkeypatch.setattr(Upkeep, "_widened", points_only)
    i, r, intervals = pair()
    i_new, r_new = i.erase_row((0, 10)), r.insert_row((15,))
    assert i_new is not None and r_new is not None
    oracle = PAIR.oracle({0: surgeries(i, i_new)}, intervals)
    result = PAIR.maintain(ARENA.A, oracle, ([i.root, r.root], [i_new.root, r.root]), intervals)
    assert not len(result.erased) and not len(result.inserted)
    assert result.intervals[0].rows().tolist() == [R_SENS[0], [15 if widened else 11, 20, 0]]
    oracle = PAIR.oracle({1: surgeries(r, r_new)}, result.intervals)
    roots = [i_new.root, r.root], [i_new.root, r_new.root]
    later = PAIR.maintain(ARENA.A, oracle, roots, result.intervals)
    assert (later.erased.tolist(), later.inserted.tolist()) == ([], [[0, 15]])
