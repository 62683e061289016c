"""Transactions that return to the start leave nothing: no memory, no counts, no stages, no dead entry."""

from __future__ import annotations

import random

import pytest

import dlog
from dlog.engine.maintain.stages.keep import StageStrategy
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.engine.state.limits import resident_bytes
from dlog.heads.stages.table import StageTable
from tests.engine.machine import contents

RULES = """
    e(x, y) -> int(x), int(y).
    named(x, s) -> int(x), string(s).
    cost[x] = c -> int(x), int(c).
    reach(x, y) <- e(x, y).
    reach(x, z) <- reach(x, y), e(y, z).
    near[y] = m <- agg<<m = min(b)>> near[x] = a, e(x, y), cost[y] = c, b = a + c.
    near[0] = 0.
    two(x, z) <- e(x, y), e(y, z).
    ends(x) <- e(x, _).
    ends(y) <- e(_, y).
    far(x) <- two(x, y), !e(x, y), (named(x, _) ; cost[x] = 1).
    degree[x] = n, total[x] = t <- agg<<n = count(), t = sum(c)>> e(x, y), cost[y] = c.
    text(s, t) <- named(x, s), e(x, y), named(y, t).
    least[x] = s <- agg<<s = min(t)>> named(x, t), ends(x).
"""
NODES = 24


class Returning:
    """A database and random transactions, each followed by one that takes it back."""

    def __init__(self, strategy: str | None, seed: int = 3):
        self.rng = random.Random(seed)
        self.facts = {
            "e": sorted({(self.node(), self.node()) for _ in range(70)}),
            "named": sorted({(self.node(), self.text()) for _ in range(30)}),
            "cost": [(x, self.rng.randrange(1, 5)) for x in range(0, NODES, 2)],
        }
        self.db = dlog.Database(source=RULES, strategy=strategy)
        self.db.apply(insert=self.facts)
        self.turn()

    def node(self) -> int:
        return self.rng.randrange(NODES)

    def text(self) -> str:
        return self.rng.choice("abcdefgh") * self.rng.randrange(1, 40)

    def turn(self) -> None:
        """There and back, by one row, by a few or by many, of one predicate or of all; or aborted."""
        many = self.rng.choice((1, 1, 1, 4, 30))
        new = {
            "e": [(self.node(), self.node()) for _ in range(many)],
            "named": [(self.node(), self.text()) for _ in range(many)],
            "cost": [(x, 9) for x in range(1, NODES, 2)][:many],
        }
        if self.rng.random() < 0.7:
            name = self.rng.choice(list(new))
            new = {name: new[name]}
        new = {name: sorted({*rows} - {*self.facts[name]}) for name, rows in new.items()}
        gone = {name: self.rng.sample(self.facts[name], min(many, 5)) for name in new}
        if self.rng.random() < 0.1:
            self.refused(new)
        self.db.apply(insert=new, erase=gone)
        self.db.apply(insert=gone, erase=new)

    def refused(self, new: dict[str, list]) -> None:  # type: ignore[type-arg]
        with pytest.raises(dlog.ConstraintError):
            self.db.apply(insert={**new, "cost": [(1, 3), (1, 4)]})

    def state(self) -> dict[str, list]:  # type: ignore[type-arg]
        """All that lies in the store, counts and sums too, but not where evaluations looked."""
        relations = self.db.store.relations
        return {name: r.rows().tolist() for name, r in relations.items() if not name.startswith("~")}

    def intervals(self) -> int:
        """The size of all sensitivity indices."""
        return sum(len(r) for name, r in self.db.store.relations.items() if name.startswith("~"))

    def stages(self) -> list[StageTable]:
        """The tables of stages that are in use: one whose predicates came from scratch last is not."""
        found = []
        for strategy in self.db._maintenance.strategies.values():
            if isinstance(strategy, StageStrategy) and strategy.ready(self.db.store):
                table = strategy.recursion.table
                table.keep()
                assert len(table) == sum(len(self.db[name]) for name in strategy.names)
                found.append(table)
        return found


def return_often(rounds: int, strategy: str | None) -> tuple[Returning, int]:
    """(After this many rounds, by how many bytes the process has grown meanwhile)."""
    some = Returning(strategy)
    for _ in range(30):
        some.turn()
    start, rows, texts = some.db.store.arena.usage(), contents(some.db), len(some.db.store.dictionary)
    state, resident = some.state(), resident_bytes()
    room = max(len(table.table) + len(table.records) for table in some.stages())
    for _ in range(rounds):
        some.turn()
    some.db.check()
    assert contents(some.db) == rows
    found = some.state()
    assert {n: found[n] for n in state if n in found} == {n: r for n, r in state.items() if n in found}
    assert all(len(table.table) + len(table.records) <= room * 2 for table in some.stages())
    end = some.db.store.arena.usage()
    assert end.used_extents <= start.used_extents * 1.2 + 8, (start, end)
    assert end.used_words <= start.used_words * 1.5, (start, end)
    assert end.reserved_words <= start.reserved_words * 2, (start, end)
    assert len(some.db.store.dictionary) <= texts + 8 * 40
    assert some.intervals() <= Returning(strategy).intervals() * 1.5 + 30
    some.db.verify()
    return some, resident_bytes() - resident


STRATEGIES = (None, *sorted(SELECTABLE))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_invariant_nothing_is_left_behind(strategy: str | None) -> None:
    some, _ = return_often(30, strategy)
    assert some.intervals() or not (strategy or "").startswith("trace")


@pytest.mark.fuzz
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fuzz_nothing_is_left_behind(strategy: str | None) -> None:
    _, grown = return_often(10_000, strategy)
    assert grown < 64 << 20
