"""What dlog writes is taken by readers written from what the foreign consumers were seen to take, and they
group it as it is meant: every fact and trap of theirs has a test.
"""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.m3 import check, parse, parse_file
from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.print import print_program
from tests.m3.m3_trees import programs
from tests.oracle.m3_programs import Case, cases
from tests.oracle.m3_readers import A5, DBT, FIVM, READERS, Refused, read
from tests.oracle.m3_shipped import PROGRAMS

CONSUMER = {ast.A5: A5, ast.DBTOASTER: DBT}
SLOW = list(HealthCheck)
ALL, NONE = frozenset(READERS), frozenset[str]()
C = frozenset((DBT, FIVM))

# ---- the readers themselves: what was seen to be taken, and by whom.  {} stands for an expression's place.

SOURCE = "CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|'); "
EXPRESSION = SOURCE + "DECLARE MAP M(float)[][] := {};"
TAKEN = {
    # sources, and the order of declarations
    SOURCE: ALL,
    "CREATE TABLE R(a int) FROM FILE 'r.csv' LINE DELIMITED CSV;": ALL,
    "CREATE TABLE R(a int) FROM FILE 'r.csv' LINE DELIMITED CSV(deletions := 'true');": ALL,
    "CREATE STREAM r(a int) FROM FILE 'r.csv' LINE DELIMITED CSV;": C,
    "CREATE STREAM R(a long) FROM FILE 'r.csv' LINE DELIMITED CSV;": C,
    "DECLARE MAP M(float)[][] := 0; " + SOURCE: {A5},
    "DECLARE QUERY Q := 0; DECLARE MAP M(float)[][] := 0;": {A5},
    "ON SYSTEM READY { } DECLARE QUERY Q := 0;": {A5},
    # maps
    "DECLARE MAP M(float)[][k: int, l: string] := 0;": ALL,
    "DECLARE MAP M(float)[][k: int];": C,
    "DECLARE MAP M(float)[i: int][k: int] := 0;": {A5},
    "DECLARE MAP M(long)[][] := 0;": C,
    SOURCE + "DECLARE MAP M(int)[][] := AggSum([], R(a, b));": {A5},
    SOURCE + "DECLARE MAP M(long)[][] := AggSum([], R(a, b));": C,
    "DECLARE QUERY Q := M(float)[][x];": ALL,
    # triggers
    "ON + R(a, b) { M(float)[][a] += b; } ON - R(a, b) { M(float)[][a] += (-1) * b; }": {A5, DBT},
    "ON BATCH UPDATE OF R { M(float)[][a] += (DELTA R)(a, b) * b; }": C,
    "ON SYSTEM READY { M(float)[][a] := AggSum([a], R(a, b)); }": ALL,
    "ON SYSTEM READY { if (1 > 2) { M(float)[][] := 1; } else { } }": {DBT},
    "ON SYSTEM READY { M(float)[][]:(0) += 1; }": {A5, DBT},
    "ON + R(a:int) { M(int)[][a:int] += a:int; }": {A5},
    "ON + R(a) { M(int)[][a:int] += a:int; }": NONE,
    "ON + R(a:int) { M(int)[][x:int] += (x:int ^= a:int); }": {A5},
    "ON + R(a) { M(float)[][x] += (x ^= a); }": {DBT},
    # types of one's own
    "CREATE TYPE T FROM FILE 't.hpp' WITH PARAMETER SCHEMA (static, dynamic_sum);"
    " DECLARE MAP M(T<1, double, 10>)[][] := [lift<1>: T<1, double, 10>](a, b);": C,
    "DECLARE MAP M(T<1, double>)[][] := 0;": NONE,
    # the batch trigger that was run
    """ON BATCH UPDATE OF R {
      Q(long)[][] += AggSum([], (DELTA R)(A, B) * A * V_S(long)[][B, C] * V_T(long)[][C]);
      V_R(long)[][B] += AggSum([B], (DELTA R)(A, B) * A);
    }""": C,
}  # fmt: skip
EXPRESSIONS = {
    "1.5": ALL, "1.5E1": {A5}, "1L": C, "-1": ALL, "a + (-1 * b)": ALL, "a - b": {A5}, "a:int": {A5},
    "AggSum([a], R(a, b))": ALL, "(DELTA R)(a, b)": C, "EXISTS(a)": ALL, "DOMAIN(a)": ALL, "{a != b}": ALL,
    "{a IN [1, 2]}": ALL, "[/: double](a)": ALL, "[f: double](a, b)": ALL, "DATE('1995-03-15')": ALL,
    "{AggSum([], M(float)[][x]) > 1}": C, "'text'": ALL, "a < b": NONE, "a b": NONE, "(a": NONE, "r(a)": C,
}  # fmt: skip
TAKEN |= {EXPRESSION.format(text): takers for text, takers in EXPRESSIONS.items()}


