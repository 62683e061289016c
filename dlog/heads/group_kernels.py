"""Owns the change of groups in one kernel call: from a few assignments to the rows of all parts that are
stored of the groups (`part_kernels`), and to the head's rows.

Assignments come as columns, those that are added apart from those that are taken away.  All else is in one
block: a *job*, and where it says so the layout of the rule, the roots and column orders of the relations, and
room for rows.  The layout, as data:

    groups g, parts p, words of a record, words to work in, where the pairs begin
    where the shape of each part begins
    shapes
    a pair (kind, place) for each column of the head: a literal's code, or a place in the record

A *record* describes a group in one version: its keys, then the results of each part.  The first result is the
number of assignments, or whether there are any.
"""

from __future__ import annotations

from typing import Final

from dlog.heads.part_kernels import (
    FLOATS,
    KIND,
    PLACE,
    SHAPE,
    SUMS,
    VALUES,
    WEIGHTED,
    add_all_floats,
    add_sums,
    add_values,
    most_rows,
    put_edges,
    sorted_assignments,
)
from dlog.jit import Words, helper, kernel, pointer, pointer_at, shifted
from dlog.storage.arena.arena_kernels import (
    BUMP,
    EXTENT_BASE,
    LARGE_WORDS,
    LIMIT,
    RESULT,
    new_extent,
    release_extent,
)
from dlog.storage.relation.rows_kernels import change_all, is_small

TOO_LARGE: Final = -2  # a number does not fit, or a relation must be built anew: nothing has been done

# Kinds of columns of a head.
GROUP: Final = 0
LITERAL: Final = 1
RESULT_OF: Final = 2

# Words of a layout.
GROUPS: Final = 0
PARTS: Final = 1
RECORD: Final = 2
WORK: Final = 3
PAIRS: Final = 4
STARTS: Final = 5

# Words of a job.
GAINED_STRIDE: Final = 0
ADDED: Final = 1  # how many assignments are added
LOST_STRIDE: Final = 2
TAKEN: Final = 3  # how many are taken away
LAYOUT: Final = 4  # where it begins
UNREAD: Final = 5  # where there is room for what is not read
NET: Final = 6  # where the head's rows that are new or gone are written
DIGITS: Final = 7  # where the digits of floats lie: zeros, and so again
RELATIONS: Final = 8  # the head, then the parts

# Words of each relation in a job.
ORDERS: Final = 0  # how many column orders it has
COLUMNS: Final = 1  # where these begin
ROOTS: Final = 2  # where its roots are
ROWS: Final = 3  # where there is room for its rows
WIDTH: Final = 4  # of a row
BEFORE: Final = 5  # the root before, if it has been changed already; else -1
NEW: Final = 6  # how many rows are new
OLD: Final = 7  # how many are gone
RELATION: Final = 8
MOST_ORDERS: Final = 64


