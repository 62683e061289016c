"""M3 programs that maintain a query without views (P0, chapter 6), for comparison with view trees.

They run on the same runtime, over the same variable order, so that only the algorithm differs:

    first-order IVM   relations are stored, and the result.  A change of the result is computed by a query
                      over the relations, factorised along the variable order, whose sums are not stored.
    re-evaluation     relations are stored.  After every batch every view is computed again from them.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from dlog.views.m3.program import EXPORTED, Writer
from dlog.views.query import Query
from dlog.views.tree.build import view_tree
from dlog.views.tree.payloads import Payload
from dlog.views.tree.tree import VariableOrder, View, ViewTree


def first_order(query: Query, order: VariableOrder) -> ast.Program:
    tree = view_tree(query, order)
    stored = ViewTree(_stored(tree.root, tree.root, inner=False), order)
    return check(_FirstOrder(query, stored, EXPORTED).program())


def again(query: Query, order: VariableOrder) -> ast.Program:
    tree = view_tree(query, order)
    stored = ViewTree(_stored(tree.root, tree.root, inner=True), order)
    return check(_Again(query, stored, EXPORTED).program())


def _stored(view: View, root: View, inner: bool) -> View:
    """The views that are maps: relations, the result, and if `inner` all others."""
    below = tuple(_stored(child, root, inner) for child in view.children)
    return replace(view, children=below, materialised=inner or view.is_leaf or view is root)


class _FirstOrder(Writer):
    def _read(self, view: View, payload: Payload) -> ast.Node:
        """A view that is not stored is a query over those below it."""
        if view.materialised:
            return super()._read(view, payload)
        return self._definition(view, payload, kept=True)


class _Again(Writer):
    def _triggers(self, source: ast.Source) -> list[ast.Trigger]:
        (atom,) = self.query.atoms_of(source.name)
        leaf = self.tree.leaf(atom.name)
        assert leaf is not None
        counted = self._assign(self._access(leaf, ()), "+=", self._delta_relation(atom))
        views = [view for view in reversed(list(self.tree.walk())) if not view.is_leaf]
        computed = [
            self._assign(self._access(view, payload), ":=", self._definition(view, payload, kept=True))
            for view in views
            for payload in self._of(view)
        ]
        return [ast.Trigger(ast.BATCH, source.name, (), (counted, *computed))]
