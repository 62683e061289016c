"""Strategies that are chosen anew over an old state find nothing there that others have stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import dlog
from dlog.engine.maintain import maintain, offers
from dlog.engine.state.limits import Limits
from dlog.errors import Interrupted
from tests.engine.machine import interrupted_at

RULES = """\
e(x, y) -> int(x), int(y).
p(x) <- e(x, _).
n[x] = c <- agg<<c = count()>> e(x, _).
"""
ROWS = [(x, y) for x in range(3) for y in range(4)]


def interrupt(db: dlog.Database) -> None:
    db.limits = Limits(timeout=3600)  # the general path, with checks
    with interrupted_at(1), pytest.raises(Interrupted):
        db.apply(insert={"e": [(9, 9)]})
    db.limits = Limits()


def check_out(db: dlog.Database) -> None:
    name = f"b{len(db.branches())}"
    db.branch(name)
    db.checkout(name)


@pytest.mark.parametrize("anew", [interrupt, check_out])
@pytest.mark.parametrize("first", ["trace", "delta", "views", "join_graph"])
@pytest.mark.parametrize("then", ["trace", "delta", "views", "join_graph"])
def test_oracle_another_strategy_after_it(
    monkeypatch: pytest.MonkeyPatch, anew: Callable[[dlog.Database], None], first: str, then: str
) -> None:
    requested = [first]
    choose = offers.choose
    monkeypatch.setattr(
        maintain, "choose", lambda question: choose(replace(question, requested=requested[0]))
    )
    db = dlog.Database(source=RULES)
    db.apply(insert={"e": [(7, 7), *ROWS[:6]]})
    db.apply(insert={"e": ROWS[6:]}, erase={"e": [(7, 7)]})
    anew(db)
    requested[0] = then
    db.apply(erase={"e": ROWS[1:4]})  # the first group loses all its rows but one
    assert db["p"].rows() == [(0,), (1,), (2,)]
    anew(db)
    requested[0] = first
    db.apply(erase={"e": ROWS[:6]})
    assert db["p"].rows() == [(1,), (2,)]
    assert db["n"].rows() == [(1, 2), (2, 4)]
    db.check()
    db.verify()
