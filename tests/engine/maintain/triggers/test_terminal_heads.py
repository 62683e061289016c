"""Heads that end where single rows lead are changed by a kernel: rows, what a commit tells, old versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.triggers.terminal_head import CountedHead, JoinedHead
from tests.examples import relaxed

DECLARED = "edge(x, y) -> int(x), int(y).  mark(x) -> int(x)."
RULES = {
    "three variants": "t(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).",
    "columns in turn": "t(y, x) <- edge(x, y), mark(x).",
    "a constant": "t(x, y, 7) <- edge(x, y), mark(x).",
    "a negation": "t(x, y) <- edge(x, y), !mark(y).",
    "counts": "t(x) <- edge(x, y), mark(y).",
    "both signs": "t(x, y) <- edge(x, y), !edge(y, x).",
    "a disjunction": "t(x, y) <- (edge(x, y) ; edge(y, x) ; mark(x), mark(y)).",
    "a negated conjunction": "t(x, y) <- edge(x, y), !(edge(y, x), mark(x)).",
    "two of them": "t(x, y) <- edge(x, y), !(edge(y, x), mark(x)), !(mark(y), edge(y, y)).",
    "two rules": "t(x, y) <- edge(x, y), mark(x).  t(x, y) <- edge(y, x), mark(x).",
    "a reader": "t(x, y) <- edge(x, y), mark(x).  u(x) <- t(x, x).",
}
ENDED = {"three variants", "a negation"}  # "columns in turn" is as the join gives it, or not
COUNTED = {"a constant", "counts", "both signs", "a disjunction", "a negated conjunction", "two rules"}
NUMBERS = st.integers(0, 4)
CHANGES = st.tuples(
    st.sampled_from(("insert", "erase")),
    st.one_of(
        st.tuples(st.just("edge"), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3)),
        st.tuples(st.just("mark"), st.lists(st.tuples(NUMBERS), min_size=1, max_size=2)),
    ),
)


@pytest.mark.parametrize("rule", RULES)
@relaxed(20)
@given(changes=st.lists(CHANGES, min_size=5, max_size=25), held=st.integers(0, 24), fact=st.integers(0, 24))
def test_differential_heads_that_end(
    rule: str, changes: list[tuple[str, tuple[str, list[tuple[int, ...]]]]], held: int, fact: int
) -> None:
    db = dlog.Database(source=DECLARED + RULES[rule], strategy="delta")
    db.apply(insert={"edge": [(x, y) for x in range(5) for y in range(x)], "mark": [(1,), (3,)]})
    db.apply(insert={"edge": [(9, 9)]})
    known, snapshot, rows = set(db["t"].rows()), None, []
    for number, (sign, (name, changed)) in enumerate(changes):
        if number == held:
            snapshot, rows = db.snapshot(), db["t"].rows()
        if number == fact:  # from now on a row may have another derivation
            db.apply(insert={"t": [(1,) * len(db.program.predicates["t"].columns)]})
            known = set(db["t"].rows())
        commit = db.apply(**{sign: {name: changed}})
        if "t" in commit.changes:
            reported = commit.changes["t"]
            assert reported.inserted.rows() == sorted(reported.inserted.rows())
            assert reported.erased.rows() == sorted(reported.erased.rows())
            known = (known - set(reported.erased.rows())) | set(reported.inserted.rows())
        assert known == set(db["t"].rows())
    db.verify()
    db.check()
    if snapshot is not None:
        assert snapshot["t"].rows() == rows


@pytest.mark.parametrize("rule", RULES)
def test_which_heads_end(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[str] = []
    for kind in (JoinedHead, CountedHead):
        _note(monkeypatch, kind, followed)
    db = dlog.Database(source=DECLARED + RULES[rule], strategy="delta")
    db.apply(insert={"edge": [(x, y) for x in range(9) for y in range(9)], "mark": [(1,), (3,)]})
    for row in ((3, 1), (3, 2), (4, 4)):  # 1 and 3 are marked
        for sign in ("erase", "insert", "erase"):
            db.apply(**{sign: {"edge": [row]}})
    if rule == "columns in turn":
        assert set(followed) in ({"JoinedHead"}, {"CountedHead"})
    else:
        kind_of_rule = "JoinedHead" if rule in ENDED else "CountedHead" if rule in COUNTED else None
        assert set(followed) == {kind_of_rule} - {None}
    db.verify()


def _note(monkeypatch: pytest.MonkeyPatch, kind: type, followed: list[str]) -> None:
    follow = kind.follow

    def noted(self: object, *given: object) -> object:
        found = follow(self, *given)
        if found is not None:
            followed.append(kind.__name__)
        return found

    monkeypatch.setattr(kind, "follow", noted)


def test_counted_heads_leave_nothing_behind() -> None:
    """Versions of a head and of its counts are freed with their last reader."""
    db = dlog.Database(source=DECLARED + RULES["counts"], strategy="delta")
    db.apply(insert={"edge": [(x, y) for x in range(9) for y in range(9)], "mark": [(1,), (3,)]})

    def turn() -> int:
        for _ in range(300):
            for sign in ("erase", "insert"):
                db.apply(**{sign: {"edge": [(3, 1), (4, 1), (4, 3)]}})
        return db.store.arena.usage().used_words

    turn()
    assert turn() <= turn() + 64
    db.check()