def takes(text: str, consumer: str, **options: Any) -> bool:
    try:
        read(text, consumer, **options)
    except Refused:
        return False
    return True


@pytest.mark.parametrize("text", TAKEN)
def test_readers_accept_what_was_observed(text: str) -> None:
    assert {consumer for consumer in READERS if takes(text, consumer)} == set(TAKEN[text])


@pytest.mark.parametrize("text", TAKEN)
def test_dlog_accepts_what_a_consumer_accepts(text: str) -> None:
    """And writes it so that the consumer takes it again."""
    for dialect, consumers in ((ast.A5, {A5}), (ast.DBTOASTER, C)):
        for consumer in TAKEN[text] & consumers:
            assert takes(print_program(parse(text, dialect=dialect)), consumer)


def test_the_same_text_groups_differently() -> None:
    (tree,) = {read("DECLARE QUERY Q := a * 10 + 1;", A5)[3][0][1]}
    assert tree == ("*", (("var", "a", None), ("+", (("number", 10), ("number", 1)))))
    (tree,) = {read("DECLARE QUERY Q := a * 10 + 1;", DBT)[3][0][1]}
    assert tree == ("+", (("*", (("var", "a", None), ("number", 10))), ("number", 1)))
    assert read("DECLARE QUERY Q := a-b;", A5)[3][0][1] == ("var", "a-b", None)
    assert read("DECLARE QUERY Q := aB;", DBT)[3][0][1] == ("var", "ab", None)


# ---- what dlog writes


