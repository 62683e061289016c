"""Owns what of an expression is read from maps (ML 3.3): expression -> the same expression over maps.

The factors of each product are divided.  What the event gives (parameters, rows of the batch, domains, and
what is computed from them) stays in the statement.  Rows of relations become maps, one for each part that
shares no variable outside the event, together with values and conditions whose variables they bind.  Lifts
and Exists over relations are never inside a map: their bodies are divided in the same way, which is what
makes deltas of nested aggregates simpler than the aggregates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import NONE, Names, inputs, is_value, outputs, reads_relations, visible
from dlog.multilevel.decompose import Monomial, expand
from dlog.multilevel.lifts import lifted
from dlog.multilevel.maps import Catalogue
from dlog.multilevel.nesting import connected
from dlog.multilevel.simplify import FINISH, LAWS, Budget, Law, everywhere, simplify
from dlog.multilevel.values import plus, sum_over, times, with_children


@dataclass(frozen=True)
class Division:
    """The factors of a product: `outside` stay in the statement, each of `parts` becomes a map, the bodies of
    `nested` are divided in turn.
    """

    outside: Monomial
    parts: tuple[Monomial, ...]
    nested: Monomial

    def used_beside(self, part: Sequence[Node]) -> Names:
        """The variables of all factors that are not in this part."""
        everything = (*self.outside, *self.nested, *(f for p in self.parts for f in p))
        return _all(f for f in everything if not any(f is member for member in part))


def divide(monomial: Monomial, scope: Names, base: bool = False, with_inputs: bool = False) -> Division:
    """`scope`: variables that are bound outside.  `base`: each relation is a map of its own, with nothing
    else.  `with_inputs`: conditions become parts of maps also if they need what is bound outside, which is
    then an input variable of the map.
    """
    rows = [f for f in monomial if isinstance(f, ast.Relation)]
    nested = tuple(f for f in monomial if reads_relations(f) and not isinstance(f, ast.Relation))
    rest = [f for f in monomial if not reads_relations(f)]
    if base:
        return Division(tuple(rest), tuple((row,) for row in rows), nested)
    known = _known(rest, scope)
    inner = [f for f in rest if _depends_on_rows(f, known)]
    while True:
        members = [f for f in monomial if f in rows or f in inner]
        groups = [tuple(f for _, f in g) for g in connected(tuple(members), _all(members) - known)]
        uncovered = [f for g in groups for f in g if f in inner and not _is_covered(f, g, known, with_inputs)]
        if not uncovered:
            return Division(tuple(f for f in rest if f not in inner), tuple(groups), nested)
        inner = [f for f in inner if f not in uncovered]


def _is_covered(factor: Node, group: Monomial, known: Names, with_inputs: bool) -> bool:
    given = (
        _bound(group) | known
        if with_inputs and isinstance(factor, ast.Comparison | ast.In)
        else _bound(group)
    )
    return inputs(factor) <= given


def definition_of(part: Monomial, division: Division, kept: Names) -> Node:
    """Of the map that a part becomes: its keys are the variables that are used elsewhere."""
    body = times(arranged(part, _all(part) - _bound(part)))
    return sum_over(body, kept | division.used_beside(part))


def _all(factors: Iterable[Node]) -> Names:
    return NONE.union(*map(visible, factors))


def _bound(factors: Iterable[Node]) -> Names:
    return NONE.union(*map(outputs, factors))


def _known(factors: Sequence[Node], scope: Names) -> Names:
    """What is bound without reading a relation."""
    known = scope
    while True:
        more = known.union(*(outputs(f) for f in factors if inputs(f) <= known))
        if more == known:
            return known
        known = more


def _depends_on_rows(factor: Node, known: Names) -> bool:
    """Whether a value, a condition or a lift of a value needs variables that only rows bind."""
    value = factor.body if isinstance(factor, ast.Lift) else factor
    return is_value(value) and bool(inputs(factor) - known)


def arranged(factors: Iterable[Node], scope: Names) -> list[Node]:
    """In an order in which each factor finds bound what it needs: conditions and values as soon as possible,
    then what has few rows.
    """
    left, done, bound = list(factors), [], scope
    while left:
        ready = [i for i, f in enumerate(left) if inputs(f) <= bound] or [0]
        done.append(left.pop(min(ready, key=lambda i: (_rank(left[i], bound), i))))
        bound |= outputs(done[-1])
    return done


def _rank(factor: Node, bound: Names) -> int:
    value = factor.body if isinstance(factor, ast.Lift) else factor
    if is_value(value):
        return 0
    if isinstance(factor, ast.Domain):
        return 1
    if outputs(factor) <= bound:
        return 2
    if isinstance(factor, ast.DeltaRelation):
        return 3
    if isinstance(factor, ast.Lift):
        return 4
    return 5 if visible(factor) & bound else 6


def finished(draft: Node, scope: Names, budget: Budget) -> Node:
    """A statement's right side in simple form."""
    found = simplify(draft, scope, budget, FINISH)
    for law in ("gather", "factorise", "gather"):
        found = _outside_numbers(found, scope, LAWS[law], budget)
    return found


