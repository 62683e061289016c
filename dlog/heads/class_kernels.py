"""Owns the loops of equivalence classes: union-find, rows that begin with given values, pairs of members.

Knows nothing of rules.  Nodes have numbers from 0.
"""

from __future__ import annotations

from dlog.jit import Bools, Words, helper, kernel
from dlog.storage.index.trie_kernels import end_position, key_at, next_position, run_end, seek_lub


@helper
def root_of(parent: Words, node: int) -> int:
    """The root of a node's tree; the path to it becomes half as long."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def join_nodes(
    first: Words, second: Words, m: int, score: Words, n: int, parent: Words, best: Words, joined: Bools
) -> None:
    """Join n nodes by m edges: best[i] is the node of i's tree with the greatest score, of several the first;
    joined[e] says whether an edge joined two trees.  O((n + m) log n), in practice linear.
    """
    for i in range(n):
        parent[i] = i
        best[i] = 1
    for e in range(m):
        a, b = root_of(parent, first[e]), root_of(parent, second[e])
        joined[e] = a != b
        if a != b:
            if best[a] < best[b]:  # so far the size of a tree
                a, b = b, a
            parent[b] = a
            best[a] += best[b]
    for i in range(n):
        best[i] = -1
    for i in range(n):
        root = root_of(parent, i)
        if best[root] < 0 or score[i] > score[best[root]]:
            best[root] = i
    for i in range(n):
        root = root_of(parent, i)
        if root != i:
            best[i] = best[root]


@kernel
def rows_of(arena: Words, root: int, keys: Words, n: int, which: Words, values: Words, room: int) -> int:
    """The rows of an index of two columns that begin with one of n ascending keys: the number of the key and
    the second value, as long as there is room; returns how many there are.  O(n log rows + rows found)."""
    end = end_position(arena, root)
    found, at = 0, 0
    for i in range(n):
        if at >= end:
            break
        at = seek_lub(arena, root, 0, at, end, keys[i])
        if at >= end or key_at(arena, root, 0, at) != keys[i]:
            continue
        last = run_end(arena, root, 0, at, end)
        while at < last:
            if found < room:
                which[found] = i
                values[found] = key_at(arena, root, 1, at)
            found += 1
            at = next_position(arena, root, at)
    return found


@kernel
def write_pairs(members: Words, group: Words, n: int, starts: Words, grouped: Words, out: Words) -> None:
    """For each of n ascending members a row with each member of its group, in order.

    Group g has the members grouped[starts[g] : starts[g + 1]], ascending.  O(rows written).
    """
    at = 0
    for i in range(n):
        for j in range(starts[group[i]], starts[group[i] + 1]):
            out[at] = members[i]
            out[at + 1] = grouped[j]
            at += 2
