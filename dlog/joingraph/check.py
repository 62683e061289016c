"""Owns the check of a join graph's invariants.  Reads its words one by one, with no kernel.

1 a vertex value is there exactly if a join tuple has it; its lists have exactly the join tuples of each side
  with it, each once, at the positions that they say
2 no two join tuples of an atom have the same vertex values, no two vertex values the same key
3 a join tuple has at least one payload row
4 payload rows of a join tuple are distinct, and count at least one row each; all of them the atom's rows
5 indices have every entry once, found from its hash on, and no others
6 a join tuple in the dead part of a list leads nowhere, and a reason for that is watched
7 words in use, in free lists and at the ends of slabs are all that were taken
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from dlog.joingraph import layout as at

if TYPE_CHECKING:
    from dlog.joingraph.graph import JoinGraph


def check_graph(graph: JoinGraph) -> None:
    """O(words of the graph)."""
    GraphReader(graph).check()


class GraphReader:
    """The words of a graph, read without kernels."""

    def __init__(self, graph: JoinGraph):
        self.plan, self.words, self.A = graph.plan, graph.words.tolist(), graph.arena.words
        self.vertices, self.atoms = graph.encoded.vertices, graph.encoded.atoms
        self.used = Counter[int]()
        self.values = [self.entries(v + at.V_INDEX) for v in self.vertices]
        self.tuples = [self.tuples_of(i) for i in range(len(self.atoms))]

    def check(self) -> None:
        for e in range(len(self.vertices)):
            self.check_vertex(e)
        for i in range(len(self.atoms)):
            self.check_atom(i)
        self.check_lookahead()
        self.check_memory()

    def entries(self, index: int) -> list[int]:
        """The ids in an index."""
        base, mask = self.words[index + at.I_BASE], self.words[index + at.I_MASK]
        found = []
        for place in range(mask + 1):
            entry = self.A[base + place]
            if entry:
                found.append(entry & at.ID_MASK)
                home = (entry >> at.ID_BITS) & mask
                between = range(home, place if home <= place else place + mask + 1)
                assert all(self.A[base + (p & mask)] for p in between), "an entry is not found from its hash"
        assert len(found) == self.words[index + at.I_USED], "entries are counted wrongly"
        return found

    def vertex_keys(self, e: int) -> set[tuple[int, ...]]:
        return {self.key(e, value) for value in self.values[e]}

    def described(self, i: int) -> dict[tuple[int, ...], dict[tuple[int, ...], int]]:
        """The payload rows of each join tuple, with their numbers of rows, by its vertex values."""
        planned, found = self.plan.atoms[i], dict[tuple[int, ...], dict[tuple[int, ...], int]]()
        if planned.is_leaf:
            (e,) = planned.vertices
            side = self.plan.vertices[e].side(i)
            numbers = {self.key(e, value): self.number(e, value, side) for value in self.values[e]}
            return {key: {(): number} for key, number in numbers.items() if number}
        for one in self.tuples[i]:
            ids = [self.A[one + local] & at.ID_MASK for local in range(len(planned.vertices))]
            keys = (self.key(e, value) for e, value in zip(planned.vertices, ids, strict=True))
            found[tuple(code for key in keys for code in key)] = dict(self.payload(i, one))
        return found

    # ---- vertex values and lists

    def key(self, e: int, value: int) -> tuple[int, ...]:
        return tuple(self.A[value + w] for w in range(self.keys(e)))

    def keys(self, e: int) -> int:
        return self.words[self.vertices[e] + at.V_KEYS]

    def number(self, e: int, value: int, side: int) -> int:
        return self.A[value + self.keys(e) + 2 * side + 1] & at.NUMBER_MASK

    def entries_at(self, e: int, value: int, side: int) -> list[int]:
        """The join tuples of one side of a vertex value."""
        near, number = value + self.keys(e) + 2 * side, self.number(e, value, side)
        capacity = self.A[near + 1] >> at.NUMBER_BITS
        if capacity == 0:
            assert number <= 1
            return [self.A[near]] * number
        assert number <= 1 << capacity
        return [self.A[self.A[near] + i] for i in range(number)]

    def side_atom(self, e: int, side: int) -> int:
        return self.plan.vertices[e].atoms[side]

    def check_vertex(self, e: int) -> None:
        n = len(self.values[e])
        assert len(self.vertex_keys(e)) == n, "two vertex values have the same key"
        self.used[at.VALUES] += n * self.words[self.vertices[e] + at.V_WORDS]
        for value in self.values[e]:
            assert self.number(e, value, 0) + self.number(e, value, 1) > 0, (
                "a vertex value is in no join tuple"
            )
            for side in (0, 1):
                self.check_list(e, value, side)

    def check_list(self, e: int, value: int, side: int) -> None:
        planned = self.plan.atoms[self.side_atom(e, side)]
        if planned.is_leaf:
            return
        local = planned.vertices.index(e)
        listed = self.entries_at(e, value, side)
        assert not planned.is_single or len(listed) <= 1, "a single join tuple is several"
        for position, one in enumerate(listed):
            assert self.A[one + local] & at.ID_MASK == value, "a join tuple is in the list of another value"
            assert self.A[one + local] >> at.ID_BITS == position, "a position is wrong"
        capacity = self.A[value + self.keys(e) + 2 * side + 1] >> at.NUMBER_BITS
        self.used[at.LISTS] += 1 << capacity if capacity else 0

    # ---- join tuples and payload

    def tuples_of(self, i: int) -> list[int]:
        planned = self.plan.atoms[i]
        if planned.is_leaf:
            return []
        if not planned.is_single:
            return self.entries(self.atoms[i] + at.T_INDEX)
        (e,) = planned.vertices
        side = self.plan.vertices[e].side(i)
        return [one for value in self.values[e] for one in self.entries_at(e, value, side)]

    def check_atom(self, i: int) -> None:
        planned, atom, tuples = self.plan.atoms[i], self.atoms[i], self.tuples[i]
        n, m = len(tuples), len(planned.vertices)
        assert n == len(set(tuples)) == self.words[atom + at.T_TUPLES], "join tuples are counted wrongly"
        joined = {tuple(self.A[one + local] & at.ID_MASK for local in range(m)) for one in tuples}
        assert len(joined) == n, "two join tuples have the same vertex values"
        for local, e in enumerate(planned.vertices):
            side = self.plan.vertices[e].side(i)
            if not planned.is_leaf:
                assert sum(self.number(e, value, side) for value in self.values[e]) == n, "lists lack some"
                assert {self.A[one + local] & at.ID_MASK for one in tuples} <= set(self.values[e])
        self.used[at.TUPLES] += n * self.words[atom + at.T_WORDS]
        self.check_payload(i)

    def check_payload(self, i: int) -> None:
        planned, atom = self.plan.atoms[i], self.atoms[i]
        total, indexed = 0, list[int]()
        for one in self.tuples[i]:
            rows = self.payload(i, one)
            total += sum(count for _, count in rows)
            assert rows and all(count >= 1 for _, count in rows), "a join tuple has no payload"
            assert len({row for row, _ in rows}) == len(rows), "two payload rows are the same"
            if planned.payload and len(rows) > self.words[at.G_INDEXED]:
                indexed += range(1, len(rows) + 1)
        if planned.is_leaf:
            (e,) = planned.vertices
            total = sum(self.number(e, v, self.plan.vertices[e].side(i)) for v in self.values[e])
        assert total == self.words[atom + at.T_ROWS], "rows are counted wrongly"
        assert sorted(indexed) == sorted(self.entries(atom + at.T_ROW_INDEX)), "payload rows are not indexed"

    def payload(self, i: int, one: int) -> list[tuple[tuple[int, ...], int]]:
        """(values, number of rows) of each payload row."""
        planned, atom, A = self.plan.atoms[i], self.atoms[i], self.A
        header, width = one + len(planned.vertices), self.words[atom + at.T_ROW]
        number, capacity = A[header] & at.NUMBER_MASK, A[header] >> at.NUMBER_BITS
        if not planned.payload:
            assert planned.counted or number == 1
            return [((), number)]
        assert number <= 1 << capacity
        first = header + 1 if capacity == 0 else A[header + 1]
        self.used[at.ROWS] += width << capacity if capacity else 0
        n = len(planned.payload)
        return [
            (tuple(A[row + w] for w in range(n)), A[row + n] if planned.counted else 1)
            for row in range(first, first + number * width, width)
        ]

    # ---- look-ahead

    def check_lookahead(self) -> None:
        extends = cache(self.extends)
        for e in range(len(self.vertices)):
            for value in self.values[e]:
                for side in (0, 1):
                    for one in self.dead(e, value, side):
                        i = self.side_atom(e, side)
                        assert not extends(one, i, e), "a join tuple that leads on is dead"
                        others = (f for f in self.plan.atoms[i].vertices if f != e)
                        assert any(self.is_watched(one, i, f) for f in others), "nothing is watched"

    def dead(self, e: int, value: int, side: int) -> list[int]:
        number = self.A[value + self.keys(e) + 4 + side] & at.NUMBER_MASK
        listed = [] if self.is_leaf(e, side) else self.entries_at(e, value, side)
        assert number <= len(listed), "more are dead than there are"
        return listed[len(listed) - number :]

    def is_leaf(self, e: int, side: int) -> bool:
        return self.plan.atoms[self.side_atom(e, side)].is_leaf

    def is_watched(self, one: int, i: int, f: int) -> bool:
        """Whether nothing is alive at the far side of a join tuple's vertex value, and it is watched."""
        value = self.A[one + self.plan.atoms[i].vertices.index(f)] & at.ID_MASK
        far = 1 - self.plan.vertices[f].side(i)
        look = self.A[value + self.keys(f) + 4 + far]
        return self.number(f, value, far) == look & at.NUMBER_MASK and bool(look & at.WATCHED)

    def extends(self, one: int, i: int, e: int) -> bool:
        """Whether a join tuple leads on, away from a vertex.  O(all that is behind it)."""
        for local, f in enumerate(self.plan.atoms[i].vertices):
            if f == e:
                continue
            value, far = self.A[one + local] & at.ID_MASK, 1 - self.plan.vertices[f].side(i)
            k = self.side_atom(f, far)
            if self.plan.atoms[k].is_leaf:
                if self.number(f, value, far) == 0:
                    return False
            elif not any(self.extends(other, k, f) for other in self.entries_at(f, value, far)):
                return False
        return True

    # ---- memory

    def check_memory(self) -> None:
        for kind in range(len(at.KINDS)):
            assert self.words[at.G_USED + kind] == self.used[kind], f"words of {at.KINDS[kind]} are lost"
        free = sum(
            self.chain(at.G_FREE_LISTS + log) * (1 << log) for log in range(at.CLASSES)
        )  # lists by the logarithm of their capacity
        for vertex in self.vertices:
            free += self.chain(vertex + at.V_FREE) * self.words[vertex + at.V_WORDS]
        for atom in self.atoms:
            free += self.chain(atom + at.T_FREE) * self.words[atom + at.T_WORDS]
            width = self.words[atom + at.T_ROW]
            free += sum(self.chain(atom + at.T_BLOCKS + log) * (width << log) for log in range(at.CLASSES))
        rest = self.words[at.G_SLAB_END] - self.words[at.G_SLAB] + self.words[at.G_WASTE]
        assert free + rest + sum(self.used.values()) == self.words[at.G_SLABS], "words are lost"

    def chain(self, head: int) -> int:
        """The length of a list of free memory."""
        record, n = self.words[head], 0
        while record:
            record, n = self.A[record], n + 1
        return n
