"""Owns programs in which every query is one map that triggers maintain.  Knows no consumer.

The generators of C++ need it: there a query is a map, not an expression.  A result that is one map of the
root is a query for that map.  Any other (a mean, a sum of several maps) is *computed* and has a map of its
own:

    without keys   it is computed again at the end of each trigger
    with keys      it is computed again for the groups that the trigger may have changed: those of the joined
                   rows that a changed row is part of.  An old value is removed by adding its negative, so
                   that exactly 0 remains, however values are rounded.  CHANGED_GROUPS has the groups, unless
                   the row's own columns are the keys.

A sum over a batch can be 0 though rows changed, so every changed row counts as 1, whatever its multiplicity.
Counts beside the path are positive as long as no multiplicity of a stream is negative.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.views.m3.program import Style, Writer
from dlog.views.query import Atom, Query
from dlog.views.tree.payloads import COUNT, Payload, Shown
from dlog.views.tree.tree import ViewTree, atom_of

CHANGED = "CHANGED_GROUPS"
_MINUS = ast.Constant("int", -1)


class ResultWriter(Writer):
    """Maps of computed results have names of their own, RESULT_1 and so on."""

    def __init__(self, query: Query, tree: ViewTree, style: Style):
        super().__init__(query, tree, style)
        self.computed: dict[str, ast.MapAccess] = {}  # by the name of the aggregate
        taken: set[Payload] = set()
        for shown in sorted(self.payloads.shown, key=lambda s: s.aggregate.hidden):
            if (
                shown.aggregate.divisor is None
                and len(shown.payloads) == 1
                and taken.isdisjoint(shown.payloads)
            ):
                taken.update(shown.payloads)
            else:
                name = f"RESULT_{len(self.computed) + 1}"
                self.computed[shown.aggregate.name] = ast.MapAccess(name, self._type(shown), (), ())
        self.by_groups = bool(self.computed) and bool(self.tree.root.keys)

    def _type(self, shown: Shown) -> TypeRef:
        if shown.aggregate.divisor is not None:
            return TypeRef("double")
        types = (self.payloads.type(payload) for payload in shown.payloads)
        return reduce(lambda one, other: self.payloads.types.sum(one, other) or one, types)

    # ---- declarations

    def program(self) -> ast.Program:
        found = super().program()
        accesses = list(self.computed.values())
        changed = any(
            isinstance(s, ast.Assign) and s.target.name == CHANGED
            for t in found.triggers
            for s in t.statements
        )
        if changed:
            accesses.append(self._changed_groups())
        columns = (ast.Column(self.names[k], self.query.type_of(k)) for k in self.tree.root.keys)
        keys, zero = tuple(columns), ast.Constant("int", 0)
        maps = (ast.MapDeclaration(access.name, access.type, (), keys, zero) for access in accesses)
        return replace(found, maps=(*found.maps, *maps))

    def _query(self, shown: Shown) -> ast.Query:
        is_computed = shown.aggregate.name in self.computed
        expression = self._result(shown) if is_computed else self._shown(shown)
        return ast.Query(self.results[shown.aggregate.name], expression)

    def _result(self, shown: Shown) -> ast.MapAccess:
        return replace(self.computed[shown.aggregate.name], keys=self._variables(self.tree.root.keys))

    def _changed_groups(self) -> ast.MapAccess:
        return ast.MapAccess(CHANGED, COUNT, (), self._variables(self.tree.root.keys))

    # ---- triggers

    def _ready(self) -> ast.Trigger:
        found = super()._ready()
        if self.tree.root.changes:
            return found
        computed = (self._assign(self._result(s), ":=", self._value(s)) for s in self._computed())
        return replace(found, statements=(*found.statements, *computed))

    def _triggers(self, source: ast.Source) -> list[ast.Trigger]:
        return [self._with_results(trigger, source) for trigger in super()._triggers(source)]

    def _with_results(self, trigger: ast.Trigger, source: ast.Source) -> ast.Trigger:
        """The statements of a trigger, then those of results; changed groups are empty before."""
        statements = list(trigger.statements)
        atom = self.query.atoms_of(source.name)[0]
        one = self._is_one_group(atom)
        parameters = self.columns[source.name] if trigger.parameters else ()
        with self._parameters(atom, atom.variables if one else (), parameters):
            for shown in self._computed():
                statements += self._renewed(shown, one)
            if any(isinstance(s, ast.Assign) and s.target.name == CHANGED for s in statements):
                groups = self._changed_groups()
                none = ast.product([groups, ast.Constant("int", 0)])
                statements.insert(0, self._assign(groups, ":=", none))
        return replace(trigger, statements=tuple(statements))

    def _renewed(self, shown: Shown, one: bool) -> list[ast.Assign]:
        """Brings a result up to date."""
        target, value = self._result(shown), self._value(shown)
        if not self.by_groups:
            return [self._assign(target, ":=", value)]
        groups: list[ast.Node] = [] if one else [ast.Exists(self._changed_groups())]
        return [
            self._assign(target, "+=", ast.product([*groups, _MINUS, target])),
            self._assign(target, "+=", ast.product([*groups, value])),
        ]

    def _path(self, name: str, change: list[ast.Node]) -> list[ast.Assign]:
        statements = super()._path(name, change)
        if not self.by_groups or self._is_one_group(self.query.atom(atom_of(name))):
            return statements
        return [*statements, self._assign(self._changed_groups(), "+=", self._touched(name, change))]

    def _touched(self, name: str, change: list[ast.Node]) -> ast.Node:
        """The groups of the root that a change takes part in, with positive numbers."""
        *above, child = self.tree.root.path(name)
        parts = [part for node in change for part in _once(node)]
        for view in reversed(above):
            others = [other for other in view.children if other is not child]
            parts += [self._read(other, self.payloads.below(other, ())) for other in others]
            parts += self._own(view, ())
            if self.batch or view is self.tree.root:
                parts = [self._summed(view, parts)]
            child = view
        return parts[0]

    # ---- values

    def _computed(self) -> list[Shown]:
        return [shown for shown in self.payloads.shown if shown.aggregate.name in self.computed]

    def _value(self, shown: Shown) -> ast.Node:
        """Of a group; where its keys are bound, a scalar."""
        value = self._shown(shown)
        if shown.aggregate.divisor is None:
            return value
        by = next(s for s in self.payloads.shown if s.aggregate.name == shown.aggregate.divisor)
        return ast.product([value, ast.Call("/", TypeRef("double"), (self._shown(by),))])

    def _is_one_group(self, atom: Atom) -> bool:
        """Whether a row that changes the atom's relation says which group it changes."""
        alone = len(self.query.atoms_of(atom.relation)) == 1 and not self.tree.indicators(atom.name)
        return not self.batch and alone and set(self.tree.root.keys) <= set(atom.variables)


def _once(node: ast.Node) -> list[ast.Node]:
    """A factor of a change as 1 where it is not 0."""
    if isinstance(node, ast.Constant):
        return []
    return [node] if isinstance(node, ast.Exists) else [ast.Exists(node)]
