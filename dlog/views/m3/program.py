"""Owns view tree -> M3: maps, queries, and the triggers that maintain them (4.8, 4.9.2).  Knows no text.

For each stream its delta path is walked from the leaf to the root (Fig. 4.4): the change of a view is the
change of the child below it times the other children, summed.  A relation that has several atoms goes through
the paths of all of them, one after the other: each sees the changes of those before it, which is what the
delta of a product requires.  So does an atom that has indicators: its own path comes first, then those of the
indicators, whose change is 1 or -1 where rows with these keys appeared or disappeared.

How changes are written, `inline`:
    NONE   each change is a map, DELTA_AGG_VIEW_X, that is set and then added           (Listing 4.14)
    ONCE   a change that is read once is written where it is read                        (Listing 4.15)
    ALL    all are, unless rows are summed and then joined to more rows: dlog's runtime reads a batch once
Triggers of single rows are always written as ALL: the change of a row is a product of look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dlog.errors import DlogError, UnsupportedError
from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, BATCH, DBTOASTER, DELETE, INSERT, READY, STREAM
from dlog.m3.syntax.dialects import is_reserved, require_dialect
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import print_program
from dlog.m3.syntax.rewrite import rewritten
from dlog.m3.types.typecheck import check
from dlog.views.m3.appearing import Appearing, appearing
from dlog.views.m3.arranged import arranged
from dlog.views.query import Atom, Query
from dlog.views.regression import merged_lifts
from dlog.views.tree.payloads import Payload, Payloads, Shown
from dlog.views.tree.tree import View, ViewTree

NONE, ONCE, ALL = "none", "once", "all"


@dataclass(frozen=True)
class Style:
    """How a program is written: the dialect, batch or single-tuple triggers, and `inline` (see above)."""

    dialect: str = DBTOASTER
    batch: bool = True
    inline: str = ONCE


EXPORTED = Style()
NATIVE = Style(inline=ALL)  # best for dlog's own runtime


def m3_program(query: Query, tree: ViewTree, style: Style = EXPORTED) -> ast.Program:
    """The M3 program that maintains a view tree.  Raises what its dialect cannot express.  O(views^2 *
    payloads).
    """
    require_dialect(style.dialect)
    if style.dialect == A5 and style.batch:
        raise DlogError("a5 has no batch triggers", help="leave out --batch, or use the dialect dbtoaster")
    if style.dialect == A5 and query.types:
        place, help = query.types[0].span, "use the dialect dbtoaster"
        raise UnsupportedError("a5 has no user-defined types", span=place, help=help)
    program = Writer(query, tree, style).program()
    check(program)
    return convert(program, style.dialect)


def m3_text(query: Query, tree: ViewTree, style: Style = EXPORTED) -> str:
    """The text of the program, read back and checked before it is returned."""
    program = m3_program(query, tree, style)
    text = print_program(program)
    check(parse(text, dialect=style.dialect))
    return text


class Writer:
    """Writes the program of one tree.  `dlog.views.m3.products` adds what updates that factorise need."""

    def __init__(self, query: Query, tree: ViewTree, style: Style):
        self.query, self.tree = query, tree
        self.batch, self.inline = style.batch, style.inline if style.batch else ALL
        self.payloads = Payloads(query, tree)
        self.names = lower_names(query.variables)
        self.columns = {
            s.name: tuple(lower_names([c.name for c in s.columns]).values()) for s in query.sources
        }
        results = {a.name: identifier(a.name) for a in self.payloads.aggregates}
        self.results = distinct(results, ())
        self.parameters: tuple[str, ...] = ()  # of the current trigger
        self.deltas: dict[str, ast.MapDeclaration] = {}
        self.changes: dict[tuple[str, str], str] = {}  # (leaf, target): how the change is written

    def program(self) -> ast.Program:
        used = [s for s in self.query.sources if self.query.atoms_of(s.name)]
        triggers = [t for s in used if s.kind == STREAM for t in self._triggers(s)]
        ready = self._ready()
        kept = (view for view in reversed(list(self.tree.walk())) if view.materialised)
        maps = {m.name: m for view in kept for m in self._maps(view)}
        return ast.Program(
            DBTOASTER,
            self.query.types,
            tuple(map(self._source, used)),
            (*maps.values(), *self.deltas.values()),
            tuple(self._query(shown) for shown in self.payloads.shown),
            tuple(([ready] if ready.statements else []) + triggers),
        )

    # ---- declarations

    def _source(self, source: ast.Source) -> ast.Source:
        names = self.columns[source.name]
        columns = (replace(c, name=name) for c, name in zip(source.columns, names, strict=True))
        return replace(source, columns=tuple(columns))

    def _maps(self, view: View) -> list[ast.MapDeclaration]:
        return [
            self._declared(self.payloads.name(view, p), view, p, self._definition(view, p))
            for p in self._of(view)
        ]

    def _declared(self, name: str, view: View, payload: Payload, definition: ast.Node) -> ast.MapDeclaration:
        keys = (ast.Column(self.names[k], self.query.type_of(k)) for k in view.keys)
        return ast.MapDeclaration(name, self.payloads.type(payload), (), tuple(keys), definition)

    def _query(self, shown: Shown) -> ast.Query:
        expression = self._shown(shown)
        if shown.aggregate.divisor is not None:
            by = next(s for s in self.payloads.shown if s.aggregate.name == shown.aggregate.divisor)
            part = ast.Call("/", ast.TypeRef("double"), (self._shown(by),))
            expression = ast.product([expression, part])
        return ast.Query(self.results[shown.aggregate.name], expression)

    def _shown(self, shown: Shown) -> ast.Node:
        return ast.total(self._access(self.tree.root, payload) for payload in shown.payloads)

    def _definition(self, view: View, payload: Payload, kept: bool = False) -> ast.Node:
        """The definition of a view, over relations; `kept`: children that are maps are read as maps."""
        if view.atom is not None:
            atom = self.query.atom(view.atom)
            rows = ast.Relation(atom.relation, self._variables(atom.variables))
            same = view.keys == atom.variables
            return rows if same else ast.AggSum(self._variables(view.keys), rows)
        parts: list[tuple[View, list[ast.Node]]] = []
        for child in view.children:
            below = self.payloads.below(child, payload)
            if kept and child.materialised:
                parts.append((child, [self._read(child, below)]))
            else:
                found = self._definition(child, below, kept)
                parts.append((child, [ast.Exists(found) if child.is_indicator else found]))
        return self._summed(view, self._multiplied(view, payload, parts))

    # ---- triggers

    def _ready(self) -> ast.Trigger:
        """Tables are loaded: fill the maps of views over tables alone; others join empty streams."""
        statements = {
            (target := self._access(view, payload)).name: self._assign(
                target, ":=", self._definition(view, payload, True)
            )
            for view in reversed(list(self.tree.walk()))
            if view.materialised and not view.changes
            for payload in self._of(view)
        }
        return ast.Trigger(READY, None, (), tuple(statements.values()))

    def _triggers(self, source: ast.Source) -> list[ast.Trigger]:
        atoms = self.query.atoms_of(source.name)
        if self.batch:
            statements = [s for atom in atoms for s in self._paths(atom, [self._delta_relation(atom)])]
            return [ast.Trigger(BATCH, source.name, (), tuple(statements))]
        parameters = tuple(map(ast.Variable, self.columns[source.name]))
        triggers = []
        for event, sign in ((INSERT, 1), (DELETE, -1)):
            first: list[ast.Node] = [] if sign == 1 else [ast.Constant("int", -1)]
            found = [s for atom in atoms for s in self._paths(atom, first, self.columns[source.name])]
            triggers.append(ast.Trigger(event, source.name, parameters, tuple(found)))
        return triggers

    def _paths(
        self, atom: Atom, change: list[ast.Node], parameters: tuple[str, ...] = ()
    ) -> list[ast.Assign]:
        """The path of an atom, then those of its indicators.

        1 record which of the changing keys of an indicator exist.  2 the atom's path, which counts
        its rows.  3 record which exist now: the difference is the change of the indicator.  4 its paths,
        from the root down: an indicator further down finds those above it changed.
        """
        indicators = self.tree.indicators(atom.name)
        with self._parameters(atom, atom.variables, parameters):
            noted = {leaf.keys: self._appearing(atom, leaf, change) for leaf in indicators}
            statements = [s for one in noted.values() for s in one.before]
            statements += self._path(atom.name, change)
            statements += [s for one in noted.values() for s in one.after]
        for leaf in indicators:
            with self._parameters(atom, leaf.keys, parameters):
                statements += self._path(leaf.name, list(noted[leaf.keys].change))
        return statements

    def _appearing(self, atom: Atom, leaf: View, change: list[ast.Node]) -> Appearing:
        """Declares the maps of an indicator's change."""
        columns = tuple(ast.Column(self.names[k], self.query.type_of(k)) for k in leaf.keys)
        counts = self._access(leaf, ())
        by_atom = leaf.keys == atom.variables  # then its path counts
        found = appearing(counts, columns, change, by_atom, bool(self.parameters))
        self.deltas |= {m.name: m for m in found.maps if m.name not in self.deltas}
        return found

    @contextmanager
    def _parameters(
        self, atom: Atom, variables: tuple[str, ...], parameters: tuple[str, ...]
    ) -> Iterator[None]:
        """For a trigger for single rows: these variables of an atom are its parameters; other variables of
        the same name are renamed.
        """
        if not parameters:
            yield
            return
        plain = self.names
        own = {v: p for v, p in zip(atom.variables, parameters, strict=True) if v in variables}
        rest = {v: name for v, name in plain.items() if v not in own}
        self.names, self.parameters = {**distinct(rest, parameters), **own}, parameters
        try:
            yield
        finally:
            self.names, self.parameters = plain, ()

    def _delta_relation(self, atom: Atom) -> ast.Node:
        return ast.DeltaRelation(atom.relation, self._variables(atom.variables))

    def _path(self, name: str, change: list[ast.Node]) -> list[ast.Assign]:
        """The statements that bring the change of a leaf to the root (Fig. 4.4)."""
        *above, leaf = self.tree.root.path(name)
        statements: list[ast.Assign] = []
        if leaf.materialised and not leaf.is_indicator:
            statements.append(self._assign(self._access(leaf, ()), "+=", _product(change)))
        changes: dict[Payload, list[ast.Node]] = {(): change}
        bound = set(leaf.keys)
        child = leaf
        for depth in range(len(above) - 1, -1, -1):
            view = above[depth]
            bound.update(v for other in view.children for v in other.keys)
            as_map = self.batch and self._is_map(above, depth, bound)
            found: dict[Payload, list[ast.Node]] = {}
            for payload in self._of(view):
                parts = self._changed(view, payload, child, changes)
                once = self.inline == ONCE and self._readers(above, depth, payload) == 1
                target = self.payloads.name(view, payload)
                self.changes[name, target] = "a map" if as_map and not once else "read once" if once else ""
                found[payload] = self._write(view, payload, parts, as_map and not once, statements)
            if as_map:
                bound = set(view.keys)
            changes, child = found, view
        return statements

    def _changed(
        self, view: View, payload: Payload, child: View, changes: Mapping[Payload, list[ast.Node]]
    ) -> list[ast.Node]:
        """The change of a view: that of one child times the others (3.2.4)."""
        others = [
            (other, [self._read(other, self.payloads.below(other, payload))])
            for other in view.children
            if other is not child
        ]
        change = changes[self.payloads.below(child, payload)]
        return self._multiplied(view, payload, [(child, change), *others])

    def _write(
        self, view: View, payload: Payload, parts: list[ast.Node], as_map: bool, out: list[ast.Assign]
    ) -> list[ast.Node]:
        """Writes the statements of one change; returns its factors for use further up."""
        target, definition = self._access(view, payload), self._summed(view, parts)
        if not as_map:
            if view.materialised:
                out.append(self._assign(target, "+=", definition))
            return parts if self.inline == ALL else [definition]
        name = f"DELTA_{target.name}"
        change = replace(target, name=name)
        self.deltas.setdefault(name, self._declared(name, view, payload, ast.Constant("int", 0)))
        out.append(self._assign(change, ":=", definition))
        if view.materialised:
            out.append(self._assign(target, "+=", change))
        return [change]

    def _is_map(self, above: tuple[View, ...] | list[View], depth: int, bound: set[str]) -> bool:
        """Whether the change of a view should be a separate map; ONCE counts readers besides."""
        if self.inline != ALL:
            return True
        view = above[depth]
        sums = bool(bound - set(view.keys))
        return depth > 0 and sums and self._grows(above, depth)

    def _grows(self, above: tuple[View, ...] | list[View], depth: int) -> bool:
        """Whether further up a change is joined with rows that its keys do not determine."""
        known = set(above[depth].keys)
        for at in range(depth - 1, -1, -1):
            others = [c for c in above[at].children if c is not above[at + 1]]
            if any(set(other.keys) - known for other in others):
                return True
            known = set(above[at].keys)
        return False

    def _readers(self, above: tuple[View, ...] | list[View], depth: int, payload: Payload) -> int:
        view = above[depth]
        reads = 0
        if depth > 0:
            reads = sum(self.payloads.below(view, p) == payload for p in self._of(above[depth - 1]))
        return reads + view.materialised

    # ---- expressions

    def _of(self, view: View) -> tuple[Payload, ...]:
        return ((),) if view.is_leaf else self.payloads.of(view)

    def _own(self, view: View, payload: Payload) -> list[ast.Node]:
        """The conditions and factors of a view, in M3's names."""
        nodes = [*view.conditions, *merged_lifts(list(self.payloads.own(view, payload)))]
        return [substituted(node, self.names) for node in nodes]

    def _multiplied(
        self, view: View, payload: Payload, parts: list[tuple[View, list[ast.Node]]]
    ) -> list[ast.Node]:
        """The product of what children contribute and the view's own factors; in the order of the query if
        the ring does not commute.
        """
        if not self.payloads.is_ordered(payload):
            return [node for _, nodes in parts for node in nodes] + self._own(view, payload)
        places = [(self.payloads.place(child, payload), nodes) for child, nodes in parts]
        places += [(-1, [substituted(node, self.names)]) for node in view.conditions]
        places += [
            (place, [substituted(node, self.names)]) for place, node in self.payloads.placed(view, payload)
        ]
        return arranged([nodes for _, nodes in sorted(places, key=lambda one: one[0])], self.parameters)

    def _summed(self, view: View, parts: list[ast.Node]) -> ast.Node:
        """The sum of a product by the view's keys.  Parameters of a trigger are bound: a product of nothing
        else needs no sum, and a key that is a parameter is not an output.
        """
        keys = self._variables(view.keys)
        if self.parameters:
            found = outputs_of(parts) - set(self.parameters)
            if not found:
                return _product(parts)
            keys = tuple(key for key in keys if key.name in found)
        return ast.AggSum(keys, _product(parts))

    def _access(self, view: View, payload: Payload) -> ast.MapAccess:
        name, type_ = self.payloads.name(view, payload), self.payloads.type(payload)
        return ast.MapAccess(name, type_, (), self._variables(view.keys))

    def _read(self, view: View, payload: Payload) -> ast.Node:
        """A materialised view as a factor: its entries; for an indicator, 1 where there are rows."""
        access = self._access(view, payload)
        return ast.Exists(access) if view.is_indicator else access

    def _variables(self, names: tuple[str, ...]) -> tuple[ast.Variable, ...]:
        return tuple(ast.Variable(self.names[name]) for name in names)

    def _assign(self, target: ast.MapAccess, op: str, expression: ast.Node) -> ast.Assign:
        return ast.Assign(target, op, expression)


