"""Owns the syntax tree of M3, the trigger language, and what each construct means.  Knows no text and no
arrays.

Two nodes are equal when they say the same, wherever they are: comparison ignores spans.

Meaning.  An expression, with some variables bound, is a finite function from assignments of its other
(output) variables to values of a ring; an assignment that is not mentioned has the value 0.  An expression
without output variables is a scalar: one value.  Products are read from left to right: what a factor binds
is bound in the factors after it.  The parser writes products and sums flat, `a - b` as `a + (-1 * b)`, and
the names of the dialect in one form (see `TypeRef` and `Variable`), so that a tree says the same in both
dialects.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dlog.language.ast import Node

A5 = "a5"
DBTOASTER = "dbtoaster"
DIALECTS = (A5, DBTOASTER)

INSERT, DELETE, BATCH, READY = "insert", "delete", "batch", "ready"
STREAM, TABLE = "stream", "table"

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


# Types and declarations


@dataclass(frozen=True)
class TypeRef(Node):
    """A type by its name.  `RingCofactor<1, double, 10>` has params (1, TypeRef("double"), 10).

    Built-in names are lower case and in one spelling: byte short int long float double char string date.
    In a5 `float`, `double` and `decimal` are all `float`, and there are only int, float, string and date;
    in dbtoaster `decimal` is `double`.  `char(n)` and `varchar(n)` are `string`.  A list `<[2, int]>` is a
    nested tuple.
    """

    name: str
    params: tuple[TypeParameter, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(_parameter_text, self.params))}>" if self.params else self.name


TypeParameter = int | TypeRef | tuple["TypeParameter", ...]


def _parameter_text(parameter: TypeParameter) -> str:
    if isinstance(parameter, tuple):
        return f"[{', '.join(map(_parameter_text, parameter))}]"
    return str(parameter)


@dataclass(frozen=True)
class Column(Node):
    """A column of a relation or a key of a map, with its type."""

    name: str
    type: TypeRef


@dataclass(frozen=True)
class TypeDefinition(Node):
    """`CREATE TYPE name FROM FILE 'file' WITH PARAMETER SCHEMA (static, dynamic_sum);`"""

    name: str
    file: str
    schema: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source(Node):
    """`CREATE STREAM name (columns) FROM FILE 'file' LINE DELIMITED CSV (options);`

    `kind` is STREAM or TABLE.  A stream is a sequence of inserted and deleted rows; a table is read
    completely before `ON SYSTEM READY` runs, never changes after, and can be read in statements.  `file` is
    None if the program names none: then batches come from the caller.  `options` has order and spelling of
    the values.
    """

    kind: str
    name: str
    columns: tuple[Column, ...]
    file: str | None = None
    format: str = "csv"
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str, otherwise: str = "") -> str:
        """The value of an option; names are lower case."""
        return dict(self.options).get(name, otherwise)

    @property
    def delimiter(self) -> str:
        return self.option("delimiter", ",")

    @property
    def deletions(self) -> bool:
        """Rows begin with two more columns: an order, and an event (1 inserts, 0 deletes)."""
        return self.option("deletions").lower() == "true"


@dataclass(frozen=True)
class MapDeclaration(Node):
    """`DECLARE MAP name(type)[inputs][keys] := definition;`

    A function from inputs and keys to values of the type.  It starts empty, whatever the definition says:
    only statements fill a map.  `type` is None in dbtoaster until it is resolved from the statements.
    """

    name: str
    type: TypeRef | None
    inputs: tuple[Column, ...]
    keys: tuple[Column, ...]
    definition: Node | None = None


@dataclass(frozen=True)
class Query(Node):
    """`DECLARE QUERY name := expression;`: a result to show.  Its columns are the output variables, in
    order.
    """

    name: str
    expression: Node


# Triggers and statements


@dataclass(frozen=True)
class Trigger(Node):
    """`event`: INSERT, DELETE (one row of `relation`, its values bound to `parameters`), BATCH (rows of
    `relation`, read as `DeltaRelation`), READY (once, when all tables are loaded; `relation` is None).

    Statements run in order; each sees the effects of those before it.
    """

    event: str
    relation: str | None
    parameters: tuple[Variable, ...]
    statements: tuple[Assign | If, ...]


@dataclass(frozen=True)
class Assign(Node):
    """`target op expression;`, `op` one of `+=` and `:=`.

    The expression is computed completely before the target changes.  Each key of the target is bound (a
    trigger parameter) or an output variable of the expression; output variables that are not keys are summed
    out.  `+=` adds.  `:=` first forgets every entry that agrees with the target's bound keys, then adds.
    Input variables of the target that are not parameters range over the map's domain: the
    statement runs for all of them, with them bound.
    `target.initial`: an entry that `+=` adds to and that is not in the map's domain is first given that
    value, computed with the entry's keys bound, before the statement changes anything.
    """

    target: MapAccess
    op: str
    expression: Node


@dataclass(frozen=True)
class If(Node):
    """`if (condition) { then } else { otherwise }`; only dbtoaster has it."""

    condition: Comparison
    then: tuple[Assign | If, ...]
    otherwise: tuple[Assign | If, ...] = ()


# Expressions


@dataclass(frozen=True)
class Constant(Node):
    """`type` names a built-in type: `1` int, `1L` long, `1.5` double (float in a5), `1.5f` float, `'a'`
    string, `DATE('1995-03-15')` date.  The value is an int, a float, a str or a `datetime.date`.
    """

    type: str
    value: int | float | str | datetime.date

    def __eq__(self, other: object) -> bool:
        """As in a text: 0.0 is not -0.0."""
        if not isinstance(other, Constant):
            return NotImplemented
        return (self.type, repr(self.value)) == (other.type, repr(other.value))

    def __hash__(self) -> int:
        return hash((self.type, repr(self.value)))


@dataclass(frozen=True)
class Variable(Node):
    """The value that a variable is bound to.  In dbtoaster names are lower case: `A` and `a` are one
    variable.

    `type` is what was written, `x:int`; after `typecheck.check` every variable has one.
    """

    name: str
    type: TypeRef | None = None


@dataclass(frozen=True)
class Product(Node):
    """Natural join: values multiply where assignments agree.  At least two factors, none a product."""

    factors: tuple[Node, ...]


@dataclass(frozen=True)
class Sum(Node):
    """Values add, assignment by assignment.  At least two terms, none a sum; all have the same outputs."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class AggSum(Node):
    """`AggSum([keys], body)`: sums the body's values over all its output variables but the keys.

    Variables of the body that are neither keys nor bound outside belong to it alone.
    """

    keys: tuple[Variable, ...]
    body: Node


