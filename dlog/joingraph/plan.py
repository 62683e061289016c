"""Owns the plan of a join graph: which columns of an atom join with which others, and how paths are searched.

The atoms of an acyclic body form a tree (`dlog.planning.join_tree`).  A *vertex* is an edge of that tree with
the variables that both its atoms have: two atoms that agree on them have the same *vertex value*.  A *join
tuple* is one combination of an atom's vertex values; its *payload* are the values of variables that are
needed and not in a vertex of the atom.  A *path* is one join tuple for each atom, connected by vertex values.

A search begins at a changed row, or, for the whole view, at each value of a vertex, and goes through the
other atoms in preorder of the tree: so all that is behind a join tuple follows it without a gap, and if
nothing of it is found, the join tuple leads nowhere.  Payload rows come last, except where a comparison
needs them earlier.

Knows nothing of arrays (`layout` has them) and nothing of rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from dlog.joingraph.body import Atom, Body, Comparison, Operand
from dlog.planning.join_tree import join_tree

MOST_ATOMS = 64


@dataclass(frozen=True)
class Refusal:
    """Why a body has no join graph."""

    reason: str


@dataclass(frozen=True)
class Vertex:
    """An edge of the join tree: two atoms, and the variables on which they join, in order."""

    atoms: tuple[int, int]
    variables: tuple[str, ...]

    def side(self, atom: int) -> int:
        return self.atoms.index(atom)

    def other(self, atom: int) -> int:
        return self.atoms[1 - self.side(atom)]


@dataclass(frozen=True)
class RowFilter:
    """A test of a row before it enters the graph: column `left` against a column, or a code."""

    op: str
    left: int
    right: int
    is_code: bool


@dataclass(frozen=True)
class PlannedAtom:
    """An atom in the graph.

    vertices   the edges of the tree at the atom, by number
    payload    variables whose values its join tuples have beside their vertex values
    counted    several rows may give one payload row: their number is stored
    """

    atom: Atom
    filters: tuple[RowFilter, ...]
    vertices: tuple[int, ...]
    payload: tuple[str, ...]
    counted: bool

    @property
    def is_leaf(self) -> bool:
        """Whether the number of rows beside a vertex value is all there is to know: no join tuples."""
        return len(self.vertices) == 1 and not self.payload

    @property
    def is_single(self) -> bool:
        """Whether a vertex value has at most one join tuple of this atom."""
        return len(self.vertices) == 1


@dataclass(frozen=True)
class Enter:
    """Bind the join tuples of an atom that have the value of a vertex which is already bound.

    parent   the step that bound the vertex; -1: the start
    end      the step after all that is behind this atom
    """

    atom: int
    vertex: int
    parent: int
    end: int
    tests: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class Payload:
    """Bind the payload rows of an atom's join tuple."""

    atom: int
    tests: tuple[Comparison, ...] = ()


Step: TypeAlias = Enter | Payload


@dataclass(frozen=True)
class Search:
    """All paths through a row of an atom, or through all values of a vertex."""

    atom: int | None
    vertex: int | None
    steps: tuple[Step, ...]

    @cached_property
    def pairs_updates(self) -> bool:
        """Whether rows that differ in their payload have the same paths: no comparison tells them apart."""
        return self.atom is not None and not any(step.tests for step in self.steps)