def _product(parts: list[ast.Node]) -> ast.Node:
    return ast.product(parts) if parts else ast.Constant("int", 1)


def outputs_of(parts: list[ast.Node]) -> set[str]:
    """The variables that maps and relations of a product have; sums give their keys."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, ast.MapAccess | ast.AggSum):
            found.update(key.name for key in part.keys)
        elif isinstance(part, ast.Relation | ast.DeltaRelation):
            found.update(v.name for v in part.variables)
    return found


# Names


def lower_names(names: list[str] | tuple[str, ...]) -> dict[str, str]:
    """An M3 variable name for each: lower case, no two equal, none reserved.

    >>> lower_names(["A", "a", "in"])
    {'A': 'a', 'a': 'a_', 'in': 'in_'}
    """
    return distinct({name: identifier(name).lower() for name in names}, ())


def distinct(names: Mapping[str, str], taken: tuple[str, ...]) -> dict[str, str]:
    used, found = set(taken), {}
    for name, new in names.items():
        while new in used or is_reserved(new, DBTOASTER) or is_reserved(new, A5):
            new += "_"
        used.add(new)
        found[name] = new
    return found


def identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if re.match(r"[A-Za-z_]", plain) else f"x{plain}"


def substituted(node: ast.Node, names: Mapping[str, str]) -> ast.Node:
    """An expression with other names of its variables."""

    def renamed(part: ast.Node) -> ast.Node:
        return replace(part, name=names[part.name]) if isinstance(part, ast.Variable) else part

    return rewritten(node, renamed)
