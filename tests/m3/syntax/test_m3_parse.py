"""The traps of the dialects: how operators group, literals, names, and how a dialect is found out."""

from __future__ import annotations

import datetime

import pytest

from dlog.errors import DlogError
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, DBTOASTER, Constant, Product, Sum, TypeRef, Variable
from dlog.m3.syntax.parse import parse


def expression(text: str, dialect: str) -> ast.Node:
    return parse(f"DECLARE QUERY Q := {text};", dialect=dialect).queries[0].expression


A, B, C = Variable("a"), Variable("b"), Variable("c")
ONE, TEN, MINUS = Constant("int", 1), Constant("int", 10), Constant("int", -1)
DAY = Constant("date", datetime.date(1995, 3, 15))
LOCAL = ast.MapAccess("M", TypeRef("int"), (), (A,))

GROUPS = [
    # text, a5, dbtoaster (None: an error)
    ("a * 10 + 1", Product((A, Sum((TEN, ONE)))), Sum((Product((A, TEN)), ONE))),
    ("a + 10 * b", Sum((A, Product((TEN, B)))), Sum((A, Product((TEN, B))))),
    ("(a * 10) + 1", Sum((Product((A, TEN)), ONE)), Sum((Product((A, TEN)), ONE))),
    ("a * b * c", Product((A, B, C)), Product((A, B, C))),
    ("a * (b * c)", Product((A, B, C)), Product((A, B, C))),
    ("a + (b + c)", Sum((A, B, C)), Sum((A, B, C))),
    ("a - b", Sum((A, Product((MINUS, B)))), None),
    ("a - b - c", Sum((A, Product((MINUS, Sum((B, Product((MINUS, C)))))))), None),
    ("a - b + c", Sum((A, Product((MINUS, Sum((B, C)))))), None),
    ("- a * b", Product((MINUS, A, B)), None),
    ("a-b", Variable("a-b"), None),
    ("-1", MINUS, MINUS),
    ("a * -1", Product((A, MINUS)), Product((A, MINUS))),
    ("-1 * b", Product((MINUS, B)), Product((MINUS, B))),
    ("-1 + b", Product((MINUS, Sum((ONE, B)))), Sum((MINUS, B))),
    ("a + -1 + b", Sum((A, Product((MINUS, Sum((ONE, B)))))), Sum((A, MINUS, B))),
    ("{a}", A, A),
    ("a:int", Variable("a", TypeRef("int")), None),
    ("1.5", Constant("float", 1.5), Constant("double", 1.5)),
    ("1.", Constant("float", 1.0), Constant("double", 1.0)),
    ("1.5E1", Constant("float", 15.0), None),
    ("2E3", Constant("float", 2000.0), None),
    ("1L", None, Constant("long", 1)),
    ("1.5f", None, Constant("float", 1.5)),
    ("0x1F", Constant("int", 31), None),
    ("TRUE", ONE, Variable("true")),
    ("-2147483648", Constant("int", -(2**31)), Constant("int", -(2**31))),
    ("2147483648", Constant("int", 2**31), None),
    ('"it\'s"', None, Constant("string", "it's")),
    ("DATE('1995-3-15')", DAY, DAY),
    ("[date: date]('1995-03-15')", DAY, DAY),
    ("A", Variable("A"), A),
    ("[lift<1>: Ring<1, double>](a)", None,
     ast.Call("lift", TypeRef("Ring", (1, TypeRef("double"))), (A,), (1,))),
    ("M(int)[][a]<Local>", LOCAL, LOCAL),
    ("M[a][b]:(1)", ast.MapAccess("M", None, (A,), (B,), ONE), None),
    ("R(a)", ast.Relation("R", (A,)), ast.Relation("R", (A,))),
    ("r(a)", None, ast.Relation("r", (A,))),
    ("(DELTA R)(a)", None, ast.DeltaRelation("R", (A,))),
    ("{a <> 1}", ast.Comparison("!=", A, ONE), ast.Comparison("!=", A, ONE)),
    ("{a * 2 < b + 1}", ast.Comparison("<", Product((A, Constant("int", 2))), Sum((B, ONE))),
     ast.Comparison("<", Product((A, Constant("int", 2))), Sum((B, ONE)))),
    ("date", None, Variable("date")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "in_a5", "in_dbtoaster"), GROUPS, ids=[text for text, *_ in GROUPS])
def test_expressions_mean_what_each_dialect_reads(
    text: str, in_a5: ast.Node | None, in_dbtoaster: ast.Node | None
) -> None:
    for dialect, expected in ((A5, in_a5), (DBTOASTER, in_dbtoaster)):
        if expected is None:
            with pytest.raises(DlogError):
                expression(text, dialect)
        else:
            assert expression(text, dialect) == expected


SHOWN = {
    "DECLARE QUERY Q := AggSum([x:int], M[][x:int]);": A5,
    "ON + R(A:int) { }": A5,
    "ON + R(A) { M[][A:int] += 1; }": A5,
    "DECLARE QUERY Q := a - b;": A5,
    "DECLARE QUERY Q := 1.5E1;": A5,
    "DECLARE MAP M(int)[x: int][] := 0;": A5,
    "DECLARE MAP M(int)[][] := 0;": A5,
    "DECLARE MAP M(double)[][k: int] := 0;": DBTOASTER,
    "DECLARE MAP M(int)[][k: int] := AggSum([k], (s ^= 'a') * R(k, s));": DBTOASTER,
    "DECLARE MAP M(int)[][k: int] := AggSum([k:int], (s:string ^= 'a') * R(k:int, s:string));": A5,
    "DECLARE MAP M(long)[][k: int] := 0;": DBTOASTER,
    "CREATE STREAM R(a long);": DBTOASTER,
    "ON BATCH UPDATE OF R { }": DBTOASTER,
    "DECLARE QUERY Q := 1L;": DBTOASTER,
    "DECLARE QUERY Q := M[][]<Local>;": DBTOASTER,
    "CREATE TYPE T FROM FILE 't';": DBTOASTER,
    "ON SYSTEM READY { if (1 > 2) { } }": DBTOASTER,
    "ON - R(a) { Q[][] += -1; }": DBTOASTER,
    "DECLARE QUERY Q := [f: double](x);": DBTOASTER,
    "": DBTOASTER,
}


@pytest.mark.parametrize("text", SHOWN)
def test_a_text_shows_its_dialect(text: str) -> None:
    assert parse(text).dialect == SHOWN[text]


def test_order_is_free_in_a5() -> None:
    text = "ON SYSTEM READY { } DECLARE QUERY Q := 1; DECLARE MAP M(int)[][] := 0; CREATE TABLE T(a int);"
    program = parse(text, dialect=A5)
    assert [len(part) for part in (program.sources, program.maps, program.queries, program.triggers)] == [
        1
    ] * 4


def test_sources_have_files_and_options() -> None:
    text = """CREATE TABLE T(a varchar(10))
    FROM FILE 'x.csv' LINE DELIMITED CSV (delimiter := '|', Deletions := 'True');"""
    (source,) = parse(text).sources
    assert (source.file, source.format, source.delimiter, source.deletions) == ("x.csv", "csv", "|", True)
    assert source.columns == (ast.Column("a", TypeRef("string")),)
    (plain,) = parse("CREATE STREAM R(a int);").sources
    assert (plain.file, plain.delimiter, plain.deletions) == (None, ",", False)


def test_comments_and_layout_mean_nothing() -> None:
    text = "-- one\nDECLARE /* two\nlines */ QUERY Q := // three\n 1;"
    assert parse(text).queries == (ast.Query("Q", ONE),)
