"""Owns bulk load and how a batch of operations changes an index.  Knows nothing of handles and versions.

Every change is made in place on a root that the caller owns; a new version begins as `clone_root`, whose
nodes are shared and therefore copied when touched.  One pass from left to right rebuilds the touched nodes
and leaves the others.  Neighbouring nodes that fill half a node together become one, as leaves do.

REQUIRES, everywhere: the caller has reserved memory for the new pages (`pages_bound`).
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, prefetch
from dlog.storage.arena.arena_kernels import (
    COUNT,
    EXTENT_BASE,
    LINE,
    RESULT,
    dissolve_bunches,
    free_block,
    free_root,
    new_block,
    new_extent,
    new_root,
    node_words,
    own_bunch,
    retain_entries,
)
from dlog.storage.index.fold_kernels import add_scan, fold_root, refold
from dlog.storage.index.leaf_kernels import (
    ITEM,
    ITEM_FIRST,
    ITEM_SCAN,
    OP,
    ORDINAL,
    POSITION,
    change_leaf,
    join_last,
    merge_rows,
    put_entry,
    rewrite_leaf,
    scan_leaf,
)
from dlog.storage.index.tree_kernels import copy_rows
from dlog.storage.layout import (
    ARITY,
    BASE,
    BUNCH,
    CAPACITY,
    ENTRY,
    FANOUT,
    FILL,
    FLAT_BASE,
    FLAT_STRIDE,
    FOLD,
    LEAF_ROWS,
    N_ENTRIES,
    N_NODES,
    N_ROWS,
    NODE_FIRST,
    NODE_HEADER,
    NODE_REFERENCES,
    NODE_ROWS,
    NODE_SCAN,
    OWNER,
    ROOT_BUNCHES,
    ROOT_HEADER,
    ROOT_REFERENCES,
    ROOT_SCAN,
    SCAN_HIGH,
    SCAN_LOW,
    SCAN_MAX,
    SCAN_MIN,
    SCAN_WORDS,
    STRIDE,
)

# Bulk-loaded leaves and nodes are a sixteenth short of full: a row more needs no split, and leaves do not
# begin at multiples of a power of two (see arena_kernels on cache sets).  Leaves of more than two columns
# have fewer rows, since the first change copies them, but no two that are small together.

TOGETHER: Final = 256  # operations whose leaves are prefetched together


@helper
def build_tree(A: Words, owner: int, base: int, stride: int, n: int, k: int, scan: int) -> int:
    """A flat index over n sorted rows of one extent; each leaf takes a reference.  O(n / LEAF_ROWS)."""
    rows = max(LEAF_ROWS // 2 + 1, LEAF_ROWS * 15 // 16 * 2 // max(k, 2))
    return build_pages(A, owner, base, stride, n, k, scan, rows, FANOUT * 15 // 16)


@helper
def build_pages(
    A: Words, owner: int, base: int, stride: int, n: int, k: int, scan: int, rows: int, per_node: int
) -> int:
    """The same with so many rows in each leaf and leaves in each node."""
    leaves = (n + rows - 1) // rows if k > 0 else 0
    n_nodes = (leaves + per_node - 1) // per_node
    root = new_root(A, n_nodes)
    set_root(A, root, n_nodes, n, k, scan)
    A[root + FLAT_BASE] = base
    A[root + FLAT_STRIDE] = stride
    if leaves > 0:
        A[owner + COUNT] += leaves
    for ni in range(n_nodes):
        node = new_block(A, node_words(scan))
        A[root + ROOT_HEADER + ni] = node
        A[node + N_ENTRIES] = min(leaves - ni * per_node, per_node)
        for ei in range(A[node + N_ENTRIES]):
            start = (ni * per_node + ei) * rows
            entry = node + NODE_HEADER + ENTRY * ei
            A[entry + BASE] = base + start
            A[entry + STRIDE] = stride
            A[entry + FILL] = min(n - start, rows)
            A[entry + OWNER] = owner
            A[node + NODE_FIRST + ei] = A[base + start]
            if scan > 0:
                column = base + start + (scan - 1) * stride
                scan_leaf(A, column, A[entry + FILL], node + NODE_SCAN + SCAN_WORDS * (ei + 1))
        finish_node(A, node, scan)
        set_first(A, root, ni)
    fold_root(A, root)
    return root


@helper
def spread_tree(A: Words, base: int, stride: int, n: int, k: int, scan: int) -> int:
    """An index over n sorted rows whose leaves have their own memory, a quarter of it free: changes find
    them private and with room.  They are small, since rows move at every change, but no two are small
    together.  O(n k).  REQUIRES: n > 0, k > 0."""
    leaves = max(1, n // (LEAF_ROWS * 3 // 8))
    per_node = FANOUT * 15 // 16
    n_nodes = (leaves + per_node - 1) // per_node
    root = new_root(A, n_nodes)
    set_root(A, root, n_nodes, n, k, scan)
    for ni in range(n_nodes):
        node = new_block(A, node_words(scan))
        A[root + ROOT_HEADER + ni] = node
        A[node + N_ENTRIES] = min(leaves - ni * per_node, per_node)
        for ei in range(A[node + N_ENTRIES]):
            leaf = ni * per_node + ei
            start = n * leaf // leaves
            fill = n * (leaf + 1) // leaves - start
            room = fill + fill // 3
            owner = new_extent(A, room * k, 1)
            to = A[owner + EXTENT_BASE]
            copy_rows(A, base, stride, start, fill, to, room, 0, k)
            entry = node + NODE_HEADER + ENTRY * ei
            A[entry + BASE] = to
            A[entry + STRIDE] = room
            A[entry + FILL] = fill
            A[entry + OWNER] = owner
            A[node + NODE_FIRST + ei] = A[to]
            if scan > 0:
                scan_leaf(A, to + (scan - 1) * room, fill, node + NODE_SCAN + SCAN_WORDS * (ei + 1))
        finish_node(A, node, scan)
        set_first(A, root, ni)
    fold_root(A, root)
    set_flat(A, root)
    return root


@helper
def set_root(A: Words, root: int, n_nodes: int, n_rows: int, k: int, scan: int) -> None:
    """Write the header's plain words."""
    A[root + N_NODES] = n_nodes
    A[root + N_ROWS] = n_rows
    A[root + ARITY] = k
    A[root + ROOT_SCAN] = scan


