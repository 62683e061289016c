"""Several heads of one rule: what has no value in one of them has no effect on the others."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dlog
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.spark.run.run import ShardedDatabase
from dlog.spark.run.tasks import run_in_process

RULES = """
    b[x] = y -> int(x), int(y).   s(x, t) -> int(x), string(t).
    whole(x, y), part(x / y), value(y) <- b[x] = y.
    text(t), parsed(x, to_number(t)), first(substr(t, 1, 1)), twice(cat(t, t)) <- s(x, t).
    both(x), both(x % y) <- b[x] = y.
    n[] = c, spread[] = v, total[] = t <- agg<<c = count(), v = variance(y), t = sum(10 / y)>> b[x] = y.
    pair(c, t), size(c) <- agg<<c = count(), t = sum(10 / y)>> b[x] = y.
"""
STEPS = (
    *("+b[1] = 0.", "+b[2] = 5.", '+s(1, "12").', '+s(2, "x").', "^b[2] = 0.", "^b[1] = 3."),
    *("-b[2] = 0.", '-s(2, "x").', "-b[1] = 3."),
)


def expected(b: dict[int, int], s: dict[int, str]) -> dict[str, set[tuple[object, ...]]]:
    """In Python, head by head."""
    values, divisors = list(b.values()), [y for y in b.values() if y]
    count, total = len(values), sum(10 // y for y in divisors)
    mean = Fraction(sum(values), max(count, 1))
    return {
        "whole": set(b.items()),
        "part": {(x // y,) for x, y in b.items() if y},
        "value": {(y,) for y in values},
        "text": {(t,) for t in s.values()},
        "parsed": {(x, int(t)) for x, t in s.items() if t.isdigit()},
        "first": {(t[1:2],) for t in s.values() if len(t) >= 1},
        "twice": {(t + t,) for t in s.values()},
        "both": {(x,) for x in b} | {(x % y,) for x, y in b.items() if y},
        "n": {(count,)} if count else set(),
        "spread": {(float(sum((y - mean) ** 2 for y in values) / (count - 1)),)} if count > 1 else set(),
        "total": {(total,)} if divisors else set(),
        "pair": {(len(divisors), total)} if divisors else set(),
        "size": {(count,)} if count else set(),
    }


@pytest.mark.parametrize("strategy", [None, *SELECTABLE])
def test_oracle_undefined_terms_in_one_of_several_heads(strategy: str | None) -> None:
    """By every strategy, as facts come and go; and from scratch."""
    db = dlog.Database(source=RULES, strategy=strategy)
    b: dict[int, int] = {}
    s: dict[int, str] = {}
    for step in STEPS:
        db.execute(step)
        b, s = dict(db["b"].rows()), dict(db["s"].rows())  # type: ignore[arg-type]
        wanted = expected(b, s)
        assert {name: set(db[name].rows()) for name in wanted} == wanted, step
        db.verify()


def test_oracle_undefined_terms_on_shards() -> None:
    facts = 'b[1] = 0.  b[2] = 5.  b[7] = 3.  s(1, "12").  s(2, "x").  s(3, "").'
    wanted = expected({1: 0, 2: 5, 7: 3}, {1: "12", 2: "x", 3: ""})
    db = ShardedDatabase(None, run_in_process, 3, source=RULES + facts)
    assert {name: set(db[name].rows()) for name in wanted} == wanted


def test_why_names_the_head_that_holds() -> None:
    db = dlog.Database(source=RULES + "b[1] = 0.")
    assert db.why("whole(1, 0)").splitlines()[1].strip() == "b[1] = 0   base fact"
    with pytest.raises(dlog.errors.DlogError, match="does not hold"):
        db.why("part(0)")


def test_explain_shows_a_rule_for_each_computed_head() -> None:
    text = dlog.Database(source=RULES).explain("whole")
    assert "whole(x, y) <- b[x] = y." in text
    assert "x / y" in dlog.Database(source=RULES).explain("part")
