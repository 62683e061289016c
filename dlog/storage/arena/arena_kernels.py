"""Owns the memory of an arena: blocks, extents and their reference counts.  Knows nothing of rows.

The first META_WORDS words of the arena describe the rest.  Two kinds of memory are allocated:

block    memory without a count: roots and nodes (they count their references themselves).  A free block
         links to the next free one of its size in its first word.
extent   memory of leaves, with a record of four words (count, base, words, size class).  The count is the
         number of node entries that point into the extent; a free record links through its count and
         keeps its memory.  An extent of LARGE_WORDS or more has class -1 and comes from and returns to
         `Arena` in Python, which can give its memory back to the operating system.

Sizes are rounded to eight classes for each doubling, plus one cache line.  Without that line all pages would
begin at the same cache set, and a search over the first rows of leaves could have few of them cached (this
was reasoned, not measured).
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper
from dlog.storage.layout import (
    BUNCH,
    CAPACITY,
    ENTRY,
    FANOUT,
    FOLD,
    FOLD_BITS,
    N_ENTRIES,
    N_NODES,
    NODE_HEADER,
    NODE_REFERENCES,
    NODE_SCAN,
    OWNER,
    ROOT_BUNCHES,
    ROOT_FOLDS,
    ROOT_HEADER,
    ROOT_REFERENCES,
    ROOT_SCAN,
    SCAN_WORDS,
)

# Words of the arena's own description.
MAGIC: Final = 0
BUMP: Final = 1  # the first word never allocated
LIMIT: Final = 2
FREE_RECORDS: Final = 3
DEAD_LARGE: Final = 4  # large extents without references, for Arena to reclaim
USED_BLOCKS: Final = 5
FREE_BLOCKS: Final = 6
USED_EXTENTS: Final = 7
FREE_EXTENTS: Final = 8
USED_WORDS: Final = 9
RESULT: Final = 16  # small results of kernels that return more than one number
ROW: Final = 64  # where single rows are passed to kernels
ROW_WORDS: Final = 1024
N_CLASSES: Final = 320
BLOCK_LISTS: Final = ROW + ROW_WORDS
EXTENT_LISTS: Final = BLOCK_LISTS + N_CLASSES
HANDED: Final = (
    EXTENT_LISTS + N_CLASSES
)  # how many of the roots that follow are to be released: see `release_handed`
MOST_HANDED: Final = 63
META_WORDS: Final = 2048
LINE: Final = 8  # words of a cache line
LARGE_WORDS: Final = 1 << 17
RECORD_SLAB: Final = 256

# Words of an extent's record.
COUNT: Final = 0
EXTENT_BASE: Final = 1
EXTENT_WORDS: Final = 2
EXTENT_CLASS: Final = 3
RECORD: Final = 4


@helper
def size_class(words: int) -> int:
    """The smallest class whose blocks hold `words`.  O(log words)."""
    need = max(words - LINE, LINE)
    shift = 0
    while (16 << shift) < need:
        shift += 1
    return shift * 8 + ((need + (1 << shift) - 1) >> shift) - 8


@helper
def class_words(c: int) -> int:
    """Words of a block of class c."""
    return ((8 + (c & 7)) << (c >> 3)) + LINE


@helper
def bump(A: Words, words: int) -> int:
    """Fresh words, aligned to a cache line.  REQUIRES: they fit (callers reserve first)."""
    at = A[BUMP]
    A[BUMP] = (at + words + LINE - 1) // LINE * LINE
    assert A[BUMP] <= A[LIMIT]
    return at


@helper
def new_block(A: Words, words: int) -> int:
    """A block of at least `words` words.  O(1)."""
    c = size_class(words)
    block = A[BLOCK_LISTS + c]
    if block != 0:
        A[BLOCK_LISTS + c] = A[block]
        A[FREE_BLOCKS] -= 1
    else:
        block = bump(A, class_words(c))
    A[USED_BLOCKS] += 1
    A[USED_WORDS] += class_words(c)
    return block


@helper
def free_block(A: Words, block: int, words: int) -> None:
    """REQUIRES: block came from new_block with the same class of words."""
    c = size_class(words)
    A[block] = A[BLOCK_LISTS + c]
    A[BLOCK_LISTS + c] = block
    A[FREE_BLOCKS] += 1
    A[USED_BLOCKS] -= 1
    A[USED_WORDS] -= class_words(c)


@helper
def new_record(A: Words) -> int:
    """A record without memory.  Records are dense: counting up the entries of a node stays in the cache."""
    record = A[FREE_RECORDS]
    if record == 0:
        slab = bump(A, RECORD_SLAB * RECORD)
        for i in range(RECORD_SLAB):
            A[slab + i * RECORD] = A[FREE_RECORDS]
            A[FREE_RECORDS] = slab + i * RECORD
        record = A[FREE_RECORDS]
    A[FREE_RECORDS] = A[record]
    return record


@helper
def new_extent(A: Words, words: int, count: int) -> int:
    """The record of an extent of at least `words` words.  REQUIRES: words < LARGE_WORDS.  O(1)."""
    c = size_class(words)
    record = A[EXTENT_LISTS + c]
    if record != 0:
        A[EXTENT_LISTS + c] = A[record]
        A[FREE_EXTENTS] -= 1
    else:
        record = new_record(A)
        A[record + EXTENT_BASE] = bump(A, class_words(c))
        A[record + EXTENT_WORDS] = class_words(c)
        A[record + EXTENT_CLASS] = c
    A[record + COUNT] = count
    A[USED_EXTENTS] += 1
    A[USED_WORDS] += class_words(c)
    return record


@helper
def adopt_extent(A: Words, base: int, words: int, count: int) -> int:
    """A record for large memory that Arena found."""
    record = new_record(A)
    A[record + COUNT] = count
    A[record + EXTENT_BASE] = base
    A[record + EXTENT_WORDS] = words
    A[record + EXTENT_CLASS] = -1
    A[USED_EXTENTS] += 1
    A[USED_WORDS] += words
    return record


@helper
def release_extent(A: Words, record: int, count: int) -> None:
    """Release `count` references; memory without references is freed."""
    A[record + COUNT] -= count
    if A[record + COUNT] > 0:
        return
    A[USED_EXTENTS] -= 1
    A[USED_WORDS] -= A[record + EXTENT_WORDS]
    c = A[record + EXTENT_CLASS]
    if c < 0:
        A[record + COUNT] = A[DEAD_LARGE]
        A[DEAD_LARGE] = record
        return
    A[record + COUNT] = A[EXTENT_LISTS + c]
    A[EXTENT_LISTS + c] = record
    A[FREE_EXTENTS] += 1


@helper
def take_dead(A: Words) -> None:
    """Base and words of a large extent that fell to zero, to RESULT; frees its record.  REQUIRES: one is."""
    record = A[DEAD_LARGE]
    A[DEAD_LARGE] = A[record + COUNT]
    A[RESULT] = A[record + EXTENT_BASE]
    A[RESULT + 1] = A[record + EXTENT_WORDS]
    A[record + COUNT] = A[FREE_RECORDS]
    A[FREE_RECORDS] = record


@helper
def node_words(scan: int) -> int:
    """Words of a node; `scan` is the root's scan word."""
    return NODE_SCAN + (SCAN_WORDS * (FANOUT + 1) if scan > 0 else 0)


