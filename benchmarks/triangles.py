"""Triangles and 4-cliques of a power-law graph: the join kernel, a hand-written loop, DuckDB on one thread.

Every graph has each edge once, from the smaller to the greater number; numbers are independent of degrees.
Plans are written here by hand: the planner's plans of the same rules are another benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.harness import Aim, Row, at_least, duck, faster, timed, within
from dlog.jit import Words, kernel
from dlog.lftj.assemble import Assembled, assemble
from dlog.lftj.plan import Count, Emit, Leap, Plan
from dlog.lftj.triejoin import Join
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.trie_kernels import lub
from dlog.storage.layout import ENTRY, FANOUT, FOLD, LEAF_ROWS, NODE_FIRST, NODE_ROWS, ROOT_HEADER

EDGES, CLIQUE_EDGES = 1_000_000, 100_000
RUNS = 9
BATCH = 1 << 14  # rows that the hand-written loop stores, as many as fit a cache
LEAF_FILLS = (LEAF_ROWS // 2, LEAF_ROWS + 1)  # rows of the leaves of an index after random updates
NODE_FILL = FANOUT * 7 // 10

# triangle(x, y, z) <- e(x, y), e(y, z), e(x, z).
TRIANGLE = (Leap(0, ((0, 0), (2, 0))), Leap(1, ((0, 1), (1, 0))), Leap(2, ((1, 1), (2, 1))))
# clique(x, y, z, w) <- e(x, y), e(x, z), e(x, w), e(y, z), e(y, w), e(z, w).
CLIQUE = (
    Leap(0, ((0, 0), (1, 0), (2, 0))),
    Leap(1, ((0, 1), (3, 0), (4, 0))),
    Leap(2, ((1, 1), (3, 1), (5, 0))),
    Leap(3, ((2, 1), (4, 1), (5, 1))),
)
TRIANGLE_SQL = "from e xy join e yz on xy.b = yz.a join e xz on xz.a = xy.a and xz.b = yz.b"
CLIQUE_SQL = TRIANGLE_SQL + (
    " join e xw on xw.a = xy.a join e yw on yw.a = xy.b and yw.b = xw.b"
    " join e zw on zw.a = yz.b and zw.b = xw.b"
)


def benchmark(scale: float) -> Iterator[Row]:
    edges, clique_edges = at_least(2000, EDGES * scale), at_least(2000, CLIQUE_EDGES * scale)
    source, target = power_law(edges, edges // 10)
    yield from kernels("triangle", source, target, 3, TRIANGLE, TRIANGLE_SQL, faster(5))
    source, target = power_law(clique_edges, clique_edges // 20)
    yield from kernels("4-clique", source, target, 6, CLIQUE, CLIQUE_SQL, faster(50))


def kernels(
    name: str, source: Words, target: Words, atoms: int, steps: tuple[Leap, ...], sql: str, aim: Aim
) -> Iterator[Row]:
    counting = assemble(Plan((2,) * atoms, (*steps, Count())))
    listing = assemble(Plan((2,) * atoms, (*steps, Emit(tuple(range(len(steps)))))))
    flat_index, paged_index = flat(source, target), paged(source, target)
    connection = duck(e=pa.table({"a": source, "b": target}))
    size = f"{len(source):,} edges"
    count = {
        "count": lambda: join(counting, *flat_index).count(),
        "paged": lambda: join(counting, *paged_index).count(),
        "list": lambda: sum(map(len, join(listing, *flat_index).batches())),
    }
    if len(steps) == 3:
        offsets = np.searchsorted(source, np.arange(target.max() + 2))
        count["hand"] = lambda: count_triangles(offsets, target)
        rows = np.empty(3 * BATCH, np.int64)
        count["hand list"] = lambda: list_triangles(offsets, target, rows)
    columns = ", ".join(f"{c} c{i}" for i, c in enumerate(("xy.a", "xy.b", "yz.b", "xw.b")[: len(steps)]))
    ours = timed(count, RUNS)
    duckdb = {
        "count": lambda: connection.execute(f"select count(*) {sql}").fetchall()[0][0],
        "list": lambda: len(connection.execute(f"select {columns} {sql}").fetchnumpy()["c0"]),
    }
    theirs = timed(duckdb, 2)
    assert len({m.result for m in (*ours.values(), *theirs.values())}) == 1
    yield Row(f"{name} kernel, count", size, ours["count"].seconds, theirs["count"].seconds, "DuckDB", aim)
    yield Row(f"{name} kernel, list", size, ours["list"].seconds, theirs["list"].seconds, "DuckDB", aim)
    if "hand" in ours:
        hand = ours["hand"].seconds
        yield Row(f"{name} kernel, count", size, ours["count"].seconds, hand, "by hand", within(1.6))
        hand = ours["hand list"].seconds
        yield Row(f"{name} kernel, list", size, ours["list"].seconds, hand, "by hand", within(1.6))
    fresh, changed = ours["count"].seconds, ours["paged"].seconds
    yield Row(f"{name} kernel, after updates", size, changed, fresh, "freshly loaded", within(1.5))


def join(assembled: Assembled, words: Words, root: int) -> Join:
    return Join(assembled, words, [root] * len(assembled.ranges))


def power_law(edges: int, vertices: int, exponent: float = 0.6) -> tuple[Words, Words]:
    """Distinct edges whose ends are drawn with weight rank ** -exponent, under shuffled numbers, sorted."""
    random = np.random.default_rng(1)
    weights = np.cumsum(np.arange(1, vertices + 1) ** -exponent)
    numbers = random.permutation(vertices)
    keys = np.empty(0, np.int64)
    while len(keys) < edges:
        ends = numbers[np.searchsorted(weights, random.random((2, edges)) * weights[-1])]
        drawn = ends.min(axis=0) * vertices + ends.max(axis=0)
        keys = np.unique(np.concatenate([keys, drawn[ends[0] != ends[1]]]))
    keys = np.sort(random.permutation(keys)[:edges])
    return keys // vertices, keys % vertices


def flat(source: Words, target: Words) -> tuple[Words, int]:
    """(Words, root) of a freshly loaded index."""
    n = len(source)
    return np.concatenate([header(0, n, 2, ROOT_HEADER, n), source, target]), 0


def paged(source: Words, target: Words) -> tuple[Words, int]:
    """(Words, root) of an index as random updates leave it: leaves half to all full, anywhere in memory."""
    random = np.random.default_rng(2)
    n, stride = len(source), LEAF_FILLS[1] - 1
    cuts = np.minimum(n, np.cumsum([0, *random.integers(*LEAF_FILLS, n // LEAF_FILLS[0] + 1)]))
    cuts = cuts[: int(np.searchsorted(cuts, n)) + 1]
    places = random.permutation(len(cuts) - 1) * 2 * stride
    words = np.zeros(2 * stride * len(places), np.int64)
    entries = []
    for place, lo, hi in zip(places, cuts, cuts[1:], strict=False):
        words[place : place + hi - lo] = source[lo:hi]
        words[place + stride : place + stride + hi - lo] = target[lo:hi]
        entries.append([place, stride, hi - lo, 0])
    nodes: list[int] = []
    tail: list[int] = []
    for first in range(0, len(entries), NODE_FILL):
        part = entries[first : first + NODE_FILL]
        nodes.append(len(words) + len(tail))
        tail += [len(part), sum(entry[2] for entry in part), 0, 0]
        tail += [word for entry in part for word in entry] + [0] * (ENTRY * (FANOUT - len(part)))
        tail += [int(words[place]) for place, _, _, _ in part]  # first keys
    firsts = [tail[node - len(words) + NODE_FIRST] for node in nodes]
    folds, sums = len(words) + len(tail), [tail[node - len(words) + NODE_ROWS] for node in nodes]
    while len(sums) >= FOLD:  # rows below FOLD nodes, below FOLD of these, and so on
        sums = [sum(sums[i : i + FOLD]) for i in range(0, len(sums), FOLD)]
        tail += sums
    root = len(words) + len(tail)
    first_words = header(len(nodes), n, 2, -1, 0, len(nodes), 0, 0, folds)
    return np.concatenate([words, tail, first_words, nodes, firsts]).astype(np.int64), root


def header(*words: int) -> list[int]:
    """Of a root."""
    return [*words, *[0] * (ROOT_HEADER - len(words))]


@kernel
def count_triangles(offsets: Words, target: Words) -> int:
    """The loop one would write for this one query: neighbours by offset, merged or galloped through."""
    at, to = pointer(offsets), pointer(target)
    total = 0
    for x in range(len(offsets) - 1):
        for edge in range(at[x], at[x + 1]):
            i, i_end = at[x], at[x + 1]
            j, j_end = at[to[edge]], at[to[edge] + 1]
            if i_end - i > j_end - j:
                i, i_end, j, j_end = j, j_end, i, i_end
            if j_end - j > 4 * (i_end - i):
                while i < i_end and j < j_end:
                    j = lub(to, j, j_end, to[i])
                    total += j < j_end and to[j] == to[i]
                    i += 1
            else:
                while i < i_end and j < j_end:
                    a, b = to[i], to[j]
                    total += a == b
                    i += a <= b
                    j += b <= a
    return total


@kernel
def list_triangles(offsets: Words, target: Words, rows: Words) -> int:
    """The same loop, which writes each triangle into the next of a batch's rows, over and over."""
    at, to = pointer(offsets), pointer(target)
    row, total = 0, 0
    for x in range(len(offsets) - 1):
        for edge in range(at[x], at[x + 1]):
            i, i_end = at[x], at[x + 1]
            j, j_end = at[to[edge]], at[to[edge] + 1]
            if i_end - i > j_end - j:
                i, i_end, j, j_end = j, j_end, i, i_end
            gallop = j_end - j > 4 * (i_end - i)
            while i < i_end and j < j_end:
                if gallop:
                    j = lub(to, j, j_end, to[i])
                    if j == j_end:
                        break
                a, b = to[i], to[j]
                if a == b:
                    row = 0 if row + 3 > len(rows) else row
                    rows[row], rows[row + 1], rows[row + 2] = x, to[edge], a
                    row += 3
                    total += 1
                i += gallop or a <= b
                j += not gallop and b <= a
    return total
