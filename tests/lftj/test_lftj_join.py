"""Joins against the meaning of their steps as formulas, resumed at every point."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dlog.jit import compiled_kernels
from dlog.lftj import directory, opcodes
from dlog.lftj.assemble import assemble
from dlog.lftj.plan import Count, Emit, Leap, Plan, Seek, Value
from dlog.lftj.triejoin import Join
from tests.lftj.formulas import MAX, MIN, Meaning
from tests.lftj.memory import Memory
from tests.lftj.plans import RANKS, Problem, problems

EXAMPLES = int(os.environ.get("DLOG_LFTJ_EXAMPLES", "300"))
LAYOUTS = st.one_of(
    st.none(),  # flat
    st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.lists(st.integers(1, 3), min_size=1)),
)
SIZES = st.one_of(st.integers(1, 3), st.just(1000))
RANK_WORDS = np.array(RANKS, np.int64)


def make_join(problem: Problem, layout) -> Join:
    memory = Memory()
    roots = []
    for arity, rows in zip(problem.plan.arities, problem.relations, strict=True):
        if layout is None or arity == 0:
            roots.append(memory.flat(rows, arity))
        else:
            roots.append(memory.paged(rows, arity, *layout))
    return Join(assemble(problem.plan), memory.words(), roots, RANK_WORDS)


def as_tuples(rows) -> list[tuple[int, ...]]:
    return [tuple(row) for row in rows.tolist()]


@given(problem=problems(), layout=LAYOUTS, rows=SIZES, budget=SIZES, eager=st.booleans())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_oracle_formulas(problem, layout, rows, budget, eager):
    """Same rows in the same order and the same undefined count, whatever layout, capacity and budget."""
    meaning = Meaning(problem.plan, problem.relations, RANKS)
    expected = meaning.rows()
    join = make_join(problem, layout)
    with pytest.MonkeyPatch.context() as patch:
        if eager:  # directories from the second slice on
            patch.setattr(directory, "LEAST_ROWS", 0)
            patch.setattr(directory, "ROWS_PER_SEEK", 1 << 40)
        if isinstance(problem.plan.steps[-1], Count):
            assert join.count(budget=budget) == len(expected)
        else:
            assert as_tuples(join.rows(rows=rows, budget=budget)) == expected
    assert join.counters().undefined == meaning.undefined
    assert join.counters().emitted == len(expected)


EDGES = {(1, 2), (2, 3), (1, 3), (3, 4), (2, 4), (1, 4)}
TRIANGLES = (Leap(0, ((0, 0), (2, 0))), Leap(1, ((0, 1), (1, 0))), Leap(2, ((1, 1), (2, 1))))


def triangles(end, rows=frozenset(EDGES)) -> Problem:
    return Problem(Plan((2, 2, 2), (*TRIANGLES, end)), (set(rows),) * 3)


def test_triangles():
    problem = triangles(Emit((0, 1, 2)))
    assert as_tuples(make_join(problem, None).rows()) == [(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)]


def test_invariant_batches_are_columns_in_order():
    """Concatenated batches are the output in order; each has contiguous columns and at most `rows` rows."""
    whole = make_join(triangles(Emit((2, 0))), None).rows()
    parts = []
    for batch in make_join(triangles(Emit((2, 0))), None).batches(rows=3):
        assert batch.T.strides[1] == 8 and 0 < len(batch) <= 3
        parts += as_tuples(batch)
    assert parts == as_tuples(whole) == [(3, 1), (4, 1), (4, 1), (4, 2)]


@pytest.mark.parametrize("layout", [None, ([1], [2])])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("bound", [MIN, 0, MAX])
def test_bounds_at_the_ends_of_the_domain(bound, strict, layout):
    """The smallest and the greatest number are keys like others, in the last level and before it."""
    keys = [MIN, MIN + 1, 0, MAX - 1, MAX]
    for arity in (1, 2):
        rows = {(key, *[MAX] * (arity - 1)) for key in keys}
        lower = Leap(1, ((0, 0),), lower=((0, strict),))
        upper = Leap(1, ((0, 0),), upper=((0, strict),))
        above = [(key,) for key in keys if key > bound or (key == bound and not strict)]
        below = [(key,) for key in keys if key < bound or (key == bound and not strict)]
        for leap, expected in ((lower, above), (upper, below)):
            problem = Problem(Plan((arity,), (leap, Emit((1,))), ((0, bound),)), (rows,))
            assert as_tuples(make_join(problem, layout).rows()) == expected


@pytest.mark.parametrize("layout", [None, ([1, 2], [2])])
def test_values_before_the_last_level(layout):
    """A key that determines two columns: both read as values, or the second one sought or leapt to."""
    rows = {(key, 10 * key, 10 * key + key % 2) for key in range(5)}
    first = (Leap(0, ((0, 0),)), Value(0, 1, 1))
    value = Plan((3,), (*first, Value(0, 2, 2), Emit((0, 1, 2))))
    leap = Plan((3,), (*first, Leap(2, ((0, 2),)), Emit((0, 1, 2))))
    seek = Plan((3,), (*first, Seek(0, 2, 1), Emit((0, 1, 1))))
    for plan, expected in ((value, rows), (leap, rows), (seek, {row for row in rows if row[1] == row[2]})):
        assert as_tuples(make_join(Problem(plan, (rows,)), layout).rows()) == sorted(expected)


def test_callback_sees_every_slice_and_can_stop_the_join():
    calls = []

    def between():
        calls.append(len(calls))
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_join(triangles(Count()), None).count(budget=1, between=between)
    assert calls == [0, 1, 2]


@pytest.mark.parametrize("layout", [None, ([100], [50])])
def test_long_searches_stop_for_the_clock(layout):
    """Keys that never meet, at a level that is not the last: the callback comes though nothing is found."""
    plan = Plan((2, 2), (Leap(0, ((0, 0), (1, 0))), Count()))
    even, odd = ({(2 * i + r, 0) for i in range(20_000)} for r in (0, 1))
    join = make_join(Problem(plan, (even, odd | {(39_998, 0)})), layout)
    calls = []
    assert join.count(budget=1000, between=lambda: calls.append(1)) == 1
    assert len(calls) >= 4


@given(
    rows=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60),
    layout=LAYOUTS,
    parts=st.integers(1, 5),
)
@settings(deadline=None)
def test_oracle_parts_by_first_key(rows, layout, parts):
    """The parts of a split, one after the other, give what the whole gives."""
    whole = make_join(triangles(Emit((0, 1, 2)), rows), layout)
    pieces = make_join(triangles(Emit((0, 1, 2)), rows), layout).split(parts)
    assert 1 <= len(pieces) <= parts
    assert [row for piece in pieces for row in as_tuples(piece.rows())] == as_tuples(whole.rows())


def test_parts_run_in_threads():
    """Parts of a join share the arena and nothing else."""
    random = np.random.default_rng(5)
    rows = {tuple(row) for row in random.integers(0, 60, (1500, 2)).tolist()}
    whole = make_join(triangles(Count(), rows), None)
    parts = make_join(triangles(Count(), rows), None).split(4)
    assert len(parts) == 4
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda part: part.count(budget=500), parts)) == whole.count()


def test_invariant_one_signature():
    """Whatever the plan, the machine is compiled once."""
    assert make_join(triangles(Count()), None).count() == 4
    assert len(make_join(triangles(Emit((0,))), ([1], [2])).rows()) == 4
    modules = ("dlog.lftj.machine.", "dlog.lftj.leap.", "dlog.lftj.batch.")
    assert all(n <= 1 for name, n in compiled_kernels().items() if name.startswith(modules))


def test_counters_of_a_small_join():
    """One open for each participant of each Leap entered; every triangle is emitted."""
    join = make_join(triangles(Count()), None)
    join.count()
    counters = join.counters()
    assert counters.emitted == 4
    assert counters.opens == 2 * (1 + 3 + 3)  # x once, y for three x, z for three (x, y) with y among the x
    assert counters.undefined == counters.comparisons == 0


@pytest.fixture
def eager(monkeypatch):
    """Directories from the second slice of a join on, whatever they cost."""
    monkeypatch.setattr(directory, "LEAST_ROWS", 0)
    monkeypatch.setattr(directory, "ROWS_PER_SEEK", 1 << 40)


@pytest.mark.parametrize("gap", [1, 3, 1000, 10**15])
@pytest.mark.parametrize("layout", [None, ([50, 3], [7])])
@pytest.mark.parametrize("arity", [1, 2])
def test_oracle_directories(gap, layout, arity, eager):
    """Far seeks by dense and sparse keys, as a Leap and as a Seek, find what set intersection finds."""
    random = np.random.default_rng(gap)
    keys = {int(key) for key in np.cumsum(random.integers(1, 2 * gap + 1, 3000)) - 500 * gap}
    sought = set(random.permutation(sorted(keys))[:200].tolist())
    sought |= {key + d for key in sought for d in (-1, 1)} | {MIN, MAX, min(keys), max(keys)}
    large, small = {(key, *[5] * (arity - 1)) for key in keys}, {(key, 0) for key in sought}
    leap = (Leap(0, ((0, 0), (1, 0))), Leap(1, ((1, 1),)), Emit((0,)))
    seek = (Leap(0, ((1, 0),)), Seek(0, 0, 0), Emit((0,)))
    for steps in (leap, seek):
        join = make_join(Problem(Plan((arity, 2), steps), (large, small)), layout)
        assert as_tuples(join.rows(budget=7)) == sorted((key,) for key in keys & sought)
        blocks = join.assembled.ranges
        assert join.state[blocks[0] + opcodes.DIRECTORY] > 0


def test_cost_follows_the_smallest_participant():
    """Ten keys against ten thousand, in either order: a few operations for each of the ten."""
    large, small = {(i, 0) for i in range(10_000)}, {(997 * i, 0) for i in range(10)}
    for relations in ((large, small), (small, large)):
        plan = Plan((2, 2), (Leap(0, ((0, 0), (1, 0))), Count()))
        join = make_join(Problem(plan, relations), None)
        assert join.count() == 10
        assert join.counters().seeks + join.counters().nexts <= 30


LONG_LAYOUTS = st.sampled_from([None, ([700, 1024, 3], [2, 3]), ([64, 1], [100])])


@given(
    sizes=st.lists(st.sampled_from([1, 20, 300, 1024, 1500, 5000]), min_size=1, max_size=3),
    layouts=st.lists(LONG_LAYOUTS, min_size=3, max_size=3),
    spread=st.sampled_from([1, 3, 50]),
    bounds=st.sampled_from([None, (100, 4000), (-5, 10**6), (4000, 100)]),
    rows=st.sampled_from([1, 100, 100_000]),
    seed=st.integers(0, 2**32 - 1),
)
@example(sizes=[5000] * 3, layouts=[None] * 3, spread=1, bounds=None, rows=100, seed=0)
@example(sizes=[5000] * 2, layouts=[([700, 1024, 3], [2, 3])] * 3, spread=1, bounds=None, rows=100, seed=0)
@settings(max_examples=60, deadline=None)
def test_oracle_long_intersections(sizes, layouts, spread, bounds, rows, seed):
    """Batches of several chunks and leaves, merged and galloped, against set intersection."""
    random = np.random.default_rng(seed)
    sets = [set(random.choice(spread * 5000, size, replace=False).tolist()) for size in sizes]
    memory = Memory()
    roots = []
    for keys, layout in zip(sets, layouts, strict=False):
        pairs = {(7, key) for key in keys}
        roots.append(memory.flat(pairs, 2) if layout is None else memory.paged(pairs, 2, *layout))
    atoms = range(len(sets))
    limits = () if bounds is None else ((1, False),), () if bounds is None else ((2, True),)
    last = Leap(3, tuple((a, 1) for a in atoms), *limits)
    steps = (Leap(0, tuple((a, 0) for a in atoms)), last)
    constants = tuple(enumerate(bounds or (0, 0), start=1))
    expected = sorted(
        key for key in set.intersection(*sets) if bounds is None or bounds[0] <= key < bounds[1]
    )
    listing = assemble(Plan((2,) * len(sets), (*steps, Emit((3, 0))), constants))
    counting = assemble(Plan((2,) * len(sets), (*steps, Count()), constants))
    words = memory.words()
    assert as_tuples(Join(listing, words, roots).rows(rows=rows, budget=1000)) == [
        (key, 7) for key in expected
    ]
    assert Join(counting, words, roots).count(budget=1000) == len(expected)
