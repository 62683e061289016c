"""Owns the translation of a checked program to DuckDB's SQL: a second opinion on the naive evaluator.

`translate` gives one query for each derived predicate, in an order in which they can be run, or None where
SQL cannot say it: recursion that is not linear or that aggregates, sums of floats (order matters there),
rounding of decimals (DuckDB rounds halves away from zero), wrapping integers, primitives that SQL lacks.

A body becomes SELECTs without disjunctions: their branches are multiplied out.  A variable becomes the SQL
expression that gives its value, a negation NOT EXISTS, and an undefined primitive NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from itertools import count

import duckdb

from dlog.ir.lower.literals import literal_value
from dlog.ir.rules import (
    Aggregate,
    Atom,
    Conj,
    Const,
    Disjunction,
    Form,
    Negation,
    Operand,
    Predicate,
    Primitive,
    Program,
    Rule,
    Stratum,
    Var,
)
from dlog.values import Type

from .aggregates import DEVIATIONS
from .naive import Facts
from .sql_primitives import Inexpressible, sql_function, sql_relation
from .values import canonical


def translate(program: Program) -> dict[str, str] | None:
    """A query for each derived predicate, over tables of predicates and, as "base NAME", of base facts."""
    queries: dict[str, str] = {}
    try:
        for predicate in program.predicates.values():
            for column in predicate.columns:
                _type(column.type)
        for stratum in program.strata:
            queries.update(_translate_stratum(program, stratum))
    except Inexpressible:
        return None
    return queries


def run(program: Program, queries: dict[str, str], base: Facts) -> Facts | None:
    """What the queries give on base facts; None if a number leaves its range on the way."""
    connection = _connection()
    connection.begin()
    try:
        for predicate in program.predicates.values():
            _load(connection, f"base {predicate.name}", predicate, base[predicate.name])
            if predicate.name not in queries:
                _load(connection, predicate.name, predicate, base[predicate.name])
        for name, query in queries.items():
            connection.execute(f"CREATE TABLE {_name(name)} AS {query}")
        return {name: _rows(connection, p) for name, p in program.predicates.items()}
    except duckdb.OutOfRangeException:
        return None
    finally:
        connection.rollback()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One in-memory database for all runs, each in a transaction that is rolled back: opening takes 50 ms."""
    return duckdb.connect(config={"threads": 1})


def _load(connection: duckdb.DuckDBPyConnection, name: str, predicate: Predicate, rows: set) -> None:
    types = [_type(column.type) for column in predicate.columns] or ["BOOLEAN"]
    columns = ", ".join(f"{c} {t}" for c, t in zip(_columns(predicate), types, strict=True))
    connection.execute(f"CREATE TABLE {_name(name)} ({columns})")
    if rows:
        place = f"({', '.join('?' * len(types))})"
        values = [value for row in rows for value in (row or (True,))]
        connection.execute(f"INSERT INTO {_name(name)} VALUES {', '.join([place] * len(rows))}", values)


def _rows(connection: duckdb.DuckDBPyConnection, predicate: Predicate) -> set:
    rows = connection.execute(f"SELECT * FROM {_name(predicate.name)}").fetchall()
    return {tuple(map(canonical, row)) if predicate.arity else () for row in rows}


# Names, types and constants

_TYPES = {
    "int": "BIGINT",
    "unsigned": "UBIGINT",
    "float": "DOUBLE",
    "string": "VARCHAR",
    "bool": "BOOLEAN",
    "date": "DATE",
    "datetime": "TIMESTAMP",
}


def _type(type: Type) -> str:
    if type.is_decimal:
        return f"DECIMAL({type.precision}, {type.scale})"
    if type.name not in _TYPES:
        raise Inexpressible(type.name)
    return _TYPES[type.name]


def _name(name: str) -> str:
    return f'"{name}"'


def _columns(predicate: Predicate) -> list[str]:
    """A proposition needs a column in SQL: it gets one that is always true."""
    return [f"c{i}" for i in range(predicate.arity)] or ["holds"]


def _constant(const: Const) -> str:
    assert const.type is not None
    value = literal_value(const.kind, const.value, const.type)
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return f"CAST('{text.replace(chr(39), chr(39) * 2)}' AS {_type(const.type)})"


# Strata


def _translate_stratum(program: Program, stratum: Stratum) -> Iterator[tuple[str, str]]:
    if stratum.recursive:
        yield from _Recursion(program, stratum).queries()
        return
    for name in stratum.predicates:
        selects = [s for r in stratum.rules for s in _head_selects(program, r, name, _table)]
        yield name, " UNION ".join([f"SELECT * FROM {_name(f'base {name}')}", *selects])


def _table(predicate: str) -> str:
    return _name(predicate)


Tables = Callable[[str], str]


