"""Owns which views of a cyclic join get which indicator projections.  Knows no M3 statements.

The view over S and T of R(a, b), S(b, c), T(c, a) has a row for every pair (a, b) that S and T connect, which
may be far more than R has.  Multiplied by ∃R[a, b], it has rows for pairs of R alone; the result is the same,
since further up the view is joined with R.

A view gets the indicators without which its join would be acyclic and with which it is not: those that are
left, with its children, after GYO has removed everything it can (`cyclic_core`).  Only materialised views get
any: others are never stored.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.planning.join_tree import cyclic_core
from dlog.views.query import Query
from dlog.views.tree.tree import EXISTS, View


def with_indicators(root: View, query: Query) -> View:
    """The tree with the indicators of its materialised views; the same object if there are none to add.

    >>> from dlog.m3 import ast
    >>> from dlog.views.query import Atom
    >>> atoms = tuple(Atom(name, tuple(columns)) for name, columns in (("R", "ab"), ("S", "bc"), ("T", "ca")))
    >>> r, s, t = (View(a.name, a.variables, (a.name,), atom=a.name) for a in atoms)
    >>> below = View("c", ("a", "b"), ("S", "T"), ("c",), (s, t), materialised=True)
    >>> root = View("a", (), ("R", "S", "T"), ("a", "b"), (below, r))
    >>> query = Query(tuple(ast.Source(ast.STREAM, a.name, ()) for a in atoms), atoms, ())
    >>> [(leaf.name, leaf.keys) for leaf in with_indicators(root, query).children[0].children]
    [('S', ('b', 'c')), ('T', ('c', 'a')), ('∃R', ('a', 'b'))]

    O(views * relations^3).
    """
    if query.is_acyclic:
        return root
    return _Adder(query, root).added(root)


class _Adder:
    def __init__(self, query: Query, root: View):
        self.query, self.streams = query, set(query.streams)
        self.taken = {view.name for view in root.walk() if view.is_indicator}

    def added(self, view: View) -> View:
        """The view with indicators in it and below it."""
        below = tuple(map(self.added, view.children))
        new = self._indicators(view)
        if not new and all(a is b for a, b in zip(below, view.children, strict=True)):
            return view
        children = (*below, *new)
        names = dict.fromkeys(name for child in children for name in child.relations)
        atoms = (atom.name for atom in self.query.atoms if atom.name in names)
        relations = (*atoms, *(name for name in names if name.startswith(EXISTS)))
        return replace(view, children=children, relations=relations)

    def _indicators(self, view: View) -> list[View]:
        has = any(child.is_indicator for child in view.children)
        if view.is_leaf or has or not view.materialised:
            return []
        known = {key for child in view.children for key in child.keys}
        outside = [atom for atom in self.query.atoms if atom.name not in view.relations]
        outside.sort(
            key=lambda atom: atom.name not in self.streams
        )  # tables preferred, as they do not change
        edges = [tuple(v for v in atom.variables if v in known) for atom in outside]
        core = cyclic_core([*edges, *(child.keys for child in view.children)])
        return [self._leaf(outside[i].name, edges[i]) for i in core if i < len(edges) and len(core) > 1]

    def _leaf(self, atom: str, keys: tuple[str, ...]) -> View:
        name = f"{EXISTS}{atom}"
        while name in self.taken:
            name += "'"
        self.taken.add(name)
        return View(name, keys, (name,), atom=atom, is_indicator=True)