@dataclass(frozen=True)
class MapAccess(Node):
    """`name(type)[inputs][keys]`: the entries of a map.  Bound keys are looked up, others are output
    variables.

    `initial`, written `:(expression)`: when no entry of the map's domain agrees with the bound variables, the
    expression is computed under the same bindings and its values are stored as entries first.  A map that
    has an initial value anywhere keeps an entry in its domain also when the value is 0; from every other
    map an entry of value 0 disappears.  Inputs are always bound.
    """

    name: str
    type: TypeRef | None
    inputs: tuple[Variable, ...]
    keys: tuple[Variable, ...]
    initial: Node | None = None


@dataclass(frozen=True)
class Relation(Node):
    """`R(x, y)`: the rows of a relation with their multiplicities; in statements only of a table."""

    name: str
    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class DeltaRelation(Node):
    """`(DELTA R)(x, y)`: the rows of the batch with their multiplicities, -1 for a deleted row."""

    name: str
    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Lift(Node):
    """`(variable ^= body)`: binds the variable to the value of a scalar, with value 1; or, when the
    variable is bound already, 1 if it is equal to it and 0 if not.
    """

    variable: Variable
    body: Node


@dataclass(frozen=True)
class Comparison(Node):
    """`{left op right}` of two scalars: 1 if it holds and 0 if not."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class In(Node):
    """`{operand IN [values]}`: 1 if the scalar equals one of the constants, 0 if not."""

    operand: Node
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Exists(Node):
    """`EXISTS(body)`: 1 for each assignment whose value in the body is not 0."""

    body: Node


@dataclass(frozen=True)
class Domain(Node):
    """`DOMAIN(body)`: as EXISTS; compilers write it for the assignments that a change may affect."""

    body: Node


@dataclass(frozen=True)
class Call(Node):
    """`[function: type](arguments)` of scalars; `[lift<1>: T](..)` has the name `lift` and parameters (1,).

    `/` with one argument is 1 / argument, with two their quotient; either is 0 if the divisor is 0.  The
    result of a function is converted to the type: to an integer type by truncation.
    """

    function: str
    type: TypeRef
    arguments: tuple[Node, ...]
    parameters: tuple[int, ...] = ()


Expression = (
    Constant | Variable | Product | Sum | AggSum | MapAccess | Relation | DeltaRelation | Lift | Comparison
    | In | Exists | Domain | Call
)  # fmt: skip


@dataclass(frozen=True)
class Program(Node):
    """The dialect is part of a program: it decides types (`int` has 63 bits in a5, 32 in
    dbtoaster).
    """

    dialect: str
    types: tuple[TypeDefinition, ...] = ()
    sources: tuple[Source, ...] = ()
    maps: tuple[MapDeclaration, ...] = ()
    queries: tuple[Query, ...] = ()
    triggers: tuple[Trigger, ...] = ()

    def source(self, name: str) -> Source | None:
        return next((source for source in self.sources if source.name == name), None)

    def map(self, name: str) -> MapDeclaration | None:
        return next((declared for declared in self.maps if declared.name == name), None)


# Making products and sums


def product(factors: Iterable[Node]) -> Node:
    """The product, flat; of one factor, that factor.  REQUIRES: at least one factor.

    >>> x = Variable("x")
    >>> product([x, product([x, x])]) == Product((x, x, x))
    True
    """
    flat = [f for factor in factors for f in (factor.factors if isinstance(factor, Product) else (factor,))]
    return flat[0] if len(flat) == 1 else Product(tuple(flat), span=_around(flat))


def total(terms: Iterable[Node]) -> Node:
    """The sum, flat; of one term, that term.  REQUIRES: at least one term."""
    flat = [t for term in terms for t in (term.terms if isinstance(term, Sum) else (term,))]
    return flat[0] if len(flat) == 1 else Sum(tuple(flat), span=_around(flat))


def _around(nodes: list[Node]) -> Any:
    first, last = nodes[0].span, nodes[-1].span
    return first.to(last) if first is not None and last is not None else None
