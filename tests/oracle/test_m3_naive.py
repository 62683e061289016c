"""The oracle of M3 against results worked out by hand, and its random programs against the type checker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dlog.m3.syntax.parse import parse
from dlog.m3.types.typecheck import check
from tests.oracle.m3_naive import Naive
from tests.oracle.m3_programs import Case, cases, run_naive

HEADER = """CREATE STREAM R(A int, B int); CREATE STREAM S(B int, C float); CREATE TABLE T(D int);
DECLARE MAP Q(int)[][] := 0; DECLARE MAP M(int)[][B:int] := 0; DECLARE MAP N(float)[][B:int] := 0;
DECLARE MAP I(int)[][A:int] := 0; DECLARE MAP P(int)[A:int][B:int] := 0;"""


def run(body: str, events: list[tuple[str, str, tuple[Any, ...]]], tables: Any = None) -> Naive:
    oracle = Naive(check(parse(HEADER + body, dialect="a5")), tables)
    oracle.ready()
    for sign, relation, row in events:
        (oracle.insert if sign == "+" else oracle.delete)(relation, row)
    return oracle


ROWS = [("+", "R", (1, 5)), ("+", "R", (2, 5)), ("+", "R", (2, 6)), ("-", "R", (1, 5))]
ON = "ON {} R(A:int, B:int) {{ {} }}"


def both(statement: str, inverse: str) -> str:
    return ON.format("+", statement) + ON.format("-", inverse)


@pytest.mark.parametrize(
    ("body", "name", "expected"),
    [
        (both("Q[][] += 1;", "Q[][] += - 1;"), "Q", {(): 2}),
        (both("M[][B:int] += A:int;", "M[][B:int] += - A:int;"), "M", {(5,): 2, (6,): 2}),
        # read as A * (10 + 1)
        (both("Q[][] += A:int * 10 + 1;", ""), "Q", {(): 55}),
        # a key that comes back to 0 is gone
        (both("I[][A:int] += 1;", "I[][A:int] += - 1;"), "I", {(2,): 2}),
        # the count of keys seen so far, through a look-up and through a scan
        (both("Q[][] += AggSum([], EXISTS(M[][b:int])); M[][B:int] += 1;", ""), "Q", {(): 2}),
        (both("Q[][] += EXISTS(M[][B:int]); M[][B:int] += 1;", ""), "Q", {(): 1}),
        # initial values are given once
        (both("I[][A:int]:(10) += 1;", "I[][A:int]:(10) += - 11;"), "I", {(2,): 12}),
        # assignment replaces what agrees with the parameters, and nothing else
        (both("M[][B:int] := A:int;", ""), "M", {(5,): 2, (6,): 2}),
        (both("M[][b:int] := (b:int ^= A:int) * 7;", ""), "M", {(2,): 7}),
        # a lift binds a value, also 0, and compares a bound variable
        (both("I[][x:int] += (x:int ^= AggSum([], M[][b:int])); M[][B:int] += 1;", ""), "I",
         {(0,): 1, (1,): 1, (2,): 1}),
        (both("Q[][] += (A:int ^= 2);", ""), "Q", {(): 2}),
        # membership and comparisons count as 1
        (both("Q[][] += {A:int IN [1, 7]} + {B:int >= 6};", ""), "Q", {(): 2}),
        # division
        (both("N[][B:int] += [/:float](A:int);", ""), "N", {(5,): 1.5, (6,): 0.5}),
        (both("N[][B:int] += [/:float](0);", ""), "N", {}),
        # input variables: the entry of A is computed when A is first read
        (both("Q[][] += P[A:int][B:int]:(A:int * 100); ", ""), "P", {(1, 5): 100, (2, 5): 200, (2, 6): 200}),
        # tables are there before anything happens
        ("ON SYSTEM READY { I[][A:int] := AggSum([A:int], T(A:int)); }", "I", {(3,): 2, (4,): 1}),
    ],
)  # fmt: skip
def test_constructs_mean_what_the_tree_says(body: str, name: str, expected: dict) -> None:
    oracle = run(body, ROWS, {"T": [(3,), (3,), (4,)]})
    assert oracle.map(name) == expected


def test_batches_sum_their_rows() -> None:
    text = """CREATE STREAM R(a int, b int); DECLARE MAP Q(long)[][]; DECLARE MAP M(long)[][b: int];
    DECLARE QUERY Result := AggSum([b], M[][b]);
    ON BATCH UPDATE OF R {
      if (Q[][] < 10) { Q[][] += AggSum([], (DELTA R)(a, b) * a); } else { Q[][] := 0; }
      M[][b] += (DELTA R)(a, b);
    }"""
    oracle = Naive(check(parse(text)))
    oracle.batch("R", [((1, 1), 1), ((2, 1), 1), ((2, 1), -1), ((9, 2), 1)])
    assert (oracle.map("Q"), oracle.query("Result")) == ({(): 10}, {(1,): 1, (2,): 1})
    oracle.batch("R", [((9, 2), -1)])
    assert (oracle.map("Q"), oracle.query("Result")) == ({}, {(1,): 1})


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(cases())
def test_random_programs_are_well_typed_and_run(case: Case) -> None:
    """Checked and unchecked, a program does the same: the checker only adds what is implied."""
    plain = run_naive(case)
    checked = run_naive(Case(check(case.program), case.tables, case.events))
    assert plain.maps == checked.maps