@kernel
def change_groups(arena: Words, block: Words, gained: Words, lost: Words) -> int:
    """Add assignments and take others away: the number of the head's rows that are new or gone, new ones
    first at NET, their number in RESULT; or TOO_LARGE, and nothing has been done.

    Column c of the assignments that are added begins at gained[c * GAINED_STRIDE].  Writes new roots over the
    old ones.  The head has room for two rows of each assignment, a part for twice its `most_rows`.
    O(n log n + n log groups) for n assignments.  REQUIRES: the first order of a part is the natural one.
    """
    A, job = pointer(arena), pointer(block)
    layout = shifted(job, job[LAYOUT])
    size, n = layout[RECORD], job[ADDED] + job[TAKEN]
    columns = max(len(gained) // job[GAINED_STRIDE], len(lost) // job[LOST_STRIDE])
    words = n * (3 + 2 * size + columns) + 1 + layout[WORK]
    if words >= LARGE_WORDS or A[LIMIT] - A[BUMP] < 4 * LARGE_WORDS:
        return TOO_LARGE
    work = new_extent(A, words, 1)
    numbers = A[work + EXTENT_BASE]
    bounds = numbers + 2 * n
    records = bounds + n + 1
    free = records + 2 * n * size
    given = pointer_at(arena, free + layout[WORK])
    bring(job, gained, lost, columns, given)
    groups, fits, p = 0, True, 0
    while p < layout[PARTS] and fits:
        shape = shifted(layout, layout[STARTS + p])
        at = sorted_assignments(A, numbers, n, given, n, shape)
        if p == 0:
            groups = find_groups(A, at, n, given, shape, layout[GROUPS], records, size, bounds)
        fits = add_to_part(arena, A, block, job, p, groups, at, bounds, records, size, given, n, shape, free)
        p += 1
    fits = fits and are_few(A, job, 0, 2 * groups)
    for r in range(1, layout[PARTS] + 1):
        own = RELATIONS + r * RELATION
        fits = fits and are_few(A, job, r, job[own + NEW] + job[own + OLD])
    if not fits:
        release_extent(A, work, 1)
        return TOO_LARGE
    for p in range(layout[PARTS]):
        shape = shifted(layout, layout[STARTS + p])
        own = RELATIONS + (p + 1) * RELATION
        change_relation(A, job, p + 1, most_rows(shape, n), UNREAD)
        if shape[KIND] == VALUES:
            for x in range(groups):
                new = records + (2 * x + 1) * size
                put_edges(arena, A, job[job[own + ROOTS]], new, new + shape[PLACE], shape, free)
    put_heads(A, job, layout, records, size, groups)
    release_extent(A, work, 1)
    return change_relation(A, job, 0, groups, NET)


@helper
def bring(job, gained, lost, columns, given):
    """All assignments by columns, those that are added first."""
    added, taken = job[ADDED], job[TAKEN]
    for c in range(columns):
        to = c * (added + taken)
        for i in range(added):
            given[to + i] = gained[c * job[GAINED_STRIDE] + i]
        for i in range(taken):
            given[to + added + i] = lost[c * job[LOST_STRIDE] + i]


@helper
def find_groups(A, at, n, given, shape, g, records, size, bounds):
    """Write the keys of each group to both its records, and where its sorted assignments begin; returns how
    many groups there are.  All parts have the same: every shape begins with their columns."""
    groups = 0
    for i in range(n):
        record = records + 2 * size * groups
        c = 0
        while groups > 0 and c < g and given[shape[SHAPE + c] * n + A[at + i]] == A[record - 2 * size + c]:
            c += 1
        if groups > 0 and c == g:
            continue
        for c in range(g):
            A[record + c] = given[shape[SHAPE + c] * n + A[at + i]]
            A[record + size + c] = A[record + c]
        A[bounds + groups] = i
        groups += 1
    A[bounds + groups] = n
    return groups


@helper
def add_to_part(arena, A, block, job, p, groups, at, bounds, records, size, given, n, shape, free):
    """Find the rows of a part that are new or gone, and results before; those after but for values.  Returns
    whether all numbers fit."""
    own, added = RELATIONS + (p + 1) * RELATION, job[ADDED]
    root, rows = job[job[own + ROOTS]], shifted(job, job[own + ROWS])
    before = root if job[own + BEFORE] < 0 else job[own + BEFORE]
    digits = block[job[DIGITS] :]
    n_new, n_old, x = 0, 0, 0
    while x < groups and n_new >= 0:
        record, i, end = records + 2 * size * x, A[bounds + x], A[bounds + x + 1]
        if shape[KIND] == SUMS or shape[KIND] == WEIGHTED:
            n_new, n_old = add_sums(
                A, root, record, size, at, i, end, given, n, shape, added, free, rows, n_new, n_old
            )
        elif shape[KIND] == FLOATS:
            n_new, n_old = add_all_floats(
                arena,
                root,
                record,
                size,
                at,
                i,
                end,
                given,
                n,
                shape,
                added,
                free,
                digits,
                rows,
                n_new,
                n_old,
            )
        else:
            put_edges(arena, A, before, record, record + shape[PLACE], shape, free)
            if job[own + BEFORE] < 0:
                n_new, n_old = add_values(
                    arena, A, root, at, i, end, given, n, shape, added, free, rows, n_new, n_old
                )
        x += 1
    job[own + NEW] = n_new
    job[own + OLD] = n_old
    return n_new >= 0


@helper
def are_few(A, job, relation, m):
    """Whether m changed rows are few for all indices of a relation."""
    own, o = RELATIONS + relation * RELATION, 0
    while m > 0 and o < job[own + ORDERS]:
        if not is_small(A, job[job[own + ROOTS] + o], m, job[own + WIDTH]):
            return False
        o += 1
    return True


@helper
def change_relation(A, job, relation, most, net):
    """Change a relation by its rows, those that are gone `most` rows behind; how many have changed, the
    number of new ones in RESULT.  REQUIRES: `are_few`."""
    own = RELATIONS + relation * RELATION
    n_new, n_old, width = job[own + NEW], job[own + OLD], job[own + WIDTH]
    A[RESULT] = 0
    if n_new + n_old == 0:
        return 0
    roots, rows = shifted(job, job[own + ROOTS]), shifted(job, job[own + ROWS])
    for x in range(n_old * width):
        rows[n_new * width + x] = rows[most * width + x]
    columns, to = shifted(job, job[own + COLUMNS]), shifted(job, job[net])
    return change_all(A, width, job[own + ORDERS], columns, roots, roots, rows, n_new, n_old, 0, to)


@helper
def put_heads(A, job, layout, records, size, groups):
    """Write the head's rows of groups that differ."""
    g, h, n_new, n_old = layout[GROUPS], job[RELATIONS + WIDTH], 0, 0
    pairs, rows = shifted(layout, layout[PAIRS]), shifted(job, job[RELATIONS + ROWS])
    for x in range(groups):
        old = records + 2 * x * size
        new = old + size
        differs = A[old + g] == 0 or A[new + g] == 0
        if differs and A[old + g] == A[new + g]:
            continue
        for c in range(h):
            place = pairs[2 * c + 1]
            differs = differs or (pairs[2 * c] == RESULT_OF and A[old + place] != A[new + place])
        if differs:
            n_new = put_head(A, new, g, pairs, h, rows, n_new)
            n_old = put_head(A, old, g, pairs, h, rows, groups + n_old) - groups
    job[RELATIONS + NEW] = n_new
    job[RELATIONS + OLD] = n_old


@helper
def put_head(A, record, g, pairs, h, rows, i):
    """Write the head's row of a record, if its group exists; the place of the next row."""
    if A[record + g] == 0:
        return i
    for c in range(h):
        word = pairs[2 * c + 1]
        rows[i * h + c] = word if pairs[2 * c] == LITERAL else A[record + word]
    return i + 1
