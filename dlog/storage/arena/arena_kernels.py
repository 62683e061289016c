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
    CAPACITY,
    ENTRY,
    FANOUT,
    N_ENTRIES,
    N_NODES,
    NODE_HEADER,
    NODE_REFERENCES,
    NODE_SCAN,
    OWNER,
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
    return root


@helper
def free_root(A: Words, root: int) -> None:
    """Free only the block: what it held has been moved."""
    free_block(A, root, ROOT_HEADER + 2 * A[root + CAPACITY])


@helper
def clone_root(A: Words, root: int) -> int:
    """A second root that holds the same nodes.  O(n_nodes)."""
    n = A[root + N_NODES]
    copy = new_root(A, n)
    capacity = A[copy + CAPACITY]
    for i in range(ROOT_HEADER + n):
        A[copy + i] = A[root + i]
    A[copy + CAPACITY] = capacity
    A[copy + ROOT_REFERENCES] = 1
    before, after = root + ROOT_HEADER + A[root + CAPACITY], copy + ROOT_HEADER + capacity
    for i in range(n):
        A[after + i] = A[before + i]
        A[A[copy + ROOT_HEADER + i] + NODE_REFERENCES] += 1
    return copy


@helper
def release_handed(A: Words) -> None:
    """Release the roots that `Arena.hand_over` has left for the next kernel."""
    for i in range(A[HANDED]):
        release_root(A, A[HANDED + 1 + i])
    A[HANDED] = 0


@helper
def release_root(A: Words, root: int) -> None:
    """One handle less; the last one frees what no other version holds.  O(n_nodes + what is freed)."""
    A[root + ROOT_REFERENCES] -= 1
    if A[root + ROOT_REFERENCES] > 0:
        return
    scan = A[root + ROOT_SCAN]
    for i in range(A[root + N_NODES]):
        release_node(A, A[root + ROOT_HEADER + i], scan)
    free_root(A, root)