def _head_selects(program: Program, rule: Rule, name: str, tables: Tables) -> Iterator[str]:
    """The rows that a rule gives to one predicate, without those that other rules give."""
    if rule.aggregates and any(h.predicate == name for h in rule.heads):
        yield from _aggregate_selects(program, rule, name, tables)
        return
    for forms in _branches(rule.body):
        block = _Block(rule, tables)
        block.add_all(forms)
        for head in rule.heads:
            if head.predicate == name:
                yield block.select(_head(program, rule, head, block.values.of))


def _head(program: Program, rule: Rule, head: Atom, value: Callable[[Operand], str]) -> list[str]:
    columns = program.predicates[head.predicate].columns
    texts = []
    for operand, column in zip(head.args, columns, strict=True):
        type = rule.types[operand.name] if isinstance(operand, Var) else operand.type
        assert type is not None
        if column.type.is_decimal and isinstance(operand, Var) and type.scale > column.type.scale:
            raise Inexpressible("a decimal is rounded")
        texts.append(f"CAST({value(operand)} AS {_type(column.type)})")
    return texts or ["true"]


def _branches(conj: Conj) -> list[list[Form]]:
    """The body as conjunctions without disjunctions, in the order of evaluation."""
    branches: list[list[Form]] = [[]]
    for form in conj.forms:
        if isinstance(form, Disjunction):
            inner = [b for branch in form.branches for b in _branches(branch)]
        else:
            inner = [[form]]
        branches = [left + right for left in branches for right in inner]
    return branches


class _Texts(dict[str, str]):
    """The SQL expression of each variable."""

    def of(self, operand: Operand) -> str:
        return self[operand.name] if isinstance(operand, Var) else _constant(operand)


class _Block:
    """One SELECT on its way: sources, conditions, and the expression of each variable."""

    def __init__(self, rule: Rule, tables: Tables, outer: _Block | None = None):
        self.rule, self.tables = rule, tables
        self.values: _Texts = _Texts(outer.values if outer else {})
        self.aliases: Iterator[int] = outer.aliases if outer else count(1)
        self.sources: list[str] = []
        self.conditions: list[str] = []

    def select(self, expressions: Sequence[str]) -> str:
        columns = ", ".join(f"{e} AS c{i}" for i, e in enumerate(expressions))
        source = f" FROM {', '.join(self.sources)}" if self.sources else ""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT DISTINCT {columns}{source}{where}"

    def add_all(self, forms: Sequence[Form]) -> None:
        for form in forms:
            if isinstance(form, Atom):
                self.add_atom(form)
            elif isinstance(form, Primitive):
                self.add_primitive(form)
            else:
                assert isinstance(form, Negation)
                self.add_negation(form)

    def add_atom(self, atom: Atom) -> None:
        alias = f"t{next(self.aliases)}"
        self.sources.append(f"{self.tables(atom.predicate)} AS {alias}")
        for index, operand in enumerate(atom.args):
            self.bind(operand, f"{alias}.c{index}")

    def bind(self, operand: Operand, expression: str) -> None:
        if isinstance(operand, Var) and operand.name not in self.values:
            self.values[operand.name] = expression
        else:
            self.conditions.append(f"{self.values.of(operand)} = {expression}")

    def add_primitive(self, form: Primitive) -> None:
        if form.name == "eq":
            a, b = form.inputs
            if isinstance(a, Var) and a.name not in self.values:
                a, b = b, a
            self.bind(b, self.values.of(a))
            return
        inputs = [self.values.of(a) for a in form.inputs]
        if form.output is None:
            self.conditions.append(sql_relation(form.name, inputs))
            return
        expression = self.function(form, inputs)
        self.conditions.append(f"{expression} IS NOT NULL")
        self.bind(form.output, expression)

    def function(self, form: Primitive, inputs: list[str]) -> str:
        output = form.output
        type = self.rule.types[output.name] if isinstance(output, Var) else output.type if output else None
        assert type is not None
        return sql_function(form.name, type, inputs)

    def add_negation(self, form: Negation) -> None:
        for forms in _branches(form.body):
            inner = _Block(self.rule, self.tables, self)
            inner.add_all(forms)
            self.conditions.append(f"NOT EXISTS ({inner.select(['1'])})")


# Aggregates


