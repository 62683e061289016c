"""Owns a join graph: its memory, the changes since the last `settle`, and how it is read.

Correct output.  After any changes, the graph is that of the rows that its relations then have.  `apply` gives
the difference of the view: each row with the number of assignments that it gains (+) or loses (-); one row
may come several times, with numbers that add up.

Knows nothing of rules, types and transactions: rows are arrays of codes.  See `plan` for what a graph
consists of, and `layout` for how that is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dlog.errors import LimitError
from dlog.jit import Words
from dlog.joingraph import layout as at
from dlog.joingraph.body import COMPARISONS
from dlog.joingraph.build_kernels import build_atom
from dlog.joingraph.change_kernels import change_rows, read_view
from dlog.joingraph.encoding import encode
from dlog.joingraph.memory_kernels import move_index
from dlog.joingraph.plan import Plan
from dlog.storage.arena.arena import Arena
from dlog.storage.index.sort import sorted_columns

LOOKAHEADS = {"none": at.NONE, "local": at.LOCAL, "marks": at.MARKS}
SMALLEST = 32  # words of an index
OUT_ROWS = 1 << 10  # of the buffer that is used again
GROWTH = 4
FEW = 64  # rows that are inserted one by one
COMPARED = np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal
TESTS: Mapping[str, Callable[..., Any]] = dict(zip(COMPARISONS, COMPARED, strict=True))
NO_ROWS = np.zeros(0, np.int64)


class ViewRows(NamedTuple):
    """Rows of the view, or of its difference: an array for each output, and how often each row counts."""

    columns: list[Words]
    counts: Words


# A part of a change: an atom, what was done, the rows, and to how many (of an update, twice that many).
Applied = tuple[int, int, Words | Sequence[Sequence[int]], int]


class JoinGraph:
    """The join graph of a plan, at first of empty relations.

    >>> from dlog.joingraph.body import Atom, Body
    >>> from dlog.joingraph.plan import plan_graph
    >>> body = Body((Atom("follower", ("u", "f")), Atom("tweet", ("u", "t"))), ("f", "t"))
    >>> graph = JoinGraph(plan_graph(body))
    >>> graph.apply("follower", inserted=np.array([[1, 7], [1, 8]])).counts
    array([], dtype=int64)
    >>> columns, counts = graph.apply("tweet", inserted=np.array([[1, 70]]))
    >>> sorted(zip(*(c.tolist() for c in columns))), counts.tolist()
    ([(7, 70), (8, 70)], [1, 1])

    A transaction calls `apply` for each relation that has changed, with net rows: rows that are inserted were
    not there, and rows that are erased were.  Then `settle`, or `undo`, which brings back the graph that was
    there at the last `settle`.
    """

    def __init__(self, plan: Plan, lookahead: str = "marks"):
        self.plan = plan
        self.arena = Arena(8 * at.ID_MASK, in_large_pages=True)
        self.encoded = encode(plan, LOOKAHEADS[lookahead])
        self.words, self.state = self.encoded.words, self.encoded.state
        self._state = self.state.data  # reads and writes one word 4 times as fast as numpy
        self._atoms = {relation: plan.atoms_of(relation) for relation in plan.body.relations}
        self._records: dict[int, int] = {}
        self._buffer = np.empty((len(plan.body.outputs) + 1) * OUT_ROWS, np.int64)
        self.applied: list[Applied] = []
        for index in self.encoded.indices:
            self._make_index(index, SMALLEST)

    # ---- changes

    def apply(
        self,
        relation: str,
        erased: Words | None = None,
        inserted: Words | None = None,
        updated: tuple[Words, Words] | None = None,
        wanted: bool = True,
    ) -> ViewRows:
        """Change the rows of a relation, and return the difference of the view; no rows, unless `wanted`.

        Each argument has a row for each row; `updated` are rows before and, in the same order, after: rows
        that belong together, because one replaces the other, for example with the same key.  Nothing differs
        from erasing the first and inserting the second but the cost: a row that keeps its vertex values is
        searched once.

        O(rows + join tuples entered + rows of the view).
        """
        found = self._output()
        for mode, rows in ((at.ERASE, erased), (at.UPDATE, _pairs(updated)), (at.INSERT, inserted)):
            if rows is not None and len(rows):
                for atom in self._atoms[relation]:
                    self._change(atom, mode, np.ascontiguousarray(rows, np.int64), wanted, found)
        return found.view_rows(self._state[at.S_OUT])

    def build(self, relations: Mapping[str, Words]) -> None:
        """Insert all rows of the relations.  REQUIRES: an empty graph.  O(rows), and sorting them.

        Measured with 500,000 rows, sorting included, against inserting them: 12 ns a row against 26 for a
        leaf, 39 against 63 for 20 rows at a vertex value, 65 against 75 for five at a join tuple of two
        vertices, and as long, 178 ns, for one at each.  So a change that is a part of the rows never pays to
        build all of them again.
        """
        for relation in self.plan.body.relations:
            for atom in self.plan.atoms_of(relation):
                rows = np.ascontiguousarray(relations[relation], np.int64)
                if len(rows) < FEW:
                    self._change(atom, at.INSERT, rows, False, self._output())
                else:
                    self._build_atom(atom, grouped(self.plan, atom, rows))
        self.settle()

    def _build_atom(self, atom: int, rows: Words) -> None:
        """All rows of an atom, which pass its filters and are in the order of `grouped`."""
        state, found = self._state, np.empty(max(1, len(rows)), np.int64)
        state[at.S_CHANGED], state[at.S_N] = self.encoded.atoms[atom], len(rows)
        state[at.S_NEXT] = state[at.S_OUT] = 0
        flat = rows.reshape(-1)
        while (code := build_atom(self.arena.A, self.words, self.state, flat, found)) != at.DONE:
            self.make_room(code)

    def whole(self) -> ViewRows:
        """The view.  O(vertex values of one vertex + join tuples entered + rows)."""
        fewest = min(range(len(self.plan.vertices)), key=self._paths_at)
        found = self._output()
        state = self._state
        state[at.S_SEARCH] = self.encoded.wholes[fewest]
        state[at.S_SLOT], state[at.S_PHASE] = 0, 0
        state[at.S_SIGN], state[at.S_PAIR] = 1, -1
        self.run(read_view, found)
        return found.view_rows(state[at.S_OUT])

    def _paths_at(self, vertex: int) -> tuple[int, int]:
        """The fewer join tuples, or rows of a leaf, on a side of a vertex; its values."""
        words, encoded = self.words, self.encoded
        atoms = (encoded.atoms[atom] for atom in self.plan.vertices[vertex].atoms)
        fewer = min(int(words[a + (at.T_ROWS if words[a + at.T_LEAF] else at.T_TUPLES)]) for a in atoms)
        return fewer, int(words[encoded.vertices[vertex] + at.V_INDEX + at.I_USED])

    def settle(self) -> None:
        """The changes so far will not be undone."""
        self.applied.clear()

    def undo(self) -> None:
        """Undo all changes since `settle`, also of a call that did not finish.  O(their rows)."""
        self.words[at.G_RESERVE] = 0
        while self.applied:
            atom, mode, rows, n = self.applied.pop()
            for back, part in _reverse(mode, np.asarray(rows, np.int64), n):
                self._change(atom, back, part, False, self._output())
                self.applied.pop()
        self.words[at.G_RESERVE] = at.RESERVED

    def _change(self, atom: int, mode: int, rows: Words, wanted: bool, found: Output) -> None:
        """Change rows of one atom; what was done is noted, also if that is only a part."""
        state = self._state
        state[at.S_CHANGED], state[at.S_MODE] = self.encoded.atoms[atom], mode
        state[at.S_N] = len(rows) // 2 if mode == at.UPDATE else len(rows)
        state[at.S_NEXT] = state[at.S_APPLIED] = state[at.S_PHASE] = 0
        state[at.S_EMITS] = int(wanted)
        try:
            self.run(change_rows, found, rows.reshape(-1))
        finally:
            self.applied.append((atom, mode, rows, state[at.S_APPLIED]))

    def run(self, kernel: Callable[..., int], found: Output, *rows: Words) -> None:
        """Call a kernel until it is done."""
        while True:
            self._state[at.S_CAPACITY] = found.capacity
            code = kernel(self.arena.A, self.words, self.state, *rows, found.buffer)
            if code == at.DONE:
                return
            self.make_room(code, found)

    def make_room(self, code: int, found: Output | None = None) -> None:
        """What a kernel has stopped for; it is then called again."""
        if code == at.FULL:
            assert found is not None
            found.grow(self._state[at.S_OUT])
        elif code == at.GROW:
            self._grow(self._state[at.S_GROW])
        else:
            _fail(code)

    def _output(self) -> Output:
        """No rows yet."""
        self._state[at.S_OUT] = 0
        return Output(len(self.plan.body.outputs) + 1, self._buffer)

    # ---- memory

    def _make_index(self, index: int, size: int) -> None:
        """An empty index."""
        with self.arena.lock:
            self._records[index], base = self.arena.new_extent(size)
        self.arena.A[base : base + size] = 0
        self.words[index + at.I_BASE], self.words[index + at.I_MASK] = base, size - 1

    def _grow(self, index: int) -> None:
        """An index of twice the size.  O(size)."""
        old, record = int(self.words[index + at.I_BASE]), self._records[index]
        size = int(self.words[index + at.I_MASK]) + 1
        self._make_index(index, 2 * size)
        move_index(self.arena.A, self.words, index, old, size)
        with self.arena.lock:
            self.arena.release_extent(record)

    @property
    def visits(self) -> int:
        """Join tuples that all searches so far have entered, and leaves."""
        return self._state[at.S_VISITS]

    def memory(self) -> dict[str, int]:
        """Bytes, by what they are used for."""
        words = self.words
        used = {kind: 8 * int(words[at.G_USED + i]) for i, kind in enumerate(at.KINDS)}
        slabs = 8 * int(words[at.G_SLABS])
        used["indices"] = 8 * sum(int(words[index + at.I_MASK]) + 1 for index in self.encoded.indices)
        used["free"] = slabs - sum(used[kind] for kind in at.KINDS)
        used["plans"] = words.nbytes + self.state.nbytes
        return used

    def check(self) -> None:
        """Assert every invariant of the graph.  O(its words), in Python."""
        from dlog.joingraph.check import check_graph

        check_graph(self)


class Output:
    """Where kernels write rows: at first a buffer that a graph uses again and again, then larger ones.

    Column c of a buffer begins at c * capacity.
    """

    def __init__(self, width: int, buffer: Words):
        self.width, self.buffer, self.is_own = width, buffer, False
        self.capacity = len(buffer) // width

    def grow(self, n: int) -> None:
        """A larger buffer with the first n rows."""
        old = self.rows(n)
        self.capacity = int(GROWTH * self.capacity)
        self.buffer = np.empty(self.capacity * self.width, np.int64)
        self.rows(n)[:] = old
        self.is_own = True

    def rows(self, n: int) -> Words:
        return self.buffer.reshape(self.width, -1)[:, :n]

    def view_rows(self, n: int) -> ViewRows:
        rows = self.rows(n) if self.is_own else self.rows(n).copy()
        return ViewRows(list(rows[:-1]), rows[-1])


def grouped(plan: Plan, atom: int, rows: Words) -> Words:
    """The rows that pass an atom's filters, sorted by its vertices and then by its payload.

    >>> from dlog.joingraph.body import Atom, Body
    >>> from dlog.joingraph.plan import plan_graph
    >>> plan = plan_graph(Body((Atom("follower", ("u", "f")), Atom("tweet", ("t", "u"))), ("f", "t")))
    >>> grouped(plan, 1, np.array([[70, 2], [72, 1], [71, 2]])).tolist()
    [[72, 1], [70, 2], [71, 2]]
    """
    planned = plan.atoms[atom]
    for test in planned.filters:
        right = test.right if test.is_code else rows[:, test.right]
        rows = rows[TESTS[test.op](rows[:, test.left], right)]
    joined = [planned.atom.column(v) for e in planned.vertices for v in plan.vertices[e].variables]
    payload = [planned.atom.column(v) for v in planned.payload]
    order = list(dict.fromkeys((*joined, *payload, *range(rows.shape[1]))))
    found = np.empty_like(rows)
    for column, words in zip(order, sorted_columns([rows[:, c] for c in order]), strict=True):
        found[:, column] = words
    return found


def _pairs(updated: tuple[Words, Words] | None) -> Words | None:
    """Each row before with the row after it."""
    if updated is None:
        return None
    before, after = updated
    assert before.shape == after.shape
    return np.stack([before, after], axis=1).reshape(-1, before.shape[1])


def _reverse(mode: int, rows: Words, n: int) -> list[tuple[int, Words]]:
    """What undoes the first n steps of a change."""
    if mode == at.INSERT:
        return [(at.ERASE, rows[:n])]
    if mode == at.ERASE:
        return [(at.INSERT, rows[:n])]
    before, after = rows[0::2], rows[1::2]
    erased, inserted = after[: n // 2], before[: (n + 1) // 2]
    return [(at.ERASE, np.ascontiguousarray(erased)), (at.INSERT, np.ascontiguousarray(inserted))]


def _fail(code: int) -> None:
    if code == at.NO_ROOM:
        raise LimitError("a join graph needs more than 32 GiB of memory")
    if code == at.TOO_MANY:
        raise LimitError("one row of a join has more than 2**63 assignments")
    raise AssertionError("a row is erased that is not in the join graph")
