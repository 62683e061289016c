"""Owns the kernel of transactions of one row over a rule that is kept by its trace, in one call from Python.

1 the row goes into every index.  2 its surgeries are matched with the watches of the rule: contributions.
3 old and new version are evaluated under the oracle.  4 what their outputs and notes differ in is found, and
the notes go into new versions of the sensitivity indices.

What is done is as `dlog.sensitivity.upkeep` does it in steps.  All that a rule needs is data: see `SHAPE`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.engine.one_row_kernels import NOTHING, TOO_LARGE
from dlog.jit import Words, helper, kernel
from dlog.lftj.machine import attach
from dlog.lftj.opcodes import DONE, NEXTS, OPENS, SEEKS, STATUS
from dlog.lftj.trace_machine import run_traced_on
from dlog.sensitivity.kernels import flatten, prefixed, row_changes, sort_few
from dlog.storage.arena_kernels import ROW, release_root
from dlog.storage.delta_kernels import deepest
from dlog.storage.interval_kernels import POINT, STATE_WORDS, stab
from dlog.storage.leaf_kernels import ERASE, INSERT
from dlog.storage.pointer import pointer, pointer_at
from dlog.storage.row_kernels import NEEDS_BATCH, UNCHANGED, change_row

# Words of the shape.
ARITY: Final = 0
OP: Final = 1
N_ORDERS: Final = 2
N_ATOMS: Final = 3
N_WATCHES: Final = 4
WIDTH: Final = 5  # key variables
N_NOTES: Final = 6
CAPACITY: Final = 7  # rows of an output, of a note, and contributions
BUDGET: Final = 8
COLUMNS: Final = 9
FILLS: Final = 10
GUIDE: Final = 11
INITIAL: Final = 12  # words of the state before the guide
SHAPE: Final = 16

# Words of an atom: places of the roots that it reads, old and new, and its order if it reads the row's own
# predicate, else -1.
ATOM: Final = 3
# Words of a watch: its atom, level, depth, note (-1: not traced), wild depths as bits, where its checks begin
# and how many they are, whether its note is that of the level below; then for each key variable where it is
# found: a column of the row, or from 1024 on the place in a row of the note; -1: anywhere.
WATCH: Final = 8
CHECK: Final = 3  # 0 for a constant, 1 for the same as another column; the column; the constant or the other
NOTE: Final = 3  # of a note: columns of its prefix, its arity, the place of its root


@kernel
def fire_traced(
    arena: Words,
    shape: Words,
    orders: Words,
    available: Words,
    atoms: Words,
    watches: Words,
    checks: Words,
    notes: Words,
    code: Words,
    initial: Words,
    levels: Words,
    state: Words,
    roots: Words,
    ranks: Words,
    row: Words,
    found: Words,
    work: Words,
    out: Words,
    trace: Words,
    results: Words,
) -> int:
    """Change one row and maintain the rule.  Answers NOTHING, TOO_LARGE (nothing has been done), or how many
    rows its assignments changed by.

    `available`: roots of the predicate's orders, then room for the new ones; those of other atoms; those of
    notes, then room for the new ones.  `results`: numbers of erased and inserted assignments, operations,
    fills of the notes of both versions, whether each note changed, the number of contributions.  `out` has
    room for both outputs and both changes, `trace` for the notes of both versions, `work` for anything.
    `found` has the contributions afterwards, with -1 - depth in the place of their depth.
    """
    A = pointer(arena)
    k, n_orders = shape[ARITY], shape[N_ORDERS]
    for o in range(n_orders):
        put_key(A, row, orders, o, k)
        changed = change_row(A, available[o], k, shape[OP], 0)
        if changed in (UNCHANGED, NEEDS_BATCH):
            for other in range(o):
                release_root(A, available[n_orders + other])
            return NOTHING if changed == UNCHANGED else TOO_LARGE
        available[n_orders + o] = changed
    m = contributions(arena, A, shape, orders, available, atoms, watches, checks, notes, row, found, work)
    done = m >= 0 and evaluate(
        arena,
        shape,
        available,
        atoms,
        code,
        initial,
        levels,
        state,
        roots,
        ranks,
        found,
        m,
        work,
        out,
        trace,
        results,
    )
    if done:
        results[3 + 3 * shape[N_NOTES]] = m
        compare_outputs(shape, out, work, results)
        done = change_notes(A, shape, available, notes, trace, work, results)
    if not done:
        for o in range(n_orders):
            release_root(A, available[n_orders + o])
        return TOO_LARGE
    return int(results[0] + results[1])


@helper
def put_key(A, row, orders, o, k):
    """The row in one column order, where kernels look for it."""
    for c in range(k):
        A[ROW + c] = row[orders[o * k + c]]


@helper
def contributions(arena, A, shape, orders, available, atoms, watches, checks, notes, row, found, work):
    """Contributions of width + 3 words, the wild depths last; -1 if they are too many."""
    k, n_orders, width = shape[ARITY], shape[N_ORDERS], shape[WIDTH]
    m = 0
    for w in range(shape[N_WATCHES]):
        at = w * (WATCH + width)
        atom = watches[at]
        o = atoms[atom * ATOM + 2]
        if o < 0:
            continue
        put_key(A, row, orders, o, k)
        root = available[o] if shape[OP] == INSERT else available[n_orders + o]
        if watches[at + 1] < deepest(A, root, ROW, 1, k) or not fits(A, watches, at, checks):
            continue
        note = watches[at + 3]
        if note < 0:
            if m == shape[CAPACITY]:
                return -1
            put_contribution(A, watches, at, width, work, 0, found, m)
            m += 1
            continue
        for x in range(STATE_WORDS):
            work[x] = 0
        prefix, arity = notes[note * NOTE], notes[note * NOTE + 1]
        points = STATE_WORDS
        for c in range(prefix + 1):
            work[points + c] = A[ROW + c]
        rows = points + prefix + 1
        which = rows + shape[CAPACITY] * arity
        root = available[notes[note * NOTE + 2]]
        if watches[at + 7] == 1:
            n = prefixed(
                arena, root, prefix, arity, work[points:], 1, work[rows:], work[which:], shape[CAPACITY]
            )
        else:
            n = stab(
                A,
                root,
                prefix,
                arity,
                pointer_at(work, points),
                1,
                pointer(work),
                pointer_at(work, rows),
                pointer_at(work, which),
                shape[CAPACITY],
            )
            if work[POINT] < 1:
                return -1
        if m + n > shape[CAPACITY]:
            return -1
        for i in range(n):
            put_key(A, row, orders, o, k)
            put_contribution(A, watches, at, width, work, rows + i * arity, found, m)
            m += 1
    return m


@helper
def fits(A, watches, at, checks):
    """Whether the row has the constants, and the equal columns, that a watch asks for."""
    start = watches[at + 5]
    for i in range(watches[at + 6]):
        check = (start + i) * CHECK
        value = A[ROW + checks[check + 1]]
        if value != (checks[check + 2] if checks[check] == 0 else A[ROW + checks[check + 2]]):
            return False
    return True


@helper
def put_contribution(A, watches, at, width, work, row, found, m):
    depth, wild = watches[at + 2], watches[at + 4]
    to = m * (width + 3)
    found[to] = depth
    last = np.int64(-(2**63))
    for d in range(width):
        value = np.int64(-(2**63))
        if d < depth and (wild >> d) & 1 == 0:
            source = watches[at + WATCH + d]
            value = A[ROW + source] if source < 1024 else work[row + source - 1024]
        found[to + 1 + d] = value
        if d == depth - 1:
            last = value
    found[to + 1 + width] = last
    found[to + 2 + width] = wild


@helper
def evaluate(
    arena,
    shape,
    available,
    atoms,
    code,
    initial,
    levels,
    state,
    roots,
    ranks,
    found,
    m,
    work,
    out,
    trace,
    results,
):
    """Run old and new under the contributions; False if there is too much to do."""
    for x in range(3 + 3 * shape[N_NOTES]):
        results[x] = 0
    width = shape[WIDTH]
    todo = m
    old, new = np.int64(0), np.int64(0)
    while todo > 0:
        wild = -1
        n = 0
        for i in range(m):  # the contributions of one set of wild depths
            at = i * (width + 3)
            if found[at] < 0 or (wild >= 0 and found[at + 2 + width] != wild):
                continue
            wild = found[at + 2 + width]
            for c in range(width):
                work[n * (width + 2) + c] = found[at + 1 + c]
            work[n * (width + 2) + width] = found[at]
            work[n * (width + 2) + width + 1] = found[at + 1 + width]
            found[at] = -1 - found[at]
            n += 1
        todo -= n
        sort_few(work, n, width + 2)
        for i in range(n):  # the depth first, as `flatten` has it
            at = i * (width + 2)
            depth = work[at + width]
            for c in range(width, 0, -1):
                work[at + c] = work[at + c - 1]
            work[at] = depth
        place = n * (width + 2)
        guide = shape[INITIAL]
        size = flatten(work, n, width, wild, work[place:], work[place + n :], state[guide:])
        place_guide(state, guide, size)
        old = run_version(
            arena,
            shape,
            available,
            atoms,
            0,
            code,
            initial,
            levels,
            state,
            roots,
            ranks,
            old,
            out,
            trace,
            results,
        )
        if old < 0:
            return False
        new = run_version(
            arena,
            shape,
            available,
            atoms,
            1,
            code,
            initial,
            levels,
            state,
            roots,
            ranks,
            new,
            out,
            trace,
            results,
        )
        if new < 0:
            return False
    results[0] = old
    results[1] = new
    return True


@helper
def place_guide(state, guide, size):
    """Addresses of a guide, counted from its own start, in the state."""
    if state[guide] >= 0:
        state[guide] += guide
        state[guide + 1] += guide
    for item in range(guide + 2, guide + size, 4):
        if state[item + 2] >= 0:
            state[item + 2] += guide
            state[item + 3] += guide


@helper
def run_version(
    arena,
    shape,
    available,
    atoms,
    version,
    code,
    initial,
    levels,
    state,
    roots,
    ranks,
    rows,
    out,
    trace,
    results,
):
    """Run one version behind `rows` rows; -1 if there is too much to do."""
    n_notes, capacity, columns = shape[N_NOTES], shape[CAPACITY], shape[COLUMNS]
    for x in range(len(initial)):
        state[x] = initial[x]
    state[shape[GUIDE]] = state[shape[INITIAL]]
    state[shape[GUIDE] + 1] = state[shape[INITIAL] + 1]
    for i in range(n_notes):
        state[shape[FILLS] + i] = results[3 + version * n_notes + i]
    for a in range(shape[N_ATOMS]):
        roots[a] = available[atoms[a * ATOM + version]]
    attach(arena, state, levels, roots)
    n = run_traced_on(
        pointer(arena),
        pointer(code),
        pointer(state),
        pointer(ranks),
        pointer_at(out, version * capacity * columns),
        rows,
        capacity,
        pointer_at(trace, version * (len(trace) // 2)),
        capacity,
        shape[BUDGET],
    )
    results[2] += state[SEEKS] + state[NEXTS] + state[OPENS]
    for i in range(n_notes):
        results[3 + version * n_notes + i] = state[shape[FILLS] + i]
    return n if state[STATUS] == DONE else np.int64(-1)


@helper
def compare_outputs(shape, out, work, results):
    """Replace both outputs by what is erased and what is inserted, each once."""
    capacity, columns = shape[CAPACITY], shape[COLUMNS]
    size = capacity * columns
    for version in range(2):
        for i in range(results[version]):
            for c in range(columns):
                work[version * size + i * columns + c] = out[version * size + c * capacity + i]
        sort_few(work[version * size :], results[version], columns)
    counts = work[4 * size :]
    row_changes(
        work, results[0], work[size:], results[1], columns, work[2 * size :], work[3 * size :], counts
    )
    for version in range(2):
        results[version] = counts[version]
        for i in range(counts[version]):
            for c in range(columns):
                out[version * size + c * capacity + i] = work[(2 + version) * size + i * columns + c]


@helper
def change_notes(A, shape, available, notes, trace, work, results):
    """New versions of the indices whose notes differ; False, with nothing done, if one needs a batch."""
    n_notes, capacity = shape[N_NOTES], shape[CAPACITY]
    half = len(trace) // 2
    at = 0
    for i in range(n_notes):
        arity, place = notes[i * NOTE + 1], notes[i * NOTE + 2]
        n, m = results[3 + i], results[3 + n_notes + i]
        size = capacity * arity
        sort_few(trace[at:], n, arity)
        sort_few(trace[half + at :], m, arity)
        counts = work[2 * size :]
        row_changes(trace[at:], n, trace[half + at :], m, arity, work, work[size:], counts)
        root = available[place]
        done = True
        for op in (ERASE, INSERT):
            rows = counts[0] if op == ERASE else counts[1]
            start = 0 if op == ERASE else size
            for j in range(rows):
                if done:
                    for c in range(arity):
                        A[ROW + c] = work[start + j * arity + c]
                    changed = change_row(A, root, arity, op, 0 if root == available[place] else 1)
                    done = changed not in (UNCHANGED, NEEDS_BATCH)
                    if done:
                        root = changed
        if not done:
            if root != available[place]:
                release_root(A, root)
            for other in range(i):
                if results[3 + 2 * n_notes + other] == 1:
                    release_root(A, available[notes[other * NOTE + 2] + n_notes])
            return False
        results[3 + 2 * n_notes + i] = 1 if root != available[place] else 0
        available[place + n_notes] = root
        at += size
    return True
