"""Owns variable order -> view tree: views (3.2.3), chain compression (4.9.1), materialisation (Fig. 4.5).

Knows no M3 statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dlog.m3.syntax import ast
from dlog.views.query import Query, variables_of
from dlog.views.tree.indicators import with_indicators
from dlog.views.tree.tree import OrderNode, VariableOrder, View, ViewTree, atom_of
from dlog.views.tree.written_order import contiguous_homes

NEEDED, PATHS = "needed", "paths"  # which views are materialised


def view_tree(query: Query, order: VariableOrder, compress: bool = True, keep: str = NEEDED) -> ViewTree:
    """The views of a query along an order.

    A view is materialised if it is the root, if the change of its parent by a stream that is not
    below it reads it (Fig. 4.5), or if the order has the hint.  With keep=PATHS also all views on the delta
    path of a stream are, as in the listings of 4.8.  Materialised views of a cyclic join have indicators.
    """
    root = _Builder(query, order).root()
    if compress:
        root = _compressed(root)
    while True:  # changes of an indicator read more views, which are then materialised, too
        counted = _counted(root, query)
        root = _marked(root, None, frozenset(query.streams), counted, keep)
        bounded = with_indicators(root, query)
        if bounded is root:
            return ViewTree(root, order)
        root = bounded


class _Builder:
    def __init__(self, query: Query, order: VariableOrder):
        self.query, self.order = query, order
        self.paths = {v: order.path(v) for v in order.variables}
        self.bound = _bound(query, order)
        self.needed_up_to: dict[str, set[str | None]] = {v: set() for v in order.variables}
        self.factors = self._applied(contiguous_homes(query, self._homes(query.factors), order.parents))
        self.conditions = self._applied(self._homes(query.conditions))

    def root(self) -> View:
        roots = tuple(map(self._view, self.order.roots))
        if len(roots) == 1 and not (self.factors.get(None) or self.conditions.get(None)):
            return roots[0]
        if len(roots) == 1:  # constants are factors of the root
            more, also = self.factors.get(None, ()), self.conditions.get(None, ())
            return replace(
                roots[0], factors=(*roots[0].factors, *more), conditions=(*roots[0].conditions, *also)
            )
        return self._joined(self._name(), (), roots, None)

    def _name(self) -> str:
        """Of the view above several roots."""
        name = self.query.name
        while name in self.query.variables:
            name += "_"
        return name

    def _view(self, node: OrderNode) -> View:
        leaves = (self._leaf(name) for name in node.atoms)
        children = (*map(self._view, node.children), *leaves)
        view = self._joined(node.variable, node.depends, children, node.variable)
        return replace(view, variables=(node.variable,), cache=node.cache)

    def _joined(
        self, name: str, depends: tuple[str, ...], children: tuple[View, ...], variable: str | None
    ) -> View:
        keys = [key for child in children for key in child.keys if self._stays_key(key, variable)]
        below = {r for child in children for r in child.relations}
        return View(
            name,
            tuple(dict.fromkeys((*depends, *(key for key in keys if key == variable), *keys))),
            tuple(atom.name for atom in self.query.atoms if atom.name in below),
            children=children,
            factors=self.factors.get(variable, ()),
            conditions=self.conditions.get(variable, ()),
        )

    def _leaf(self, name: str) -> View:
        return View(name, self.query.atom(name).variables, (name,), atom=name)

    def _stays_key(self, key: str, variable: str | None) -> bool:
        """Whether the view at a variable has a key that is not above it: free, or needed further up."""
        if key in self.query.free:
            return True
        above: tuple[str | None, ...] = (None, *self.paths[variable][:-1]) if variable is not None else ()
        return any(home in above for home in self.needed_up_to[key])

    def _homes(self, nodes: Iterable[ast.Node]) -> dict[ast.Node, str | None]:
        """The variable at whose view each expression is applied: from its lowest variable upwards, the
        first below which atoms have all of its variables.  None: above all roots.
        """
        return {node: self._home(used) if (used := variables_of(node)) else None for node in nodes}

    def _applied(self, homes: Mapping[ast.Node, str | None]) -> dict[str | None, tuple[ast.Node, ...]]:
        """Expressions by their homes; their variables stay keys up to there."""
        found: dict[str | None, tuple[ast.Node, ...]] = {}
        for node, home in homes.items():
            found[home] = (*found.get(home, ()), node)
            for variable in variables_of(node):
                self.needed_up_to[variable].add(home)
        return found

    def _home(self, variables: tuple[str, ...]) -> str | None:
        lowest = max(variables, key=lambda v: len(self.paths[v]))
        for variable in reversed(self.paths[lowest]):
            if self.bound[variable].issuperset(variables):
                return variable
        return None


def _bound(query: Query, order: VariableOrder) -> dict[str, frozenset[str]]:
    """The variables of the atoms at or below each variable."""
    found: dict[str, frozenset[str]] = {}
    for node in reversed(list(order.walk())):
        own = (v for name in node.atoms for v in query.atom(name).variables)
        found[node.variable] = frozenset(own).union(*(found[c.variable] for c in node.children))
    return found


def _compressed(view: View) -> View:
    """A view and its only child are merged into one that sums out the variables of both."""
    while len(view.children) == 1 and not view.children[0].is_leaf:
        child = view.children[0]
        view = replace(
            view,
            variables=(*view.variables, *child.variables),
            children=child.children,
            factors=(*view.factors, *child.factors),
            conditions=(*view.conditions, *child.conditions),
            cache=view.cache or child.cache,
        )
    return replace(view, children=tuple(map(_compressed, view.children)))


def _counted(root: View, query: Query) -> frozenset[str]:
    """The atoms whose rows give an indicator of all their variables."""
    indicators = ((view.atom, len(view.keys)) for view in root.walk() if view.is_indicator)
    return frozenset(atom for atom, n in indicators if atom and n == len(query.atom(atom).variables))


def _marked(
    view: View, parent: View | None, streams: frozenset[str], counted: frozenset[str], keep: str
) -> View:
    changes = tuple(r for r in view.relations if atom_of(r) in streams)
    return replace(
        view,
        children=tuple(_marked(child, view, streams, counted, keep) for child in view.children),
        changes=changes,
        materialised=bool(_reasons(view, parent, streams, counted, keep)),
    )


def _reasons(
    view: View, parent: View | None, streams: frozenset[str], counted: frozenset[str], keep: str
) -> list[str]:
    """Why a view is materialised; none if it is not.  O(relations)."""
    changes = any(atom_of(r) in streams for r in view.relations)
    found = ["it is the result"] if parent is None else []
    if parent is not None:  # Fig. 4.5: (rels(parent) \ rels) ∩ U is not empty
        readers = [r for r in parent.relations if atom_of(r) in streams and r not in view.relations]
        found += [f"changes of {', '.join(readers)} read it at {parent.name}"] if readers else []
    if keep == PATHS and changes and not view.is_leaf:
        found.append("it is on a delta path, and nothing is optimised")
    if view.atom in counted or (view.is_indicator and changes):
        found.append("an indicator counts its rows")
    return [*found, "the variable order asks for it"] if view.cache else found


def materialised_because(
    tree: ViewTree, query: Query, keep: str = NEEDED
) -> Iterator[tuple[View, list[str]]]:
    """Every view, parents first, with the reasons for which it is materialised."""
    streams, counted = frozenset(query.streams), _counted(tree.root, query)
    for view in tree.walk():
        yield view, _reasons(view, tree.parents.get(id(view)), streams, counted, keep)
