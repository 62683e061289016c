"""Min, max, concat and float sums under transactions: against the naive evaluator, and what they keep."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.errors import ConstraintError
from tests.engine.followed import apply, follow
from tests.engine.machine import contents, short_ways
from tests.examples import relaxed
from tests.oracle.changes import Change

TYPES = ["int", "float", "string", "unsigned", "decimal(10, 2)", "date"]
OPS = {"string": ["min", "max", "concat", "count"], "date": ["min", "max", "count"]}
NUMBERS = ["min", "max", "sum", "mean", "count"]
BODIES = [
    "d(x, y, z, s)",
    "d(x, y, z, s), e(y, z)",
    "d(x, y, z, s), !e(x, y)",
    "(d(x, y, z, s) ; d(y, x, z, s))",
]


@st.composite
def aggregations(draw: st.DrawFn) -> str:
    """One to five aggregations of one value, several of them with the same body; heads with two rules."""
    type = draw(st.sampled_from(TYPES))
    lines = [f".decl d(x: int, y: int, z: int, s: {type})", ".decl e(x: int, y: int)", "e(1, 1). e(2, 1)."]
    bodies = draw(st.lists(st.sampled_from(BODIES), min_size=1, max_size=2))
    for number in range(draw(st.integers(1, 4))):
        groups = draw(st.sampled_from(["", "x", "y", "x, y", "y, x", "x, y, z"]))
        ops = draw(st.lists(st.sampled_from(OPS.get(type, NUMBERS)), min_size=1, max_size=2))
        body = draw(st.sampled_from(bodies))
        results = [f"r{i} = {op}({'' if op == 'count' else 's'})" for i, op in enumerate(ops)]
        heads = ", ".join(f"p{number}_{i}[{groups}] = r{i}" for i in range(len(ops)))
        lines.append(f"{heads} <- agg<<{', '.join(results)}>> {body}.")
    if draw(st.booleans()) and type == "int":
        lines.append("q(x, m) <- agg<<m = max(s)>> d(x, _, _, s).")
        lines.append("q(x, m) <- agg<<m = min(s)>> d(_, x, _, s).")
    return "\n".join(lines)


@relaxed(35)
@given(st.data(), aggregations())
def test_oracle_aggregations(data: st.DataObject, text: str) -> None:
    follow(data, text, most=8, sizes=(1, 4, 12))


@pytest.mark.parametrize("strategy", ["delta", "trace", "trace-exact"])
def test_oracle_aggregations_under_every_strategy(strategy: str) -> None:
    """What is kept of groups is the same whatever tells the changes of assignments."""

    @relaxed(12)
    @given(st.data(), aggregations())
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, strategy)

    check()


@pytest.mark.fuzz
@relaxed(1500, random=True)
@given(st.data(), aggregations())
def test_fuzz_aggregations(data: st.DataObject, text: str) -> None:
    follow(data, text, most=25, least=10)


LEVELS = """
.decl d(x: int, y: int, z: int, s: int)
all[] = m <- agg<<m = max(s)>> d(_, _, _, s).
a[x] = m <- agg<<m = max(s)>> d(x, y, z, s).
b[x, y] = m <- agg<<m = min(t)>> d(x, y, w, t).
c[y, x] = m <- agg<<m = max(s)>> d(x, y, z, s).
other[y] = m <- agg<<m = max(s)>> d(_, y, _, s).
"""


def scans(db: dlog.Database) -> list[int]:
    """The sizes of scan predicates."""
    return sorted(len(r) for name, r in db.store.relations.items() if name.startswith("%scan"))


def test_paper_rules_at_several_levels_of_detail_share_a_scan_predicate() -> None:
    """2.3.3: one for [], [x] and [x, y], and one for [y], whose keys are no level between them."""
    db = dlog.Database(source=LEVELS)
    rows = [(i % 3, i % 7, i, i * 37 % 101) for i in range(60)]
    apply(db, [Change("+", "d", row) for row in rows])
    apply(db, [Change("-", "d", rows.pop())])
    assert scans(db) == [len({(y, s) for _, y, _, s in rows}), len({(x, y, s) for x, y, _, s in rows})]
    assert db["all"].rows() == [(max(r[3] for r in rows),)]
    assert dict(db["a"].rows()) == {x: max(r[3] for r in rows if r[0] == x) for x in range(3)}
    db.check()


def test_a_rule_that_comes_later_and_one_that_goes() -> None:
    db = dlog.Database(source=LEVELS)
    apply(db, [Change("+", "d", (1, 1, 1, 5)), Change("+", "d", (1, 2, 1, 9))])
    db.add_rules("late[x] = m <- agg<<m = min(s)>> d(x, y, z, s).")
    apply(db, [Change("+", "d", (1, 2, 2, 3))])
    assert db["late"].rows() == [(1, 3)] and db["a"].rows() == [(1, 9)]
    db.check()
    db.remove_rule("c[y, x] = m <- agg<<m = max(s)>> d(x, y, z, s).")
    apply(db, [Change("-", "d", (1, 2, 1, 9))])
    assert db["late"].rows() == [(1, 3)] and db["a"].rows() == [(1, 5)]
    db.check()


EVERYTHING = """
.decl d(x: int, n: int, s: int, f: float, t: string)
low[x] = a <- agg<<a = min(s)>> d(x, n, s, f, t).
high[] = a <- agg<<a = max(s)>> d(x, n, s, f, t).
total[x] = a <- agg<<a = sum(f)>> d(x, n, s, f, t).
average[] = a <- agg<<a = mean(f)>> d(x, n, s, f, t).
first[x] = a <- agg<<a = min(t)>> d(x, n, s, f, t).
text[x] = a <- agg<<a = concat(t)>> d(x, n, s, f, t).
"""
FLOATS = [1e308, -1e308, 5e-324, 0.1, -0.0, math.inf, -math.inf, math.nan, 2.0**500, -1.0]
TEXTS = ["", "a", "same for the first twenty eight bytes 1", "same for the first twenty eight bytes 2", "b"]


def random_row(rng: random.Random, n: int) -> tuple[object, ...]:
    return rng.randrange(4), n, rng.randrange(-9, 9), rng.choice(FLOATS), rng.choice(TEXTS)


def sizes(db: dlog.Database) -> dict[str, int]:
    return {name: len(r) for name, r in db.store.relations.items() if name[0] in "%#"}


def test_no_leak_after_transactions_that_return_to_the_start() -> None:
    rng = random.Random(5)
    db = dlog.Database(source=EVERYTHING)
    start = [random_row(rng, n) for n in range(40)]
    apply(db, [Change("+", "d", row) for row in start])
    apply(db, [Change("-", "d", start[0])])
    apply(db, [Change("+", "d", start[0])])
    before, kept = contents(db), sizes(db)
    there = list(start)
    for n in range(400):
        inserted = [random_row(rng, 100 + n) for _ in range(rng.randrange(2))]
        erased = rng.sample(there, min(len(there), rng.randrange(3)))
        apply(db, [*(Change("-", "d", r) for r in erased), *(Change("+", "d", r) for r in inserted)])
        there = [row for row in there if row not in erased] + inserted
    apply(db, [*(Change("-", "d", r) for r in there), *(Change("+", "d", r) for r in start)])
    apply(db, [Change("-", "d", start[0])])
    apply(db, [Change("+", "d", start[0])])
    assert repr(contents(db)) == repr(before) and sizes(db) == kept
    apply(db, [Change("-", "d", r) for r in start])
    assert not any(sizes(db).values())
    db.check()


def test_an_abort_leaves_the_state_unchanged() -> None:
    db = dlog.Database(source=EVERYTHING + "d(x, n, s, f, t) -> n < 1000.")
    apply(db, [Change("+", "d", random_row(random.Random(1), n)) for n in range(20)])
    apply(db, [Change("+", "d", (1, 30, 5, 0.5, "c"))])
    before, relations = contents(db), dict(db.store.relations)
    with pytest.raises(ConstraintError):
        apply(db, [Change("-", "d", (1, 30, 5, 0.5, "c")), Change("+", "d", (1, 2000, 99, 1.0, "z"))])
    assert repr(contents(db)) == repr(before)
    assert all(db.store.relations[name] is relation for name, relation in relations.items())
    db.check()


@pytest.mark.parametrize("groups", [1, 1000])
def test_operations_do_not_follow_the_size_of_a_group(groups: int) -> None:
    """A transaction of two rows examines as many rows in a group of 50 as in one of 50,000."""
    operations = []
    for size in (50, 50_000):
        db = dlog.Database(
            source="low[x] = a <- agg<<a = min(s)>> d(x, y, s).\n.decl d(x: int, y: int, s: int)"
        )
        with db.transaction() as tx:
            tx.insert("d", [(i % groups if size > groups else 0, i, i) for i in range(size)])
        apply(db, [Change("-", "d", (0, 0, 0))])
        done = apply(db, [Change("+", "d", (0, 0, 0)), Change("+", "d", (0, 1, -7))])
        operations.append(done.operations)
        assert db["low"].rows()[0] == (0, -7)
    assert operations[1] <= operations[0] + 20


ONE_ROW = """
.decl d(x: int, y: int, s: int, f: float)
.decl e(y: int)
low[x] = a <- agg<<a = min(s)>> d(x, y, s, f).
high[x, y] = a <- agg<<a = max(s)>> d(x, y, s, f).
both(x, a, b, n, t) <- agg<<a = min(s), b = max(f), n = count(), t = sum(f)>> d(x, y, s, f), e(y).
total[] = a <- agg<<a = sum(f)>> d(x, y, s, f).
"""


def test_single_rows_take_the_short_path_and_are_undone() -> None:
    with short_ways() as short:
        rng = random.Random(11)
        many = 0
        db, other = dlog.Database(source=ONE_ROW), dlog.Database(source=ONE_ROW)
        rows: list[tuple[object, ...]] = []
        apply(db, [Change("+", "e", (y,)) for y in range(2)])
        for turn in range(250):
            if rows and rng.random() < 0.5:
                change = Change("-", "d", rows.pop(rng.randrange(len(rows))))
            else:
                row = rng.randrange(3), rng.randrange(3), rng.randrange(-4, 4), rng.choice(FLOATS)
                if any(repr(row) == repr(r) for r in rows):
                    continue
                rows.append(row)
                change = Change("+", "d", row)
            apply(db, [change])
            if turn % 25 == 0:  # many rows at once, and away again
                new = [(rng.randrange(3), rng.randrange(3), 100 + i, rng.choice(FLOATS)) for i in range(12)]
                many = len(short)
                apply(db, [Change("+", "d", row) for row in new])
                db.check()
                apply(db, [Change("-", "d", row) for row in new])
                assert all(short[many:]) or turn == 0
            if turn % 10 == 0:
                apply(db, [Change("-" if (1,) in db["e"].rows() else "+", "e", (1,))])
                db.check()
                other = dlog.Database(source=ONE_ROW)
                with other.transaction() as tx:
                    tx.insert("d", rows)
                    tx.insert("e", db["e"].rows())
                assert repr(contents(db)) == repr(contents(other))
    assert sum(short) > 0.6 * len(short), (sum(short), len(short))


@pytest.mark.parametrize(("op", "type"), [("sum", "int"), ("max", "int"), ("min", "float"), ("sum", "float")])
def test_a_window_moves_on_and_groups_lose_what_they_gain(op: str, type: str) -> None:
    """What comes in is worth what goes: nothing changes, and nothing is given back twice."""
    db = dlog.Database(
        source=f"sale(id, shop, x) -> int(id), int(shop), {type}(x).\n"
        f"result[s] = r <- agg<<r = {op}(x)>> sale(_, s, x)."
    )
    worth = [2.5, 2.0, 0.0] if type == "float" else [3, 2, 0]
    rows = [(i, i % 7, worth[i % 3]) for i in range(63)]
    db.apply(insert={"sale": rows})
    used = 0
    for k in range(4 * 63):
        old = (k, k % 7, worth[k % 3])
        with db.transaction() as tx:
            tx.insert("sale", [(k + 63, k % 7, old[2])])
            tx.erase("sale", [old])
        if k in (63, 251):
            db.check()
            grown, used = db.store.arena.usage().used_words - used, db.store.arena.usage().used_words
    db.verify()
    assert grown <= 1000
