"""Owns the kernels that Python calls: changes of rows, with the difference of the view, and the whole view.

Correct output of `change_rows`: the graph has the rows that are inserted and not those that are erased, and
`out` has every row of the view that a changed row gives or takes, with the sign and number of assignments.

A row is erased in phase 0 (search), then 1 (removal), inserted in phases 2 and 3 (entry, then search).  A row
that is updated and has the same vertex values before and after is searched once, in phase 4, and changed.
Each phase can be interrupted, because `out` is full or an index is, and then resumes.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, kernel, pointer, prefetch
from dlog.joingraph.graph_kernels import (
    ask_for_row,
    change_payload,
    erase_row,
    find_values,
    insert_row,
    is_wanted,
    readiness,
    same_joins,
    same_payload,
)
from dlog.joingraph.layout import (
    BROKEN,
    DONE,
    I_BASE,
    I_MASK,
    ID_MASK,
    INSERT,
    NUMBER_MASK,
    P_PAIRS,
    P_REGISTER,
    P_VERTEX,
    S_APPLIED,
    S_CHANGED,
    S_EMITS,
    S_MODE,
    S_N,
    S_NEXT,
    S_PAIR,
    S_PHASE,
    S_ROW,
    S_SEARCH,
    S_SIGN,
    S_SLOT,
    T_ARITY,
    T_SEARCH,
    UPDATE,
    V_INDEX,
    V_KEYS,
)
from dlog.joingraph.path_kernels import begin_search, load_row, run_search

AHEAD: Final = 4  # rows

BEGIN: Final = 0
ERASING: Final = 1
ENTRY: Final = 2
INSERTING: Final = 3
PAIRING: Final = 4


@kernel
def change_rows(A_words: Words, header: Words, state_words: Words, row_words: Words, out_words: Words) -> int:
    """Change rows S_NEXT to S_N of an atom; resumes where it stopped.

    Column c of row i is row_words[i * arity + c]; an update has the row before and then the row after.
    """
    A, words, state = pointer(A_words), pointer(header), pointer(state_words)
    return int(change_all_rows(A, words, state, pointer(row_words), pointer(out_words)))


@helper
def change_all_rows(A, words, state, rows, out):
    code = DONE
    while code == DONE and state[S_NEXT] < state[S_N]:
        if state[S_PHASE] == BEGIN:
            ask_ahead(A, words, state, rows)
        code = change_row(A, words, state, rows, out)
        if code == DONE:
            state[S_PHASE] = BEGIN
            state[S_NEXT] += 1
    return code


@helper
def ask_ahead(A, words, state, rows):
    """Have the memory loaded that the next rows need."""
    atom = state[S_CHANGED]
    size = words[atom + T_ARITY] * (2 if state[S_MODE] == UPDATE else 1)
    for stage in range(3):
        row = state[S_NEXT] + (3 - stage) * AHEAD
        if row < state[S_N]:
            ask_for_row(A, words, atom, rows, row * size, stage)


@helper
def change_row(A, words, state, rows, out):
    atom, mode = state[S_CHANGED], state[S_MODE]
    size = words[atom + T_ARITY]
    before = state[S_NEXT] * (2 * size if mode == UPDATE else size)
    after = before + size if mode == UPDATE else before
    if state[S_PHASE] == BEGIN:
        state[S_PHASE] = first_phase(words, atom, mode, state, rows, before, after)
        if state[S_PHASE] == BEGIN:
            state[S_APPLIED] += 2 if mode == UPDATE else 1
            return DONE
    code = DONE
    if state[S_PHASE] == PAIRING:
        return pair(A, words, atom, state, rows, out, before, after)
    if state[S_PHASE] == ERASING:
        code = erase(A, words, atom, state, rows, out, before)
        if code != DONE:
            return code
        state[S_APPLIED] += 1
        if mode != UPDATE:
            return code
        state[S_PHASE] = ENTRY
        if not is_wanted(words, atom, rows, after):
            state[S_APPLIED] += 1
            return code
    return insert(A, words, atom, state, rows, out, after)


@helper
def first_phase(words, atom, mode, state, rows, before, after):
    """BEGIN: nothing changes."""
    state[S_ROW] = -1
    had, has = is_wanted(words, atom, rows, before), is_wanted(words, atom, rows, after)
    if mode == INSERT:
        return ENTRY if has else BEGIN
    if mode != UPDATE:
        return ERASING if had else BEGIN
    if had and has and same_joins(words, atom, rows, before, after):
        if same_payload(words, atom, rows, before, after):
            return BEGIN
        if state[S_EMITS] == 0 or words[words[atom + T_SEARCH] + P_PAIRS] == 1:
            return PAIRING
    if had:
        return ERASING
    if has:
        state[S_APPLIED] += 1
        return ENTRY
    return BEGIN


@helper
def search_row(A, words, atom, state, rows, out, at, after, sign):
    """Write what a row gives or takes.  REQUIRES: the registers have its vertex values."""
    if state[S_EMITS] == 0:
        return DONE
    if state[S_ROW] < 0:
        state[S_ROW] = at
        state[S_PAIR] = after
        state[S_SIGN] = sign
        load_row(words, state, words[atom + T_SEARCH], rows, at, 0)
        if after >= 0:
            load_row(words, state, words[atom + T_SEARCH], rows, after, 1)
        begin_search(words, state, words[atom + T_SEARCH])
    return run_search(A, words, state, out)


@helper
def erase(A, words, atom, state, rows, out, at):
    if state[S_ROW] < 0 and not find_values(A, words, atom, rows, at, state, False):
        return BROKEN
    code = search_row(A, words, atom, state, rows, out, at, -1, -1)
    if code != DONE:
        return code
    state[S_ROW] = -1
    return erase_row(A, words, atom, rows, at, state)


@helper
def insert(A, words, atom, state, rows, out, at):
    if state[S_PHASE] == ENTRY:
        code = readiness(A, words, atom, state)
        if code != DONE:
            return code
        insert_row(A, words, atom, rows, at, state)
        state[S_APPLIED] += 1
        state[S_ROW] = -1
        state[S_PHASE] = INSERTING
    return search_row(A, words, atom, state, rows, out, at, -1, 1)


@helper
def pair(A, words, atom, state, rows, out, before, after):
    code = readiness(A, words, atom, state)
    if code != DONE:
        return code
    if state[S_ROW] < 0 and not find_values(A, words, atom, rows, before, state, False):
        return BROKEN
    code = search_row(A, words, atom, state, rows, out, before, after, -1)
    if code != DONE:
        return code
    state[S_APPLIED] += 2
    return change_payload(A, words, atom, rows, before, after, state)


@helper
def ask_for_value(A, keys, place):
    """Have the memory loaded that later vertex values in an index need, and their lists."""
    prefetch(A, A[place + 2 * AHEAD] & ID_MASK)
    value = A[place + AHEAD] & ID_MASK
    if value != 0 and has_both_sides(A, value + keys):
        prefetch(A, A[value + keys])
        prefetch(A, A[value + keys + 2])


@helper
def has_both_sides(A, near):
    """Whether something is alive on each side of a vertex value, whose lists begin at a place."""
    return (A[near + 1] - A[near + 4]) & NUMBER_MASK != 0 and (A[near + 3] - A[near + 5]) & NUMBER_MASK != 0


@kernel
def read_view(A_words: Words, header: Words, state_words: Words, out_words: Words) -> int:
    """Write the rows of the whole view, from slot S_SLOT of a vertex' index on; resumes where it stopped."""
    A, words, state = pointer(A_words), pointer(header), pointer(state_words)
    out = pointer(out_words)
    search, code = state[S_SEARCH], DONE
    vertex = words[search + P_VERTEX]
    index, keys = vertex + V_INDEX, words[vertex + V_KEYS]
    base, mask = words[index + I_BASE], words[index + I_MASK]
    while code == DONE and state[S_SLOT] <= mask:
        if state[S_PHASE] == BEGIN and state[S_SLOT] + 2 * AHEAD <= mask:
            ask_for_value(A, keys, base + state[S_SLOT])
        value = A[base + state[S_SLOT]] & ID_MASK
        if value != 0 and has_both_sides(A, value + keys):
            if state[S_PHASE] == BEGIN:
                state[words[search + P_REGISTER]] = value
                load_row(words, state, search, A, value, 0)
                begin_search(words, state, search)
                state[S_PHASE] = INSERTING
            code = run_search(A, words, state, out)
        if code == DONE:
            state[S_PHASE] = BEGIN
            state[S_SLOT] += 1
    return code
