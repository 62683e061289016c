"""Lists of records: all paths of a layered graph, and queens on a board, against kernels written by hand.

The kernels by hand know their program and the sizes of their tables. Paths: one row for each path, and one
record; a table finds the record of (node, record before). Queens: partial boards as lists, checked field by
field; the rows of `check` are stored, too, but nothing detects whether one comes twice, since none does. Both
find every record once, as the rules say, and return the number of results. Neither sorts its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import dlog
from benchmarks.harness import Row, at_least, compare, within
from dlog.jit import Words, helper, kernel, pointer

PATHS = """
.type Path = [node: number, before: Path]
.decl edge(x: number, y: number)
.decl start(x: number)
.decl path(x: number, p: Path)
path(x, [x, nil]) :- start(x).
path(y, [y, p]) :- path(x, p), edge(x, y).
"""
QUEENS = """
.type Board = [row: number, rest: Board]
.decl row(r: number)
.decl size(n: number)
.decl placed(k: number, b: Board)
placed(0, nil).
.decl check(k: number, b: Board, r: number, d: number, rest: Board)
check(k, b, r, 1, b) :- placed(k, b), size(n), k < n, row(r).
check(k, b, r, d + 1, t) :- check(k, b, r, d, [s, t]), s != r, s != r + d, s != r - d.
placed(k + 1, [r, b]) :- check(k, b, r, _, nil).
"""
LAYERS, FAN = 14, 2


def benchmark(scale: float) -> Iterator[Row]:
    width = at_least(FAN, 100 * scale)
    targets = layered(width)
    edges = np.stack([np.repeat(np.arange(len(targets) // FAN), FAN), targets], axis=1)
    yield from compare(
        "paths as lists of records",
        f"{paths_by_hand(targets, width):,} paths",
        partial(paths, edges, width),
        {"by hand": partial(paths_by_hand, targets, width)},
        {"by hand": within(2)},
    )
    n = at_least(5, 9 * scale)
    yield from compare(
        "queens, boards as lists of records",
        f"{n} x {n}, {queens_by_hand(n):,} solutions",
        partial(queens, n),
        {"by hand": partial(queens_by_hand, n)},
        {"by hand": within(2)},
    )


def layered(width: int) -> Words:
    """Where the edges of each node lead, FAN of them: node i of a layer is number layer * width + i."""
    rng = np.random.default_rng(3)
    layers = [
        (layer + 1) * width + np.argsort(rng.random((width, width)), axis=1)[:, :FAN]
        for layer in range(LAYERS - 1)
    ]
    return np.concatenate(layers).reshape(-1).astype(np.int64)


def evaluated(program: str, facts: dict[str, Words]) -> dlog.Database:
    database = dlog.Database(source=program, evaluated=False)
    for name, rows in facts.items():
        database.store.relations[name].apply_in_place(inserts=rows)
    database.complete()
    return database


def paths(edges: Words, width: int) -> int:
    database = evaluated(PATHS, {"edge": edges, "start": np.arange(width)[:, None]})
    return len(database.relation("path"))


def queens(n: int) -> int:
    numbers = np.arange(1, n + 1)[:, None]
    database = evaluated(QUEENS, {"row": numbers, "size": numbers[-1:]})
    rows = database.relation("placed").rows()
    return int(np.count_nonzero(rows[:, 0] == n))


# By hand: records are pairs of words, found by a hash table of their places


def paths_by_hand(targets: Words, width: int) -> int:
    most = width * (FAN**LAYERS - 1)
    bits = (2 * most).bit_length()
    nodes, before = np.empty(most, np.int64), np.empty(most, np.int64)
    return int(all_paths(targets, width, FAN, nodes, before, np.zeros(1 << bits, np.int64)))


def queens_by_hand(n: int) -> int:
    most = 1 << (2 * n)
    rows, rest, checks = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(20 * most, np.int64)
    return int(all_boards(n, rows, rest, np.empty(most, np.int64), checks, np.zeros(4 * most, np.int64)))


@helper
def place_of(first, second, firsts, seconds, used, slots, mask):
    """The place of a record; `used` if it is new, and then it is stored there."""
    hashed = (first * 0x6C8E9CF5) ^ (second * 0x4F1BBCDD)
    slot = (hashed ^ (hashed >> 29)) & mask
    while slots[slot] != 0:
        place = slots[slot] - 1
        if firsts[place] == first and seconds[place] == second:
            return place
        slot = (slot + 1) & mask
    slots[slot] = used + 1
    firsts[used] = first
    seconds[used] = second
    return used


@kernel
def all_paths(
    target_words: Words, width: int, fan: int, node_words: Words, before_words: Words, slot_words: Words
) -> int:
    """The number of paths.  A path and its record are the same thing, so its place stands for both."""
    targets, nodes, before = pointer(target_words), pointer(node_words), pointer(before_words)
    slots, mask, used = pointer(slot_words), len(slot_words) - 1, 0
    for i in range(width):
        used += place_of(i, -1, nodes, before, used, slots, mask) == used
    done = 0
    while done < used:
        if nodes[done] * fan < len(target_words):
            for k in range(fan):
                target = targets[nodes[done] * fan + k]
                used += place_of(target, done, nodes, before, used, slots, mask) == used
        done += 1
    return used


@helper
def noted(checks, at, size, board, row, distance, rest):
    """Where the next row of `check` comes, after this one is stored."""
    checks[at] = size
    checks[at + 1] = board
    checks[at + 2] = row
    checks[at + 3] = distance
    checks[at + 4] = rest
    return at + 5


@kernel
def all_boards(
    n: int, row_words: Words, rest_words: Words, size_words: Words, check_words: Words, slot_words: Words
) -> int:
    """The number of boards with n queens."""
    rows, rest, sizes = pointer(row_words), pointer(rest_words), pointer(size_words)
    slots, mask, checks = pointer(slot_words), len(slot_words) - 1, pointer(check_words)
    rows[0], rest[0], sizes[0] = 0, -1, 0
    used, done, found, checked = 1, 0, 0, 0
    while done < used:
        if sizes[done] == n:
            found += 1
        else:
            for row in range(1, n + 1):
                board, distance = done, 1
                checked = noted(checks, checked, sizes[done], done, row, distance, board)
                while board > 0 and rows[board] != row and abs(rows[board] - row) != distance:
                    board = rest[board]
                    distance += 1
                    checked = noted(checks, checked, sizes[done], done, row, distance, board)
                if board == 0:
                    place = place_of(row, done, rows, rest, used, slots, mask)
                    if place == used:
                        sizes[place] = sizes[done] + 1
                        used += 1
        done += 1
    return found
