"""Owns the kernel of a transaction of one row of a predicate that one atom of one graph reads: the row goes
into every index, into the graph, and what the graph gives into a head that no rule reads."""

from __future__ import annotations

from typing import Final

from dlog.engine.maintain.triggers.kernels import (
    H_CAPACITY,
    NOTHING,
    ROWS,
    change_joined_head,
    change_predicate,
)
from dlog.jit import Words, kernel, pointer, shifted
from dlog.joingraph.change_kernels import change_all_rows
from dlog.joingraph.layout import (
    DONE,
    S_APPLIED,
    S_CAPACITY,
    S_CHANGED,
    S_EMITS,
    S_MODE,
    S_N,
    S_NEXT,
    S_OUT,
    S_PHASE,
)
from dlog.storage.arena.arena_kernels import release_handed

# Words of a call.
C_ATOM: Final = 0  # of the graph: its words
C_MODE: Final = 1
C_CAPACITY: Final = 2  # rows of the graph's output
C_HEAD: Final = 3  # rows that the head takes at most; 0: it is not changed here
C_CODE: Final = 4  # written: what the graph answered
C_FOUND: Final = 5  # written: rows of the view
C_CHANGED: Final = 6  # written: rows of the head; at most 0: nothing was done
CALL: Final = 7


@kernel
def fire_graph(
    arena_words: Words,
    layout_words: Words,
    written_words: Words,
    call_words: Words,
    graph_words: Words,
    header: Words,
    state_words: Words,
    out_words: Words,
    shape: Words,
    orders: Words,
    roots: Words,
    rows: Words,
) -> int:
    """Change a row: how many rows of the view come or go, or what `change_predicate` answers where it did
    nothing.  If the graph's answer is not DONE, it has to be called again; then the head is not changed."""
    A, layout, written = pointer(arena_words), pointer(layout_words), pointer(written_words)
    call, state, out = pointer(call_words), pointer(state_words), pointer(out_words)
    release_handed(A)
    found = change_predicate(A, layout, written, 1)
    if found < 0:
        return int(found)
    state[S_CHANGED], state[S_MODE] = call[C_ATOM], call[C_MODE]
    state[S_N], state[S_EMITS], state[S_CAPACITY] = 1, 1, call[C_CAPACITY]
    state[S_NEXT] = state[S_APPLIED] = state[S_PHASE] = state[S_OUT] = 0
    row = shifted(written, layout[ROWS])
    code = change_all_rows(pointer(graph_words), pointer(header), state, row, out)
    n = state[S_OUT]
    call[C_CODE], call[C_FOUND] = code, n
    call[C_CHANGED] = NOTHING
    if code == DONE and n > 0 and n <= call[C_HEAD]:
        head = pointer(shape)
        head[H_CAPACITY] = call[C_CAPACITY]
        found = shifted(call, C_FOUND)
        call[C_CHANGED] = change_joined_head(
            A, head, pointer(orders), pointer(roots), out, found, pointer(rows)
        )
    return int(n)
