"""Owns the change of groups in one kernel call: from a few assignments to the state's and the head's rows.

Assignments come as columns, those that are added apart from those that are taken away.  The layout of a
rule, as data:

    groups g, sums s, columns of the head h
    g columns of the assignments             the group
    s pairs (is a column, column or code)    what is added up
    h pairs (kind, number)                   the head: a group's column, a literal's code, or the number of a
                                             sum (-1: the count)

A row of the state is the group, its number of assignments, and a wide number for each sum (`kernels`).
"""

from __future__ import annotations

from typing import Final

from dlog.heads.kernels import MIN, WIDE
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
from dlog.storage.index.tree_kernels import compare, entry_bound, leaf_bound, node_bound
from dlog.storage.layout import BASE, ENTRY, FILL, N_NODES, NODE_HEADER, ROOT_HEADER, STRIDE
from dlog.storage.relation.rows_kernels import change_all, is_small

# Kinds of columns of a head.
GROUP: Final = 0
LITERAL: Final = 1
RESULT_OF: Final = 2

SHAPE: Final = 3  # where the groups of a layout begin
TOO_LARGE: Final = -2  # a number does not fit, or a relation must be built anew: nothing has been done


# The relations that a kernel changes: what is kept of groups, in one relation or two, and the head.
STATE: Final = 0
SECOND: Final = 1
HEAD: Final = 2
MOST_ORDERS: Final = 64  # of each; its roots begin at so many words times its number

# Words of a job.
GAINED_STRIDE: Final = 0
ADDED: Final = 1  # how many assignments are added
LOST_STRIDE: Final = 2
TAKEN: Final = 3  # how many are taken away
ORDERS: Final = 4  # of each relation the number of its column orders
COLUMNS: Final = 7  # of each relation where these begin
ROWS: Final = 10  # of each relation where there is room for its rows
UNREAD: Final = 13  # where there is room for what nobody reads
NET: Final = 14  # where the head's rows that are new or gone are written
DIGITS: Final = 15  # where the digits of floats lie: zeros, and so again
JOB: Final = 16


@kernel
def change_groups(
    arena: Words,
    layout: Words,
    job: Words,
    gained: Words,
    lost: Words,
    orders: Words,
    roots: Words,
    room_words: Words,
) -> int:
    """Add assignments and take others away: the number of the head's rows that are new or gone, new ones
    first at NET, their number in RESULT; or TOO_LARGE, and nothing has been done.

    Column c of the assignments that are added begins at gained[c * GAINED_STRIDE].  Writes new roots over the
    old ones.  Each relation has room for two rows of each assignment.
    O(n log n + n log groups) for n assignments.  REQUIRES: the first order of the state is the natural one.
    """
    A, room, shape = pointer(arena), pointer(room_words), pointer(layout)
    g = layout[0]
    width, h, n, added = g + 1 + WIDE * layout[1], layout[2], job[ADDED] + job[TAKEN], job[ADDED]
    columns = columns_of(job, gained, lost)
    work = room_for(A, 2 * n + 2 * width + n * columns)
    if work < 0:
        return TOO_LARGE
    numbers = A[work + EXTENT_BASE]
    old, new = numbers + 2 * n, numbers + 2 * n + width
    given = pointer_at(arena, numbers + 2 * n + 2 * width)
    bring(job, gained, lost, columns, given)
    at = sorted_assignments(A, numbers, n, given, n, shape)
    state_rows, head_rows = shifted(room, job[ROWS + STATE]), shifted(room, job[ROWS + HEAD])
    n_new, n_old, head_new, head_old = 0, 0, 0, 0
    fits = True
    i = 0
    while i < n and fits:
        end = i + 1
        while end < n and not is_before(given, n, A[at + i], A[at + end], shape):
            end += 1
        load_group(A, roots[0], old, given, n, A[at + i], shape, width)
        add_assignments(A, old, new, at, i, end, given, n, shape, added)
        i = end
        fits = A[new + g] >= 0 and results_fit(A, old, shape) and results_fit(A, new, shape)
        if not fits or not differ(A, old, new, width):
            continue
        if A[new + g] > 0:
            put_row(A, new, width, state_rows, n_new)
            n_new += 1
        if A[old + g] > 0:
            put_row(A, old, width, state_rows, n + n_old)
            n_old += 1
        if heads_differ(A, old, new, shape):
            if A[new + g] > 0:
                put_head(A, new, shape, head_rows, head_new)
                head_new += 1
            if A[old + g] > 0:
                put_head(A, old, shape, head_rows, n + head_old)
                head_old += 1
    release_extent(A, work, 1)
    fits = fits and are_few(A, job, roots, STATE, n_new + n_old, width)
    if not fits or not are_few(A, job, roots, HEAD, head_new + head_old, h):
        return TOO_LARGE
    join_parts(state_rows, width, n, n_new, n_old)
    join_parts(head_rows, h, n, head_new, head_old)
    change_relation(A, job, orders, roots, room, STATE, width, n_new, n_old)
    return change_relation(A, job, orders, roots, room, HEAD, h, head_new, head_old)


