"""Recursion gives the same rows however it is done: driven with any set, in small slices, or in rounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import dlog
from dlog.engine.evaluate import chunks, fixpoint
from dlog.engine.evaluate import evaluate as evaluate_module
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.errors import ConstraintError, DataError
from dlog.storage.queue import row_queue
from dlog.storage.queue.row_queue_kernels import HASH, Q_METHOD
from tests.oracle.accepted import accepted
from tests.oracle.bodies import Features
from tests.oracle.compare import same_program
from tests.oracle.naive import evaluate as naive
from tests.oracle.programs import RECURSIVE, programs
from tests.oracle.recursions import recursions

FEATURES = Features().with_("comparisons", "arithmetic", "negation", "disjunctions", "functions", *RECURSIVE)
WAYS: dict[str, dict[str, Any]] = {
    "bitmap": {"row_sets": "bitmap"},
    "hash": {"row_sets": "hash"},
    "wide": {"row_sets": "wide"},
    "runs": {"row_sets": "runs"},
    "rounds": {"rounds": True},
    "threads": {"jobs": 2},
}
PROGRAMS = recursions() | programs(FEATURES, derived=3)
EXAMPLES = int(os.environ.get("DLOG_RECURSION_EXAMPLES", "40"))


def database(text: str, **options: Any) -> dlog.Database:
    made = dlog.Database(source=text, evaluated=False)
    evaluate(made.program, made.store, Evaluation(**options))
    return made


def agree(text: str, **options: Any) -> None:
    """Same rows as the naive evaluator, or both refuse."""
    program = accepted(text)
    try:
        expected = naive(program)
    except (ConstraintError, DataError, OverflowError):
        with pytest.raises((ConstraintError, DataError)):
            database(text, **options)
        return
    made = database(text, **options)
    same_program({name: made[name].rows() for name in program.predicates}, expected, program)
    made.check()


@pytest.mark.parametrize("way", WAYS)
def test_oracle_every_way(way: str) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(PROGRAMS)
    def check(text: str) -> None:
        agree(text, **WAYS[way])

    check()


def test_oracle_small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel comes back after a few operations, and with little output."""
    monkeypatch.setattr(fixpoint, "OUTPUT_ROWS", 3)
    monkeypatch.setattr(fixpoint, "FIRST_BUDGET", 5)
    monkeypatch.setattr(fixpoint, "BUDGET", 9)

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(PROGRAMS)
    def check(text: str) -> None:
        agree(text)

    check()


def test_oracle_runs_that_settle_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows wait at a time, so that there are many levels; some recursions continue with a hash table."""
    monkeypatch.setattr(fixpoint, "OUTPUT_ROWS", 3)
    monkeypatch.setattr(row_queue, "LEAST_WAITING", 1)
    monkeypatch.setattr(row_queue, "CALL", 1)
    monkeypatch.setattr(row_queue, "THIN", 3)
    monkeypatch.setattr(row_queue, "PATIENCE", 12)
    ended: set[int] = set()

    class Queues(row_queue.RowQueues):
        def settle(self, q: int, first: int) -> int:
            new = super().settle(q, first)
            self.check()
            return new

        def choose(self, q: int, room: int, more: Any = None, runs: bool = True) -> int:
            back = super().choose(q, room, more, runs)
            ended.add(self[q, Q_METHOD] if back else -1)
            return back

    monkeypatch.setattr(fixpoint, "RowQueues", Queues)

    @settings(max_examples=2 * EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(PROGRAMS)
    def check(text: str) -> None:
        agree(text, row_sets="runs")

    check()
    assert HASH in ended


@pytest.mark.parametrize("way", ["chosen", "bitmap", "hash", "wide", "runs"])
def test_oracle_small_chunks_in_threads(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a seed or two, handed to two threads."""
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 2)
    monkeypatch.setattr(chunks, "FIRST_SEEDS", 2)
    monkeypatch.setattr(chunks, "WORTH_THREADS", 0)

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(PROGRAMS)
    def check(text: str) -> None:
        agree(text, jobs=2, **WAYS.get(way, {}))

    check()