def _aggregate_selects(program: Program, rule: Rule, name: str, tables: Tables) -> Iterator[str]:
    """Aggregates over the distinct assignments of the groups and of the body's own variables."""
    variables = [v.name for v in (*rule.groups, *rule.body.exists)]
    places = {v: f"a.c{i}" for i, v in enumerate(variables)}
    blocks = []
    for forms in _branches(rule.body):
        block = _Block(rule, tables)
        block.add_all(forms)
        blocks.append(block.select([block.values[v] for v in variables] or ["true"]))
    value = _Texts({v.name: places[v.name] for v in rule.groups})
    value.update({a.result.name: _aggregate(rule, a, places) for a in rule.aggregates})
    groups = ", ".join(places[v.name] for v in rule.groups)
    for head in rule.heads:
        if head.predicate == name:
            texts = _head(program, rule, head, value.of)
            yield (
                f"SELECT {', '.join(texts)} FROM ({' UNION '.join(blocks)}) AS a"
                + (f" GROUP BY {groups}" if groups else "")
                + " HAVING count(*) > 0"
            )


def _aggregate(rule: Rule, aggregate: Aggregate, places: dict[str, str]) -> str:
    if aggregate.argument is None:
        return "count(*)"
    argument, type = aggregate.argument, rule.types[aggregate.result.name]
    if isinstance(argument, Var):
        text, argument_type = places[argument.name], rule.types[argument.name]
    else:
        assert argument.type is not None
        text, argument_type = _constant(argument), argument.type
    if aggregate.op in ("sum", "mean") and argument_type.name == "float":
        raise Inexpressible("a sum of floats")
    if aggregate.op in ("sum", "mean") and argument_type.name == "duration":
        raise Inexpressible("a sum of durations")
    if aggregate.op == "mean":
        return _mean(text, argument_type)
    if aggregate.op == "count_distinct":
        return f"count(DISTINCT {text})"
    if aggregate.op == "concat" or aggregate.op in DEVIATIONS or aggregate.op.startswith("@"):
        raise Inexpressible(aggregate.op)
    return f"CAST({aggregate.op}({text}) AS {_type(type)})"


def _mean(text: str, type: Type) -> str:
    """One division of two floats that are exact as long as the sum is below 2^53."""
    unit = 10**type.scale if type.is_decimal else 1
    return f"CAST(CAST(sum({text}) * {unit} AS HUGEINT) AS DOUBLE) / CAST(count(*) * {unit} AS DOUBLE)"


# Linear recursion


class _Recursion:
    """The predicates of a stratum as one recursive table: a tag, then the columns of each, NULL where the row
    belongs to another."""

    def __init__(self, program: Program, stratum: Stratum):
        self.program, self.stratum = program, stratum
        if any(rule.aggregates for rule in stratum.rules):
            raise Inexpressible("a recursive aggregate")
        for rule in stratum.rules:
            for forms in _branches(rule.body):
                if sum(self.recursive(form) for form in forms) > 1:
                    raise Inexpressible("recursion that is not linear")

    def recursive(self, form: Form) -> bool:
        return isinstance(form, Atom) and form.predicate in self.stratum.predicates

    def queries(self) -> Iterator[tuple[str, str]]:
        starts: list[str] = []
        steps: list[str] = []
        for name in self.stratum.predicates:
            starts.append(self.tagged(name, f"SELECT * FROM {_name(f'base {name}')}"))
            for rule in self.stratum.rules:
                for forms in _branches(rule.body):
                    one = Rule(rule.id, rule.heads, Conj((), tuple(forms)), types=rule.types)
                    selects = _head_selects(self.program, one, name, self.table)
                    part = steps if any(map(self.recursive, forms)) else starts
                    part += [self.tagged(name, select) for select in selects]
        columns = ", ".join(self.columns(None))
        text = f"({' UNION '.join(starts)}) UNION ({' UNION ALL '.join(steps)})"
        for name in self.stratum.predicates:
            yield name, f'WITH RECURSIVE "all"({columns}) AS ({text}) SELECT * FROM {self.table(name)}'

    def columns(self, name: str | None) -> list[str]:
        """All columns of the table; those of other predicates than `name` as NULLs."""
        columns = ["tag"] if name is None else [f"'{name}'"]
        for number, other in enumerate(self.stratum.predicates):
            predicate = self.program.predicates[other]
            types = [_type(c.type) for c in predicate.columns] or ["BOOLEAN"]
            for column, type in zip(_columns(predicate), types, strict=True):
                if name is None:
                    columns.append(f"p{number}{column}")
                else:
                    columns.append(f"r.{column}" if name == other else f"CAST(NULL AS {type})")
        return columns

    def tagged(self, name: str, select: str) -> str:
        names = ", ".join(_columns(self.program.predicates[name]))
        return f"SELECT {', '.join(self.columns(name))} FROM ({select}) AS r({names})"

    def table(self, name: str) -> str:
        """Where an atom finds its rows: among the tagged ones if it belongs to the recursion."""
        if name not in self.stratum.predicates:
            return _name(name)
        number = self.stratum.predicates.index(name)
        columns = ", ".join(f"p{number}{c} AS {c}" for c in _columns(self.program.predicates[name]))
        return f"(SELECT {columns} FROM \"all\" WHERE tag = '{name}')"
