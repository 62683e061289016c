"""Owns variable orders and view trees as data: nodes, their hierarchy, and what changes what.  Knows neither
how they are found nor how they are used.

Variable order (2.3.3): a forest with one node for each variable of a query, in which the variables of each
atom are on one path from a root down.  dep(X) are the ancestors of X that share an atom with X or with a
variable below it.  An atom hangs as a leaf under the lowest of its variables (Fig. 3.2).

View tree (3.2.3): one view V@X for each variable X, the join of the views of its children with X summed out
unless it is free; and one view for each atom.  Chain compression (4.9.1) lets one view sum out several
variables.  The view at the root is the query.

Indicator projection: a leaf `∃R[a, b]` at a view that R does not belong to, 1 where R has a row with these
values.  It changes no result, since the view is joined with R further up, and limits a view of a cyclic join
to the size of R (`dlog.views.tree.indicators`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dlog.m3.syntax import ast

EXISTS = "\N{THERE EXISTS}"  # begins the names of indicators: ∃R, and ∃R' where there is one already


def atom_of(name: str) -> str:
    """The atom of a leaf, by the leaf's name.

    >>> atom_of("R"), atom_of("∃R'")
    ('R', 'R')
    """
    return name.removeprefix(EXISTS).rstrip("'")


# Variable orders


@dataclass(frozen=True)
class OrderNode:
    """A variable with what hangs below it: other variables, and the atoms (by name) whose lowest variable it
    is.

    `depends` is dep(X), from the root down.  `cache` is a hint that the view here should be materialised.
    """

    variable: str
    depends: tuple[str, ...] = ()
    children: tuple[OrderNode, ...] = ()
    atoms: tuple[str, ...] = ()
    cache: bool = False

    def walk(self) -> Iterator[OrderNode]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class VariableOrder:
    """A forest.  Several roots are parts of a query that share no variable."""

    roots: tuple[OrderNode, ...]

    def walk(self) -> Iterator[OrderNode]:
        for root in self.roots:
            yield from root.walk()

    def node(self, variable: str) -> OrderNode | None:
        return next((node for node in self.walk() if node.variable == variable), None)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple(node.variable for node in self.walk())

    @cached_property
    def parents(self) -> dict[str, str | None]:
        """The variable above each variable; None above roots."""
        above: dict[str, str | None] = {root.variable: None for root in self.roots}
        for node in self.walk():
            above.update((child.variable, node.variable) for child in node.children)
        return above

    def path(self, variable: str) -> tuple[str, ...]:
        """The variables from the root down to this one."""
        upwards: list[str] = []
        at: str | None = variable
        while at is not None:
            upwards.append(at)
            at = self.parents[at]
        return tuple(reversed(upwards))


# View trees


@dataclass(frozen=True)
class View:
    """A node of a view tree: `V@X over relations [keys]`, or the view of an atom.

    `name`     X, the topmost variable that is summed out or a key here; the atom's name for a leaf
    `variables` the variables of the order that this view covers, from the top down: one, or several after
               chain compression; none for a leaf, and for the view above several roots
    `keys`     its schema: dep(X), then free variables and those that a factor further up needs, each once
    `relations` the names of the atoms below, in the query's order, then those of indicators
    `children` views that are joined here
    `factors`  lifting functions that are applied here: those of the query whose variables are all known here
               and not further down (each term of the query uses only its own)
    `conditions` likewise
    `atom`     of a leaf, the atom's name, also of an indicator; else None
    `materialised` whether the view is stored as a map
    `changes`  the atoms of streams below, and their indicators: this view is on the delta path of each
    `is_indicator` of a leaf: it is `∃atom`; materialised, the rows of the atom are counted by its keys
    """

    name: str
    keys: tuple[str, ...]
    relations: tuple[str, ...]
    variables: tuple[str, ...] = ()
    children: tuple[View, ...] = ()
    factors: tuple[ast.Node, ...] = ()
    conditions: tuple[ast.Node, ...] = ()
    atom: str | None = None
    materialised: bool = False
    changes: tuple[str, ...] = ()
    is_indicator: bool = False
    cache: bool = field(default=False, compare=False)

    @property
    def is_leaf(self) -> bool:
        return self.atom is not None

    @property
    def atoms(self) -> tuple[str, ...]:
        """The atoms below that are joined: `relations` without indicators."""
        return tuple(name for name in self.relations if not name.startswith(EXISTS))

    @property
    def summed(self) -> tuple[str, ...]:
        """The variables that are summed out here: its own from the top down, then those that stayed for a
        factor; others of `variables` are free, or stay keys.
        """
        below = (key for child in self.children for key in child.keys)
        return tuple(v for v in dict.fromkeys((*self.variables, *below)) if v not in self.keys)

    def walk(self) -> Iterator[View]:
        """This view and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def path(self, atom: str) -> tuple[View, ...]:
        """The delta path of an atom (3.2.4): the views over it, from here down to its leaf.

        REQUIRES: the atom is below.
        """
        below = next((child for child in self.children if atom in child.relations), None)
        return (self, *(below.path(atom) if below is not None else ()))


@dataclass(frozen=True)
class ViewTree:
    """The views of a query along a variable order.  `root` is the whole query.

    The name of a view's map is `AGG_VIEW_` and its name; of a leaf's, `VIEW_` and the atom's name, of an
    indicator's `INDICATOR_` and the names of atom and keys; the change of a view is `DELTA_AGG_VIEW_` and its
    name.
    """

    root: View
    order: VariableOrder

    def walk(self) -> Iterator[View]:
        return self.root.walk()

    def view(self, name: str) -> View | None:
        """The inner view of that name."""
        return next((view for view in self.walk() if view.name == name and not view.is_leaf), None)

    def leaf(self, atom: str) -> View | None:
        return next((view for view in self.walk() if view.atom == atom and not view.is_indicator), None)

    def indicators(self, atom: str) -> tuple[View, ...]:
        """The indicators of an atom, those nearest to the root first."""
        found = [view for view in self.walk() if view.is_indicator and view.atom == atom]
        return tuple(sorted(found, key=lambda view: len(self.root.path(view.name))))

    @cached_property
    def parents(self) -> dict[int, View]:
        """The view above each view, by identity: `tree.parents.get(id(view))`."""
        return {id(child): view for view in self.walk() for child in view.children}
