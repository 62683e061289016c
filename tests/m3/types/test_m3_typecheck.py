"""Binding patterns and types that are right; what is wrong has golden files."""

from __future__ import annotations

import pytest

from dlog.errors import Diagnostics
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.syntax.parse import parse
from dlog.m3.types.expressions import Binding, Context, Expressions
from dlog.m3.types.typecheck import check
from dlog.m3.types.typing import Types

SOURCES = "CREATE TABLE R(a int, b int); CREATE TABLE S(c int, d int);"

# Section 3.1, Table 1: input variables must be bound, output variables are found.
TABLE_1 = [
    ("R(a, b)", "", "a b"),
    ("{c < d}", "c d", ""),
    ("(c ^= d)", "d", "c"),
    ("AggSum([a], R(a, b) * {b < c})", "c", "a"),
    ("{b < AggSum([], S(c, d) * d * {a > c})}", "a b", ""),
    ("AggSum([a, b], R(a, b) * {b < AggSum([], S(c, d) * d * {a > c})})", "", "a b"),
]


@pytest.mark.parametrize(("text", "inputs", "outputs"), TABLE_1)
def test_paper_binding_patterns(text: str, inputs: str, outputs: str) -> None:
    program = parse(f"{SOURCES} DECLARE QUERY Q := {text};")
    sources = {s.name: s for s in program.sources}
    expression = program.queries[0].expression
    names = inputs.split()
    for left_out in [None, *names]:
        diagnostics = Diagnostics()
        expressions = Expressions("dbtoaster", Types("dbtoaster"), {}, sources, diagnostics)
        scope = {name: Binding(TypeRef("int")) for name in names if name != left_out}
        result = expressions.visit(expression, scope, Context())
        if left_out is None:
            assert (diagnostics.errors, list(result.outputs)) == ([], outputs.split())
        else:
            assert f"{left_out} is not bound here" in [e.message for e in diagnostics.errors]


def test_every_type_is_filled_in() -> None:
    text = """CREATE STREAM R(a int, s string); DECLARE MAP M[][k: string]; DECLARE MAP N(double)[][k: int];
    DECLARE QUERY Q := M[][t];
    ON + R(a, s) {
      N[][a] += 1;
      M(long)[][s] += (x ^= 1.5) * {x > N[][a]} * EXISTS(N[][y]);
    }"""
    program = check(parse(text))
    assert program.maps[0].type == TypeRef("long")
    for node in program.walk():
        if isinstance(node, ast.Variable | ast.MapAccess | ast.MapDeclaration):
            assert node.type is not None
    types = {n.name: str(n.type) for n in program.walk() if isinstance(n, ast.Variable)}
    assert types == {"a": "int", "s": "string", "t": "string", "x": "double", "y": "int"}


def test_parameters_are_bound_in_the_body() -> None:
    """`G[][b]` is a look-up: it binds nothing, so that the statement needs no sum."""
    text = """CREATE STREAM R(A int, B int); DECLARE MAP Q(int)[][] := 0; DECLARE MAP G(int)[][k:int] := 0;
    ON + R(A:int, B:int) { Q[][] += AggSum([], G[][B:int]); Q[][] += G[][B:int]; }"""
    first, second = check(parse(text, dialect="a5")).triggers[0].statements
    assert isinstance(first, ast.Assign) and isinstance(second, ast.Assign)
    assert isinstance(second.expression, ast.MapAccess)


def test_variables_without_a_key_are_summed_out() -> None:
    text = """CREATE STREAM R(a int, b int); DECLARE MAP M(long)[][k: int];
    ON BATCH UPDATE OF R { M[][b] += (DELTA R)(a, b) * a; }"""
    (statement,) = check(parse(text)).triggers[0].statements
    assert isinstance(statement, ast.Assign) and isinstance(statement.expression, ast.AggSum)
    assert [key.name for key in statement.expression.keys] == ["b"]


RIGHT = [
    "CREATE TABLE T(d date); DECLARE QUERY Q := AggSum([], T(d) * {d < 19950315});",
    "CREATE TABLE T(c char, s string); DECLARE QUERY Q := AggSum([], T(c, s) * {c = s});",
    "CREATE TABLE T(a byte, b short); DECLARE QUERY Q := AggSum([], T(a, b) * a * b * 1.5f);",
    "CREATE TABLE T(a int); DECLARE MAP M(double)[][k: long]; ON SYSTEM READY { M[][a] += T(a); }",
    """CREATE TYPE Ring FROM FILE 'r' WITH PARAMETER SCHEMA (static, dynamic_sum);
    CREATE TABLE T(a int); DECLARE MAP M(Ring<7, 3>)[][];
    ON SYSTEM READY {
      M[][] += AggSum([], T(a) * [lift<0>: Ring<7, 1>](a) * [lift<1>: Ring<7, 2>](a, a));
    }""",
]


@pytest.mark.parametrize("text", RIGHT)
def test_types_that_go_together(text: str) -> None:
    check(parse(text, dialect="dbtoaster"))
