"""Owns the kernels for indices that Python calls.  Each passes bare pointers to the helper of the same name.

Their effects, requirements and costs are documented at the helpers.
"""

from __future__ import annotations

from dlog.jit import Words, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.index import change_kernels, ops_kernels, row_kernels, tree_kernels


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