@helper
def retain_entries(A: Words, node: int) -> None:
    """One more reference from each entry to its owner.  O(FANOUT); runs of one owner cost one count."""
    at = node + NODE_HEADER + OWNER
    end = at + ENTRY * A[node + N_ENTRIES]
    while at < end:
        owner = A[at]
        run = 0
        while at < end and A[at] == owner:
            run += 1
            at += ENTRY
        A[owner + COUNT] += run


@helper
def release_entries(A: Words, node: int) -> None:
    """One reference less from each entry to its owner."""
    at = node + NODE_HEADER + OWNER
    end = at + ENTRY * A[node + N_ENTRIES]
    while at < end:
        owner = A[at]
        run = 0
        while at < end and A[at] == owner:
            run += 1
            at += ENTRY
        release_extent(A, owner, run)


@helper
def release_node(A: Words, node: int, scan: int) -> None:
    """One root less holds this node."""
    A[node + NODE_REFERENCES] -= 1
    if A[node + NODE_REFERENCES] == 0:
        release_entries(A, node)
        free_block(A, node, node_words(scan))


@helper
def new_root(A: Words, n_nodes: int) -> int:
    """A root with room for n_nodes, one reference, its other words unset."""
    root = new_block(A, ROOT_HEADER + 2 * n_nodes)
    # Exact, as free_root needs it: ROOT_HEADER is a line, and then the words of all classes are even.
    A[root + CAPACITY] = (class_words(size_class(ROOT_HEADER + 2 * n_nodes)) - ROOT_HEADER) // 2
    A[root + ROOT_REFERENCES] = 1
    A[root + ROOT_FOLDS] = 0
    A[root + ROOT_BUNCHES] = 0
    return root


@helper
def fold_words(scan: int) -> int:
    """Words of one fold: the number of rows, and the scan."""
    return 1 + (SCAN_WORDS if scan > 0 else 0)


@helper
def folds_words(capacity: int, scan: int) -> int:
    """Words of all folds over so many nodes; 0: there are none."""
    folds = 0
    while capacity >= FOLD:
        capacity = (capacity + FOLD - 1) >> FOLD_BITS
        folds += capacity
    return folds * fold_words(scan)


@helper
def free_root(A: Words, root: int) -> None:
    """Free only the root's own blocks: what it held has been moved.  REQUIRES: it has no bunches."""
    if A[root + ROOT_FOLDS] != 0:
        free_block(A, A[root + ROOT_FOLDS], folds_words(A[root + CAPACITY], A[root + ROOT_SCAN]))
    free_block(A, root, ROOT_HEADER + 2 * A[root + CAPACITY])


