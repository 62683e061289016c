"""Owns the kernel of transactions of one row over a rule maintained by its trace, in one call from Python.

1 the row goes into every index.  2 its surgeries are matched with the watches of the rule: contributions.
3 old and new version are evaluated under the oracle.  4 the differences of their outputs and notes are found,
and the notes go into new versions of the sensitivity indices.

It does what `dlog.sensitivity.upkeep` does step by step.  All that a rule needs is data: its tables are
in one array, all that is written in another, and the shape says where each begins.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.maintain.trace.row_layout import (
    ARITY,
    ATOM,
    ATOMS,
    BUDGET,
    CAPACITY,
    CHANGED,
    CODE,
    COLUMNS,
    CONTRIBUTIONS,
    COVERS,
    EDIT,
    EDIT_WORDS,
    EDITS,
    ERASED,
    FILLS,
    FOUND,
    GAINED,
    GROWS,
    GUIDE,
    HEAD_CHANGED,
    HEAD_GAINED,
    HEAD_KEPT,
    HEAD_LAYOUT,
    HEAD_ROOT,
    IN_PLACE,
    INDEX_RESULT,
    INITIAL,
    INITIAL_WORDS,
    INSERTED,
    LEAST,
    LEVELS,
    LOST,
    MOST,
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
    NOTES,
    OP,
    OPERATIONS,
    OPS,
    OPS_WORDS,
    OUT,
    RESULTS,
    ROOTS,
    ROWS,
    STATE,
    TRACE,
    TRACE_WORDS,
    WIDTH,
    WORK,
)
from dlog.engine.maintain.trace.surgery_kernels import contributions, put_key
from dlog.engine.maintain.triggers.kernels import NOTHING, TOO_LARGE
from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.lftj.machine import attach_on
from dlog.lftj.opcodes import DONE, NEXTS, OPENS, SCRATCH, SEEKS, STATUS
from dlog.lftj.trace_machine import run_traced_on
from dlog.sensitivity.index_kernels import are_located, find_covered, put_by_context, put_marked
from dlog.sensitivity.oracle_kernels import make_guide
from dlog.sensitivity.row_kernels import distinct, find_changes, put_in_order
from dlog.storage.arena.arena_kernels import BUMP, LIMIT, RESULT, release_handed, release_root
from dlog.storage.index.row_kernels import NEEDS_BATCH, UNCHANGED, change_row
from dlog.storage.layout import N_ROWS
from dlog.storage.relation.rows_kernels import change_all, change_located, fresh_words, is_small


@kernel
def fire_traced(
    arena: Words, shape: Words, tables: Words, available: Words, room: Words, ranks: Words, row: Words
) -> int:
    """Change one row and maintain the rule.  Answers NOTHING, TOO_LARGE (nothing has been done), or how many
    rows its assignments changed by.

    `available`: roots of the predicate's orders, then room for the new ones; those of other atoms; those of
    sensitivity indices, which new ones replace.  Afterwards contributions have -1 - depth in the
    place of their depth.
    """
    roots, to = pointer(available), pointer(room)
    return int(
        follow_row(pointer(arena), pointer(shape), pointer(tables), roots, to, pointer(ranks), pointer(row))
    )


@helper
def follow_row(A, shape, tables, available, room, ranks, row):
    """As `fire_traced`, over pointers, as all helpers here."""
    release_handed(A)
    k, n_orders = shape[ARITY], shape[N_ORDERS]
    if not shape[LEAST] <= A[available[0] + N_ROWS] <= shape[MOST]:
        return TOO_LARGE
    for o in range(n_orders):
        put_key(A, row, tables, shape, o)
        changed = change_row(A, available[o], k, shape[OP], 0)
        if changed in (UNCHANGED, NEEDS_BATCH):
            for other in range(o):
                release_root(A, available[n_orders + other])
            return NOTHING if changed == UNCHANGED else TOO_LARGE
        available[n_orders + o] = changed
    results = shape[RESULTS]
    for x in range(CHANGED + INDEX_RESULT * shape[N_INDICES] + 2 * shape[N_NOTES]):
        room[results + x] = 0
    m = contributions(A, shape, tables, available, room, row)
    done = m >= 0 and evaluate(A, shape, tables, available, room, ranks, m)
    if done:
        room[results + CONTRIBUTIONS] = m
        compare_outputs(shape, room)
        done = change_notes(A, shape, tables, available, room)
    if not done:
        for o in range(n_orders):
            release_root(A, available[n_orders + o])
        return TOO_LARGE
    if shape[HEAD_KEPT] > 0:
        change_head(A, shape, tables, available, room)
    for o in range(n_orders):  # for the next row
        available[o] = available[n_orders + o]
    return room[results + ERASED] + room[results + INSERTED]


# ---- evaluation


@helper
def evaluate(A, shape, tables, available, room, ranks, m):
    """Run old and new under the contributions; False if there is too much work.

    If assignments can only be added, and the new version has none, the old one has none either, and
    reaches no context that the new one does not reach: it is not run.
    """
    todo = m
    old, new = np.int64(0), np.int64(0)
    while todo > 0:
        n = place_guide(shape, room, m)
        todo -= n
        new = run_version(A, shape, tables, available, room, ranks, 1, new)
        if new < 0:
            return False
        if n == m and new == 0 and shape[GROWS] == 1:
            room[shape[RESULTS] + COVERS] = 1
            break
        old = run_version(A, shape, tables, available, room, ranks, 0, old)
        if old < 0:
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
    put_in_order(shifted(room, work), n, k)
    for i in range(n):  # the depth first, as `flatten` has it
        at = work + i * k
        depth = room[at + width]
        for c in range(width, 0, -1):
            room[at + c] = room[at + c - 1]
        room[at] = depth
    rows, kept = shifted(room, work), shifted(room, work + n * k)
    base = shape[INITIAL_WORDS]
    guide = shape[STATE] + base
    size = make_guide(rows, n, width, wild, kept, shifted(kept, n), shifted(room, guide))
    if room[guide] >= 0:  # addresses of a guide are counted from its own start
        room[guide] += base
        room[guide + 1] += base
    for item in range(guide + 2, guide + size, 4):
        if room[item + 2] >= 0:
            room[item + 2] += base
            room[item + 3] += base
    return n


@helper
def run_version(A, shape, tables, available, room, ranks, version, rows):
    """Run one version, writing after `rows` rows; -1 if there is too much work."""
    n_notes, n_atoms, capacity = shape[N_NOTES], shape[N_ATOMS], shape[CAPACITY]
    state, initial, levels, roots = shape[STATE], shape[INITIAL], shape[LEVELS], shape[ROOTS]
    words = shape[INITIAL_WORDS]
    for x in range(tables[initial + SCRATCH]):  # these words are written before they are read
        room[state + x] = tables[initial + x]
    room[state + shape[GUIDE]] = room[state + words]
    room[state + shape[GUIDE] + 1] = room[state + words + 1]
    fills = shape[RESULTS] + CHANGED + INDEX_RESULT * shape[N_INDICES] + version * n_notes
    for i in range(n_notes):
        room[state + shape[FILLS] + i] = room[fills + i]
    for a in range(n_atoms):
        room[roots + a] = available[tables[shape[ATOMS] + a * ATOM + version]]
    attach_on(A, shifted(room, state), shifted(tables, levels), shifted(room, roots), n_atoms)
    n = run_traced_on(
        A,
        shifted(tables, shape[CODE]),
        shifted(room, state),
        ranks,
        shifted(room, shape[OUT] + version * capacity * shape[COLUMNS]),
        rows,
        capacity,
        shifted(room, shape[TRACE] + version * shape[TRACE_WORDS]),
        capacity,
        shape[BUDGET],
    )
    room[shape[RESULTS] + OPERATIONS] += room[state + SEEKS] + room[state + NEXTS] + room[state + OPENS]
    for i in range(n_notes):
        room[fills + i] = room[state + shape[FILLS] + i]
    return n if room[state + STATUS] == DONE else np.int64(-1)


# ---- results


@helper
def compare_outputs(shape, room):
    """Replace both outputs by what is erased and what is inserted, each once; and write both as rows."""
    capacity, columns, results, out = shape[CAPACITY], shape[COLUMNS], shape[RESULTS], shape[OUT]
    size = capacity * columns
    work = shifted(room, shape[WORK])
    for version in range(2):
        for i in range(room[results + version]):
            for c in range(columns):
                work[version * size + i * columns + c] = room[out + version * size + c * capacity + i]
        put_in_order(shifted(work, version * size), room[results + version], columns)
    n, m = room[results + ERASED], room[results + INSERTED]
    new, erased, inserted = shifted(work, size), shifted(work, 2 * size), shifted(work, 3 * size)
    find_changes(work, n, new, m, columns, erased, inserted, shifted(room, results))
    at = shape[ROWS]
    for version in (1, 0):
        for i in range(room[results + version]):
            for c in range(columns):
                word = work[(2 + version) * size + i * columns + c]
                room[out + version * size + c * capacity + i] = word
                room[at + i * columns + c] = word
        at += room[results + version] * columns


@helper
def change_head(A, shape, tables, available, room):
    """A new version of the head, if few of its rows change; the net rows are left in their places."""
    results, roots = shape[RESULTS], shifted(available, shape[HEAD_ROOT])
    inserted, erased = room[results + INSERTED], room[results + ERASED]
    if inserted + erased == 0:
        return
    rows = shifted(room, shape[ROWS])
    room[results + HEAD_CHANGED] = change_all(
        A,
        shape[COLUMNS],
        shape[HEAD_KEPT],
        shifted(tables, shape[HEAD_LAYOUT]),
        roots,
        shifted(roots, shape[HEAD_KEPT]),
        rows,
        inserted,
        erased,
        0,
        rows,
    )
    room[results + HEAD_GAINED] = A[RESULT]
    for o in range(shape[HEAD_KEPT] if room[results + HEAD_CHANGED] > 0 else 0):
        roots[o] = roots[shape[HEAD_KEPT] + o]


@helper
def change_notes(A, shape, tables, available, room):
    """New versions of the indices whose notes differ; False, with nothing done, if one needs a batch.

    Afterwards the edits have, for each index, the rows it gained and then those it lost, and its new
    roots are in the places of the old ones.
    """
    at, words = shape[EDITS], 0
    for i in range(shape[N_INDICES]):
        note, found = shape[NOTES] + i * NOTE, shape[RESULTS] + CHANGED + i * INDEX_RESULT
        if not note_edit(A, shape, tables, available, room, i, found, at):
            return False
        k, m = tables[note + N_ARITY], room[found + GAINED] + room[found + LOST]
        for o in range(tables[note + N_KEPT] if m > 0 else 0):
            root = available[tables[note + N_ROOT] + o]
            if not is_small(A, root, m, k):
                return False
            words += fresh_words(A, root, m, k)
        room[found + EDIT] = at - shape[EDITS]
        at += m * k
    if A[LIMIT] - A[BUMP] <= words:
        return False
    room[shape[RESULTS] + EDIT_WORDS] = at - shape[EDITS]
    for i in range(shape[N_INDICES]):
        change_index(A, shape, tables, available, room, i)
    return True


@helper
def change_index(A, shape, tables, available, room, i):
    """Apply the edit of index i.  REQUIRES: it is small, and there is memory."""
    note, found = shape[NOTES] + i * NOTE, shape[RESULTS] + CHANGED + i * INDEX_RESULT
    gained, lost = room[found + GAINED], room[found + LOST]
    if gained + lost == 0:
        return
    k, orders = tables[note + N_ARITY], shifted(tables, tables[note + N_LAYOUT])
    roots, edit = shifted(available, tables[note + N_ROOT]), shifted(room, shape[EDITS] + room[found + EDIT])
    if tables[note + N_COVER] >= 0 and are_located(A, roots[1]):
        ops = shifted(room, shape[OPS] + i * shape[OPS_WORDS])
        change_located(A, k, orders, roots, edit, gained, lost, ops, shape[IN_PLACE])
        return
    changed = change_all(
        A,
        k,
        tables[note + N_KEPT],
        orders,
        roots,
        roots,
        edit,
        gained,
        lost,
        shape[IN_PLACE],
        edit,
    )
    room[found + GAINED] = A[RESULT]
    room[found + LOST] = changed - A[RESULT]


@helper
def note_edit(A, shape, tables, available, room, i, sizes, edit):
    """The rows that index i gains and then those that it loses; False if they are too many."""
    note = shape[NOTES] + i * NOTE
    k, n_notes, work = tables[note + N_ARITY], shape[N_NOTES], shape[WORK]
    fills = shape[RESULTS] + CHANGED + INDEX_RESULT * shape[N_INDICES]
    new = shape[TRACE] + shape[TRACE_WORDS] + tables[note + N_TRACE]
    m = room[fills + n_notes + i]
    if tables[note + N_COVER] >= 0:
        return covered_edit(A, shape, tables, available, room, i, new, m, sizes, edit)
    old, n = shape[TRACE] + tables[note + N_TRACE], room[fills + i]
    before, after, to = shifted(room, old), shifted(room, new), shifted(room, edit)
    put_in_order(before, n, k)
    put_in_order(after, m, k)
    find_changes(before, n, after, m, k, shifted(room, work), to, shifted(room, sizes))
    erased, inserted = room[sizes], room[sizes + 1]
    for x in range(erased * k):
        room[edit + inserted * k + x] = room[work + x]
    room[sizes + GAINED] = inserted
    room[sizes + LOST] = erased
    return True


@helper
def covered_edit(A, shape, tables, available, room, i, noted, m, sizes, edit):
    """The same for an index by context; its operations by context are left in their place."""
    note, cover = shape[NOTES] + i * NOTE, tables[shape[NOTES] + i * NOTE + N_COVER]
    p, k, capacity = tables[note + N_PREFIX], tables[note + N_ARITY], shape[CAPACITY]
    fills = shape[RESULTS] + CHANGED + INDEX_RESULT * shape[N_INDICES] + cover
    of_cover = shape[TRACE] + tables[shape[NOTES] + cover * NOTE + N_TRACE]
    later, n_later = shifted(room, of_cover + shape[TRACE_WORDS]), room[fills + shape[N_NOTES]]
    covers, n = shifted(room, of_cover), room[fills]
    if room[shape[RESULTS] + COVERS] == 1:
        covers, n = later, n_later
    asked = shifted(room, shape[WORK])
    fresh = shifted(asked, n * k)
    work = shifted(fresh, m * (k + 1))
    put_by_context(covers, n, p, k, asked)
    put_marked(shifted(room, noted), m, later, n_later, p, k, fresh)
    put_in_order(asked, n, k)
    put_in_order(fresh, m, k + 1)
    n = distinct(asked, n, k, k)
    m = distinct(fresh, m, k, k + 1)
    atom = available[tables[shape[ATOMS] + tables[note + N_ATOM] * ATOM + 1]]
    root = available[tables[note + N_ROOT] + 1]
    to, found = shifted(room, edit), shifted(room, sizes)
    ops = shifted(room, shape[OPS] + i * shape[OPS_WORDS])
    return find_covered(A, root, atom, p, k, asked, n, fresh, m, capacity, work, ops, to, found) <= capacity
