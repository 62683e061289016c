"""Maps of rules that are chosen by cost: others take their place while transactions go on, and no answer
changes; they are chosen again when other relations change, and their memory is free when their rule goes.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.engine.maintain.multilevel import moved, rule_levels
from dlog.engine.maintain.multilevel.keep import LevelStrategy
from dlog.engine.maintain.multilevel.moved import Moved
from dlog.engine.maintain.multilevel.rule_levels import RuleLevels
from dlog.engine.state.store import Store
from dlog.errors import DataError, Interrupted
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.multilevel.notation import read
from dlog.multilevel.selection.sizes import Statistics
from dlog.views.levels.program import Options, levels
from tests.engine.machine import went_short
from tests.engine.maintain.multilevel import test_level_strategy as strategy
from tests.engine.mixed import MIXED
from tests.multilevel.test_demote import Some

LEVELS = "multilevel"
THREE = """
r(a, b) -> int(a), int(b). s(b, c) -> int(b), int(c). t(c, d) -> int(c), int(d).
q[] = n <- agg<<n = sum(a * d)>> r(a, b), s(b, c), t(c, d).
"""


def shared(db: dlog.Database, name: str = "q") -> RuleLevels:
    found = next(s for s in db._maintenance.strategies.values() if name in s.stratum.predicates)
    assert isinstance(found, LevelStrategy)
    return found.shared


# ---- answers


@pytest.fixture
def demotions(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every third transaction goes over to random maps, on both paths.  Counts what was done."""
    rng, done = random.Random(7), Counter[str]()

    def others(self: RuleLevels, store: Store) -> None:
        self.moved.left = rng.choice((1, 3))
        assert self.maps is not None
        demoted = Some(rng.randrange(1000), rng.choice((0, 0.3, 0.6, 1)))
        before = self.maps
        self.go_over(store, levels(self.levels.query, Options(demoted=demoted)))
        done.update(["gone over"] if self.maps is not before else ["overflow"])
        if self.maps.refilled is not None:
            done["kept"] += len(self.maps.refilled.kept)
            done["new"] += len(self.maps.refilled.new)

    monkeypatch.setattr(moved, "FIRST", 1)
    monkeypatch.setattr(Moved, "begin_anew", lambda self: None)
    monkeypatch.setattr(RuleLevels, "_choose_again", others)
    return done


@pytest.mark.parametrize("way", [LEVELS, MIXED])
def test_oracle_transactions_of_every_kind(
    way: str, demotions: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules come and go, transactions are aborted, and with MIXED strategies change at random."""
    strategy.machines(10, 10, way, monkeypatch)
    assert demotions["gone over"] and demotions["kept"], demotions


def test_oracle_random_rules(demotions: Counter[str]) -> None:
    for seed in range(8):
        strategy.follow_random(seed)
    assert demotions["gone over"] > 8, demotions


@pytest.mark.fuzz
def test_fuzz_random_demotions(demotions: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    strategy.machines(500, 20, MIXED, monkeypatch, random=True)


def test_differential_deltas_with_failing_transactions(demotions: Counter[str]) -> None:
    rng = random.Random(9)
    one, other = (dlog.Database(source=strategy.MARKET, strategy=way) for way in (LEVELS, "delta"))
    for step in range(40):
        insert, erase = strategy.market_rows(rng), strategy.market_rows(rng)
        for db in (one, other):
            if step % 3 == 2:
                with pytest.raises(KeyError), db.transaction() as tx:
                    for name, rows in insert.items():
                        tx.insert(name, rows)
                    raise KeyError
            db.apply(insert=insert, erase=erase)
        for name in strategy.DERIVED:
            assert one[name].rows() == other[name].rows(), name
        one.check()
    assert demotions["kept"] and demotions["new"], demotions


# ---- the choice

B, C = 30, 100


def loaded(way: str = LEVELS, jobs: int = 1) -> dlog.Database:
    """Every value of b is with every value of c in s, of which there are more."""
    db = dlog.Database(source=THREE, strategy=way, jobs=jobs)
    rng = random.Random(1)
    db.apply(
        insert={
            "r": [(a, rng.randrange(B)) for a in range(300)],
            "s": [(b, c) for b in range(B) for c in range(C)],
            "t": [(rng.randrange(C), d) for d in range(300)],
        }
    )
    return db


def serves_t(db: dlog.Database) -> bool:
    """Whether there is a map of r and s together, which only t reads."""
    return {"r", "s"} in [_relations(m.definition) for m in shared(db).levels.program.maps]


def _relations(definition: Any) -> set[str]:
    return {n.name for n in definition.walk() if isinstance(n, ast.Relation)}


def test_maps_are_chosen_again_when_other_relations_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of t read the map of r and s; rows of r change hundreds of its entries each, so it goes when they
    come; when rows of t come again it is computed, from r and s alone.  Each other row takes the short path.
    """
    monkeypatch.setattr(moved, "FIRST", 64)
    monkeypatch.setattr(moved, "MOST", 64)
    db, other, rng = loaded(), loaded("delta"), random.Random(2)
    long = 0
    for name, served in (("t", True), ("r", False), ("t", True)):
        for _ in range(150):
            row = (
                (rng.randrange(1000), rng.randrange(B))
                if name == "r"
                else (rng.randrange(C), rng.randrange(1000))
            )
            for each in (db, other):
                commit = each.apply(insert={name: [row]})
                long += each is db and not went_short(commit)
        assert db["q"].rows() == other["q"].rows()
        assert serves_t(db) == served
        db.check()
    maps = shared(db).maps
    assert maps is not None and maps.refilled is not None
    assert set(maps.refilled.relations) <= {"r", "s"} and maps.refilled.kept
    assert long <= 20, long
    db.verify()


def test_on_several_machines_all_maps_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved, "FIRST", 64)
    monkeypatch.setattr(moved, "MOST", 64)
    db, other = loaded(jobs=2), loaded("delta")
    gone_over = 0
    for step in range(200):
        row = (step, step % B) if step < 100 else (step % C, step)
        for each in (db, other):
            each.apply(insert={"r" if step < 100 else "t": [row]})
        maps = shared(db).maps
        assert maps is not None and maps.runtime._parts is not None
        gone_over += maps.refilled is not None
        assert maps.refilled is None or not maps.refilled.kept
        assert db["q"].rows() == other["q"].rows()
    assert gone_over
    db.check()