@helper
def clone_root(A: Words, root: int) -> int:
    """A second root that holds the same nodes.  O(n_nodes), one word after the other."""
    n, capacity = A[root + N_NODES], A[root + CAPACITY]
    gather_bunches(A, root)
    copy = new_root(A, capacity)
    for i in range(ROOT_HEADER + n):
        A[copy + i] = A[root + i]
    A[copy + ROOT_REFERENCES] = 1
    before, after = root + ROOT_HEADER + capacity, copy + ROOT_HEADER + capacity
    for i in range(n):
        A[after + i] = A[before + i]
    if A[root + ROOT_FOLDS] != 0:
        words = folds_words(capacity, A[root + ROOT_SCAN])
        A[copy + ROOT_FOLDS] = new_block(A, words)
        for i in range(words):
            A[A[copy + ROOT_FOLDS] + i] = A[A[root + ROOT_FOLDS] + i]
    if A[root + ROOT_BUNCHES] == 0:
        for i in range(n):
            A[A[copy + ROOT_HEADER + i] + NODE_REFERENCES] += 1
        return copy
    A[copy + ROOT_BUNCHES] = new_block(A, bunches_of(capacity))
    for b in range(bunches_of(n)):
        A[A[copy + ROOT_BUNCHES] + b] = A[A[root + ROOT_BUNCHES] + b]
        A[A[A[root + ROOT_BUNCHES] + b]] += 1
    return copy


# Bunches: each is one word, how many roots share it.


@helper
def bunches_of(n_nodes: int) -> int:
    """How many bunches so many nodes are."""
    return (n_nodes + BUNCH - 1) // BUNCH


@helper
def gather_bunches(A: Words, root: int) -> None:
    """Let bunches hold the nodes of a root, unless they do or it is small.  O(n_nodes / BUNCH)."""
    n = A[root + N_NODES]
    if A[root + ROOT_BUNCHES] != 0 or n < BUNCH:
        return
    A[root + ROOT_BUNCHES] = new_block(A, bunches_of(A[root + CAPACITY]))
    for b in range(bunches_of(n)):
        bunch = new_block(A, 1)
        A[bunch] = 1
        A[A[root + ROOT_BUNCHES] + b] = bunch


@helper
def own_bunch(A: Words, root: int, b: int) -> None:
    """Let no other root share a bunch.  O(BUNCH)."""
    bunch = A[A[root + ROOT_BUNCHES] + b]
    if A[bunch] == 1:
        return
    A[bunch] -= 1
    own = new_block(A, 1)
    A[own] = 1
    A[A[root + ROOT_BUNCHES] + b] = own
    retain_nodes(A, root, b)


@helper
def retain_nodes(A: Words, root: int, b: int) -> None:
    """One more reference to each node of a bunch."""
    for i in range(b * BUNCH, min((b + 1) * BUNCH, A[root + N_NODES])):
        A[A[root + ROOT_HEADER + i] + NODE_REFERENCES] += 1


@helper
def dissolve_bunches(A: Words, root: int) -> None:
    """Let a root hold its nodes itself: its list is going to change.  O(n_nodes)."""
    bunches = A[root + ROOT_BUNCHES]
    if bunches == 0:
        return
    for b in range(bunches_of(A[root + N_NODES])):
        bunch = A[bunches + b]
        A[bunch] -= 1
        if A[bunch] == 0:
            free_block(A, bunch, 1)
        else:
            retain_nodes(A, root, b)
    free_block(A, bunches, bunches_of(A[root + CAPACITY]))
    A[root + ROOT_BUNCHES] = 0


@helper
def release_handed(A: Words) -> None:
    """Release the roots that `Arena.hand_over` has left for the next kernel."""
    for i in range(A[HANDED]):
        release_root(A, A[HANDED + 1 + i])
    A[HANDED] = 0


@helper
def release_root(A: Words, root: int) -> None:
    """One handle less; the last one frees what no other version holds.  O(n_nodes / BUNCH + what is
    freed), and O(BUNCH) if there are no bunches."""
    A[root + ROOT_REFERENCES] -= 1
    if A[root + ROOT_REFERENCES] > 0:
        return
    scan, n, bunches = A[root + ROOT_SCAN], A[root + N_NODES], A[root + ROOT_BUNCHES]
    if bunches == 0:
        for i in range(n):
            release_node(A, A[root + ROOT_HEADER + i], scan)
    else:
        for b in range(bunches_of(n)):
            bunch = A[bunches + b]
            A[bunch] -= 1
            if A[bunch] == 0:
                free_block(A, bunch, 1)
                for i in range(b * BUNCH, min((b + 1) * BUNCH, n)):
                    release_node(A, A[root + ROOT_HEADER + i], scan)
        free_block(A, bunches, bunches_of(A[root + CAPACITY]))
    free_root(A, root)
