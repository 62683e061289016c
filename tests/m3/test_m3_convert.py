"""A converted program does the same, by the oracle; unsupported constructs are reported with their
position.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings

from dlog.errors import DlogError
from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, DBTOASTER
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import print_program
from tests.oracle.m3_programs import Case, cases, run_naive

NO_FORM = ("has no `if`", "has no input variables", "does not read an initial value")


def same(case: Case, dialect: str) -> None:
    """The maps after all events are the same, by the converted tree and by its text."""
    try:
        converted = convert(case.program, dialect)
    except DlogError as error:
        assert all(any(w in e.message for w in NO_FORM) for e in getattr(error, "errors", [error])), str(
            error
        )
        assume(False)
    text = print_program(converted)
    assert parse(text, dialect=dialect) == converted
    renamed = dict(zip(*([s.name for s in p.sources] for p in (case.program, converted)), strict=True))
    events = tuple(type(event)(event.kind, renamed[event.relation], event.rows) for event in case.events)
    tables = {renamed[name]: rows for name, rows in case.tables.items()}
    assert run_naive(Case(converted, tables, events)).maps == run_naive(case).maps


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(cases(A5))
def test_oracle_a5_as_dbtoaster(case: Case) -> None:
    same(case, DBTOASTER)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(cases(DBTOASTER, batch=False))
def test_oracle_dbtoaster_as_a5(case: Case) -> None:
    same(case, A5)


def test_types_names_and_parentheses_are_converted() -> None:
    text = """CREATE STREAM R(A int, a float); DECLARE MAP Q-1(int)[][LINE_1:int] := 0;
    ON + R(X:int, x:float) {
      Q-1(int)[][X:int] += AggSum([X:int], (Line_:int ^= 3000000000) * X:int * 2 + 1);
    }"""
    assert (
        print_program(convert(parse(text, dialect=A5), DBTOASTER))
        == """CREATE STREAM R(a long, a_ double);

DECLARE MAP Q_1(long)[][line_1: long] := 0;

ON + R(a, a_) {
  Q_1(long)[][a] += AggSum([a], (line_ ^= 3000000000L) * a * (2 + 1));
}
"""
    )


def test_aggregates_in_comparisons_are_lifted_for_a5() -> None:
    text = """CREATE STREAM r(date int, b double);
    DECLARE MAP Q(long)[][]; DECLARE MAP M(double)[][b: double];
    ON + r(date, b) { Q[][] += {AggSum([], M[][x]) * 2 > b} * {date IN [1, 2]}; M[][b] += 1L; }"""
    assert (
        print_program(convert(parse(text), A5))
        == """CREATE STREAM R(date_ int, b float);

DECLARE MAP Q(int)[][] := 0;

DECLARE MAP M(float)[][b: float] := 0;

ON + R(date_:int, b:float) {
  Q(int)[][] +=
    AggSum([], (value3:float ^= AggSum([], M(float)[][x:float]) * 2) * {value3:float > b:float}) *
    {date_:int IN [1, 2]};
  M(float)[][b:float] += 1;
}
"""
    )


NOT_IN = {
    (A5, "batch triggers"): "CREATE STREAM R(a int); ON BATCH UPDATE OF R { }",
    (A5, "no `if`"): "DECLARE MAP Q(long)[][]; ON SYSTEM READY { if (1 > 2) { Q[][] := 1; } }",
    (A5, "user-defined types"): "CREATE TYPE T FROM FILE 't'; DECLARE MAP Q(T<1>)[][];",
    (A5, "does not fit int in a5"): "DECLARE QUERY Q := 9000000000000000000L;",
    (DBTOASTER, "input variables"): "DECLARE MAP M(int)[x:int][] := 0;",
    (DBTOASTER, "initial value"): "DECLARE MAP M(int)[][] := 0; DECLARE QUERY Q := M(int)[][]:(1);",
}


@pytest.mark.parametrize(("dialect", "message"), NOT_IN)
def test_unsupported_constructs_are_reported_with_their_place(dialect: str, message: str) -> None:
    program = parse(NOT_IN[dialect, message], dialect=A5 if dialect == DBTOASTER else DBTOASTER)
    with pytest.raises(DlogError, match=message) as caught:
        convert(program, dialect)
    assert (caught.value.line, caught.value.column is not None) == (1, True)


def test_one_dialect_stays_as_it_is() -> None:
    program = ast.Program(A5)
    assert convert(program, A5) is program


def test_an_unknown_dialect_is_an_error() -> None:
    program = parse("CREATE STREAM R(a int);")
    with pytest.raises(DlogError, match="unknown dialect a6") as error:
        convert(program, "a6")
    assert error.value.help == "there are a5 and dbtoaster"
    with pytest.raises(DlogError, match="unknown dialect a6"):
        parse("CREATE STREAM R(a int);", dialect="a6")
