"""Deviations and counts of distinct values under change, by every strategy, against the oracle.

Facts come and go one by one and many at a time.  After each transaction the answers are those of the oracle,
bit by bit; in the end they are those of a database that was given the facts that are left in one go.
"""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import dlog
from dlog.errors import DataError
from dlog.ir.rules import Program
from tests.oracle.compare import same_program
from tests.oracle.naive import Facts, evaluate_base
from tests.oracle.values import canonical

EXTREME = {
    "int": [-(2**63), 2**63 - 1, 0, 1, -1, 2**31, -(2**31), 2**32 - 1, 10**18],
    "unsigned": [0, 1, 2**63, 2**64 - 1, 2**32],
    "float": [
        *(0.0, -0.0, 1.0, 0.1, -0.1, 1e16, 1e16 + 2.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1e200, 1e-200),
        *(2.0**-400, 2.0**400, float("inf"), float("-inf"), float("nan")),
    ],
    "decimal[18, 4]": [Decimal(10**18 - 1).scaleb(-4), Decimal(1 - 10**18).scaleb(-4), Decimal("0.0001")],
}
DEVIATIONS = ("variance", "stddev", "variance_pop", "stddev_pop")
STRATEGIES = ("delta", "trace", "trace-exact", None)


def value(type: str, chance: random.Random) -> Any:
    if chance.random() < 0.5:
        return chance.choice(EXTREME[type])
    number = chance.randrange(50) if type == "unsigned" else chance.randrange(-50, 50)
    return {"float": number / 7, "decimal[18, 4]": Decimal(number) / 4}.get(type, number)


def rules(type: str) -> str:
    """Several in one rule, one with a condition, an inline one, one over all, a joined one."""
    several = ", ".join(f"r{i} = {op}(x)" for i, op in enumerate(DEVIATIONS))
    heads = ", ".join(f"s{i}[g] = r{i}" for i in range(4))
    return f"""
        q(i, g, x) -> int(i), int(g), {type}(x).  w(g, k) -> int(g), int(k).
        {heads}, mean[g] = m, n[g] = c, kinds[g] = d
            <- agg<<{several}, m = mean(x), c = count(), d = count_distinct(x)>> q(_, g, x).
        low[g] = v <- agg<<v = stddev(x)>> q(i, g, x), i < 6.
        inline(g, v, c) <- w(g, _), v = variance x : {{ q(_, g, x) }},
            c = count_distinct x : {{ q(_, g, x) }}.
        every(v, c) <- v = variance_pop x : {{ q(_, _, x) }}, c = count_distinct g : {{ q(_, g, _) }}.
        joined[k] = v, both[k] = c <- agg<<v = variance(x), c = count_distinct(x)>> q(_, g, x), w(g, k).
    """


def as_expected(db: dlog.Database, program: Program) -> Facts:
    """Assert that everything is as the oracle has it.  Returns the base facts."""
    base = {name: {tuple(map(canonical, row)) for row in db.base(name).rows()} for name in db.predicates()}
    base |= {name: set() for name in program.predicates.keys() - base.keys()}
    found = {name: db[name].rows() for name in db.predicates()}
    assert same_program(found, evaluate_base(program, base), program)
    return {name: rows for name, rows in base.items() if rows}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("type", EXTREME)
