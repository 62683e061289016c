"""Owns the text of variable orders, the dtree files of F-IVM (4.2, 4.5).  Knows no views.

    6 3                         variables, relations
    0 A int -1 {} 0             number, name, type, number of the parent (-1: none), numbers it depends on,
    1 B double 0 {0} 0          and whether its view should be materialised
    ...
    R 5 A,B,F                   relation, number of its lowest variable, its columns

Names are those of the query, in any case.  The dependencies, types and lowest variables in a file are
checked: a file that was written for another query is an error, not a wrong order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dlog.errors import DlogError, SourceError, did_you_mean
from dlog.language.source import Source, Span, read_source
from dlog.m3.syntax.ast import DBTOASTER, TypeRef
from dlog.m3.syntax.dialects import TYPES
from dlog.m3.types.typing import Types
from dlog.views.orders.orders import arrange
from dlog.views.query import Query
from dlog.views.tree.tree import VariableOrder

_VARIABLE = re.compile(r"\s*(\d+)\s+(\S+)\s+(\S+)\s+(-?\d+)\s+\{([\d,\s]*)\}\s+([01])\s*$")
_RELATION = re.compile(r"\s*(\S+)\s+(\d+)\s+(\S.*?)\s*$")
_COUNTS = re.compile(r"\s*(\d+)\s+(\d+)\s*$")


@dataclass(frozen=True)
class _Variable:
    number: int
    name: str
    type: str
    parent: int
    depends: tuple[int, ...]
    cache: bool
    span: Span


def parse_dtree(text: str, query: Query, path: str = "<dtree>") -> VariableOrder:
    """The variable order of a dtree file, for a query.  Raises SourceError with the line.  O(text)."""
    return _Reader(Source(path, text), query).order()


def read_dtree(path: str | Path, query: Query) -> VariableOrder:
    return _Reader(read_source(path), query).order()


def print_dtree(order: VariableOrder, query: Query) -> str:
    """The text of a variable order; `parse_dtree` reads it back."""
    numbers = {variable: i for i, variable in enumerate(order.variables)}
    lines = [f"{len(numbers)} {len(query.atoms)}"]
    for node in order.walk():
        parent = order.parents[node.variable]
        above = -1 if parent is None else numbers[parent]
        depends = ",".join(str(numbers[v]) for v in node.depends)
        type_ = query.type_of(node.variable)
        lines.append(f"{numbers[node.variable]} {node.variable} {type_} {above} {{{depends}}} {node.cache:d}")
    lowest = {name: node.variable for node in order.walk() for name in node.atoms}
    lines += [f"{a.name} {numbers[lowest[a.name]]} {','.join(a.variables)}" for a in query.atoms]
    return "\n".join(lines) + "\n"


class _Reader:
    def __init__(self, source: Source, query: Query):
        self.source, self.query = source, query
        self.lines: list[tuple[str, Span]] = []
        at = 0
        for line in source.text.splitlines(keepends=True):
            if line.strip():
                start = at + len(line) - len(line.lstrip())
                self.lines.append((line.rstrip("\r\n"), Span(source, start, at + len(line.rstrip()))))
            at += len(line)
        self.variables: dict[int, _Variable] = {}

    def order(self) -> VariableOrder:
        if not self.lines:
            raise SourceError(f"{self.source.name} is empty", help="its first line is: variables relations")
        text, span = self.lines[0]
        counts = _COUNTS.match(text)
        if counts is None:
            raise SourceError("expected two numbers, of variables and of relations", span=span)
        n_variables, n_relations = int(counts[1]), int(counts[2])
        if len(self.lines) - 1 != n_variables + n_relations:
            message = f"{n_variables} variables and {n_relations} relations, but {len(self.lines) - 1} lines"
            raise SourceError(message, span=span)
        for line, where in self.lines[1 : 1 + n_variables]:
            self._variable(line, where)
        order = self._arranged(span)
        for line, where in self.lines[1 + n_variables :]:
            self._relation(line, where, order)
        self._check_depends(order)
        return order

    def _variable(self, text: str, span: Span) -> None:
        found = _VARIABLE.match(text)
        if found is None:
            help = "number name type parent {dependencies} 0 or 1"
            raise SourceError("expected a variable", span=span, help=help)
        number = int(found[1])
        if number in self.variables:
            raise SourceError(f"there are two variables {number}", span=span)
        name = self._known(found[2], self.query.variables, "variable", span)
        if any(v.name == name for v in self.variables.values()):
            raise SourceError(f"variable {name} occurs twice", span=span)
        depends = tuple(int(part) for part in found[5].split(",") if part.strip())
        self.variables[number] = _Variable(
            number, name, found[3], int(found[4]), depends, found[6] == "1", span
        )
        self._check_type(self.variables[number])

    def _known(self, name: str, known: tuple[str, ...], what: str, span: Span) -> str:
        if name in known:
            return name
        alike = [other for other in known if other.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        raise SourceError(f"the query has no {what} {name}", span=span, help=did_you_mean(name, known))

    def _check_type(self, variable: _Variable) -> None:
        expected = self.query.type_of(variable.name)
        written = TypeRef(TYPES[DBTOASTER].get(variable.type.lower(), variable.type))
        holds = Types(DBTOASTER, self.query.types).fits(expected, written)
        if not holds and _kind(written) != _kind(expected):
            message = f"variable {variable.name} is {expected} in the query, not {variable.type}"
            raise SourceError(message, span=variable.span)

    def _arranged(self, span: Span) -> VariableOrder:
        parents: dict[str, str | None] = {}
        for variable in self.variables.values():
            if variable.parent >= 0 and variable.parent not in self.variables:
                raise SourceError(f"there is no variable {variable.parent}", span=variable.span)
            parents[variable.name] = self.variables[variable.parent].name if variable.parent >= 0 else None
        cached = [v.name for v in self.variables.values() if v.cache]
        try:
            return arrange(self.query, parents, cached)
        except DlogError as error:
            raise SourceError(
                error.message, span=self._place(error.message, span), help=error.help
            ) from error

    def _place(self, message: str, span: Span) -> Span:
        """The line of the relation, or of the variable below itself, that a message names."""
        below = re.match(r"variable (\S+) is below itself", message)
        if below is not None:
            return next(v.span for v in self.variables.values() if v.name == below[1])
        named = re.match(r"the variables of relation (\S+) ", message)
        for line, where in self.lines[1 + len(self.variables) :]:
            if named and line.split()[0].lower() == named[1].lower():
                return where
        return span

    def _relation(self, text: str, span: Span, order: VariableOrder) -> None:
        found = _RELATION.match(text)
        if found is None:
            raise SourceError("expected a relation", span=span, help="name lowest-variable column,column,..")
        names = tuple(atom.name for atom in self.query.atoms)
        atom = self.query.atom(self._known(found[1], names, "relation", span))
        columns = [part.strip() for part in found[3].split(",")]
        if [c.lower() for c in columns] != [v.lower() for v in atom.variables]:
            message = f"the columns of {atom.name} are {','.join(atom.variables)} in the query"
            raise SourceError(message, span=span)
        lowest = self.variables.get(int(found[2]))
        actual = next(node.variable for node in order.walk() if atom.name in node.atoms)
        if lowest is None or lowest.name != actual:
            named = lowest.name if lowest else found[2]
            raise SourceError(f"the lowest variable of {atom.name} is {actual}, not {named}", span=span)

    def _check_depends(self, order: VariableOrder) -> None:
        for variable in self.variables.values():
            node = order.node(variable.name)
            assert node is not None
            written = {self.variables[n].name for n in variable.depends if n in self.variables}
            missing = [v for v in node.depends if v not in written]
            if missing:
                message = f"{variable.name} depends on {missing[0]}, which is not among its dependencies"
                raise SourceError(message, span=variable.span)


def _kind(type_: TypeRef) -> str:
    """Integers are one kind, floats another; every other type is its own."""
    integers, floats = ("byte", "short", "int", "long"), ("float", "double")
    return "integer" if type_.name in integers else "float" if type_.name in floats else str(type_)
