"""Owns the kernel that builds the part of an atom at once, from all its rows.

The rows are sorted by the vertex values of the atom, one vertex after the other, and then by payload.  So
those of one join tuple are neighbours: it is made once, with all its payload rows, and is known to be new.
Lists get their size at once, and their entries in the order of the rows.

1 `find`: a join tuple for each group of rows, in no list yet; vertex values count how many they will have.  2
`link`: each join tuple into the lists of its vertex values.  The first part stops where an index is full, and
then resumes.  Nothing is dead in a graph that is built, so there is nothing to revive.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, kernel, pointer, prefetch
from dlog.joingraph.graph_kernels import (
    ask_for_row,
    find_value,
    key_hash,
    new_value,
    readiness,
    same_columns,
    same_joins,
    same_payload,
    tuple_hash,
)
from dlog.joingraph.layout import (
    DONE,
    G_FREE_LISTS,
    G_INDEXED,
    GROW,
    ID_BITS,
    J_COLUMNS_AT,
    J_LOOK,
    J_NEAR,
    J_REGISTER,
    J_VERTEX,
    JOIN,
    LISTS,
    NO_ROOM,
    NUMBER_BITS,
    NUMBER_MASK,
    ROWS,
    S_CHANGED,
    S_GROW,
    S_N,
    S_NEXT,
    S_OUT,
    T_ARITY,
    T_BLOCKS,
    T_COUNTED,
    T_FREE,
    T_INDEX,
    T_JOINS_AT,
    T_LEAF,
    T_PAYLOAD,
    T_PAYLOAD_AT,
    T_ROW,
    T_ROW_INDEX,
    T_ROWS,
    T_TUPLES,
    T_VERTICES,
    T_WORDS,
    TUPLES,
    V_KEYS,
)
from dlog.joingraph.memory_kernels import add_entry, has_room, is_too_full, take
from dlog.joingraph.payload_kernels import index_rows

AHEAD: Final = 4  # rows


@kernel
def build_atom(
    A_words: Words, header: Words, state_words: Words, row_words: Words, found_words: Words
) -> int:
    """Put rows S_NEXT to S_N of an atom into its part of the graph, which is empty: DONE, GROW or NO_ROOM.

    Column c of row i is row_words[i * arity + c].  S_OUT join tuples are in `found_words`, which has room for
    one for each row.  O(rows).
    """
    A, words, state = pointer(A_words), pointer(header), pointer(state_words)
    rows, found = pointer(row_words), pointer(found_words)
    atom = state[S_CHANGED]
    while state[S_NEXT] < state[S_N]:
        code = readiness(A, words, atom, state)
        if code == DONE:
            code = build_group(A, words, atom, state, rows, found)
        if code != DONE:
            return int(code)
    if not has_room(A, words[atom + T_VERTICES] * 2 * state[S_OUT]):
        return NO_ROOM
    for i in range(state[S_OUT]):
        ask_for_lists(A, words, atom, found, i, state[S_OUT])
        link(A, words, atom, found[i])
    return DONE


@helper
def build_group(A, words, atom, state, rows, found):
    """The rows from S_NEXT on that have the same vertex values."""
    size, first = words[atom + T_ARITY], state[S_NEXT]
    ask_ahead(A, words, atom, state, rows)
    end, different = first + 1, 1
    while end < state[S_N] and same_joins(words, atom, rows, first * size, end * size):
        different += 0 if same_payload(words, atom, rows, (end - 1) * size, end * size) else 1
        end += 1
    has_payload = words[atom + T_PAYLOAD] > 0
    if has_payload and different > words[G_INDEXED] and is_too_full(words, atom + T_ROW_INDEX, different):
        state[S_GROW] = atom + T_ROW_INDEX
        return GROW
    if has_payload and not has_room(A, 2 * different * words[atom + T_ROW]):
        return NO_ROOM
    find_values(A, words, atom, state, rows, first)
    words[atom + T_ROWS] += end - first
    state[S_NEXT] = end
    joins = words[atom + T_JOINS_AT]
    if words[atom + T_LEAF] == 1:
        A[state[words[joins + J_REGISTER]] + words[joins + J_NEAR] + 1] += end - first
        return DONE
    tuple = new_tuple(A, words, atom, state)
    found[state[S_OUT]] = tuple
    state[S_OUT] += 1
    if has_payload:
        put_payload(A, words, atom, tuple, rows, first, end, different)
    else:
        A[tuple + words[atom + T_VERTICES]] = end - first
    return DONE


@helper
def ask_ahead(A, words, atom, state, rows):
    """Have the memory loaded that rows to come need."""
    size = words[atom + T_ARITY]
    for stage in range(3):
        row = state[S_NEXT] + (3 - stage) * AHEAD
        if row < state[S_N]:
            ask_for_row(A, words, atom, rows, row * size, stage)


@helper
def ask_for_lists(A, words, atom, found, i, n):
    """The same for join tuples to come: vertex values, and then their lists."""
    joins = words[atom + T_JOINS_AT]
    for local in range(words[atom + T_VERTICES]):
        if i + 4 * AHEAD < n:
            prefetch(A, A[found[i + 4 * AHEAD] + local] + words[joins + local * JOIN + J_NEAR])
        if i + 2 * AHEAD < n:
            value = A[found[i + 2 * AHEAD] + local]
            look = A[value + words[joins + local * JOIN + J_LOOK]]
            prefetch(A, A[value + words[joins + local * JOIN + J_NEAR]] + look)


@helper
def find_values(A, words, atom, state, rows, row):
    """The vertex values of a row into registers.  The first is mostly that of the row before."""
    size, joins = words[atom + T_ARITY], words[atom + T_JOINS_AT]
    at = row * size
    for local in range(words[atom + T_VERTICES]):
        join = joins + local * JOIN
        vertex, columns = words[join + J_VERTEX], words[join + J_COLUMNS_AT]
        keys = words[vertex + V_KEYS]
        if row > 0 and same_columns(words, keys, columns, rows, at - size, at):
            continue
        hash = key_hash(words, columns, keys, rows, at)
        value = find_value(A, words, vertex, columns, hash, rows, at)
        if value == 0:
            value = new_value(A, words, vertex, columns, hash, rows, at)
        state[words[join + J_REGISTER]] = value


@helper
def new_tuple(A, words, atom, state):
    """A join tuple of the vertex values in the registers, which count it."""
    joins, vertices = words[atom + T_JOINS_AT], words[atom + T_VERTICES]
    tuple = take(A, words, atom + T_FREE, words[atom + T_WORDS], TUPLES)
    for local in range(vertices):
        value = state[words[joins + local * JOIN + J_REGISTER]]
        A[tuple + local] = value
        A[value + words[joins + local * JOIN + J_NEAR] + 1] += 1
    if vertices > 1:
        add_entry(A, words, atom + T_INDEX, tuple_hash(words, atom, state), tuple)
    words[atom + T_TUPLES] += 1
    return tuple


@helper
def capacity_of(number):
    """The logarithm of the capacity for so many."""
    capacity = 0
    while 1 << capacity < number:
        capacity += 1
    return capacity


@helper
def put_payload(A, words, atom, tuple, rows, first, end, number):
    """The payload of sorted rows, so many different ones."""
    header, width, size = tuple + words[atom + T_VERTICES], words[atom + T_ROW], words[atom + T_ARITY]
    values, capacity, block = words[atom + T_PAYLOAD], capacity_of(number), header + 1
    if capacity > 0:
        block = take(A, words, atom + T_BLOCKS + capacity, width << capacity, ROWS)
        A[header + 1] = block
    A[header] = number | (capacity << NUMBER_BITS)
    to = block - width
    for row in range(first, end):
        is_new = row == first or not same_payload(words, atom, rows, (row - 1) * size, row * size)
        if is_new:
            to += width
            for w in range(values):
                A[to + w] = rows[row * size + words[words[atom + T_PAYLOAD_AT] + w]]
        if words[atom + T_COUNTED] == 1:
            A[to + values] = 1 if is_new else A[to + values] + 1
    if number > words[G_INDEXED]:
        index_rows(A, words, atom, tuple, number)


@helper
def link(A, words, atom, tuple):
    """Put a join tuple into the lists of its vertex values.  LOOK says how many a list has so far, until it
    has all of them."""
    joins = words[atom + T_JOINS_AT]
    for local in range(words[atom + T_VERTICES]):
        join, value = joins + local * JOIN, A[tuple + local]
        near, look = value + words[join + J_NEAR], value + words[join + J_LOOK]
        number = A[near + 1] & NUMBER_MASK
        if number == 1:
            A[near] = tuple
            continue
        if A[look] == 0:
            capacity = capacity_of(number)
            A[near] = take(A, words, G_FREE_LISTS + capacity, 1 << capacity, LISTS)
            A[near + 1] = number | (capacity << NUMBER_BITS)
        A[A[near] + A[look]] = tuple
        A[tuple + local] = value | (A[look] << ID_BITS)
        A[look] = 0 if A[look] + 1 == number else A[look] + 1
