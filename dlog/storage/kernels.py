"""Owns the kernels of storage that Python calls.  Each hands bare pointers on to the helper of its name.

What they do, need and cost is written at the helpers, in the other modules of kernels.
"""

from __future__ import annotations

from dlog.jit import Words, kernel
from dlog.storage import (
    arena_kernels,
    change_kernels,
    delta_kernels,
    ops_kernels,
    row_kernels,
    scan_kernels,
    tree_kernels,
)
from dlog.storage.pointer import pointer

# Memory


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


# Reading


@kernel
def rank(A: Words, root: int, key: int, d: int, bias: int) -> int:
    return tree_kernels.rank(pointer(A), root, key, 1, 0, d, bias)


@kernel
def count_prefix(A: Words, root: int, key: int, d: int) -> int:
    return tree_kernels.count_prefix(pointer(A), root, key, 1, 0, d)


@kernel
def has_prefix(A: Words, root: int, key: int, d: int) -> int:
    return tree_kernels.has_prefix(pointer(A), root, key, 1, 0, d)


@kernel
def read_rows(A: Words, root: int, k: int, row_step: int, column_step: int, out: Words) -> int:
    return tree_kernels.read_rows(pointer(A), root, k, row_step, column_step, pointer(out))


@kernel
def flatten(A: Words, root: int, k: int, to: int, to_stride: int) -> int:
    return tree_kernels.flatten(pointer(A), root, k, to, to_stride)


@kernel
def count_changes(A: Words, root: int, k: int, every: int, out: Words) -> int:
    return tree_kernels.count_changes(pointer(A), root, k, every, pointer(out))


@kernel
def scan_rows(A: Words, root: int, lower: int, d: int, upper: int, e: int, column: int) -> int:
    return scan_kernels.scan_rows(pointer(A), root, lower, d, upper, e, column)


# Changing


@kernel
def build_tree(A: Words, owner: int, base: int, stride: int, n: int, k: int, scan: int) -> int:
    return change_kernels.build_tree(pointer(A), owner, base, stride, n, k, scan)


@kernel
def spread_tree(A: Words, base: int, stride: int, n: int, k: int, scan: int) -> int:
    return change_kernels.spread_tree(pointer(A), base, stride, n, k, scan)


@kernel
def set_ops(A: Words, ops: int, s: int, m: int, k: int, op: int) -> None:
    ops_kernels.set_ops(pointer(A), ops, s, m, k, op)


@kernel
def merge_ops(A: Words, a: int, sa: int, n: int, b: int, sb: int, m: int, k: int, ops: int, s: int) -> int:
    return ops_kernels.merge_ops(pointer(A), a, sa, n, b, sb, m, k, ops, s)


@kernel
def locate(A: Words, root: int, ops: int, s: int, m: int, k: int) -> int:
    return ops_kernels.locate(pointer(A), root, ops, s, m, k)


@kernel
def select_ops(A: Words, ops: int, s: int, m: int, k: int, op: int, out: Words) -> int:
    return ops_kernels.select_ops(pointer(A), ops, s, m, k, op, pointer(out))


@kernel
def apply_ops(A: Words, root: int, ops: int, s: int, m: int, k: int, items: int, nodes: int) -> int:
    return change_kernels.apply_ops(pointer(A), root, ops, s, m, k, items, nodes)


@kernel
def merge_tree(A: Words, root: int, ops: int, s: int, m: int, k: int, to: int, to_stride: int) -> int:
    return change_kernels.merge_tree(pointer(A), root, ops, s, m, k, to, to_stride)


@kernel
def change_row(A: Words, root: int, k: int, op: int, in_place: int) -> int:
    return row_kernels.change_row(pointer(A), root, k, op, in_place)


# Differences


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