def shape(node: ast.Node, typed: bool) -> Any:
    """A tree of dlog as a reader shows it."""

    def many(nodes: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(shape(n, typed) for n in nodes)

    def one(inner: ast.Node) -> Any:
        return shape(inner, typed)

    def type_of(of: ast.TypeRef | None) -> str | None:
        return str(of) if of is not None else None

    match node:
        case ast.Constant(value=datetime.date() as day):
            return ("date", day.isoformat())
        case ast.Constant(value=str() as text):
            return ("text", text)
        case ast.Constant():
            return ("number", node.value)
        case ast.Variable():
            return ("var", node.name, type_of(node.type) if typed else None)
        case ast.Product():
            return ("*", many(node.factors))
        case ast.Sum():
            return ("+", many(node.terms))
        case ast.AggSum():
            return ("AggSum", many(node.keys), one(node.body))
        case ast.Exists():
            return ("EXISTS", None, one(node.body))
        case ast.Domain():
            return ("DOMAIN", None, one(node.body))
        case ast.Lift():
            return ("lift", one(node.variable), one(node.body))
        case ast.Comparison():
            return ("compare", node.op, one(node.left), one(node.right))
        case ast.In():
            return ("in", one(node.operand), many(node.values))
        case ast.Call():
            return ("call", node.function, node.parameters, str(node.type), many(node.arguments))
        case ast.MapAccess():
            initial = one(node.initial) if node.initial is not None else None
            return ("map", node.name, type_of(node.type), many(node.inputs), many(node.keys), initial)
        case ast.Relation():
            return ("rel", node.name, many(node.variables))
        case ast.DeltaRelation():
            return ("delta", node.name, many(node.variables))
        case ast.Assign():
            return ("assign", one(node.target), node.op, one(node.expression))
        case ast.If():
            return ("if", one(node.condition), many(node.then), many(node.otherwise))
    raise AssertionError(node)


def shape_of_program(program: ast.Program) -> Any:
    typed = program.dialect == ast.A5

    def columns(of: tuple[ast.Column, ...]) -> Any:
        return tuple((c.name, str(c.type)) for c in of)

    def defined(of: ast.Node | None) -> Any:
        return shape(of, typed) if of is not None else None

    events = {ast.INSERT: "+", ast.DELETE: "-", ast.BATCH: "batch", ast.READY: "ready"}
    return (
        tuple((t.name, t.file, t.schema) for t in program.types),
        tuple((s.kind.upper(), s.name, columns(s.columns), s.file, s.options) for s in program.sources),
        tuple(
            (m.name, str(m.type), columns(m.inputs), columns(m.keys), defined(m.definition))
            for m in program.maps
        ),
        tuple((q.name, defined(q.expression)) for q in program.queries),
        tuple(
            (
                events[t.event],
                t.relation,
                *(tuple(map(defined, part)) for part in (t.parameters, t.statements)),
            )
            for t in program.triggers
        ),
    )


def as_written(program: ast.Program) -> ast.Program:
    """Sources have files: what has none is for callers from Python, and no consumer reads it."""
    sources = tuple(replace(s, file=s.file or "x.csv") for s in program.sources)
    return replace(program, sources=sources)


def assert_taken(program: ast.Program, *consumers: str) -> None:
    program = as_written(program)
    text = print_program(program)
    for consumer in consumers:
        assert read(text, consumer) == shape_of_program(program), consumer


def consumers_of(program: ast.Program) -> list[str]:
    if program.dialect == ast.A5:
        return [A5]
    is_for_fivm = all(t.event in (ast.BATCH, ast.READY) for t in program.triggers) and not any(
        isinstance(n, ast.If) or (isinstance(n, ast.MapAccess) and n.initial is not None)
        for n in program.walk()
    )
    return [DBT, FIVM] if is_for_fivm else [DBT]


HAVE_NO_TWIN = {
    "constructs_batch": "a5 has no batch triggers",
    "inputs.a5": "dbtoaster has no input variables",
    "regression": "a5 has no CREATE TYPE",
    "star_sum": "a5 has no batch triggers",
    "vwap_batch": "a5 has no batch triggers",
}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_shipped_programs_are_taken(path: Any) -> None:
    program = parse_file(path)
    checked = check(program)
    assert_taken(checked, *consumers_of(checked))
    other = ast.DBTOASTER if program.dialect == ast.A5 else ast.A5
    if path.stem in HAVE_NO_TWIN:
        with pytest.raises(DlogError, match=HAVE_NO_TWIN[path.stem]):
            convert(program, other)
        return
    converted = convert(program, other)
    assert_taken(converted, *consumers_of(converted))


def test_shipped_programs_reach_every_consumer() -> None:
    reached = [consumer for path in PROGRAMS for consumer in consumers_of(parse_file(path))]
    assert min(map(reached.count, READERS)) >= 3


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_tables_are_copied_into_maps_when_the_system_is_ready(path: Any) -> None:
    """A definition alone leaves the maps of a table empty, for every consumer."""
    program = parse_file(path)
    ready = [t for t in program.triggers if t.event == ast.READY]
    read_then = {n.name for t in ready for n in t.walk() if isinstance(n, ast.Relation)}
    assert {s.name for s in program.sources if s.kind == ast.TABLE} <= read_then


@settings(max_examples=30, suppress_health_check=SLOW)
@given(cases())
def test_programs_that_run_are_taken(case: Case) -> None:
    program = check(case.program)
    assert_taken(program, *consumers_of(program))


@settings(max_examples=30, suppress_health_check=SLOW)
@given(cases(batch=False))
def test_converted_programs_are_taken(case: Case) -> None:
    other = ast.DBTOASTER if case.program.dialect == ast.A5 else ast.A5
    try:
        converted = convert(case.program, other)
    except DlogError:
        assume(False)
    assert_taken(converted, *consumers_of(converted))


@settings(max_examples=30, suppress_health_check=SLOW)
@given(st.sampled_from([ast.A5, ast.DBTOASTER]).flatmap(programs))
def test_any_expression_is_grouped_as_it_is_meant(program: ast.Program) -> None:
    """Of trees without sense only queries: their types and headers break the rules of consumers."""
    queries = replace(program, types=(), sources=(), maps=(), triggers=())
    assume(all(_is_readable(q) for q in queries.queries))
    text = print_program(queries)
    consumer = CONSUMER[program.dialect]
    assert read(text, consumer, maps_have_types=False) == shape_of_program(queries)


def _is_readable(query: ast.Query) -> bool:
    """No type of one's own, which would have to be declared; no lift that a5 needs a type for."""
    nodes = list(query.walk())
    return not any(
        (isinstance(n, ast.TypeRef) and n.name.startswith("Ring"))
        or (isinstance(n, ast.Lift) and n.variable.type is None)
        for n in nodes
    )
