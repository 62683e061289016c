"""Maps of every kind of ring at work: random streams of insertions and deletions, in batches and one by one,
against sums over the join computed again by plain arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.m3 import parse, register_ring
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, Ring, decimal_ring, product_ring
from dlog.m3.runtime.runtime import Runtime
from tests.oracle.m3_shipped import Cofactor

HEAD = """CREATE TYPE {0} FROM FILE 'x'; CREATE STREAM R(a int, b double); CREATE STREAM S(a int, c double);
DECLARE MAP M({1})[][a: int] := 0; DECLARE MAP N({2})[][a: int] := 0; DECLARE MAP Q({3})[][] := 0;
DECLARE MAP BY({3})[][a: int] := 0;
"""
BATCHES = """
ON BATCH UPDATE OF R {{
  Q({3})[][] += AggSum([], (DELTA R)(a, b) * [lift<0>: {1}](b) * N({2})[][a]);
  BY({3})[][a] += AggSum([a], (DELTA R)(a, b) * [lift<0>: {1}](b) * N({2})[][a]);
  M({1})[][a] += AggSum([a], (DELTA R)(a, b) * [lift<0>: {1}](b)); }}
ON BATCH UPDATE OF S {{
  Q({3})[][] += AggSum([], (DELTA S)(a, c) * [lift<1>: {2}](c) * M({1})[][a]);
  BY({3})[][a] += AggSum([a], (DELTA S)(a, c) * [lift<1>: {2}](c) * M({1})[][a]);
  N({2})[][a] += AggSum([a], (DELTA S)(a, c) * [lift<1>: {2}](c)); }}
"""
SINGLE = "".join(
    f"""
ON {{event}} {relation}(a, {column}) {{{{
  Q({{3}})[][] += {{sign}} * [lift<{place}>: {{{own}}}]({column}) * {others}({{{other}}})[][a];
  BY({{3}})[][a] += {{sign}} * [lift<{place}>: {{{own}}}]({column}) * {others}({{{other}}})[][a];
  {name}({{{own}}})[][a] += {{sign}} * [lift<{place}>: {{{own}}}]({column}); }}}}"""
    for relation, column, place, name, own, others, other in (
        ("R", "b", 0, "M", 1, "N", 2),
        ("S", "c", 1, "N", 2, "M", 1),
    )
)


@dataclass(frozen=True)
class Subject:
    """A ring, how its type is written for R, S and their join, and its elements by plain arithmetic."""

    ring: Ring | None
    types: tuple[str, str, str]
    lift: Callable[[int, float], Any]
    plus: Callable[[Any, Any], Any]
    times: Callable[[Any, Any], Any]
    scaled: Callable[[Any, int], Any]
    zero: Any
    shown: Callable[[Any], Any]  # an element as results show it

    def text(self, single: bool) -> str:
        names = (self.types[0].split("<")[0], *self.types)
        if not single:
            return (HEAD + BATCHES).format(*names)
        triggers = [SINGLE.replace("{event}", e).replace("{sign}", s) for e, s in (("+", "1"), ("-", "-1"))]
        return "".join([HEAD, *triggers]).format(*names)


def numbers(words: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda _, columns: words(columns[0])


def modulo(p: int) -> Ring:
    """A ring of a user's, of which kernels know nothing."""
    return Ring(
        f"modulo {p}", ("int",), lambda v: (v % p,), lambda w: w[0],
        plus=lambda x, y: (x + y) % p, times=lambda x, y: (x * y) % p, minus=lambda x: -x % p,
        lift=numbers(lambda x: x.astype(np.int64)[:, None] % p),
    )  # fmt: skip


def plain(ring: Ring, name: str, lift: Callable[[float], Any], words: Any, **more: Any) -> Subject:
    lifted = ring.with_lift("lift", words) if words is not None else ring
    given: dict[str, Any] = {
        "plus": lambda x, y: x + y, "times": lambda x, y: x * y, "scaled": lambda x, n: x * n, "zero": 0,
        "shown": lambda x: x, **more,
    }  # fmt: skip
    return Subject(lifted, (name,) * 3, lambda _, x: lift(x), **given)