def test_maps_stay_while_the_same_relations_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search runs once the mix is known, and not again."""
    monkeypatch.setattr(moved, "FIRST", 16)
    searched = Counter[str]()
    search = rule_levels.reconsidered

    def counted(*args: Any, **options: Any) -> Any:
        searched["times"] += 1
        return search(*args, **options)

    monkeypatch.setattr(rule_levels, "reconsidered", counted)
    db, rng = loaded(), random.Random(3)
    db.apply(insert={"t": [(7, 7)]})
    built = searched["times"]
    assert built == 1
    for _ in range(300):
        db.apply(insert={"t": [(rng.randrange(C), rng.randrange(999))]})
    assert searched["times"] == 2
    db.check()


def test_estimates_are_corrected_by_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of b has six values of c on average, but rows of r have the one that has sixty: each changes
    sixty entries of the map of r and s.  It goes, though the same relations change as before.
    """
    monkeypatch.setattr(moved, "FIRST", 64)
    monkeypatch.setattr(moved, "MOST", 64)
    db, other = (dlog.Database(source=THREE, strategy=way) for way in (LEVELS, "delta"))
    rng = random.Random(4)
    pairs = [(0, c) for c in range(60)] + [(rng.randrange(1, 500), rng.randrange(60)) for _ in range(2940)]
    for each in (db, other):
        each.apply(insert={"s": pairs, "t": [(c, d) for c in range(60) for d in range(9)]})
        each.apply(insert={"r": [(a, a) for a in range(500)]})
    stored = []
    for i in range(300):
        for each in (db, other):
            each.apply(insert={"r": [(1000 + i, 0)]} if i % 3 else {"t": [(i % 60, 1000 + i)]})
        stored.append(serves_t(db))
    assert stored[100] and not any(stored[200:])
    assert db["q"].rows() == other["q"].rows()
    written = shared(db).known(db.store, measured=True).written
    assert max(factor for _, factor in written) > moved.OFF
    db.check()


def test_few_rows_have_the_maps_of_full_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_levels, "reconsidered", None)  # the search would fail
    monkeypatch.setattr(moved, "FIRST", 4)
    db = dlog.Database(source=THREE, strategy=LEVELS)
    for i in range(40):
        db.apply(insert={"rst"[i % 2]: [(i, i)]})
    assert len(shared(db).levels.program.maps) == len(levels(shared(db).levels.query).program.maps)


def test_when_maps_are_chosen_again() -> None:
    known = lambda r, s, rows=2000: Statistics({"R": r, "S": s}, {"R": rows, "S": 1000})  # noqa: E731
    state = Moved(known(1, 1))
    assert not state.has_moved(known(0.6, 0.4)) and not state.has_moved(known(0.74, 0.26))
    assert state.has_moved(known(0.8, 0.2)) and state.has_moved(known(1, 1, 32_000))
    definition = read("AggSum([a], R(a, b) * b)")
    assert state.has_moved(replace(known(1, 1), written=((definition, 5.0),)))
    assert not state.has_moved(replace(known(1, 1), written=((definition, 0.3),)))
    assert state.has_moved(known(1, 1, 60)) and not state.has_moved(known(1, 1, 31_000))
    intervals = []
    for _ in range(9):
        state.add("R", state.left)
        assert state.is_due
        state.begin_anew()
        assert not state.is_due and state.rates("RS") is None
        intervals.append(state.left)
    assert intervals[:3] == [2048, 4096, 8192] and intervals[-1] == moved.MOST


