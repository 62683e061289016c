"""Owns the kernels for memory that Python calls.  Each passes bare pointers to the helper of the same name.

Their effects, requirements and costs are documented at the helpers.
"""

from __future__ import annotations

from dlog.jit import Words, kernel
from dlog.storage.arena import arena_kernels
from dlog.storage.arena.pointer import pointer


@kernel
def new_extent(A: Words, words: int, count: int) -> int:
    return arena_kernels.new_extent(pointer(A), words, count)


@kernel
def adopt_extent(A: Words, base: int, words: int, count: int) -> int:
    return arena_kernels.adopt_extent(pointer(A), base, words, count)


@kernel
def release_extent(A: Words, record: int, count: int) -> None:
    arena_kernels.release_extent(pointer(A), record, count)


@kernel
def take_dead(A: Words) -> None:
    arena_kernels.take_dead(pointer(A))


@kernel
def node_words(scan: int) -> int:
    return arena_kernels.node_words(scan)


@kernel
def clone_root(A: Words, root: int) -> int:
    return arena_kernels.clone_root(pointer(A), root)


@kernel
def release_root(A: Words, root: int) -> None:
    arena_kernels.release_root(pointer(A), root)


@kernel
def release_roots(A: Words, roots: Words, n: int) -> None:
    for i in range(n):
        arena_kernels.release_root(pointer(A), roots[i])
