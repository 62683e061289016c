"""`.pragma "strategy"` in a running database: another strategy the same answers, no bad names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.errors import SourceError

RULES = """\
r(x, y) -> int(x), int(y).
several(x, n) <- r(x, _), n = count : { r(x, _) }, n > 1.
sizes[n] = k <- agg<<k = count()>> several(_, n).
"""
NAMES = ("delta", "trace", "trace-exact", "views", "multilevel")


def pragma(name: str) -> str:
    return f'.pragma "strategy" "{name}"'


def strategies(db: dlog.Database) -> dict[str, str]:
    return {name: one.strategy for one in db.chosen_strategies() for name in one.predicates}


def expected(rows: set[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    several = {x: n for x, n in Counter(x for x, _ in rows).items() if n > 1}
    return sorted(several.items()), sorted(Counter(several.values()).items())


CHANGES = st.lists(
    st.one_of(st.sampled_from(NAMES), st.tuples(st.integers(0, 3), st.integers(0, 3))), max_size=25
)


@given(CHANGES)
def test_differential_strategies_change_at_random(changes: list[str | tuple[int, int]]) -> None:
    db = dlog.Database(source=RULES)
    rows: set[tuple[int, int]] = set()
    seen: set[tuple[int, ...]] = set()

    def follow(change: dlog.engine.commit.commits.Change) -> None:
        assert seen.issuperset(change.erased.rows()) and seen.isdisjoint(change.inserted.rows())
        seen.difference_update(change.erased.rows())
        seen.update(change.inserted.rows())

    db.subscribe("several", follow)
    for change in changes:
        if isinstance(change, str):
            db.execute(pragma(change))
            assert strategies(db)["several"] in (change, "delta")  # deltas where it is refused
        else:
            db.apply(**{"erase" if change in rows else "insert": {"r": [change]}})
            rows ^= {change}
        several, sizes = expected(rows)
        assert (db["several"].rows(), db["sizes"].rows(), sorted(seen)) == (several, sizes, several)


def test_the_last_name_counts() -> None:
    db = dlog.Database(source=f"{pragma('delta')}\n{RULES}")
    for name in ("multilevel", "delta", "trace"):
        db.execute(pragma(name))
        assert strategies(db)["several"] == name


def test_the_caller_overrides_the_program() -> None:
    db = dlog.Database(source=RULES, strategy="trace")
    db.execute(pragma("delta"))
    assert strategies(db)["several"] == "trace"


@pytest.mark.parametrize("statement", [pragma("no"), '.pragma "strategy"', '.pragma "planner" "no"'])
def test_a_name_that_does_not_exist_is_refused_so_that_a_folder_can_be_opened_again(
    tmp_path: Path, statement: str
) -> None:
    with dlog.Database(tmp_path / "db", source=RULES) as db:
        with pytest.raises(SourceError):
            db.execute(statement)
        db.execute("+r(1, 1), +r(1, 2).")
        db.checkpoint()
    with dlog.Database(tmp_path / "db") as db:
        assert db["several"].rows() == [(1, 2)]


def test_a_folder_has_the_strategy_that_was_named_last(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "db", source=RULES) as db:
        db.execute(pragma("multilevel"))
        db.execute(pragma("trace"))
    with dlog.Database(tmp_path / "db") as db:
        assert strategies(db)["several"] == "trace"