def test_a_table_never_changes() -> None:
    """A row of r would change a hundred entries of the map of r and s: it is stored if there are no more."""
    stored = []
    facts = "".join(f"r({a}, {a % B}).\n" for a in range(300))
    for directive in ("", ".table r"):
        db = dlog.Database(source=THREE + facts + directive, strategy=LEVELS)
        db.apply(insert={"s": [(b, c) for b in range(B) for c in range(C)]})
        db.apply(insert={"t": [(1, 1000)]})
        stored.append(serves_t(db))
    assert stored == [False, True]


def test_a_value_that_does_not_fit_leaves_the_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new map cannot hold a sum: the maps stay, and so do answers."""
    db = loaded()
    db.apply(insert={"t": [(1, 1)]})
    before = shared(db).maps

    def fails(*args: Any) -> Any:
        raise DataError("an integer does not fit 64 bits")

    monkeypatch.setattr(Runtime, "take_over", fails)
    state = shared(db)
    state.go_over(db.store, levels(state.levels.query, Options(demoted=Some(0, 1))))
    assert state.maps is before
    db.apply(insert={"t": [(1, 2)]})
    db.check()


def test_a_transaction_that_is_rolled_back_keeps_the_new_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are chosen in it, and go back to the rows before it."""
    monkeypatch.setattr(moved, "FIRST", 64)
    db, other = loaded(), loaded("delta")
    for each in (db, other):
        for i in range(90):
            each.apply(insert={"t": [(i, 100 + i)]})
    db.add_rules("q[] = n -> n < 1000000000000.")
    other.add_rules("q[] = n -> n < 1000000000000.")
    for i in range(300):
        row = (1000 + i, i % 3) if i % 7 else (10**13, 0)
        for each in (db, other):
            try:
                each.apply(insert={"r": [row]})
            except dlog.ConstraintError:
                assert row[0] == 10**13
        assert db["q"].rows() == other["q"].rows()
    assert not serves_t(db)
    db.check()


def test_an_interrupt_while_maps_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction is rolled back; the next ones are right."""
    monkeypatch.setattr(moved, "FIRST", 64)
    monkeypatch.setattr(moved, "MOST", 64)
    db, other = loaded(), loaded("delta")
    real, interrupted = Runtime.take_over, []

    def stopped(self: Runtime, found: Any) -> None:
        real(self, found)
        if not interrupted:
            interrupted.append(True)
            raise Interrupted("interrupted while changing facts")

    monkeypatch.setattr(Runtime, "take_over", stopped)
    for name in ("r", "t"):
        for i in range(150):
            row = (1000 + i, i % B) if name == "r" else (i % C, 1000 + i)
            try:
                db.apply(insert={name: [row]})
            except Interrupted:
                assert db["q"].rows() == other["q"].rows()
                db.apply(insert={name: [row]})
            other.apply(insert={name: [row]})
        assert db["q"].rows() == other["q"].rows()
        db.check()
    assert interrupted


def test_explain_shows_the_plans_side_by_side() -> None:
    db = loaded()
    for text in (db.explain("q"), _after_a_row(db).explain("q")):
        lines = [line.strip() for line in text.splitlines()]
        start = lines.index("estimates, by the rows of r, s, t")
        assert lines[start + 1].split() == ["depth", "0", "depth", "1", "full", "chosen"]
        assert lines[start + 2].startswith("maps ")
        assert [line.startswith("us for a row of ") for line in lines[start + 3 : start + 6]] == [True] * 3


def _after_a_row(db: dlog.Database) -> dlog.Database:
    db.apply(insert={"t": [(1, 1)]})
    return db


# ---- memory


def test_maps_of_a_rule_that_is_removed_are_freed() -> None:
    """The only map strategy of the database: no runtime is left, nor any of its memory."""
    gc.collect()
    there = len(_runtimes())
    db = dlog.Database(source=THREE, strategy=LEVELS)
    rows = np.arange(20_000)
    db.apply(insert={"r": np.stack([rows, rows], 1), "s": np.stack([rows, rows], 1)})
    db.apply(insert={"t": [(1, 1)]})
    db.apply(insert={"t": [(2, 1)]})  # by a trigger
    memory = shared(db).memory()
    assert memory > 16 * len(rows) and len(_runtimes()) == there + 1
    rule = THREE.strip().split("\n")[-1]
    db.remove_rule(rule)
    gc.collect()
    assert len(_runtimes()) == there
    assert not [s for s in db._maintenance.strategies.values() if isinstance(s, LevelStrategy)]
    db.apply(insert={"t": [(3, 1)]})
    db.add_rules(rule)
    db.apply(insert={"t": [(4, 1)]})
    db.check()
    db.verify()


def _runtimes() -> list[Runtime]:
    return [found for found in gc.get_objects() if isinstance(found, Runtime)]