@dataclass(frozen=True)
class Plan:
    """`searches[i]` begins at atom i, `wholes[e]` at vertex e."""

    body: Body
    atoms: tuple[PlannedAtom, ...]
    vertices: tuple[Vertex, ...]
    searches: tuple[Search, ...]
    wholes: tuple[Search, ...]

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables whose values a search needs: outputs first."""
        return needed(self.body, _residual(self.body))

    def atoms_of(self, relation: str) -> list[int]:
        return [i for i, planned in enumerate(self.atoms) if planned.atom.relation == relation]


def plan_graph(body: Body) -> Plan | Refusal:
    """The plan of a body, or why there is none.

    >>> atoms = (Atom("r", ("a", "b")), Atom("s", ("b", "c")), Atom("t", ("c", "a")))
    >>> plan_graph(Body(atoms, ("a",)))
    Refusal(reason='its atoms join in a cycle')
    >>> plan = plan_graph(Body(atoms[:2], ("a", "c")))
    >>> [(atom.vertices, atom.payload) for atom in plan.atoms], plan.vertices[0].variables
    ([((0,), ('a',)), ((0,), ('c',))], ('b',))
    """
    body.check()
    if len(body.atoms) < 2:
        return Refusal("it has one atom: nothing is joined")
    if len(body.atoms) > MOST_ATOMS:
        return Refusal(f"it has more than {MOST_ATOMS} atoms")
    tree = join_tree([atom.variables for atom in body.atoms])
    if tree is None:
        return Refusal("its atoms join in a cycle")
    vertices = tuple(_vertex(body, one, other) for one, other in tree)
    residual = _residual(body)
    atoms = tuple(_planned(body, i, vertices, needed(body, residual)) for i in range(len(body.atoms)))
    searches = tuple(_search(atoms, vertices, residual, atom=i) for i in range(len(atoms)))
    wholes = tuple(_search(atoms, vertices, residual, vertex=e) for e in range(len(vertices)))
    return Plan(body, atoms, vertices, searches, wholes)


def _vertex(body: Body, one: int, other: int) -> Vertex:
    shared = set(body.atoms[other].variables)
    return Vertex((one, other), tuple(v for v in body.atoms[one].variables if v in shared))


def _residual(body: Body) -> list[Comparison]:
    """The comparisons that no atom alone decides."""
    atoms = [set(atom.variables) for atom in body.atoms]
    return [c for c in body.comparisons if not any(c.variables <= variables for variables in atoms)]


def needed(body: Body, residual: Sequence[Comparison]) -> tuple[str, ...]:
    compared = sorted({v for comparison in residual for v in comparison.variables})
    return tuple(dict.fromkeys((*body.outputs, *compared)))


def _planned(body: Body, i: int, vertices: Sequence[Vertex], wanted: Sequence[str]) -> PlannedAtom:
    atom = body.atoms[i]
    own = tuple(e for e, vertex in enumerate(vertices) if i in vertex.atoms)
    joined = {v for e in own for v in vertices[e].variables}
    payload = tuple(v for v in atom.variables if v in wanted and v not in joined)
    counted = not set(atom.variables) <= joined | set(payload)
    return PlannedAtom(atom, tuple(_row_filters(body, atom)), own, payload, counted)


def _row_filters(body: Body, atom: Atom) -> Iterator[RowFilter]:
    """Constants, repeated variables, and all comparisons that the row decides."""
    for column, arg in enumerate(atom.args):
        if isinstance(arg, int):
            yield RowFilter("=", column, arg, True)
        elif atom.column(arg) != column:
            yield RowFilter("=", column, atom.column(arg), False)
    for comparison in body.comparisons:
        if comparison.variables <= set(atom.variables):
            yield _row_filter(atom, comparison)


def _row_filter(atom: Atom, comparison: Comparison) -> RowFilter:
    op, left, right = oriented(comparison)
    if isinstance(right, str):
        return RowFilter(op, atom.column(left), atom.column(right), False)
    return RowFilter(op, atom.column(left), right, True)


MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def oriented(comparison: Comparison) -> tuple[str, str, Operand]:
    """With a variable on the left.

    >>> oriented(Comparison("<", 3, "x"))
    ('>', 'x', 3)
    """
    if isinstance(comparison.left, str):
        return comparison.op, comparison.left, comparison.right
    assert isinstance(comparison.right, str)
    return MIRRORED[comparison.op], comparison.right, comparison.left


# ---- searches


def _search(
    atoms: Sequence[PlannedAtom],
    vertices: Sequence[Vertex],
    residual: Sequence[Comparison],
    atom: int | None = None,
    vertex: int | None = None,
) -> Search:
    maker = _Steps(atoms, vertices, residual)
    if atom is not None:
        maker.known.update(atoms[atom].atom.variables)
        maker.behind(atom, None, -1)
    else:
        assert vertex is not None
        maker.known.update(vertices[vertex].variables)
        for side in vertices[vertex].atoms:
            maker.enter(side, vertex, -1)
    for i in maker.late:
        maker.payload(i)
    assert not maker.waiting
    return Search(atom, vertex, tuple(maker.steps))


class _Steps:
    """The steps of one search while they are made; `known` are the variables that are bound."""

    def __init__(
        self, atoms: Sequence[PlannedAtom], vertices: Sequence[Vertex], residual: Sequence[Comparison]
    ):
        self.atoms, self.vertices = atoms, vertices
        self.waiting = list(residual)
        self.steps: list[Step] = []
        self.late: list[int] = []
        self.known: set[str] = set()

    def behind(self, atom: int, through: int | None, step: int) -> None:
        """Enter all that hangs on an atom; leaves first, since they may end the search at once."""
        further = [e for e in self.atoms[atom].vertices if e != through]
        further.sort(key=lambda e: not self.atoms[self.vertices[e].other(atom)].is_leaf)
        for e in further:
            self.enter(self.vertices[e].other(atom), e, step)

    def enter(self, atom: int, vertex: int, parent: int) -> None:
        own = self.atoms[atom]
        place = len(self.steps)
        self.known.update(v for e in own.vertices for v in self.vertices[e].variables)
        self.steps.append(Enter(atom, vertex, parent, 0, self._tests()))
        if any(comparison.variables & set(own.payload) for comparison in self.waiting):
            self.payload(atom)
        elif own.payload:
            self.late.append(atom)
        self.behind(atom, vertex, place)
        entered = self.steps[place]
        assert isinstance(entered, Enter)
        self.steps[place] = Enter(atom, vertex, parent, len(self.steps), entered.tests)

    def payload(self, atom: int) -> None:
        self.known.update(self.atoms[atom].payload)
        self.steps.append(Payload(atom, self._tests()))

    def _tests(self) -> tuple[Comparison, ...]:
        """The comparisons that can be decided now and could not before."""
        ready = tuple(c for c in self.waiting if c.variables <= self.known)
        self.waiting = [c for c in self.waiting if c not in ready]
        return ready