@helper
def set_first(A: Words, root: int, ni: int) -> None:
    """The first key of a node of the root, from the node."""
    A[root + ROOT_HEADER + A[root + CAPACITY] + ni] = A[A[root + ROOT_HEADER + ni] + NODE_FIRST]


@helper
def finish_node(A: Words, node: int, scan: int) -> None:
    """Header of a node whose entries are written: one reference, its rows and scan summed."""
    A[node + NODE_REFERENCES] = 1
    rows = 0
    for e in range(A[node + N_ENTRIES]):
        rows += A[node + NODE_HEADER + ENTRY * e + FILL]
    A[node + NODE_ROWS] = rows
    if scan > 0:
        total_scan(A, node)


@helper
def total_scan(A: Words, node: int) -> None:
    """The node's scan from those of its entries."""
    total = node + NODE_SCAN
    for x in range(SCAN_WORDS):
        A[total + x] = A[total + SCAN_WORDS + x]
    for e in range(1, A[node + N_ENTRIES]):
        add_scan(A, total, total + SCAN_WORDS * (e + 1))


@helper
def apply_ops(A: Words, root: int, ops: int, s: int, m: int, k: int, items: int, nodes: int) -> int:
    """Carry out located operations on a root that the caller owns; return the root, perhaps another one.

    `items` and `nodes` are room for lists.  O(m + touched nodes * FANOUT + touched rows), and O(n_nodes) when
    a leaf is split, joined or empty.  Nodes that are not touched are not examined.
    """
    if keep_all_leaves(A, root, ops, s, m, k):
        if m <= TOGETHER:
            ask_for_leaves(A, root, ops, s, m, k)
        change_touched(A, root, ops, s, m, k)
        return root
    dissolve_bunches(A, root)
    scan = A[root + ROOT_SCAN]
    n_nodes = A[root + N_NODES]
    n_out, i, rows = 0, 0, A[root + N_ROWS]
    is_new = False  # the last node of the list: unchanged nodes are not small together
    for ni in range(n_nodes):
        node = A[root + ROOT_HEADER + ni]
        j = i
        while j < m and A[ops + (k + ORDINAL) * s + j] < (ni + 1) * FANOUT:
            rows += 2 * A[ops + (k + OP) * s + j] - 1
            j += 1
        touched = j > i
        small_before = is_new and n_out > 0 and fits_last(A, nodes, n_out, A[node + N_ENTRIES])
        is_new = small_before
        if touched and not small_before and keeps_leaves(A, node, ni, ops, s, i, j, k):
            A[nodes + n_out] = own_node(A, root, ni)
            change_leaves(A, A[nodes + n_out], ni, ops, s, i, j, k, scan)
            n_out += 1
        elif touched or small_before:
            last = 1 if ni == n_nodes - 1 else 0
            n_items = change_node(A, items, node, ni, ops, s, i, j, k, scan, last)
            n_out = put_nodes(A, items, n_items, nodes, n_out, k, scan, last)
            is_new = True
        else:
            A[nodes + n_out] = node
            n_out += 1
        i = j
    return finish_root(A, root, nodes, n_out, rows)