def test_oracle_facts_come_and_go(type: str, strategy: str | None) -> None:
    chance = random.Random(f"{type} {strategy}")
    program, text = dlog.check(rules(type)), rules(type)
    db = dlog.Database(source=text, strategy=strategy)
    pool = [(i, chance.randrange(3), value(type, chance)) for i in range(14)]
    pairs = [(g, k) for g in range(3) for k in range(2)]
    for size in (1, 1, 8, 1, 1, 2, 14, 1, 1):
        with db.transaction() as tx:
            for row in chance.sample(pool, size):
                (tx.insert if chance.random() < 0.6 else tx.erase)("q", [row])
            for pair in chance.sample(pairs, min(size, 2)):
                (tx.insert if chance.random() < 0.6 else tx.erase)("w", [pair])
        base = as_expected(db, program)
        db.check()
    fresh = dlog.Database(source=text)
    with fresh.transaction() as tx:
        for name, rows in base.items():
            tx.insert(name, sorted(rows, key=repr, reverse=True))
    for name in db.predicates():
        assert repr(db[name].rows()) == repr(fresh[name].rows()), name


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_oracle_distinct_values_of_every_type(strategy: str | None) -> None:
    """A value goes with its last assignment, whatever its type; decimals that a rule computes, too."""
    text = """
        q(i, s, b, d, m) -> int(i), string(s), bool(b), date(d), decimal[10, 2](m).
        kinds(a, b, c, e) <- agg<<a = count_distinct(s), b = count_distinct(t), c = count_distinct(d),
                                  e = count_distinct(m)>> q(i, s, t, d, m).
        halves[k] = c, spread[k] = v <- agg<<c = count_distinct(h), v = variance(h)>>
            q(i, _, _, _, m), k = i % 2, h = m / 2.
        none(c) <- c = count_distinct s : { q(-1, s, _, _, _) }.
        one(c) <- agg<<c = count_distinct(1)>> q(_, _, _, _, _).
    """
    chance = random.Random(7)
    program, db = dlog.check(text), dlog.Database(source=text, strategy=strategy)
    days = ["2024-02-29", "2024-03-01"]
    for size in (1, 1, 3, 1, 6, 1, 1, 9, 1, 1, 1):
        with db.transaction() as tx:
            for _ in range(size):
                i = chance.randrange(12)
                row = (i, chance.choice("ab"), i % 3 == 0, days[i % 2], Decimal(chance.randrange(4)) / 4)
                present = [r for r in db["q"].rows() if r[0] == i]
                tx.erase("q", present) if present else tx.insert("q", [row])
        as_expected(db, program)
        db.check()


