"""Strategies that are chosen again because the first one took far longer than estimated, by a clock that
tests set: the same answers, and not back and forth."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain import accounts
from dlog.engine.maintain.accounts import FAR, FIRST_CHECK, RECENT, Account
from tests.examples import relaxed

STAR = """
house(h, p) -> int(h), int(p).  shop(s, p) -> int(s), int(p).  school(c, p) -> int(c), int(p).
n[p] = k <- agg<<k = count()>> house(h, p), shop(s, p), school(c, p).
"""
NAMES = ("house", "shop", "school")
OTHERS = """
dear(h) <- house(h, p), p > sum q : { shop(_, q) }.
near(h, s) <- house(h, p), shop(s, p), !school(_, p).
kinds[p] = k <- agg<<k = count_distinct(h)>> house(h, p), (shop(_, p) ; school(_, p)).
"""


class Clock:
    """Seconds that pass with each look at it, by the strategy of the first stratum."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: Callable[[str], float]):
        self.now, self.seconds, self.db = 0.0, seconds, dlog.Database(source=STAR)
        self.db.apply(insert={name: [(i, i % 20) for i in range(60)] for name in NAMES})
        for clock in ("clock", "processor_clock"):
            monkeypatch.setattr(accounts, clock, self.look)

    def look(self) -> float:
        self.now += self.seconds(self.way)
        return self.now

    @property
    def way(self) -> str:
        return self.db._maintenance.strategies[0].way if self.db._maintenance.strategies else ""

    def run(self, transactions: int) -> list[str]:
        """The strategies that maintained the stratum, one after the other."""
        ways = [self.way] if self.way else []
        for i in range(transactions):
            sign = "erase" if i % 2 else "insert"
            self.db.apply(**{sign: {"shop": [(1000, 7)]}})
            if not ways or self.way != ways[-1]:
                ways.append(self.way)
        self.db.verify()
        self.db.check()
        return ways


def test_a_strategy_that_takes_far_longer_than_estimated_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, lambda way: 1e-3 if way == "delta" else 30e-6)
    assert clock.run(FIRST_CHECK - 2) == ["delta"]
    assert clock.run(8) == ["delta"], "it may be the machine"
    assert clock.run(RECENT) == ["delta", "views"]
    assert clock.run(1000) == ["views"]
    (line,) = [line for line in clock.db.explain().splitlines() if "times as long" in line]
    assert line.strip().startswith("delta: a row was estimated to take 2")


def test_a_busy_machine_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, lambda way: 5e-3)
    monkeypatch.setattr(accounts, "processor_clock", lambda: clock.look() / 250)
    assert clock.run(600) == ["delta"]
    assert "times as long" not in clock.db.explain()


def test_estimates_that_are_right_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, lambda way: 60e-6)
    assert clock.run(600) == ["delta"]
    assert "times as long" not in clock.db.explain()


def test_a_few_slow_transactions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of them: kernels that are loaded, and other programs."""
    turn = random.Random(1)
    clock = Clock(monkeypatch, lambda way: 5e-3 if turn.random() < 0.5 else 20e-6)
    assert clock.run(600) == ["delta"]


def test_nothing_is_chosen_back_and_forth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which all takes far longer than estimated."""
    clock = Clock(monkeypatch, lambda way: 5e-3)
    ways = clock.run(3000)
    assert len(ways) <= 3 and len(set(ways)) >= len(ways) - 1
    assert clock.run(3000) == ways[-1:]


def test_a_requested_strategy_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "clock", iter(range(10**9)).__next__)
    db = dlog.Database(source=STAR, strategy="delta")
    for i in range(300):
        db.apply(insert={"shop": [(i, 7)]})
    assert db._maintenance.strategies[0].way == "delta" and "times as long" not in db.explain()


def test_the_ratio_is_by_changed_rows() -> None:
    account = Account()
    for rows in range(1, accounts.RECENT + 1):
        assert account.ratio(lambda n: 100.0 + n) == 0.0, "too few transactions"
        account.note(1.0, 5e-6 * (100.0 + rows), rows)
    assert account.ratio(lambda n: 100.0 + n) == pytest.approx(5.0) and FAR < 5.0


CHANGE = st.tuples(
    st.sampled_from(NAMES), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), min_size=1, max_size=3)
)


@relaxed(12)
@given(
    changes=st.lists(st.tuples(st.sampled_from(("insert", "erase")), CHANGE), min_size=30, max_size=60),
    seed=st.integers(0, 1000),
    fails=st.integers(0, 60),
)
def test_differential_strategies_that_change(changes: list, seed: int, fails: int) -> None:  # type: ignore[type-arg]
    """Times are random and checked often, and a transaction is undone: the answers are those of the rules."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FIRST_CHECK": 4, "RECENT": 4}.items():
            patch.setattr(accounts, name, value)
        rng, now = random.Random(seed), [0.0]

        def look() -> float:
            now[0] += rng.choice((1e-6, 1e-3, 1e-2))
            return now[0]

        for clock in ("clock", "processor_clock"):
            patch.setattr(accounts, clock, look)
        patch.setattr(Account, "__init__", _checked_often(Account.__init__))
        db = dlog.Database(source=STAR + OTHERS + "house(h, _) -> h < 1000.")
        db.apply(insert={name: [(i, i % 7) for i in range(25)] for name in NAMES})
        for number, (sign, (name, rows)) in enumerate(changes):
            if number == fails:
                with pytest.raises(dlog.DlogError):
                    db.apply(insert={name: rows, "house": [(2000, 1)]})
            db.apply(**{sign: {name: rows}})
        db.verify()
        db.check()


def _checked_often(made: Callable[..., None]) -> Callable[..., None]:
    def init(self: Account, *given: object) -> None:
        made(self, *given)
        self.next_check = 4

    return init
