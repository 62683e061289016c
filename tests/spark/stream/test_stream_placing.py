"""Placing programs in shards: shards that have only their rows derive together what one database derives."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import dlog
from dlog.errors import PlanError
from dlog.io import arrow_type
from dlog.ir.rules import Program
from dlog.spark.plan.hashing import shards_of
from dlog.spark.plan.places import WHOLE
from dlog.spark.stream.placing import Placing, merge_program, place_program

DECLARED = """
    e(x, y) -> int(x), int(y).  f(x, y) -> int(x), int(y).  g(x, s) -> int(x), string(s).
    v[x] = y -> int(x), int(y).  w(x, d) -> int(x), decimal[10, 2](d).
    h(x, t, d) -> int(x), timestamp(t), duration(d).
"""
BASE = ("e", "f", "g", "v", "w", "h")
SHARDED = [
    "p(x, y) <- e(x, y), f(x, y).",
    "p(x, z) <- e(x, y), f(x, z), y < z.",
    "p(y) <- e(_, y).  q[x] = n <- agg<<n = count()>> e(x, _).  total[] = s <- agg<<s = sum(y)>> e(_, y).",
    'p(x) <- e(x, _), !f(x, _).  q(x) <- p(x), g(x, s), contains("a", s).',
    "p[x] = m <- agg<<m = max(y)>> e(x, y).  q[m] = n <- agg<<n = min(x)>> e(x, y), v[x] = m.",
    "r(x, y) <- e(x, y).  r(x, z) <- r(x, y), f(y, z).",
    "p(x, t) <- v[x] = t ; e(x, t), f(x, t).",
    "s(d) <- w(_, d).  t[x] = d <- agg<<d = sum(c)>> w(x, c).  u[] = d <- agg<<d = sum(c)>> w(_, c).",
    "p(x) <- e(x, y), !(f(x, z), g(z, _)).",
    "d[x] = m <- agg<<m = mean(y)>> e(x, y).  k(s, n) <- agg<<n = count()>> g(_, s).",
    "d[x] = v, k[x] = n <- agg<<v = variance(y), n = count_distinct(y)>> e(x, y).",
    "s[x] = d <- agg<<d = stddev(c)>> w(x, c).",
    "p[t] = s, q[t] = m <- agg<<s = sum(d), m = mean(d)>> h(_, t, d).",
    "p[t] = s <- agg<<s = max(d)>> h(_, t, d).  q[] = s <- agg<<s = sum(d)>> h(_, _, d).",
    'p[d] = n, q[d] = u <- agg<<n = count_distinct(x), u = max(t)>> h(x, t, d), d > "PT0S".',
    "p(t, a - t) <- h(x, t, d), h(y, t, _), x != y, a = t + d.",
]
REFUSED = [
    ("r(x, y) <- e(x, y).  r(x, z) <- r(x, y), r(y, z).", "e", "r: "),
    ("p(x, y) <- e(x, y), e(y, x).", "e", "no variable of a rule of p can own the shards"),
    ("p[] = m <- agg<<m = mean(y)>> e(_, y).", "e", "p"),
    ("p[] = v <- agg<<v = variance(y)>> e(_, y).", "e", "p: finished values of variance cannot be merged"),
    (
        "p[] = n <- agg<<n = count_distinct(y)>> e(_, y).",
        "e",
        "p: finished values of count_distinct",
    ),
    ("p(y) <- e(_, y).  q(x) <- p(x), e(x, _).", "e", "p, which is merged|q: no|q"),
    ("k(9).  k(n) <- agg<<n = count()>> e(_, _).", "e", "k: every shard would have its facts"),
    ("p(x) <- e(x, _).  p(x) -> f(x, _).", "e f", "constraints"),
]


def database(text: str, facts: dict[str, set[Any]]) -> dlog.Database:
    db = dlog.Database(source=DECLARED + text)
    with db.transaction() as tx:
        for name, rows in facts.items():
            tx.insert(name, sorted(rows))
    return db


def random_facts(rng: random.Random) -> dict[str, set[Any]]:
    pairs = {name: {(rng.randrange(7), rng.randrange(7)) for _ in range(12)} for name in ("e", "f")}
    texts = {(rng.randrange(7), rng.choice(["a", "ab", "c", "d"])) for _ in range(8)}
    values = {(x, rng.randrange(5)) for x in range(6)}
    prices = {(rng.randrange(7), rng.randrange(1000) / 4) for _ in range(8)}
    start = datetime(2026, 3, 29, tzinfo=UTC)
    times = {
        (x, start + timedelta(hours=rng.randrange(5)), timedelta(seconds=rng.randrange(-3, 4)))
        for x in range(12)
    }
    return {**pairs, "g": texts, "v": values, "w": prices, "h": times}


def own_rows(program: Program, placing: Placing, name: str, rows: set[Any], shard: int, n: int) -> set[Any]:
    place = placing.places[name]
    if place == WHOLE:
        return rows
    assert place is not None
    ordered = sorted(rows)
    type = program.predicates[name].columns[place].type
    owners = shards_of(pa.array([row[place] for row in ordered], arrow_type(type)), type, n)
    return {row for row, owner in zip(ordered, owners, strict=True) if owner == shard}


@pytest.mark.parametrize("text", SHARDED)
def test_oracle_shards_derive_what_one_database_does(text: str) -> None:
    rng = random.Random(text)
    for n in (2, 3):
        facts = random_facts(rng)
        whole = database(text, facts)
        program = whole.program
        read = [name for name in BASE if any(name in rule.body.predicates() for rule in program.rules)]
        placing = place_program(program, read, n)
        assert any(placing.places[name] != WHOLE for name in read)
        shards = [
            database(text, {b: own_rows(program, placing, b, facts[b], k, n) for b in read}) for k in range(n)
        ]
        merged = dlog.Database(source=merge_program(program, placing))
        with merged.transaction() as tx:
            for name in placing.merges:
                parts = [(k, *row) for k, shard in enumerate(shards) for row in shard[name].rows()]
                tx.insert(f"{name}__part", parts)
        for name, place in placing.places.items():
            if name in BASE or program.predicates[name].auxiliary:
                continue
            expected = whole[name].rows()
            found = [shard[name].rows() for shard in shards]
            if place is None:
                assert merged[name].rows() == expected, name
            elif place == WHOLE:
                assert found == [expected] * n, name
            else:
                assert sorted(row for rows in found for row in rows) == expected, name


@pytest.mark.parametrize(("text", "streamed", "why"), REFUSED)
def test_programs_that_cannot_be_sharded_are_refused(text: str, streamed: str, why: str) -> None:
    program = dlog.Database(source=DECLARED + text).program
    with pytest.raises(PlanError, match=why) as caught:
        place_program(program, streamed.split(), 2)
    assert caught.value.help == "leave --shards out: one engine"


def test_a_placing_as_text() -> None:
    text = "q[x] = n <- agg<<n = count()>> e(x, _).  t[] = n <- agg<<n = count()>> e(_, _)."
    program = dlog.Database(source=DECLARED + text).program
    reported = place_program(program, ["e"], 2).describe(program)
    assert {line for line in reported if line[0] in "eqt"} == {
        "e is in shards by x",
        "q is in shards by column 1",
        "t is merged from all shards",
    }