def parts(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: tuple(map(f, x, y))


CENTS, PAIR = decimal_ring(2), product_ring(INTEGER_RING, FLOAT_RING)
MIXED = product_ring(decimal_ring(2), modulo(7))  # one part by kernels, one by Python
SUBJECTS = {
    "integer": plain(INTEGER_RING, "Whole", int, numbers(lambda x: x.astype(np.int64)[:, None])),
    "decimal": plain(
        CENTS, "Cents", lambda x: Decimal(x) / 10, numbers(lambda x: 10 * x.astype(np.int64)[:, None])
    ),
    "count and sum": plain(
        PAIR, "CountAndSum", lambda x: (1, x), numbers(lambda x: PAIR.column([(1, v) for v in x.tolist()])),
        plus=parts(lambda a, b: a + b), times=parts(lambda a, b: a * b), zero=(0, 0.0),
        scaled=lambda x, n: (x[0] * n, x[1] * n), shown=lambda x: {"1": x[0], "2": x[1]},
    ),
    "of a user": plain(
        modulo(97), "Modulo", lambda x: int(x) % 97, None, plus=lambda x, y: (x + y) % 97,
        times=lambda x, y: x * y % 97, scaled=lambda x, n: x * n % 97,
    ),
    "product with one of a user": plain(
        MIXED, "Mixed", lambda x: (Decimal(x) / 10, int(x) % 7),
        numbers(lambda x: np.stack([10 * x.astype(np.int64), x.astype(np.int64) % 7], axis=1)),
        plus=lambda x, y: (x[0] + y[0], (x[1] + y[1]) % 7), times=lambda x, y: (x[0] * y[0], x[1] * y[1] % 7),
        scaled=lambda x, n: (x[0] * n, x[1] * n % 7), zero=(Decimal(0), 0),
        shown=lambda x: {"1": x[0], "2": x[1]},
    ),
    "cofactor": Subject(
        None, ("RingCofactor<0, double, 1>", "RingCofactor<1, double, 1>", "RingCofactor<0, double, 2>"),
        lambda k, x: Cofactor.lift((k,), x), lambda x, y: x + y, lambda x, y: x * y, lambda x, n: x * n,
        Cofactor(0, {}, {}), lambda x: x.flat(2),
    ),
}  # fmt: skip


def joined(subject: Subject, left: Counter, right: Counter) -> dict[Any, Any]:
    """The sum over the join, in all and by a."""
    out: dict[Any, Any] = {None: subject.zero}
    for (a, b), n in left.items():
        for (x, c), m in right.items():
            if a == x and n * m:
                one = subject.scaled(subject.times(subject.lift(0, b), subject.lift(1, c)), n * m)
                for key in (None, a):
                    out[key] = subject.plus(out.get(key, subject.zero), one)
    return {key: subject.shown(value) for key, value in out.items()}


def found(runtime: Runtime) -> dict[Any, Any]:
    rows = {None: runtime["Q"].to_pylist()[0]["value"]}
    rows |= {row["a"]: row["value"] for row in runtime["BY"].to_pylist()}
    return {key: flat(value) for key, value in rows.items()}


def flat(value: Any) -> Any:
    """An element of the cofactor ring as a list."""
    if not isinstance(value, dict) or not isinstance(value.get("2"), list):
        return value
    pairs = [value["3"][i][j] for i in range(len(value["2"])) for j in range(i, len(value["2"]))]
    return [value["1"], *value["2"], *pairs]


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-9, 9).map(float)), max_size=4)
CHANGES = st.lists(st.tuples(st.sampled_from("RS"), ROWS, st.sampled_from([1, 1, -1])), max_size=7)


def changed(runtime: Runtime, changes: list[Any]) -> Iterator[tuple[Counter, Counter]]:
    rows: dict[str, Counter] = {"R": Counter(), "S": Counter()}
    for relation, some, sign in changes:
        runtime.apply(relation, some, [sign] * len(some))
        for row in some:
            rows[relation][row] += sign
        yield rows["R"], rows["S"]


@pytest.mark.parametrize("single", [False, True], ids=["batches", "tuples"])
@pytest.mark.parametrize("name", SUBJECTS)
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES)
def test_oracle_rings(name: str, single: bool, changes: list[Any]) -> None:
    subject = SUBJECTS[name]
    if subject.ring is not None:
        register_ring(subject.types[0], subject.ring)
    runtime = Runtime(parse(subject.text(single)))
    for left, right in changed(runtime, changes):
        expected, seen = joined(subject, left, right), found(runtime)
        nothing = subject.shown(subject.zero)
        for key in expected.keys() | seen.keys():
            assert seen.get(key, nothing) == expected.get(key, nothing), key
        runtime.check()


def test_a_product_of_decimals_with_too_many_digits() -> None:
    """It is an error at its statement, not called an overflow of integers."""
    tenths = decimal_ring(1).with_lift("lift", numbers(lambda x: x.astype(np.int64)[:, None]))
    register_ring("Tenths", tenths)
    runtime = Runtime(parse(replace(SUBJECTS["decimal"], types=("Tenths",) * 3).text(single=False)))
    runtime.apply("R", [(1, 15.0)])  # 1.5
    with pytest.raises(DataError, match=r"a product of decimals has too many digits in a value of (Q|BY)"):
        runtime.apply("S", [(1, 25.0)])  # 2.5: 3.75 has two digits after the point


def test_lifting_functions_that_return_no_elements_are_named() -> None:
    ring = product_ring(FLOAT_RING, FLOAT_RING).with_lift("half", lambda _, columns: columns[0] / 2)
    register_ring("Halves", ring)
    runtime = Runtime(
        parse("""CREATE TYPE Halves FROM FILE 'h'; CREATE STREAM R(a int);
        DECLARE MAP P(Halves)[][] := 0; DECLARE QUERY P := P(Halves)[][];
        ON BATCH UPDATE OF R { P(Halves)[][] += AggSum([], (DELTA R)(a) * [half: Halves](a)); }""")
    )
    with pytest.raises(DataError, match=r"half returned an array of shape \(2,\), not \(2, 4\)"):
        runtime.apply("R", [(1,), (2,)])