def _outside_numbers(node: Node, scope: Names, law: Law, budget: Budget) -> Node:
    """A law everywhere but inside of lifts and conditions: numbers are compared as they are computed."""
    if not isinstance(node, ast.Sum | ast.Product | ast.AggSum):
        return node
    changed = law(with_children(node, scope, lambda n, s: _outside_numbers(n, s, law, budget)), scope)
    if changed != node:
        budget.spend()
    return changed


@dataclass
class Materialiser:
    """`level` of the maps that it makes; `base`: they contain rows of one relation only.  `batches` has
    maps of the rows of a batch.  `with_inputs`: maps may have input variables.
    """

    catalogue: Catalogue
    batches: Catalogue
    level: int = 1
    base: bool = False
    budget: Budget = field(default_factory=Budget)
    with_inputs: bool = False

    def statement(self, node: Node, scope: Names) -> Node:
        """The right side of a statement whose trigger binds `scope`."""
        return finished(self.draft(node, scope), scope, self.budget)

    def draft(self, node: Node, scope: Names) -> Node:
        """The same before it is simplified."""
        known = -1
        while known < len(self.batches.maps):  # again, if maps of the batch were added: others may read them
            known = len(self.batches.maps)
            found = self.expression(node, scope)
        return found

    def expression(self, node: Node, scope: Names, is_nested: bool = False) -> Node:
        """The expression over maps.  It has the same value, and the same variables are visible."""
        kept = visible(node) | scope
        plain = simplify(everywhere(node, scope, lifted, self.budget), scope, self.budget)
        divisions = [self._divide(m, kept, scope) for m in expand(plain, scope)]
        return plus([self._product(division, kept, scope, is_nested) for division in divisions])

    def _divide(self, monomial: Monomial, kept: Names, scope: Names) -> Division:
        """A map with input variables has no keys: so an entry for given inputs is all there is for them."""
        division = divide(monomial, scope, self.base, self.with_inputs)
        if self.with_inputs and any(
            inputs(d) and outputs(d) for d in (definition_of(part, division, kept) for part in division.parts)
        ):
            return divide(monomial, scope, self.base)
        return division

    def _product(self, division: Division, kept: Names, scope: Names, is_nested: bool) -> Node:
        factors = self._with_batch_maps(division, kept, is_nested)
        for part in division.parts:
            factors.append(self._access(definition_of(part, division, kept)))
        bound = scope | _bound(factors)
        for nested in division.nested:
            factors.append(self._nested(nested, scope, bound))
            bound |= outputs(nested)
        return sum_over(times(arranged(factors, scope)), kept)

    def _access(self, definition: Node) -> ast.MapAccess:
        """A read of a map.  One with input variables is computed from lower maps when it is first read."""
        found = self.catalogue.access(definition, self.level)
        if not found.inputs:
            return found
        lower = replace(self, with_inputs=False, level=self.level + 1)
        return replace(found, initial=lower.statement(definition, inputs(definition)))

    def _nested(self, node: Node, scope: Names, bound: Names) -> Node:
        """What the body of a lift needs is bound; of what Exists binds, some may be."""
        assert isinstance(node, ast.Lift | ast.Exists)
        if isinstance(node, ast.Lift):
            return replace(node, body=self._number(node.body, scope | visible(node.body)))
        given = inputs(node.body) | outputs(node.body) & bound
        return replace(node, body=self.expression(node.body, scope | given, is_nested=True))

    def _number(self, node: Node, scope: Names) -> Node:
        """A value of which the aggregates alone are divided: arithmetic on them stays as it is."""
        if is_value(node):
            return node
        if isinstance(node, ast.Sum):
            return plus([self._number(term, scope) for term in node.terms])
        if isinstance(node, ast.Product) and all(outputs(f) <= scope for f in node.factors):
            return times(self._number(factor, scope) for factor in node.factors)
        return self.expression(node, scope, is_nested=True)

    # ---- rows of a batch

    def _with_batch_maps(self, division: Division, kept: Names, is_nested: bool) -> list[Node]:
        """The factors outside.  Rows of the batch are read from a map where they would be read again and
        again: joined to each other, or inside a condition.
        """
        left = [self._domain(f) for f in division.outside]
        maps: list[Node] = []
        parts = _batch_parts(division)
        for part in parts:
            definition = _batch_definition(part, division, kept)
            found = self.batches.find(definition)
            if found is None and (is_nested or len(parts) > 1):
                found = self.batches.access(definition, 0)
            if found is not None:
                maps.append(found)
                left = [f for f in left if not any(f is member for member in part)]
        return [*left, *maps]

    def _domain(self, node: Node) -> Node:
        """A domain of what a map of the batch has is that map's."""
        found = self.batches.find(node.body) if isinstance(node, ast.Domain) else None
        return node if found is None else ast.Domain(found)


def _batch_parts(division: Division) -> list[Monomial]:
    """Each delta relation with the values and conditions that it alone binds."""
    parts = []
    taken: list[Node] = []
    for rows in (f for f in division.outside if isinstance(f, ast.DeltaRelation)):
        own = [
            f
            for f in division.outside
            if is_value(f) and inputs(f) and inputs(f) <= outputs(rows) and not any(f is t for t in taken)
        ]
        taken += own
        parts.append((rows, *own))
    return parts


def _batch_definition(part: Monomial, division: Division, kept: Names) -> Node:
    return sum_over(times(part), kept | division.used_beside(part))
