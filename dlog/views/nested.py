"""Owns the neutral form of a query that is maintained by levels of maps: what SQL with queries in queries is
translated to.  Knows no text, no map and no trigger.

Meaning.  Each result is a definition of `dlog.multilevel`: a function from the groups to a number.  The query
has one row for each group where `present` is not 0; without groups it has one row always.  A column is a
scalar of groups and results, both as variables.

Example: SELECT b, SUM(a) AS s, AVG(a) AS m FROM R GROUP BY b ORDER BY s DESC

>>> from dlog.multilevel.notation import read
>>> number = ast.TypeRef("long")
>>> s, n = ast.Variable("s"), ast.Variable("n")
>>> query = NestedQuery(
...     sources=(ast.Source("stream", "R", (ast.Column("a", number), ast.Column("b", number))),),
...     groups=("b",),
...     results={"s": read("AggSum([b], R(a, b) * a)"), "n": read("AggSum([b], R(a, b))")},
...     columns=(Shown("b", ast.Variable("b")), Shown("s", s), Shown("m", s, divisor=n)),
...     present="n",
...     order=(Order(1, descending=True),),
... )
>>> query.check()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dlog.errors import DlogError
from dlog.language.ast import Node
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.views.query import Order


@dataclass(frozen=True)
class Shown:
    """A column of the result.  It is divided by `divisor`, if there is one, and is 0 where that is 0."""

    name: str
    value: Node
    divisor: Node | None = None


@dataclass(frozen=True)
class NestedQuery:
    """See the module.  `types` are the user-defined types of the sources, `reason` says why it is maintained
    by levels.
    """

    sources: tuple[ast.Source, ...]
    results: Mapping[str, Node]
    columns: tuple[Shown, ...]
    groups: tuple[str, ...] = ()
    present: str | None = None
    order: tuple[Order, ...] = ()
    types: tuple[ast.TypeDefinition, ...] = ()
    name: str = "Q"
    reason: str = "it was requested"
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    def check(self) -> None:
        """Raises DlogError for the first inconsistency."""
        if self.groups and self.present is None:
            raise DlogError("a query with groups needs a result that counts their rows", span=self.span)
        if self.present is not None and self.present not in self.results:
            raise DlogError(f"there is no result {self.present}", span=self.span)
        known = {*self.groups, *self.results}
        for column in self.columns:
            for node in (column.value, column.divisor):
                for part in node.walk() if node is not None else ():
                    if isinstance(part, ast.Variable) and part.name not in known:
                        raise DlogError(f"{part.name} is neither a group nor a result", span=self.span)

    def source(self, relation: str) -> ast.Source:
        return next(s for s in self.sources if s.name == relation)
