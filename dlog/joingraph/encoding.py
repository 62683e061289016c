"""Owns the translation of a plan to the words that kernels read: see `layout`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlog.jit import Words
from dlog.joingraph import layout as at
from dlog.joingraph.body import COMPARISONS, Comparison
from dlog.joingraph.plan import Enter, Payload, Plan, PlannedAtom, Search, Step, Vertex, oriented


@dataclass(frozen=True)
class Encoded:
    """The header, an empty state, and where things are in them."""

    words: Words
    state: Words
    vertices: tuple[int, ...]
    atoms: tuple[int, ...]
    wholes: tuple[int, ...]

    @property
    def indices(self) -> list[int]:
        """The addresses of all indices."""
        own = [i for atom in self.atoms for i in (atom + at.T_INDEX, atom + at.T_ROW_INDEX)]
        return [vertex + at.V_INDEX for vertex in self.vertices] + own


def encode(plan: Plan, lookahead: int) -> Encoded:
    return _Encoder(plan).encode(lookahead)


class _Encoder:
    """Words are appended to `lists`, which come after those of vertices and atoms."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.vertices = [at.GLOBAL + i * at.VERTEX for i in range(len(plan.vertices))]
        first = at.GLOBAL + len(plan.vertices) * at.VERTEX
        self.atoms = [first + i * at.ATOM for i in range(len(plan.atoms))]
        self.start = first + len(plan.atoms) * at.ATOM
        self.lists: list[int] = []
        # The state: registers of vertices, of join tuples, slots of variables, levels.
        self.registers = at.STATE
        self.tuples = self.registers + len(plan.vertices)
        self.slots = self.tuples + len(plan.atoms)
        self.levels = self.slots + 2 * len(plan.variables)

    def encode(self, lookahead: int) -> Encoded:
        plan = self.plan
        words = np.zeros(self.start, np.int64)
        words[at.G_LOOKAHEAD] = lookahead
        words[at.G_INDEXED] = at.INDEXED
        words[at.G_RESERVE] = at.RESERVED
        words[at.G_STACK] = self.put([0] * at.FRAME * (len(plan.vertices) + 1))
        words[at.G_VERTICES], words[at.G_ATOMS] = len(plan.vertices), len(plan.atoms)
        for i, vertex in enumerate(plan.vertices):
            words[self.vertices[i] : self.vertices[i] + at.VERTEX] = self.vertex(i, vertex)
        for i, atom in enumerate(plan.atoms):
            words[self.atoms[i] : self.atoms[i] + at.ATOM] = self.atom(i, atom)
        for i, search in enumerate(plan.searches):
            words[self.atoms[i] + at.T_SEARCH] = self.search(search)
        wholes = tuple(self.search(search) for search in plan.wholes)
        return Encoded(
            np.concatenate([words, np.array(self.lists, np.int64)]),
            self.state(),
            tuple(self.vertices),
            tuple(self.atoms),
            wholes,
        )

    def state(self) -> Words:
        most = max(len(search.steps) for search in (*self.plan.searches, *self.plan.wholes))
        state = np.zeros(self.levels + (most + 2) * at.LEVEL, np.int64)
        state[at.S_LEVELS_AT] = self.levels
        state[at.S_PAIR] = state[at.S_ROW] = -1
        return state

    def put(self, words: Sequence[int]) -> int:
        """Where these words will be."""
        self.lists.extend(words)
        return self.start + len(self.lists) - len(words)

    def vertex(self, i: int, vertex: Vertex) -> list[int]:
        keys = len(vertex.variables)
        sides: list[int] = []
        for atom in vertex.atoms:
            planned = self.plan.atoms[atom]
            sides += [self.atoms[atom], planned.vertices.index(i), int(planned.is_leaf)]
        return [keys, keys + 6, 0, 0, 0, 0, *sides]

    def atom(self, i: int, planned: PlannedAtom) -> list[int]:
        atom, payload = planned.atom, len(planned.payload)
        row = payload + int(planned.counted) if payload else 0
        joins = self.put([word for e in planned.vertices for word in self.join(i, planned, e)])
        joined = [atom.column(v) for e in planned.vertices for v in self.plan.vertices[e].variables]
        filters = [w for f in planned.filters for w in _comparison(f.op, f.left, f.right, f.is_code)]
        words = [0] * at.ATOM
        words[at.T_VERTICES], words[at.T_ARITY] = len(planned.vertices), len(atom.args)
        words[at.T_PAYLOAD], words[at.T_COUNTED], words[at.T_ROW] = payload, int(planned.counted), row
        words[at.T_WORDS] = len(planned.vertices) + 1 + row
        words[at.T_LEAF] = int(planned.is_leaf)
        words[at.T_FILTERS], words[at.T_FILTERS_AT] = len(planned.filters), self.put(filters)
        words[at.T_JOINS_AT] = joins
        words[at.T_PAYLOAD_AT] = self.put([atom.column(v) for v in planned.payload])
        words[at.T_JOINED], words[at.T_JOINED_AT] = len(joined), self.put(joined)
        return words

    def join(self, i: int, planned: PlannedAtom, e: int) -> list[int]:
        vertex, keys = self.plan.vertices[e], len(self.plan.vertices[e].variables)
        side = vertex.side(i)
        return [
            self.vertices[e],
            side,
            self.registers + e,
            self.put([planned.atom.column(v) for v in vertex.variables]),
            keys + 2 * (1 - side) + 1,
            keys + 2 * side,
            keys + 4 + side,
            keys + 4 + 1 - side,
        ]

    # ---- searches

    def slot(self, variable: str) -> int:
        return self.slots + self.plan.variables.index(variable)

    def search(self, search: Search) -> int:
        plan, last = self.plan, search.steps[-1]
        block = isinstance(last, Payload) and not last.tests
        known: set[str] = set()
        loads: list[int] = []
        if search.atom is not None:
            atom = plan.atoms[search.atom].atom
            source = {v: atom.column(v) for v in atom.variables}
        else:
            assert search.vertex is not None
            source = {v: w for w, v in enumerate(plan.vertices[search.vertex].variables)}
        for variable, place in source.items():
            if variable in plan.variables:
                loads += [place, self.slot(variable)]
                known.add(variable)
        steps = [word for step in search.steps for word in self.step(step, known)]
        words = [0] * at.SEARCH
        words[at.P_STEPS], words[at.P_STEPS_AT] = len(search.steps), self.put(steps)
        words[at.P_LOADS], words[at.P_LOADS_AT] = len(loads) // 2, self.put(loads)
        words[at.P_OUTPUTS] = len(plan.body.outputs)
        words[at.P_OUTPUTS_AT] = self.put(self.outputs(last.atom if block else None, source))
        words[at.P_AFTER] = len(plan.variables)
        words[at.P_BLOCK], words[at.P_PAIRS] = int(block), int(search.pairs_updates)
        if search.vertex is not None:
            words[at.P_VERTEX] = self.vertices[search.vertex]
            words[at.P_REGISTER] = self.registers + search.vertex
        return self.put(words)

    def outputs(self, atom: int | None, start: Mapping[str, int]) -> list[int]:
        """(payload word of the last step or -1, slot, slot for the row after an update) of each output."""
        payload = self.plan.atoms[atom].payload if atom is not None else ()
        words: list[int] = []
        for variable in self.plan.body.outputs:
            after = self.slot(variable) + (len(self.plan.variables) if variable in start else 0)
            words += [payload.index(variable) if variable in payload else -1, self.slot(variable), after]
        return words

    def step(self, step: Step, known: set[str]) -> list[int]:
        """`known`: the variables that are loaded, to which it adds its own."""
        words = [0] * at.STEP
        words[at.K_ATOM] = self.atoms[step.atom]
        words[at.K_TUPLE] = self.tuples + step.atom
        if isinstance(step, Payload):
            words[at.K_KIND], words[at.K_PARENT], words[at.K_END] = at.PAYLOAD, -1, 0
            loads = [w for i, v in enumerate(self.plan.atoms[step.atom].payload) for w in (i, self.slot(v))]
            words[at.K_LOADS], words[at.K_LOADS_AT] = len(loads) // 2, self.put(loads)
        else:
            self.enter(step, known, words)
        tests = [word for test in step.tests for word in self.test(test)]
        words[at.K_TESTS], words[at.K_TESTS_AT] = len(step.tests), self.put(tests)
        return words

    def enter(self, step: Enter, known: set[str], words: list[int]) -> None:
        planned, vertex = self.plan.atoms[step.atom], self.plan.vertices[step.vertex]
        keys, side = len(vertex.variables), vertex.side(step.atom)
        words[at.K_KIND] = at.LEAF if planned.is_leaf else at.ENTER
        words[at.K_REGISTER] = self.registers + step.vertex
        words[at.K_NEAR], words[at.K_LOOK] = keys + 2 * side, keys + 4 + side
        words[at.K_PARENT], words[at.K_END] = step.parent, step.end
        words[at.K_LOCAL] = planned.vertices.index(step.vertex)
        others = [e for e in planned.vertices if e != step.vertex]
        words[at.K_OTHERS] = len(others)
        words[at.K_OTHERS_AT] = self.put([w for e in others for w in self.other(step.atom, planned, e)])
        loads: list[int] = []
        for e in others:
            for word, variable in enumerate(self.plan.vertices[e].variables):
                if variable in self.plan.variables and variable not in known:
                    loads += [self.registers + e, word, self.slot(variable)]
                    known.add(variable)
        words[at.K_LOADS], words[at.K_LOADS_AT] = len(loads) // 3, self.put(loads)

    def other(self, atom: int, planned: PlannedAtom, e: int) -> tuple[int, int, int, int]:
        vertex = self.plan.vertices[e]
        far = 1 - vertex.side(atom)
        keys = len(vertex.variables)
        return planned.vertices.index(e), self.registers + e, keys + 2 * far + 1, keys + 4 + far

    def test(self, comparison: Comparison) -> tuple[int, int, int, int]:
        op, left, right = oriented(comparison)
        if isinstance(right, int):
            return _comparison(op, self.slot(left), right, True)
        return _comparison(op, self.slot(left), self.slot(right), False)


def _comparison(op: str, left: int, right: int, is_code: bool) -> tuple[int, int, int, int]:
    return COMPARISONS.index(op), left, right, int(is_code)
