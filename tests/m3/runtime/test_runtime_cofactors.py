"""Cofactors in maps: random products and sums of lifts, entries and nested sums, whose variables may overlap
or lie apart, over streams with deletions, in batches and tuple by tuple, against the naive evaluator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.m3 import parse, register_ring
from dlog.m3.rings.rings import cofactor_ring
from dlog.m3.runtime.runtime import Runtime, Step
from dlog.m3.types.typecheck import check
from tests.m3.runtime.test_runtime_rings import flat
from tests.oracle.m3_naive import Naive
from tests.oracle.m3_shipped import Cofactor

SIZE = 5
T = "Five"  # a type without parameters: products of any variables are of it
register_ring(T, cofactor_ring(SIZE))
HEAD = f"""CREATE TYPE {T} FROM FILE 'x';
CREATE STREAM R(a int, b int, c int); CREATE STREAM S(a int, d int);
DECLARE MAP Q({T})[][] := 0; DECLARE MAP BY({T})[][a: int] := 0;
DECLARE MAP M({T})[][a: int] := 0; DECLARE MAP N({T})[][a: int, d: int] := 0;
DECLARE QUERY ASKED := AggSum([d], N({T})[][a, d] * M({T})[][a]);
"""
MAPS = ("Q", "BY", "M", "N")


def lifts(*names: str) -> st.SearchStrategy[str]:
    first = st.integers(0, SIZE - len(names))
    return first.map(lambda k: f"[lift<{k}>: {T}]({', '.join(names)})")


OF_R = st.one_of(
    lifts("b"), lifts("c"), lifts("b", "c"), lifts("c", "a", "b"),
    st.sampled_from([
        f"M({T})[][a]", f"N({T})[][a, x]", f"N({T})[][a, b]", f"AggSum([], N({T})[][a, y])",
        f"EXISTS(M({T})[][a])", f"EXISTS(M({T})[][a] * M({T})[][b])", "{b < c}", "2", "c",
        f"AggSum([], N({T})[][a, z] * M({T})[][z])",
    ]),
    st.builds("({} + {})".format, lifts("b"), lifts("b", "c")),
    st.builds("({} + {})".format, lifts("c"), st.just(f"M({T})[][a]")),
)  # fmt: skip
OF_S = st.one_of(
    lifts("d"), lifts("a", "d"), st.sampled_from([f"M({T})[][a]", "{d < 2}", "3", f"M({T})[][d]"])
)


@st.composite
def products(draw: Any, factors: st.SearchStrategy[str], first: st.SearchStrategy[str]) -> str:
    """At least one lift, so that it is a cofactor; of factors that bind a variable no two bind the same."""
    return " * ".join(dict.fromkeys([draw(first), *draw(st.lists(factors, max_size=3))]))


@st.composite
def programs(draw: Any, single: bool) -> str:
    of_r, of_s = products(OF_R, lifts("b")), products(OF_S, lifts("d"))
    text = [HEAD]
    for relation, columns, changes in (
        ("R", "a, b, c", (("Q", "", draw(of_r)), ("BY", "a", draw(of_r)), ("M", "a", draw(lifts("b", "c"))))),
        ("S", "a, d", (("Q", "", draw(of_s)), ("BY", "a", draw(of_s)), ("N", "a, d", draw(lifts("d"))))),
    ):
        events = [("+", "1 * "), ("-", "-1 * ")] if single else [("", f"(DELTA {relation})({columns}) * ")]
        for sign, rows in events:
            bodies = [f"{m}({T})[][{k}] += AggSum([{k}], {rows}{e});" for m, k, e in changes]
            event = f"{sign} {relation}({columns})" if single else f"BATCH UPDATE OF {relation}"
            text.append(f"ON {event} {{ {' '.join(bodies)} }}")
    return "\n".join(text)


NUMBER = st.integers(0, 3)
CHANGES = st.lists(
    st.tuples(
        st.booleans(), st.lists(st.tuples(NUMBER, NUMBER, NUMBER), max_size=3), st.sampled_from([1, 1, -1])
    ),
    max_size=5,
)


def compare(found: Any, expected: dict[Any, Cofactor]) -> None:
    nothing = [0.0] * (1 + SIZE + SIZE * (SIZE + 1) // 2)
    seen = {tuple(row.values())[:-1]: flat(row["value"]) for row in found.to_pylist()}
    wanted = {key: element.flat(SIZE) for key, element in expected.items()}
    for key in seen.keys() | wanted.keys():
        assert seen.get(key, nothing) == pytest.approx(wanted.get(key, nothing)), key


@pytest.mark.parametrize("single", [False, True], ids=["batches", "tuples"])
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_oracle_cofactors(single: bool, data: Any) -> None:
    program = check(parse(data.draw(programs(single))))
    runtime, oracle = Runtime(program, checked=True), Naive(program, {}, {"lift": Cofactor.lift})
    for of_r, some, sign in data.draw(CHANGES):
        relation = "R" if of_r else "S"
        rows = some if of_r else [row[:2] for row in some]
        rows *= 1 if single else data.draw(st.sampled_from([1, 1, 2, 17]))  # few go another way than many
        runtime.apply(relation, rows, [sign] * len(rows))
        if single:
            for row in rows:
                (oracle.insert if sign > 0 else oracle.delete)(relation, row)
        else:
            oracle.batch(relation, [(row, sign) for row in rows])
        for name in MAPS:
            compare(runtime[name], oracle.map(name))
        compare(runtime["ASKED"], oracle.query("ASKED"))
        runtime.check()


def test_invariant_a_map_has_the_variables_that_come_to_it() -> None:
    text = (
        HEAD
        + f"""
    ON + R(a, b, c) {{ M({T})[][a] += [lift<3>: {T}](b); BY({T})[][a] += M({T})[][a] * [lift<1>: {T}](c); }}
    ON + S(a, d) {{ N({T})[][a, d] += 2 * [lift<0>: {T}](d); Q({T})[][] += BY({T})[][a]; }}"""
    )
    stores = Runtime(parse(text)).compiled.stores
    assert {name: stores.map(name).ring.variables for name in MAPS} == {
        "Q": (1, 3), "BY": (1, 3), "M": (3,), "N": (0,),
    }  # fmt: skip


@pytest.mark.parametrize("rows", [1, 3000])
def test_rows_of_many_chunks_and_subtraction(rows: int) -> None:
    """Non-integers leave no remainder in the map that only they reached."""
    lifted = f"[lift<0>: {T}](d, [/: double](d))"
    text = HEAD + f"ON BATCH UPDATE OF S {{ N({T})[][a, d] += (DELTA S)(a, d) * {lifted}; }}"
    runtime = Runtime(parse(text))
    given = [(k % 97, k) for k in range(rows)]
    runtime.apply("S", given)
    assert runtime["N"].num_rows == rows
    runtime.apply("S", given, [-1] * rows)
    assert runtime["N"].num_rows == 0


@pytest.mark.parametrize("rows", [5, 16, 17, 50])
def test_oracle_products_of_many_variables(rows: int) -> None:
    """Rows that are taken together, with wide parts on both sides, some of which have no match or come twice;
    against sums of outer products.
    """
    left, right = 11, 9
    register_ring("Wide", cofactor_ring(left + right))
    xs, ys = (", ".join(f"{c}{i}" for i in range(n)) for c, n in (("x", left), ("y", right)))
    columns = ["".join(f", {name} int" for name in names.split(", ")) for names in (xs, ys)]
    runtime = Runtime(
        parse(f"""CREATE TYPE Wide FROM FILE 'x';
        CREATE STREAM R(k int{columns[0]}); CREATE STREAM S(k int{columns[1]});
        DECLARE MAP Q(Wide)[][] := 0; DECLARE MAP M(Wide)[][k: int] := 0;
        ON BATCH UPDATE OF R {{
          Q(Wide)[][] += AggSum([], (DELTA R)(k, {xs}) * [lift<0>: Wide]({xs}) * M(Wide)[][k]); }}
        ON BATCH UPDATE OF S {{
          M(Wide)[][k] += AggSum([k], (DELTA S)(k, {ys}) * [lift<{left}>: Wide]({ys})); }}""")
    )
    rng = np.random.default_rng(rows)
    r, s = rng.integers(-9, 9, (rows, 1 + left)), rng.integers(-9, 9, (30, 1 + right))
    times = rng.integers(-1, 3, rows)
    runtime.apply("S", [tuple(map(int, row)) for row in s])
    runtime.apply("R", [tuple(map(int, row)) for row in r], times.tolist())
    pairs = [(a, t, b) for a, t in zip(r, times, strict=True) for b in s if a[0] == b[0]]
    joined = np.array([[1, *a[1:], *b[1:]] for a, _, b in pairs])
    moments = joined.T @ (joined * np.array([t for _, t, _ in pairs])[:, None])
    upper = moments[1:, 1:][np.triu_indices(left + right)]
    (row,) = runtime["Q"].to_pylist()
    assert flat(row["value"]) == [*moments[0].tolist(), *upper.tolist()]


def tuple_by_tuple(more: str = "") -> str:
    """Both relations add to Q what they have in common; `more` are statements of S."""
    return HEAD + "".join(
        f"""ON {sign} R(a, b, c) {{ Q({T})[][] += {one} * [lift<0>: {T}](b, c) * AggSum([], N({T})[][a, d]);
          M({T})[][a] += {one} * [lift<0>: {T}](b, c); }}
        ON {sign} S(a, d) {{ Q({T})[][] += {one} * M({T})[][a] * [lift<2>: {T}](a, d);
          N({T})[][a, d] += {one} * [lift<2>: {T}](a, d); {more} }}
        """
        for sign, one in (("+", "1"), ("-", "-1"))
    )


@pytest.mark.parametrize("more", ["", f"BY({T})[][a] += Q({T})[][];"], ids=["held back", "read at once"])
@pytest.mark.parametrize("keys", [3, 2000])
def test_oracle_rows_in_turns(more: str, keys: int) -> None:
    """Products of single rows are held back until all rows of a call are done, unless a trigger reads them;
    meanwhile tables grow, and rows are deleted.
    """
    program = check(parse(tuple_by_tuple(more)))
    runtime, oracle = Runtime(program, checked=True), Naive(program, {}, {"lift": Cofactor.lift})
    rng, n = np.random.default_rng(keys), 300
    r, s = rng.integers(0, 4, (4, n)), rng.integers(0, 4, (3, n))
    r[0], s[0] = rng.integers(0, keys, n), rng.integers(0, keys, n)
    r[-1] = s[-1] = 1
    r[:, n // 2 :], r[-1, n // 2 :] = r[:, : n - n // 2], -1  # the first half goes again
    for _ in range(2):
        runtime.apply_steps([Step("R", r), Step("S", s)], np.tile([0, 1], n), np.repeat(np.arange(n), 2))
        for of_r, of_s in zip(r.T.tolist(), s.T.tolist(), strict=True):
            (oracle.insert if of_r[-1] > 0 else oracle.delete)("R", tuple(of_r[:-1]))
            oracle.insert("S", tuple(of_s[:-1]))
        for name in MAPS:
            compare(runtime[name], oracle.map(name))
        runtime.check()


def test_invariant_only_maps_that_no_trigger_reads_are_deferred() -> None:
    def is_read(text: str) -> bool:
        return Runtime(parse(text)).compiled.stores.map("Q").is_read

    assert not is_read(tuple_by_tuple())
    assert is_read(tuple_by_tuple(f"BY({T})[][a] += Q({T})[][];"))
    assert is_read(tuple_by_tuple(f"Q({T})[][] := M({T})[][a];"))


def test_a_lift_beyond_the_ring() -> None:
    with pytest.raises(DataError, match=r"lift<4> of 2 values exceeds the ring's 5 variables"):
        Runtime(parse(HEAD + f"ON + S(a, d) {{ Q({T})[][] += [lift<4>: {T}](a, d); }}"))


def test_lifts_of_a_user() -> None:
    """A function of one's own, on whole columns, gives elements of all variables."""
    ring = cofactor_ring(2)
    swapped = ring.with_lift("swapped", lambda _, columns: ring.lift((0,), columns[::-1]))  # type: ignore[misc]
    register_ring("Pair", swapped)
    runtime = Runtime(
        parse("""CREATE TYPE Pair FROM FILE 'x'; CREATE STREAM S(a int, d int);
    DECLARE MAP Q(Pair)[][] := 0;
    ON BATCH UPDATE OF S { Q(Pair)[][] += AggSum([], (DELTA S)(a, d) * [swapped: Pair](a, d)); }""")
    )
    runtime.apply("S", [(1, 5), (2, 7)])
    assert flat(runtime["Q"].to_pylist()[0]["value"]) == [2.0, 12.0, 3.0, 74.0, 19.0, 5.0]
    assert np.array(runtime["Q"].to_pylist()[0]["value"]["3"]).shape == (2, 2)