# ---- what all such kernels share


@helper
def columns_of(job, gained, lost):
    """Of the assignments; those that are added, or the others, may have none."""
    return max(len(gained) // job[GAINED_STRIDE], len(lost) // job[LOST_STRIDE])


@helper
def room_for(A, words):
    """An extent to work in, or -1 if that would be a large one."""
    if words >= LARGE_WORDS or A[LIMIT] - A[BUMP] < 4 * LARGE_WORDS:
        return -1
    return new_extent(A, words, 1)


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
def are_few(A, job, roots, relation, m, k):
    """Whether m changed rows are few for all indices of a relation."""
    o = 0
    while m > 0 and o < job[ORDERS + relation]:
        if not is_small(A, roots[relation * MOST_ORDERS + o], m, k):
            return False
        o += 1
    return True


@helper
def change_relation(A, job, orders, roots, room, relation, k, n_new, n_old):
    """Change a relation by its rows, new ones first; how many have changed, the number of new ones in
    RESULT.  REQUIRES: `are_few`."""
    A[RESULT] = 0
    if n_new + n_old == 0:
        return 0
    own = pointer_at(roots, relation * MOST_ORDERS)
    columns, rows = pointer_at(orders, job[COLUMNS + relation]), shifted(room, job[ROWS + relation])
    to = shifted(room, job[NET] if relation == HEAD else job[UNREAD])
    return change_all(A, k, job[ORDERS + relation], columns, own, own, rows, n_new, n_old, 0, to)


@helper
def sorted_assignments(A, numbers, n, columns, stride, shape):
    """The numbers of assignments in the order of their groups; returns where they lie.  O(n log n)."""
    for i in range(n):
        A[numbers + i] = i
    source, target, run = numbers, numbers + n, 1
    while run < n:
        for start in range(0, n, 2 * run):
            a, b = start, min(start + run, n)
            middle, end = b, min(start + 2 * run, n)
            for to in range(start, end):
                take_left = b >= end or (
                    a < middle and not is_before(columns, stride, A[source + b], A[source + a], shape)
                )
                A[target + to] = A[source + a] if take_left else A[source + b]
                a += 1 if take_left else 0
                b += 0 if take_left else 1
        source, target = target, source
        run *= 2
    return source


@helper
def is_before(columns, stride, i, j, shape):
    """Whether the group of assignment i comes before that of j."""
    for c in range(shape[0]):
        x, y = columns[shape[SHAPE + c] * stride + i], columns[shape[SHAPE + c] * stride + j]
        if x != y:
            return x < y
    return False


@helper
def load_group(A, root, to, columns, stride, i, shape, width):
    """Write the row of assignment i's group, zeros behind the group when there is none."""
    g = shape[0]
    for c in range(width):
        A[to + c] = columns[shape[SHAPE + c] * stride + i] if c < g else 0
    if A[root + N_NODES] == 0:
        return
    # The last row that is not after the group: if one has the group, that one does.
    node = A[root + ROOT_HEADER + node_bound(A, root, 0, to, 1, 0, g, 1)]
    entry = node + NODE_HEADER + ENTRY * entry_bound(A, node, 0, to, 1, 0, g, 1)
    base, step = A[entry + BASE], A[entry + STRIDE]
    row = leaf_bound(A, base, step, 0, A[entry + FILL], to, 1, 0, g, 1) - 1
    if row >= 0 and compare(A, base, step, row, to, 1, 0, g) == 0:
        for c in range(g, width):
            A[to + c] = A[base + c * step + row]


@helper
def add_assignments(A, old, new, at, i, end, columns, stride, shape, added):
    """The group at `old` under assignments [i, end), to `new`."""
    g, s = shape[0], shape[1]
    for c in range(g + 1 + WIDE * s):
        A[new + c] = A[old + c]
    for j in range(i, end):
        A[new + g] += 1 if A[at + j] < added else -1
    for x in range(s):
        is_column, word = shape[SHAPE + g + 2 * x], shape[SHAPE + g + 2 * x + 1]
        for j in range(i, end):
            add_word(
                A,
                new + g + 1 + WIDE * x,
                columns[word * stride + A[at + j]] if is_column == 1 else word,
                1 if A[at + j] < added else -1,
            )


@helper
def add_word(A, at, value, sign):
    """Add a word to a wide number, or take it away."""
    before = A[at]
    if sign > 0:
        A[at] = before + value
        carry = (1 if (A[at] ^ MIN) < (before ^ MIN) else 0) + (-1 if value < 0 else 0)
    else:
        A[at] = before - value
        carry = (-1 if (A[at] ^ MIN) > (before ^ MIN) else 0) + (1 if value < 0 else 0)
    w = 1
    while carry != 0 and w < WIDE:
        before = A[at + w]
        A[at + w] = before + carry
        if carry > 0:
            carry = 1 if before == -1 else 0
        else:
            carry = -1 if before == 0 else 0
        w += 1


@helper
def result_of(A, group, shape, number):
    """Where the count (-1) or a sum of a group lies."""
    return group + shape[0] if number < 0 else group + shape[0] + 1 + WIDE * number


@helper
def results_fit(A, group, shape):
    """Whether all sums of a group are ints."""
    for x in range(shape[1]):
        at = result_of(A, group, shape, x)
        above = -1 if A[at] < 0 else 0
        for w in range(1, WIDE):
            if A[at + w] != above:
                return False
    return True


@helper
def differ(A, a, b, width):
    c = 0
    while c < width and A[a + c] == A[b + c]:
        c += 1
    return c < width


@helper
def heads_differ(A, old, new, shape):
    """Whether the head's rows of a group are not the same before and after."""
    g, s, h = shape[0], shape[1], shape[2]
    if A[old + g] == 0 or A[new + g] == 0:
        return A[old + g] != A[new + g]
    for c in range(h):
        kind, number = shape[SHAPE + g + 2 * s + 2 * c], shape[SHAPE + g + 2 * s + 2 * c + 1]
        if kind == RESULT_OF and A[result_of(A, old, shape, number)] != A[result_of(A, new, shape, number)]:
            return True
    return False


@helper
def put_row(A, row, width, rows, i):
    for c in range(width):
        rows[i * width + c] = A[row + c]


@helper
def put_head(A, group, shape, rows, i):
    """Write the head's row of a group."""
    g, s, h = shape[0], shape[1], shape[2]
    for c in range(h):
        kind, number = shape[SHAPE + g + 2 * s + 2 * c], shape[SHAPE + g + 2 * s + 2 * c + 1]
        value = number
        if kind == GROUP:
            value = A[group + number]
        elif kind == RESULT_OF:
            value = A[result_of(A, group, shape, number)]
        rows[i * h + c] = value


@helper
def join_parts(rows, width, n, first, second):
    """Move rows n, n + 1, ... down behind the first ones."""
    for x in range(second * width):
        rows[first * width + x] = rows[n * width + x]
