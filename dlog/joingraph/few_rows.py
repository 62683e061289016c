"""Owns changes of a few rows of one relation and one sign: all that does not depend on the rows is prepared.

What they do to the view stays where the kernel has written it until the next change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct

import numpy as np

from dlog.jit import Words
from dlog.joingraph import layout as at
from dlog.joingraph.change_kernels import change_rows
from dlog.joingraph.graph import OUT_ROWS, JoinGraph, Output

Rows = Sequence[Sequence[int]] | Words


class FewRows:
    """Word c * capacity + i of `out.buffer` is column c of row i; the last column has how many assignments a
    row gains (+) or loses (-).

    >>> from dlog.joingraph.body import Atom, Body
    >>> from dlog.joingraph.plan import plan_graph
    >>> body = Body((Atom("follower", ("u", "f")), Atom("tweet", ("u", "t"))), ("f", "t"))
    >>> graph = JoinGraph(plan_graph(body))
    >>> FewRows(graph, "follower", inserts=True).apply([(1, 7), (1, 8)])
    0
    >>> tweets = FewRows(graph, "tweet", inserts=True)
    >>> tweets.apply([(1, 70)]), tweets.out.rows(2).tolist()
    (2, [[7, 8], [70, 70], [1, 1]])
    """

    def __init__(self, graph: JoinGraph, relation: str, inserts: bool):
        self.graph, self.mode = graph, at.INSERT if inserts else at.ERASE
        self.atoms = [(atom, graph.encoded.atoms[atom]) for atom in graph.plan.atoms_of(relation)]
        arity = len(graph.plan.atoms[self.atoms[0][0]].atom.args)
        own = self.atoms[0][0] if len(self.atoms) == 1 else None
        # Whether a row of the view may have several assignments through one row.
        self.may_repeat = any(atom.counted for i, atom in enumerate(graph.plan.atoms) if i != own)
        self.width = len(graph.plan.body.outputs) + 1
        self.out = Output(self.width, np.empty(self.width * OUT_ROWS, np.int64))
        self._row = np.zeros(arity, np.int64)
        self._put = Struct(f"{arity}q").pack_into
        self._given = (graph.arena.A, graph.words, graph.state)
        self._state = graph.state.data
        self._kernel: Callable[..., int] = change_rows

    def apply(self, rows: Rows) -> int:
        """How many rows of the view come, or go; one may be written several times.

        Raises what `JoinGraph.apply` raises, and is undone like it.
        """
        state = self._state
        state[at.S_OUT] = 0
        state[at.S_CAPACITY] = self.out.capacity
        for atom, place in self.atoms:
            if len(rows) == 1:
                self._put(self._row.data, 0, *rows[0])
                given = self._row
            else:
                given = np.ascontiguousarray(rows, np.int64).reshape(-1)
            state[at.S_CHANGED], state[at.S_MODE], state[at.S_N] = place, self.mode, len(rows)
            state[at.S_NEXT] = state[at.S_APPLIED] = state[at.S_PHASE] = 0
            state[at.S_EMITS] = 1
            try:
                if code := self._kernel(*self._given, given, self.out.buffer):
                    self.resume(code, given)
            finally:
                self.note(atom, rows)
        self._kernel = getattr(self._kernel, "target", self._kernel)  # without 0.2 us of finding it
        return state[at.S_OUT]

    def resume(self, code: int, given: Words) -> None:
        """Carry on with rows for which the kernel has given a code."""
        self.graph.make_room(code, self.out)
        self.graph.run(change_rows, self.out, given)

    def note(self, atom: int, rows: Rows) -> None:
        """What the kernel has done, so that it can be undone."""
        self.graph.applied.append((atom, self.mode, rows, self._state[at.S_APPLIED]))
