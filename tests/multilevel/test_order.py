"""The order of a trigger's statements: old values for +=, new ones for :=, and circles."""

from __future__ import annotations

import itertools
import random

from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.multilevel.order import Staged, ordered, staged
from tests.oracle.m3_naive import Naive


def statements(source: str) -> list[ast.Assign]:
    program = parse("ON + R(x) { " + source + " }", dialect=ast.DBTOASTER)
    return list(program.triggers[0].statements)


def order_of(source: str) -> list[str]:
    def never(statement: ast.Assign) -> Staged:
        raise AssertionError("nothing waits in a circle")

    return [s.target.name for s in ordered([], statements(source), never)]


def test_who_reads_a_map_comes_before_who_adds_to_it() -> None:
    assert order_of("A[][] += x; B[][] += A[][]; C[][] += A[][] * B[][];") == ["C", "B", "A"]


def test_who_sets_a_map_comes_before_who_reads_it() -> None:
    assert order_of("C[][] := B[][] + A[][]; B[][] := A[][]; A[][] += x;") == ["A", "B", "C"]


def test_a_statement_may_read_its_own_target() -> None:
    assert order_of("A[][] += A[][] * x; B[][] += A[][];") == ["B", "A"]


CIRCLE = """
    CREATE STREAM R(x int);
    DECLARE MAP A(long)[][k: long] := 0; DECLARE MAP B(long)[][k: long] := 0; DECLARE MAP C(long)[][] := 0;
    ON + R(x) {
      A(long)[][x] += 1 + B(long)[][x];
      B(long)[][k] += A(long)[][k] * 2 * {k < 3};
      C(long)[][] += AggSum([], A(long)[][k] * B(long)[][k]);
    }"""


def test_statements_that_wait_for_each_other_are_staged() -> None:
    """All read old values, in whatever order they were written: as computed by hand."""
    program = parse(CIRCLE, dialect=ast.DBTOASTER)
    trigger = program.triggers[0]
    names = iter(())

    def stage(statement: ast.Assign) -> Staged:
        return staged(statement, next(names), frozenset("x"))

    for written in itertools.permutations(trigger.statements):
        names = iter(("STAGED_1", "STAGED_2"))
        found = ordered([], list(written), stage)
        assert len(found) == 4
        scratch = [s.target for s in found if s.target.name.startswith("STAGED")]
        keys = [tuple(ast.Column(k.name, ast.TypeRef("long")) for k in s.keys) for s in scratch]
        maps = [
            ast.MapDeclaration(s.name, ast.TypeRef("long"), (), k) for s, k in zip(scratch, keys, strict=True)
        ]
        right = ast.Program(
            program.dialect, (), program.sources, (*program.maps, *maps), (),
            (ast.Trigger(ast.INSERT, "R", trigger.parameters, tuple(found)),),
        )  # fmt: skip
        _compare(right)


def _compare(program: ast.Program) -> None:
    runtime, naive = Runtime(program), Naive(program)
    a: dict[int, int] = {}
    b: dict[int, int] = {}
    c = 0
    rng = random.Random(3)
    for x in (rng.randint(1, 4) for _ in range(12)):
        c += sum(a.get(k, 0) * b.get(k, 0) for k in {*a, *b})
        more = {k: v * 2 for k, v in a.items() if k < 3}
        a = {**a, x: a.get(x, 0) + 1 + b.get(x, 0)}
        b = {k: b.get(k, 0) + more.get(k, 0) for k in {*b, *more}}
        runtime.insert("R", x)
        naive.insert("R", (x,))
        assert naive.map("A") == {(k,): v for k, v in a.items() if v}
        assert naive.map("B") == {(k,): v for k, v in b.items() if v}
        assert naive.map("C") == ({(): c} if c else {})
        assert {r["k"]: r["value"] for r in runtime["B"].to_pylist()} == {k: v for k, v in b.items() if v}
        assert runtime["C"].to_pylist() == [{"value": c}]
