"""What is printed is read back as the same tree, in both dialects, and reads well."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, DBTOASTER, DIALECTS
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import WIDTH, print_program
from tests.m3.m3_trees import programs
from tests.oracle.m3_programs import Case, cases

ANY = st.one_of([programs(dialect) for dialect in DIALECTS])


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(ANY)
def test_printed_text_is_read_back(program: ast.Program) -> None:
    text = print_program(program)
    again = parse(text, dialect=program.dialect)
    assert again == program
    assert print_program(again) == text


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(cases())
def test_programs_that_run_are_read_back(case: Case) -> None:
    assert parse(print_program(case.program), dialect=case.program.dialect) == case.program


@pytest.mark.fuzz
@settings(max_examples=5_000, suppress_health_check=list(HealthCheck))
@given(ANY)
def test_fuzz_printed_text_is_read_back(program: ast.Program) -> None:
    assert parse(print_program(program), dialect=program.dialect) == program


def test_long_expressions_are_broken_at_operators_and_brackets() -> None:
    factors = " * ".join(f"MAP_OF_SOMETHING_{i}(long)[][key{i}]" for i in range(6))
    text = f"ON BATCH UPDATE OF R {{ Q[][] += AggSum([], (DELTA R)(key1) * EXISTS(AggSum([], {factors}))); }}"
    printed = print_program(parse(text))
    assert (
        printed
        == """ON BATCH UPDATE OF R {
  Q[][] +=
    AggSum([],
      (DELTA R)(key1) *
      EXISTS(
        AggSum([],
          MAP_OF_SOMETHING_0(long)[][key0] *
          MAP_OF_SOMETHING_1(long)[][key1] *
          MAP_OF_SOMETHING_2(long)[][key2] *
          MAP_OF_SOMETHING_3(long)[][key3] *
          MAP_OF_SOMETHING_4(long)[][key4] *
          MAP_OF_SOMETHING_5(long)[][key5]
        )
      )
    );
}
"""
    )
    assert max(map(len, printed.splitlines())) <= WIDTH


CANNOT_SAY = {
    "a constant of a5 as long": ast.Program(A5, queries=(ast.Query("Q", ast.Constant("long", 1)),)),
    "an endless float": ast.Program(A5, queries=(ast.Query("Q", ast.Constant("float", float("inf"))),)),
    "both quotes": ast.Program(DBTOASTER, queries=(ast.Query("Q", ast.Constant("string", "'\"")),)),
    "a quote in a5": ast.Program(A5, queries=(ast.Query("Q", ast.Constant("string", "'")),)),
    "a capital variable": ast.Program(DBTOASTER, queries=(ast.Query("Q", ast.Variable("A")),)),
    "a relation in lower case": ast.Program(A5, queries=(ast.Query("Q", ast.Relation("r", ())),)),
    "a word of a5": ast.Program(A5, queries=(ast.Query("Q", ast.Variable("date")),)),
    "a name with a minus": ast.Program(DBTOASTER, queries=(ast.Query("Q", ast.Variable("a-b")),)),
    "an input": ast.Program(
        DBTOASTER, queries=(ast.Query("Q", ast.MapAccess("M", None, (ast.Variable("a"),), ())),)
    ),
    "a batch": ast.Program(A5, triggers=(ast.Trigger(ast.BATCH, "R", (), ()),)),
}


@pytest.mark.parametrize("what", CANNOT_SAY)
def test_what_a_dialect_cannot_express_is_not_printed(what: str) -> None:
    with pytest.raises(DlogError):
        print_program(CANNOT_SAY[what])