LONGEST = timedelta(106_751_991)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_oracle_durations_come_and_go(strategy: str | None) -> None:
    """Sums and means: of groups, of products of groups that count several times, inline, over nothing."""
    text = """
        q(i, g, x) -> int(i), int(g), duration(x).  w(g, k) -> int(g), int(k).
        total[g] = s, usual[g] = m, n[g] = c <- agg<<s = sum(x), m = mean(x), c = count()>> q(_, g, x).
        sum_only[g] = s <- agg<<s = sum(x)>> q(_, g, x).
        inline(g, s) <- w(g, _), s = sum x : { q(_, g, x), x > "PT0S" }.
        late(g, d) <- w(g, _), d = mean x : { q(_, g, x) } + "PT1S".
        every(s, m) <- agg<<s = total(2 * x), m = mean(x)>> q(_, _, x).
        joined[k] = s, middle[k] = m <- agg<<s = sum(x), m = mean(x)>> q(_, g, x), w(g, k), w(_, h), h <= k.
    """
    chance = random.Random(3)
    program, db = dlog.check(text), dlog.Database(source=text, strategy=strategy)
    sizes = [LONGEST / 9, -LONGEST / 11, *(timedelta(0, 0, n) for n in (1, -1, 2, 3)), timedelta(hours=7)]
    pool = [(i, chance.randrange(3), chance.choice(sizes)) for i in range(14)]
    pairs = [(g, k) for g in range(3) for k in range(2)]
    for size in (1, 1, 8, 1, 1, 2, 14, 1, 1):
        before = {name: db[name].rows() for name in db.predicates()}
        try:
            with db.transaction() as tx:
                for row in chance.sample(pool, size):
                    (tx.insert if chance.random() < 0.6 else tx.erase)("q", [row])
                for pair in chance.sample(pairs, min(size, 2)):
                    (tx.insert if chance.random() < 0.6 else tx.erase)("w", [pair])
        except DataError as error:
            assert "does not fit a duration" in str(error)
            assert before == {name: db[name].rows() for name in db.predicates()}
        as_expected(db, program)
        db.check()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sum_of_durations_that_does_not_fit_names_its_group(strategy: str | None) -> None:
    """Beyond 64 bits, and beyond a duration only; means always fit."""
    text = """
        q(i, g, x) -> int(i), string(g), duration(x).
        total[g] = s <- agg<<s = sum(x)>> q(_, g, x).
        usual[g] = s <- agg<<s = mean(x)>> r(_, g, x).
        r(i, g, x) -> int(i), string(g), duration(x).
    """
    db = dlog.Database(source=text, strategy=strategy)
    with db.transaction() as tx:
        tx.insert("q", [(0, "a", LONGEST), (1, "b", LONGEST), (2, "a", timedelta(0))])
        tx.insert("r", [(0, "a", LONGEST), (1, "a", LONGEST - timedelta.resolution)])
    before = db["total"].rows()
    for more in (timedelta.resolution, LONGEST):
        refused = pytest.raises(DataError, match=r"the sum of group \[b\] does not fit a duration")
        with refused, db.transaction() as tx:
            tx.insert("q", [(3, "b", more)])
        assert db["total"].rows() == before
    with db.transaction() as tx:
        tx.insert("q", [(3, "b", -LONGEST)])
    assert db["total"].rows() == [("a", LONGEST), ("b", timedelta(0))]
    assert db["usual"].rows() == [("a", LONGEST)]  # a half microsecond less, rounded to an even number


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sum_of_squares_that_does_not_fit_names_its_group(strategy: str | None) -> None:
    """The transaction is refused, and the next one finds everything as it was."""
    text = """
        q(g, x) -> string(g), decimal[18, 0](x).
        spread[g] = v <- agg<<v = variance(y)>> q(g, x), y = x * x * x.
    """
    db = dlog.Database(source=text, strategy=strategy)
    with db.transaction() as tx:
        tx.insert("q", [("a", 1), ("a", 2), ("b", 1), ("b", 3)])
    before = db["spread"].rows()
    refused = pytest.raises(DataError, match=r"the sum of squares of group \[b\] does not fit 76 digits")
    with refused, db.transaction() as tx:
        tx.insert("q", [("b", 10**17)])
    assert db["spread"].rows() == before
    with db.transaction() as tx:
        tx.erase("q", [("b", 3)])
    assert db["spread"].rows() == [("a", 24.5)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_mean_whose_sum_does_not_fit_is_refused_as_from_scratch(strategy: str | None) -> None:
    big = 10**18 - 1
    text = """
        q(g, x) -> string(g), decimal[18, 0](x).
        usual[g] = v <- agg<<v = mean(y)>> q(g, x), y = x * x * x * x * 9999.
    """
    db = dlog.Database(source=text, strategy=strategy)
    with db.transaction() as tx:
        tx.insert("q", [("a", 1), ("b", big)])
    before = db["usual"].rows()
    for rows in ([("b", big - 1)], [("b", big - 1 - i) for i in range(2)]):
        refused = pytest.raises(DataError, match=r"the sum of group \[b\] does not fit 76 digits")
        with refused, db.transaction() as tx:
            tx.insert("q", rows)
        assert db["usual"].rows() == before
    with db.transaction() as tx:
        tx.erase("q", [("b", big)])
        tx.insert("q", [("b", 2)])
    assert db["usual"].rows() == [("a", 9999.0), ("b", 16 * 9999.0)]


def test_one_value_has_no_sample() -> None:
    """A head that needs the result has no row; others of the same rule have theirs."""
    db = dlog.Database(
        source="q(1, 5). q(2, 5). q(2, 7).  s[g] = v, n[g] = c <- agg<<v = stddev(x), c = count()>> q(g, x)."
    )
    assert db["s"].rows() == [(2, 2.0**0.5)] and db["n"].rows() == [(1, 1), (2, 2)]
    with db.transaction() as tx:
        tx.insert("q", [(1, 5 + 4)])
        tx.erase("q", [(2, 5)])
    assert db["s"].rows() == [(1, 8.0**0.5)] and db["n"].rows() == [(1, 2), (2, 1)]


@pytest.mark.parametrize("op", [*DEVIATIONS, "count_distinct"])
def test_views_refuse_with_a_reason(op: str) -> None:
    source = "q(g, x) -> int(g), int(x).  w(g, k) -> int(g), int(k).  q(1, 2).  w(1, 3).\n"
    rule = f"s[k] = v <- agg<<v = {op}(x)>> q(g, x), w(g, k)."
    db = dlog.Database(source=source + rule, strategy="views")
    with db.transaction() as tx:
        tx.insert("q", [(1, 4)])
    (line,) = (line for line in db.explain().splitlines() if "it has no view tree" in line)
    assert op in line