@pytest.mark.parametrize(
    ("rules", "pivots"),
    [
        ("p(x, z) <- p(x, y), e(y, z).", {"p": 0}),
        ("p(z, x) <- p(y, x), e(y, z).", {"p": 1}),
        ("p(x, z) <- p(y, x), e(y, z).", None),
        ("p(x, z) <- p(x, y), p(y, z).", None),
        ("p(x, z) <- q(z, x, y), e(y, z). q(y, x, z) <- p(x, y), e(y, z).", {"p": 0, "q": 1}),
        ("p(1, z) <- p(x, z), e(x, z).", {"p": 1}),
    ],
)
def test_pivots(rules: str, pivots: dict[str, int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recursion is cut by the column that all its rules hand on."""
    found: list[dict[str, int] | None] = []
    monkeypatch.setattr(fixpoint, "find_pivots", lambda *args: found.append(chunks.find_pivots(*args)))
    dlog.Database(source=f"e(1, 2). e(2, 3). p(x, y) <- e(x, y). {rules}")
    assert found == [pivots]


@pytest.mark.fuzz
@settings(max_examples=3000, suppress_health_check=list(HealthCheck))
@given(programs(FEATURES, derived=5, facts=16) | recursions())
def test_fuzz_every_way(text: str) -> None:
    for options in WAYS.values():
        agree(text, **options)


def closure(edges: np.ndarray) -> set[tuple[int, int]]:
    """By powers of the matrix of reachability: shares nothing with rows, sets or joins."""
    n = int(edges.max()) + 1
    reach = np.zeros((n, n), bool)
    reach[edges[:, 0], edges[:, 1]] = True
    while True:
        more = reach | (reach.astype(np.int32) @ reach.astype(np.int32) > 0)
        if (more == reach).all():
            return set(zip(*map(list, np.nonzero(reach)), strict=True))
        reach = more


CLOSURES = {
    "left": "reach(x, z) <- reach(x, y), edge(y, z).",
    "right": "reach(x, z) <- edge(x, y), reach(y, z).",
    "both": "reach(x, z) <- reach(x, y), reach(y, z).",
    "mutual": "odd(x, y) <- edge(x, y). odd(x, z) <- even(x, y), edge(y, z)."
    " even(x, z) <- odd(x, y), edge(y, z). reach(x, y) <- odd(x, y); even(x, y).",
}


@pytest.mark.parametrize("rule", CLOSURES)
@pytest.mark.parametrize("way", ["chosen", *WAYS])
def test_oracle_closure_outgrows_its_sets(rule: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough rows for every kind of set to grow, and values that come to lie outside what it could hold."""
    if way == "threads":
        monkeypatch.setattr(chunks, "WORTH_THREADS", 0)
        monkeypatch.setattr(chunks, "CHUNK_ROWS", 3000)
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 300, (420, 2))
    for factor, offset in ((1, 0), (7_000_003, -900_000_000)):
        made = dlog.Database(
            source="edge(x, y) -> int(x), int(y). reach(x, y) <- edge(x, y)." + CLOSURES[rule]
        )
        with made.transaction() as tx:
            tx.insert("edge", edges * factor + offset)
        made.store.clear("reach")
        for name in ("odd", "even"):
            if name in made.store.relations:
                made.store.clear(name)
        evaluate(made.program, made.store, Evaluation(**WAYS.get(way, {})))
        found = (np.array(made["reach"].rows()) - offset) // factor
        assert set(map(tuple, found.tolist())) == closure(edges)
        made.check()


GENERATIONS = """
    parent(x, y) -> int(x), int(y).
    same(x, y) <- parent(x, p), parent(y, p), x != y.
    same(x, y) <- parent(x, p), same(p, q), parent(y, q).
"""


def generations(
    setting: str = "", nodes: int = 900, parents: int = 2, **options: Any
) -> tuple[dlog.Database, Evaluation]:
    """Same generation in five layers, spread thinly: each round has more rows than the one before, until all
    are related."""
    rng = np.random.default_rng(6)
    layers = [
        np.stack([np.arange(nodes) + nodes * k, rng.integers(0, nodes, nodes) + nodes * (k - 1)], axis=1)
        for k in (1, 2, 3, 4)
        for _ in range(parents)
    ]
    made = dlog.Database(source=f'.pragma "planner" "{setting}"{GENERATIONS}', evaluated=False)
    made.store.relations["parent"].apply_in_place(inserts=np.unique(np.concatenate(layers), axis=0) * 1009)
    evaluation = Evaluation(**options)
    evaluate(made.program, made.store, evaluation)
    return made, evaluation


def test_runs_are_chosen_for_wide_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows that come many at a time go over to sorted runs; what is derived stays the same, and so do
    the numbers of rows."""
    monkeypatch.delenv("DLOG_PLANNER", raising=False)
    monkeypatch.setattr(row_queue, "MANY_ROWS", 10_000)
    never, without = generations("no-sorted-runs")
    assert without.measures.sets["same"] == ("a hash table",)
    for setting, options in (("", {}), ("always-sorted-runs", {})):
        made, evaluation = generations(setting, **options)
        assert evaluation.measures.sets["same"][-1] == "sorted runs"
        assert np.array_equal(made.store.relations["same"].rows(), never.store.relations["same"].rows())
        counts = [(m.rows, m.new_rows) for m in evaluation.measures.rules.values()]
        assert counts == [(m.rows, m.new_rows) for m in without.measures.rules.values()]
        assert "same: new rows were detected with " in str(evaluation.measures)
        made.check()


def test_runs_are_left_where_rows_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 rows that are derived one is new: a hash table takes over, and what is derived stays the same."""
    monkeypatch.delenv("DLOG_PLANNER", raising=False)
    monkeypatch.setattr(row_queue, "MANY_ROWS", 5_000)
    monkeypatch.setattr(row_queue, "PATIENCE", 1)
    left: list[int] = []

    class Queues(row_queue.RowQueues):
        def choose(self, q: int, room: int, more: Any = None, runs: bool = True) -> int:
            back = super().choose(q, room, more, runs)
            left.extend([] if runs else [self[q, Q_METHOD]])
            return back

    monkeypatch.setattr(fixpoint, "RowQueues", Queues)
    never, _ = generations("no-sorted-runs", 100, 8)
    assert not left
    made, evaluation = generations("", 100, 8)
    assert left == [HASH]
    assert evaluation.measures.sets["same"] == ("sorted runs", "a hash table")
    assert np.array_equal(made.store.relations["same"].rows(), never.store.relations["same"].rows())
    made.check()


def test_runs_end_where_rows_do_not_fit_a_word() -> None:
    """Rows that lie in runs come back to the queue, and continue in a table of whole rows."""
    text = "p(0, 0). p(z, w) <- p(x, y), z = y + 1, w = x + 90071992547409931, w < 4611686018427387904."
    expected = {(0, 0)}
    row = (0, 0)
    while (row := (row[1] + 1, row[0] + 90071992547409931))[1] < 1 << 62:
        expected.add(row)
    made, evaluation = dlog.Database(source=text, evaluated=False), Evaluation(row_sets="runs")
    evaluate(made.program, made.store, evaluation)
    assert set(made["p"].rows()) == expected and len(expected) > 80
    assert evaluation.measures.sets["p"] == ("sorted runs", "a hash table of whole rows")


def test_two_heads_fill_one_queue() -> None:
    """A batch of output may bring twice as many rows as it has."""
    rng = np.random.default_rng(8)
    edges = [tuple(row) for row in rng.integers(0, 700, (1500, 2)).tolist()]
    reached = closure(np.array([*edges, *[(y, x) for x, y in edges]]))
    for way in ("hash", "runs"):
        text = "e(x, y) -> int(x), int(y). p(x, x) <- e(x, y). p(x, z), p(z, x) <- p(x, y), e(y, z)."
        text += "".join(f" e({x}, {y})." for x, y in edges)
        made = database(text, row_sets=way)
        found = set(made["p"].rows())
        assert found == {(y, x) for x, y in found} and len(found) > 300_000
        assert {(x, z) for x, z in found if x != z} <= reached


def test_thin_rounds_do_not_stay_with_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of one row is not worth a look-up in runs, even where they are forced."""
    monkeypatch.delenv("DLOG_PLANNER", raising=False)
    made = dlog.Database(
        source='.pragma "planner" "always-sorted-runs"\nn(0). n(y) <- n(x), y = x + 1, x < 60000.'
    )
    assert len(made["n"]) == 60_001
    assert made.stats().sets["n"] == ("sorted runs", "a hash table")


def test_counting_to_a_million_is_one_call() -> None:
    """A round of one row costs no call: a million rounds are seen in the measures, and end in time."""
    made = dlog.Database(source="n(0). n(y) <- n(x), y = x + 1, x < 1000000.")
    assert len(made["n"]) == 1_000_001
    assert made.stats().rules[0].iterations > 1_000_000 or made.stats().rules[1].iterations > 1_000_000


def test_rows_of_far_values_grow_wide_sets() -> None:
    """Rows that do not fit one word, enough of them for their table to grow."""
    text = "p(1, 2, 4611686018427387904). p(y, z, x) <- p(x, y, z). q(x, y, z) <- p(x, y, z)."
    text += " q(x, y, z) <- q(x, y, w), z = w - 9007199254740993, w > 0."
    made = database(text)
    assert len(made["p"]) == 3
    steps = {(x, y, z - k * 9007199254740993) for x, y, z in made["p"].rows() for k in range(600)}
    expected = {row for row in steps if row[2] > -9007199254740993}
    assert set(made["q"].rows()) == expected


def test_differential_uncompiled() -> None:
    """The same kernels as plain Python, whose arrays have bounds."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "DLOG_RECURSION_EXAMPLES": "8"}
    here = Path(__file__)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "every_way or slices"]
    done = subprocess.run(
        [*command, str(here)], cwd=here.parents[3], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


COPIES = """
e(x, y) -> int(x), int(y).  w(x, y) -> string(x), decimal[6, 2](y).  f[x] = y -> int(x), int(y).
e(1, 2). e(2, 1). e(2, 2). e(3, 1). w("a", 1.25). w("b", 2.5). f[1] = 5. f[2] = 5.
same(x, y) <- e(x, y).   turned(y, x) <- e(x, y).   first(x) <- e(x, _).   twice(x, x) <- e(x, y).
loop(x) <- e(x, x).      one(y) <- e(1, y).         with(x, 7) <- e(x, _). value(y) <- f[_] = y.
rough(x, y) -> string(x), decimal[6, 1](y).          rough(x, y) <- w(x, y). text(y, x) <- w(x, y).
there() <- e(_, _).      two(x), three(y) <- e(x, y).
r(x, y) <- e(x, y).      r(y, x) <- r(x, y).        s(x) <- r(x, _).        r(x, x) <- s(x).
"""


def test_rules_that_take_columns_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies of one atom are not joined; with or without that, heads are the same."""
    copied: list[bool] = []
    copy = evaluate_module.copied_rows

    def noted(*args: object) -> object:
        rows = copy(*args)  # type: ignore[arg-type]
        copied.append(rows is not None)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(evaluate_module, "copied_rows", noted)
        db = dlog.Database(source=COPIES)
    assert 8 <= sum(copied) < len(copied)
    monkeypatch.setattr(evaluate_module, "copied_rows", lambda *args: None)
    plain = dlog.Database(source=COPIES)
    for name in db.predicates():
        assert db[name].rows() == plain[name].rows(), name
    assert sorted(db["turned"].rows()) == [(1, 2), (1, 3), (2, 1), (2, 2)]
