"""Owns the kernel of transactions of one row over a rule that is kept by its trace, in one call from Python.

1 the row goes into every index.  2 its surgeries are matched with the watches of the rule: contributions.
3 old and new version are evaluated under the oracle.  4 what their outputs and notes differ in is found, and
the notes go into new versions of the sensitivity indices.

What is done is as `dlog.sensitivity.upkeep` does it in steps.  All that a rule needs is data: its tables lie
in one array, all that is written in another, and the shape says where each begins.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.one_row_kernels import NOTHING, TOO_LARGE
from dlog.engine.trace_row_layout import (
    ARITY,
    ATOM,
    ATOMS,
    BUDGET,
    CAPACITY,
    CHANGED,
    CODE,
    COLUMNS,
    CONTRIBUTIONS,
    ERASED,
    FILLS,
    FOUND,
    GUIDE,
    INITIAL,
    INITIAL_WORDS,
    INSERTED,
    LEVELS,
    N_ARITY,
    N_ATOM,
    N_ATOMS,
    N_COVER,
    N_INDICES,
    N_KEPT,
    N_LAYOUT,
    N_NOTES,
    N_ORDERS,
    N_PREFIX,
    N_ROOT,
    N_TRACE,
    NOTE,
    NOTE_ROOTS,
    NOTES,
    OP,
    OPERATIONS,
    OUT,
    RESULTS,
    ROOTS,
    STATE,
    TRACE,
    TRACE_WORDS,
    WIDTH,
    WORK,
)
from dlog.engine.trace_surgery_kernels import contributions, put_key
from dlog.jit import Words, helper, kernel
from dlog.lftj.machine import attach
from dlog.lftj.opcodes import DONE, NEXTS, OPENS, SEEKS, STATUS
from dlog.lftj.trace_machine import run_traced_on
from dlog.sensitivity.index_kernels import covered, put_by_context
from dlog.sensitivity.oracle_kernels import flatten
from dlog.sensitivity.row_kernels import distinct, row_changes, sort_few
from dlog.storage.arena_kernels import release_root
from dlog.storage.pointer import pointer, pointer_at
from dlog.storage.row_kernels import NEEDS_BATCH, UNCHANGED, change_row
from dlog.storage.rows_kernels import NEEDS_BATCH as IS_LARGE
from dlog.storage.rows_kernels import change_all


@kernel
def fire_traced(
    arena: Words, shape: Words, tables: Words, available: Words, room: Words, ranks: Words, row: Words
) -> int:
    """Change one row and maintain the rule.  Answers NOTHING, TOO_LARGE (nothing has been done), or how many
    rows its assignments changed by.

    `available`: roots of the predicate's orders, then room for the new ones; those of other atoms; those of
    sensitivity indices, then room for the new ones.  Afterwards contributions have -1 - depth in the place of
    their depth.
    """
    A = pointer(arena)
    k, n_orders = shape[ARITY], shape[N_ORDERS]
    for o in range(n_orders):
        put_key(A, row, tables, shape, o)
        changed = change_row(A, available[o], k, shape[OP], 0)
        if changed in (UNCHANGED, NEEDS_BATCH):
            for other in range(o):
                release_root(A, available[n_orders + other])
            return NOTHING if changed == UNCHANGED else TOO_LARGE
        available[n_orders + o] = changed
    results = shape[RESULTS]
    for x in range(CHANGED + shape[N_INDICES] + 2 * shape[N_NOTES]):
        room[results + x] = 0
    m = contributions(arena, A, shape, tables, available, room, row)
    done = m >= 0 and evaluate(arena, shape, tables, available, room, ranks, m)
    if done:
        room[results + CONTRIBUTIONS] = m
        compare_outputs(shape, room)
        done = change_notes(arena, A, shape, tables, available, room)
    if not done:
        for o in range(n_orders):
            release_root(A, available[n_orders + o])
        return TOO_LARGE
    return int(room[results + ERASED] + room[results + INSERTED])


# ---- evaluation


@helper
def evaluate(arena, shape, tables, available, room, ranks, m):
    """Run old and new under the contributions; False if there is too much to do."""
    todo = m
    old, new = np.int64(0), np.int64(0)
    while todo > 0:
        todo -= place_guide(shape, room, m)
        old = run_version(arena, shape, tables, available, room, ranks, 0, old)
        if old < 0:
            return False
        new = run_version(arena, shape, tables, available, room, ranks, 1, new)
        if new < 0:
            return False
    room[shape[RESULTS] + ERASED] = old
    room[shape[RESULTS] + INSERTED] = new
    return True


@helper
def place_guide(shape, room, m):
    """Make a guide, in the state, of the contributions of one set of wild depths; returns how many."""
    width, work = shape[WIDTH], shape[WORK]
    k = width + 2
    wild = -1
    n = 0
    for i in range(m):
        at = shape[FOUND] + i * (width + 3)
        if room[at] < 0 or (wild >= 0 and room[at + 2 + width] != wild):
            continue
        wild = room[at + 2 + width]
        for c in range(width):
            room[work + n * k + c] = room[at + 1 + c]
        room[work + n * k + width] = room[at]
        room[work + n * k + width + 1] = room[at + 1 + width]
        room[at] = -1 - room[at]
        n += 1
    sort_few(room[work:], n, k)
    for i in range(n):  # the depth first, as `flatten` has it
        at = work + i * k
        depth = room[at + width]
        for c in range(width, 0, -1):
            room[at + c] = room[at + c - 1]
        room[at] = depth
    kept = work + n * k
    base = shape[INITIAL_WORDS]
    guide = shape[STATE] + base
    size = flatten(room[work:], n, width, wild, room[kept:], room[kept + n :], room[guide:])
    if room[guide] >= 0:  # addresses of a guide are counted from its own start
        room[guide] += base
        room[guide + 1] += base
    for item in range(guide + 2, guide + size, 4):
        if room[item + 2] >= 0:
            room[item + 2] += base
            room[item + 3] += base
    return n


@helper
def run_version(arena, shape, tables, available, room, ranks, version, rows):
    """Run one version behind `rows` rows; -1 if there is too much to do."""
    n_notes, n_atoms, capacity = shape[N_NOTES], shape[N_ATOMS], shape[CAPACITY]
    state, initial, levels, roots = shape[STATE], shape[INITIAL], shape[LEVELS], shape[ROOTS]
    words = shape[INITIAL_WORDS]
    for x in range(words):
        room[state + x] = tables[initial + x]
    room[state + shape[GUIDE]] = room[state + words]
    room[state + shape[GUIDE] + 1] = room[state + words + 1]
    fills = shape[RESULTS] + CHANGED + shape[N_INDICES] + version * n_notes
    for i in range(n_notes):
        room[state + shape[FILLS] + i] = room[fills + i]
    for a in range(n_atoms):
        room[roots + a] = available[tables[shape[ATOMS] + a * ATOM + version]]
    attach(arena, room[state:], tables[levels : levels + 2 * n_atoms], room[roots : roots + n_atoms])
    n = run_traced_on(
        pointer(arena),
        pointer_at(tables, shape[CODE]),
        pointer_at(room, state),
        pointer(ranks),
        pointer_at(room, shape[OUT] + version * capacity * shape[COLUMNS]),
        rows,
        capacity,
        pointer_at(room, shape[TRACE] + version * shape[TRACE_WORDS]),
        capacity,
        shape[BUDGET],
    )
    room[shape[RESULTS] + OPERATIONS] += room[state + SEEKS] + room[state + NEXTS] + room[state + OPENS]
    for i in range(n_notes):
        room[fills + i] = room[state + shape[FILLS] + i]
    return n if room[state + STATUS] == DONE else np.int64(-1)


# ---- what came of it


@helper
def compare_outputs(shape, room):
    """Replace both outputs by what is erased and what is inserted, each once."""
    capacity, columns, results, out = shape[CAPACITY], shape[COLUMNS], shape[RESULTS], shape[OUT]
    size = capacity * columns
    work = room[shape[WORK] :]
    for version in range(2):
        for i in range(room[results + version]):
            for c in range(columns):
                work[version * size + i * columns + c] = room[out + version * size + c * capacity + i]
        sort_few(work[version * size :], room[results + version], columns)
    n, m = room[results + ERASED], room[results + INSERTED]
    row_changes(work, n, work[size:], m, columns, work[2 * size :], work[3 * size :], room[results:])
    for version in range(2):
        for i in range(room[results + version]):
            for c in range(columns):
                room[out + version * size + c * capacity + i] = work[(2 + version) * size + i * columns + c]


@helper
def change_notes(arena, A, shape, tables, available, room):
    """New versions of the indices whose notes differ; False, with nothing done, if one needs a batch."""
    changed = shape[RESULTS] + CHANGED
    for i in range(shape[N_INDICES]):
        note = shape[NOTES] + i * NOTE
        sizes, edit = shape[WORK], shape[WORK] + 2
        done = note_edit(arena, shape, tables, available, room, i, sizes, edit)
        inserts, erases = room[sizes], room[sizes + 1]
        if done and inserts + erases > 0:
            root, n_orders = tables[note + N_ROOT], tables[note + N_KEPT]
            found = change_all(
                A,
                tables[note + N_ARITY],
                n_orders,
                pointer_at(tables, tables[note + N_LAYOUT]),
                pointer_at(available, root),
                pointer_at(available, root + shape[NOTE_ROOTS]),
                pointer_at(room, edit),
                inserts,
                erases,
                0,
                pointer_at(room, edit + (inserts + erases) * tables[note + N_ARITY]),
            )
            done = found != IS_LARGE
            room[changed + i] = 1 if found > 0 else 0
        if not done:
            release_notes(A, shape, tables, available, room, i)
            return False
    return True


@helper
def release_notes(A, shape, tables, available, room, n):
    """Give back the new versions of the first n indices."""
    for i in range(n):
        note = shape[NOTES] + i * NOTE
        if room[shape[RESULTS] + CHANGED + i] == 1:
            for o in range(tables[note + N_KEPT]):
                release_root(A, available[tables[note + N_ROOT] + shape[NOTE_ROOTS] + o])


@helper
def note_edit(arena, shape, tables, available, room, i, sizes, edit):
    """The rows that index i gains and then those that it loses; False if they are too many."""
    note = shape[NOTES] + i * NOTE
    k, n_notes = tables[note + N_ARITY], shape[N_NOTES]
    fills = shape[RESULTS] + CHANGED + shape[N_INDICES]
    new = shape[TRACE] + shape[TRACE_WORDS] + tables[note + N_TRACE]
    m = room[fills + n_notes + i]
    cover = tables[note + N_COVER]
    if cover >= 0:
        n = room[fills + cover]
        covers = shape[TRACE] + tables[shape[NOTES] + cover * NOTE + N_TRACE]
        return covered_edit(arena, shape, tables, available, room, note, covers, n, new, m, sizes, edit)
    old, n = shape[TRACE] + tables[note + N_TRACE], room[fills + i]
    sort_few(room[old:], n, k)
    sort_few(room[new:], m, k)
    gone = edit + shape[CAPACITY] * k
    row_changes(room[old:], n, room[new:], m, k, room[gone:], room[edit:], room[sizes:])
    erased, inserted = room[sizes], room[sizes + 1]
    for x in range(erased * k):
        room[edit + inserted * k + x] = room[gone + x]
    room[sizes] = inserted
    room[sizes + 1] = erased
    return True


@helper
def covered_edit(arena, shape, tables, available, room, note, covers, n, noted, m, sizes, edit):
    """The same of an index kept by context."""
    p, k, capacity = tables[note + N_PREFIX], tables[note + N_ARITY], shape[CAPACITY]
    asked = edit + 3 * capacity * k
    fresh = asked + n * k
    work = fresh + m * k
    put_by_context(room[covers:], n, p, k, room[asked:])
    put_by_context(room[noted:], m, p, k, room[fresh:])
    sort_few(room[asked:], n, k)
    sort_few(room[fresh:], m, k)
    n = distinct(room[asked:], n, k)
    m = distinct(room[fresh:], m, k)
    atom = available[tables[shape[ATOMS] + tables[note + N_ATOM] * ATOM + 1]]
    by_context = available[tables[note + N_ROOT] + 1]
    found = covered(
        arena,
        by_context,
        atom,
        p,
        k,
        room[asked:],
        n,
        room[fresh:],
        m,
        capacity,
        room[work:],
        room[edit:],
        room[sizes:],
    )
    return found <= capacity
