"""Owns the kernel that changes a head by the rows of a trigger's joins.  Knows nothing of the joins."""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.relation.rows_kernels import change_all

# Words of the shape.
H_ARITY: Final = 0
H_ORDERS: Final = 1
H_JOINS: Final = 2
H_CAPACITY: Final = 3  # rows of the output of a join
H_WIDTH: Final = 4  # columns of it
H_INSERTS: Final = 5  # whether rows come: 1 or 0
H: Final = 6


@kernel
def change_head(
    arena: Words, shape: Words, orders: Words, roots: Words, out: Words, counts: Words, rows: Words
) -> int:
    """How many rows the head gained or lost, or what `change_all` answers where it did nothing.

    `out` and `counts` are as `one_row_kernels.fire` has left them.  The new roots come behind the old ones,
    the rows that changed to `rows`, which has room for all of the joins.
    """
    k, capacity = shape[H_ARITY], shape[H_CAPACITY]
    n = 0
    for j in range(shape[H_JOINS]):
        for i in range(counts[j]):
            for c in range(k):
                rows[n * k + c] = out[(j * shape[H_WIDTH] + c) * capacity + i]
            n += 1
    inserts = n if shape[H_INSERTS] == 1 else 0
    given, to, n_orders = pointer(rows), pointer(roots), shape[H_ORDERS]
    new = pointer(roots[n_orders:])
    return int(
        change_all(
            pointer(arena), k, n_orders, pointer(orders), to, new, given, inserts, n - inserts, 0, given
        )
    )
