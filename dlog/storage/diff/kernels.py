"""Owns the kernels for differences that Python calls.  Each passes bare pointers to the helper of the same
name.

Their effects, requirements and costs are documented at the helpers.
"""

from __future__ import annotations

from dlog.jit import Words, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.diff import delta_kernels


@kernel
def walk_difference(A: Words, old: int, new: int, k: int, state: Words, room: int, out: Words) -> int:
    return delta_kernels.walk_difference(pointer(A), old, new, k, pointer(state), room, pointer(out))


@kernel
def count_missing(A: Words, root: int, rows: Words, n: int, k: int, key: int, out: Words) -> None:
    delta_kernels.count_missing(pointer(A), root, pointer(rows), n, k, key, pointer(out))


@kernel
def write_surgeries(
    inserted: Words, kept: Words, n: int, erased: Words, left: Words, m: int, k: int, out: Words
) -> int:
    return delta_kernels.write_surgeries(
        pointer(inserted), pointer(kept), n, pointer(erased), pointer(left), m, k, pointer(out)
    )