@helper
def keep_all_leaves(A: Words, root: int, ops: int, s: int, m: int, k: int) -> bool:
    """Whether located operations preserve all leaves of an index."""
    i = 0
    while i < m:
        ni = A[ops + (k + ORDINAL) * s + i] // FANOUT
        j = end_of_node(A, ni, ops, s, i, m, k)
        if not keeps_leaves(A, A[root + ROOT_HEADER + ni], ni, ops, s, i, j, k):
            return False
        i = j
    return True


@helper
def change_touched(A: Words, root: int, ops: int, s: int, m: int, k: int) -> None:
    """Carry out operations that preserve all leaves."""
    scan = A[root + ROOT_SCAN]
    i = 0
    while i < m:
        ni = A[ops + (k + ORDINAL) * s + i] // FANOUT
        j = end_of_node(A, ni, ops, s, i, m, k)
        node = own_node(A, root, ni)
        A[root + N_ROWS] -= A[node + NODE_ROWS]
        change_leaves(A, node, ni, ops, s, i, j, k, scan)
        A[root + N_ROWS] += A[node + NODE_ROWS]
        set_first(A, root, ni)
        refold(A, root, ni)
        i = j
    set_flat(A, root)


@helper
def ask_for_leaves(A: Words, root: int, ops: int, s: int, m: int, k: int) -> None:
    """Prefetch all leaves, many at once: the beginning of each column, from where on
    the processor predicts what comes next, and where it changes."""
    last = -1
    for i in range(m):
        ordinal = A[ops + (k + ORDINAL) * s + i]
        if ordinal == last:
            continue
        last = ordinal
        entry = A[root + ROOT_HEADER + ordinal // FANOUT] + NODE_HEADER + ENTRY * (ordinal % FANOUT)
        base, stride = A[entry + BASE], A[entry + STRIDE]
        prefetch(A, A[entry + OWNER])
        for c in range(k):
            at = base + c * stride
            prefetch(A, at)
            prefetch(A, at + LINE)
            prefetch(A, at + 2 * LINE)
            prefetch(A, at + A[ops + (k + POSITION) * s + i])


@helper
def end_of_node(A: Words, ni: int, ops: int, s: int, i: int, m: int, k: int) -> int:
    """The first operation after i that is in another node than ni."""
    while i < m and A[ops + (k + ORDINAL) * s + i] < (ni + 1) * FANOUT:
        i += 1
    return i


@helper
def keeps_leaves(A: Words, node: int, ni: int, ops: int, s: int, i: int, j: int, k: int) -> bool:
    """Whether operations [i, j) preserve all leaves of a node: none splits, joins or is empty."""
    last, before = -1, 0  # the leaf before the current one, and its rows after the change
    while i < j:
        e = A[ops + (k + ORDINAL) * s + i] - ni * FANOUT
        entry = node + NODE_HEADER + ENTRY * e
        fill = A[entry + FILL]
        while i < j and A[ops + (k + ORDINAL) * s + i] == ni * FANOUT + e:
            fill += 2 * A[ops + (k + OP) * s + i] - 1
            i += 1
        if e > 0 and last != e - 1:
            before = A[entry - ENTRY + FILL]
        if fill == 0 or fill > LEAF_ROWS or (e > 0 and before + fill <= LEAF_ROWS // 2):
            return False
        next_changes = i < j and A[ops + (k + ORDINAL) * s + i] == ni * FANOUT + e + 1
        next_stays = e + 1 < A[node + N_ENTRIES] and not next_changes
        if next_stays and A[entry + ENTRY + FILL] + fill <= LEAF_ROWS // 2:
            return False
        last, before = e, fill
    return True


@helper
def change_leaves(A: Words, node: int, ni: int, ops: int, s: int, i: int, j: int, k: int, scan: int) -> None:
    """Carry operations [i, j) out on a private node that keeps its leaves."""
    while i < j:
        e = A[ops + (k + ORDINAL) * s + i] - ni * FANOUT
        x, inserts = i, 0
        while x < j and A[ops + (k + ORDINAL) * s + x] == ni * FANOUT + e:
            inserts += A[ops + (k + OP) * s + x]
            x += 1
        entry = node + NODE_HEADER + ENTRY * e
        total = A[entry + FILL] + 2 * inserts - (x - i)
        rewrite_leaf(A, entry, ops, s, i, x, total, k)
        A[node + NODE_FIRST + e] = A[A[entry + BASE]]
        if scan > 0:
            scan_again(A, node, e, ops, s, i, x, k, scan)
        A[node + NODE_ROWS] += 2 * inserts - (x - i)
        i = x


@helper
def scan_again(A: Words, node: int, e: int, ops: int, s: int, i: int, j: int, k: int, scan: int) -> None:
    """The scans of a leaf and its node after operations [i, j).  O(j - i), and O(fill) if a least or greatest
    value was removed, O(FANOUT) if it may have been the node's."""
    total, own = node + NODE_SCAN, node + NODE_SCAN + SCAN_WORDS * (e + 1)
    least, most = A[own + SCAN_MIN], A[own + SCAN_MAX]
    A[total + SCAN_LOW] -= A[own + SCAN_LOW]
    A[total + SCAN_HIGH] -= A[own + SCAN_HIGH]
    end_went = False
    for x in range(i, j):
        value = A[ops + (scan - 1) * s + x]
        sign = 2 * A[ops + (k + OP) * s + x] - 1
        A[own + SCAN_LOW] += sign * (value & 0xFFFFFFFF)
        A[own + SCAN_HIGH] += sign * (value >> 32)
        if sign > 0:
            A[own + SCAN_MIN] = min(A[own + SCAN_MIN], value)
            A[own + SCAN_MAX] = max(A[own + SCAN_MAX], value)
        else:
            end_went = end_went or value in (least, most)
    if end_went:
        entry = node + NODE_HEADER + ENTRY * e
        scan_leaf(A, A[entry + BASE] + (scan - 1) * A[entry + STRIDE], A[entry + FILL], own)
    least_went = least == A[total + SCAN_MIN] and A[own + SCAN_MIN] > least
    if least_went or (most == A[total + SCAN_MAX] and A[own + SCAN_MAX] < most):
        total_scan(A, node)
    else:
        add_scan(A, total, own)


@helper
def own_node(A: Words, root: int, ni: int) -> int:
    """The root's node, copied first if other roots hold it too."""
    if A[root + ROOT_BUNCHES] != 0:
        own_bunch(A, root, ni // BUNCH)
    node = A[root + ROOT_HEADER + ni]
    if A[node + NODE_REFERENCES] == 1:
        return node
    scan = A[root + ROOT_SCAN]
    copy = new_block(A, node_words(scan))
    n = A[node + N_ENTRIES]
    for x in range(NODE_HEADER + ENTRY * n):
        A[copy + x] = A[node + x]
    for x in range(NODE_FIRST, NODE_FIRST + n):
        A[copy + x] = A[node + x]
    if scan > 0:
        for x in range(NODE_SCAN, NODE_SCAN + SCAN_WORDS * (n + 1)):
            A[copy + x] = A[node + x]
    retain_entries(A, node)
    A[node + NODE_REFERENCES] -= 1
    A[copy + NODE_REFERENCES] = 1
    A[root + ROOT_HEADER + ni] = copy
    return copy


@helper
def fits_last(A: Words, nodes: int, n_out: int, n_entries: int) -> bool:
    """Whether the last node of the list and n_entries more fill at most half a node."""
    return A[A[nodes + n_out - 1] + N_ENTRIES] + n_entries <= FANOUT // 2


@helper
def change_node(
    A: Words, items: int, node: int, ni: int, ops: int, s: int, i: int, j: int, k: int, scan: int, last: int
) -> int:
    """Turn one reference to a node into items, under operations [i, j); return their number."""
    shared = A[node + NODE_REFERENCES] > 1
    if shared:
        retain_entries(A, node)
        A[node + NODE_REFERENCES] -= 1
    n = 0
    entries = A[node + N_ENTRIES]
    for e in range(entries):
        x = i
        while x < j and A[ops + (k + ORDINAL) * s + x] == ni * FANOUT + e:
            x += 1
        if x == i:
            n = put_entry(A, items, n, node, e, k, scan)
        else:
            at_end = 1 if last == 1 and e == entries - 1 else 0
            n = change_leaf(A, items, n, node, e, ops, s, i, x, k, scan, at_end)
        i = x
    if not shared:
        free_block(A, node, node_words(scan))
    return n


@helper
def put_nodes(A: Words, items: int, n: int, nodes: int, n_out: int, k: int, scan: int, last: int) -> int:
    """Append items as nodes to the list; return its length.  Joins them with a small last node."""
    if n == 0:
        return n_out
    if n_out > 0 and fits_last(A, nodes, n_out, n):
        n_out -= 1
        n = prepend_node(A, items, n, A[nodes + n_out], k, scan)
    target = FANOUT if last == 1 or n <= FANOUT else FANOUT * 3 // 4
    parts = (n + target - 1) // target
    start = 0
    for p in range(parts):
        end = min(start + FANOUT, n) if last == 1 else n * (p + 1) // parts
        A[nodes + n_out] = make_node(A, items + ITEM * start, end - start, scan)
        n_out += 1
        start = end
    return n_out


@helper
def prepend_node(A: Words, items: int, n: int, node: int, k: int, scan: int) -> int:
    """Turn one reference to a node into items before the n existing items."""
    m = A[node + N_ENTRIES]
    for x in range(ITEM * n - 1, -1, -1):
        A[items + ITEM * m + x] = A[items + x]
    shared = A[node + NODE_REFERENCES] > 1
    if shared:
        retain_entries(A, node)
        A[node + NODE_REFERENCES] -= 1
    for e in range(m):  # neighbours inside a node are never both small, so none join
        put_entry(A, items, e, node, e, k, scan)
    if not shared:
        free_block(A, node, node_words(scan))
    if join_last(A, items, m + 1, k, scan) == m:
        for x in range(ITEM * m, ITEM * (m + n - 1)):
            A[items + x] = A[items + ITEM + x]
        return m + n - 1
    return m + n


@helper
def make_node(A: Words, items: int, n: int, scan: int) -> int:
    """A node of n items."""
    node = new_block(A, node_words(scan))
    A[node + N_ENTRIES] = n
    for e in range(n):
        for x in range(ENTRY):
            A[node + NODE_HEADER + ENTRY * e + x] = A[items + ITEM * e + x]
        A[node + NODE_FIRST + e] = A[items + ITEM * e + ITEM_FIRST]
        if scan > 0:
            for x in range(SCAN_WORDS):
                A[node + NODE_SCAN + SCAN_WORDS * (e + 1) + x] = A[items + ITEM * e + ITEM_SCAN + x]
    finish_node(A, node, scan)
    return node


@helper
def finish_root(A: Words, root: int, nodes: int, n: int, rows: int) -> int:
    """Give the root its new list of nodes, of this many rows; another root if the list has no room, or would
    leave most of it empty."""
    if n > A[root + CAPACITY] or A[root + CAPACITY] > 4 * n + FOLD:
        other = new_root(A, n + n // 8)
        set_root(A, other, 0, 0, A[root + ARITY], A[root + ROOT_SCAN])
        A[other + ROOT_REFERENCES] = A[root + ROOT_REFERENCES]
        free_root(A, root)
        root = other
    for i in range(n):
        A[root + ROOT_HEADER + i] = A[nodes + i]
        set_first(A, root, i)
    A[root + N_NODES] = n
    A[root + N_ROWS] = rows
    fold_root(A, root)
    set_flat(A, root)
    return root


@helper
def set_flat(A: Words, root: int) -> None:
    """An index of no leaf or one leaf is flat; a larger one that was changed is not."""
    n = A[root + N_NODES]
    A[root + FLAT_BASE] = 0 if n == 0 else -1
    A[root + FLAT_STRIDE] = 0
    if n == 1:
        node = A[root + ROOT_HEADER]
        if A[node + N_ENTRIES] == 1:
            A[root + FLAT_BASE] = A[node + NODE_HEADER + BASE]
            A[root + FLAT_STRIDE] = A[node + NODE_HEADER + STRIDE]


@helper
def merge_tree(A: Words, root: int, ops: int, s: int, m: int, k: int, to: int, to_stride: int) -> int:
    """Write all rows after located operations to one flat place; return their number.  O(n + m)."""
    i, at = 0, 0
    for ni in range(A[root + N_NODES]):
        node = A[root + ROOT_HEADER + ni]
        for ei in range(A[node + N_ENTRIES]):
            entry = node + NODE_HEADER + ENTRY * ei
            x, total = i, A[entry + FILL]
            while x < m and A[ops + (k + ORDINAL) * s + x] == ni * FANOUT + ei:
                total += 2 * A[ops + (k + OP) * s + x] - 1
                x += 1
            A[RESULT] = 0
            A[RESULT + 1] = i
            base, stride, fill = A[entry + BASE], A[entry + STRIDE], A[entry + FILL]
            at += merge_rows(A, base, stride, fill, ops, s, x, k, to + at, to_stride, total)
            i = x
    return at
