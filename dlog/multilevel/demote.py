"""Owns what is read in place of a map that is not stored: its definition over smaller maps.

A definition joins rows of relations.  Those of one relation are read from a map of their own, with the values
and conditions that they cover; what is left falls into parts that share only variables of these rows, and
each is a smaller definition.  A definition of one relation is computed from its bare rows, and those are
always stored.  So whatever is not stored, there is something to read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import NONE, Names, inputs, is_value, outputs, reads_relations, visible
from dlog.multilevel.decompose import Monomial, expand
from dlog.multilevel.maps import Catalogue, StoredMap
from dlog.multilevel.materialise import arranged, definition_of, divide
from dlog.multilevel.names import rename, same
from dlog.multilevel.values import plus, sum_over, times, with_children

IsStored = Callable[[StoredMap], bool]


def can_be_demoted(entry: StoredMap) -> bool:
    """Whether there is something smaller to read: not for results, bare rows and maps with inputs."""
    return entry.level > 0 and not entry.inputs and not _is_bare(entry.definition)


def _is_bare(definition: Node) -> bool:
    body = definition.body if isinstance(definition, ast.AggSum) else definition
    return not isinstance(body, ast.Product | ast.Sum)


@dataclass
class Demotion:
    """Replaces reads of maps that are not stored.  The maps read instead enter the catalogue."""

    catalogue: Catalogue
    found: dict[tuple[str, Names], Node] = field(default_factory=dict)

    def without(self, node: Node, scope: Names, is_stored: IsStored) -> Node:
        """The expression, which reads only maps that are stored.  `scope`: what is bound outside."""

        def change(inner: Node, bound: Names) -> Node:
            entry = self.catalogue.maps.get(inner.name) if isinstance(inner, ast.MapAccess) else None
            if entry is None or is_stored(entry) or not can_be_demoted(entry):
                return with_children(inner, bound, change)
            return change(self.expansion(inner, entry, bound), bound)

        return change(node, scope)

    def expansion(self, access: Node, entry: StoredMap, bound: Names) -> Node:
        """What one read of a map becomes, if its keys that are in `bound` have values."""
        assert isinstance(access, ast.MapAccess)
        names = {key: variable.name for key, variable in zip(entry.keys, access.keys, strict=True)}
        given = frozenset(key for key, name in names.items() if name in bound)
        if (entry.name, given) not in self.found:
            self.found[entry.name, given] = self._lower(entry, given)
        return rename(self.found[entry.name, given], names)

    def _lower(self, entry: StoredMap, bound: Names) -> Node:
        kept = frozenset(entry.keys)
        return plus([self._product(m, kept, bound, entry) for m in expand(entry.definition)])

    def _product(self, monomial: Monomial, kept: Names, bound: Names, entry: StoredMap) -> Node:
        rows = [f for f in monomial if isinstance(f, ast.Relation)]
        assert not any(reads_relations(f) for f in monomial if f not in rows), (
            "a map has no nested aggregates"
        )
        first = max(rows, key=lambda row: (len(outputs(row) & bound), len(outputs(row) & kept)))
        own = [first] if len(rows) == 1 else _covered(monomial, first)
        rest = tuple(f for f in monomial if not any(f is o for o in own))
        used = kept.union(*map(visible, rest))
        mine = sum_over(times(arranged(own, NONE)), used)
        division = divide(rest, outputs(mine))
        around = kept | outputs(mine)
        parts = [mine, *(definition_of(part, division, around) for part in division.parts)]
        factors = [*division.outside, *(self.catalogue.access(part, entry.level) for part in parts)]
        return sum_over(times(arranged(factors, bound)), kept)


def _covered(monomial: Monomial, rows: Node) -> list[Node]:
    """Rows, and the values, conditions and lifts of values that need their variables only."""
    own, bound = [rows], outputs(rows)
    while True:
        more = [
            f
            for f in monomial
            if not any(f is o for o in own)
            and is_value(f.body if isinstance(f, ast.Lift) else f)
            and inputs(f) <= bound
            and (inputs(f) or isinstance(f, ast.Lift))
        ]
        if not more:
            return own
        own += more
        bound = bound.union(*map(outputs, more))


@dataclass
class Definitions:
    """A set of definitions, up to the names of variables and the order of factors."""

    members: tuple[Node, ...] = ()

    def __contains__(self, definition: object) -> bool:
        return isinstance(definition, Node) and any(same(one, definition) is not None for one in self.members)
