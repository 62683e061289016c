"""Owns which programs read exported M3, and what a program in M3 must be like for each.

Correct output: a program of the consumer's dialect that does the same as the one given, which the consumer
accepts, compiles and runs to the same results; or an error with the consumer's name and the position of what
it cannot do.  What each accepts was observed by running it; docs/m3.md has the table.

In: a program of the dialect dbtoaster in which a query is a map, if the consumer needs that
(`dlog.views.m3.results`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlog.errors import DlogError, UnsupportedError, did_you_mean
from dlog.m3.consumers.batches import with_batches_first
from dlog.m3.consumers.comparisons import with_compared_values
from dlog.m3.consumers.functions import with_functions
from dlog.m3.consumers.names import with_names
from dlog.m3.consumers.numbers import with_long_integers
from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, DBTOASTER, READY
from dlog.m3.syntax.rewrite import flat, rewritten


@dataclass(frozen=True)
class Consumer:
    """`batches`: whether triggers may be for batches; `rows`: for single rows.  `in_cpp`: it writes C++,
    where queries are maps, an int has 32 bits, and names must be those of C++.
    """

    name: str
    title: str
    dialect: str
    rows: bool
    batches: bool
    in_cpp: bool

    def require_triggers(self, batch: bool) -> None:
        if batch and not self.batches:
            raise DlogError(f"{self.name} has no batch triggers", help="leave out --batch, or choose fivm")
        if not batch and not self.rows:
            help = "leave out --single, or choose dbtoaster"
            raise DlogError(f"{self.name} runs triggers for batches only", help=help)


CONSUMERS = {
    c.name: c
    for c in (
        Consumer("a5", "the interpreter of DBToaster", A5, rows=True, batches=False, in_cpp=False),
        Consumer("dbtoaster", "DBToaster's compiler to C++", DBTOASTER, rows=True, batches=True, in_cpp=True),
        Consumer("fivm", "F-IVM's compiler to C++", DBTOASTER, rows=False, batches=True, in_cpp=True),
    )
}


def consumer_named(name: str) -> Consumer:
    """Raises DlogError if there is none.

    >>> consumer_named("fivm").dialect
    'dbtoaster'
    """
    if name not in CONSUMERS:
        help = did_you_mean(name, list(CONSUMERS), f"one of {', '.join(CONSUMERS)}")
        raise DlogError(f"no program {name} is known that reads M3", help=help)
    return CONSUMERS[name]


def fitted(program: ast.Program, consumer: Consumer) -> ast.Program:
    """The program as the consumer reads it.  O(nodes)."""
    if program.types and not consumer.in_cpp:
        place, help = program.types[0].span, "choose dbtoaster or fivm"
        raise UnsupportedError(f"{consumer.name} has no user-defined types", span=place, help=help)
    program = with_functions(program, consumer.name)
    program = _with_ready(program)
    if consumer.in_cpp:
        program = with_long_integers(with_compared_values(with_batches_first(program)))
        return with_names(program)
    return convert(rewritten(rewritten(program, _as_equalities), flat), consumer.dialect)


def _with_ready(program: ast.Program) -> ast.Program:
    """`ON SYSTEM READY`, if it does nothing: the C++ calls it."""
    if any(trigger.event == READY for trigger in program.triggers):
        return program
    return replace(program, triggers=(ast.Trigger(READY, None, (), ()), *program.triggers))


def _as_equalities(node: ast.Node) -> ast.Node:
    """`{x IN [1, 2]}` as `{x = 1} + {x = 2}`, which a5's interpreter can compute."""
    if not isinstance(node, ast.In):
        return node
    values = tuple(dict.fromkeys(node.values))
    if not values:
        return ast.Constant("int", 0, span=node.span)
    terms = [ast.Comparison("=", node.operand, value, span=node.span) for value in values]
    return ast.total(terms)
