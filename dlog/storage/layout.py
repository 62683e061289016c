"""Owns the layout of indices in the arena: the contract between code that writes pages and code that reads
tries.

Everything a kernel touches is in one int64 array, the arena; an offset is a word index in it.  An index
is a set of rows of one arity, sorted by signed columns, without duplicates, in a tree of three levels:

root    [n_nodes, n_rows, arity, flat_base, flat_stride, capacity, references, scan, folds, bunches] then
        offsets of nodes, and, capacity words after these, the first key of each node: column 0 of its first
        row
bunches a reference count for BUNCH nodes each, so that another version of a large root need not count up
        each node: a bunch refers to its nodes once, for all roots that share it.  Small roots have none
folds   partial sums over the nodes of a root that has room for FOLD or more: for FOLD nodes each, then for
        FOLD of these each, and so on up to a level of fewer than FOLD
node    [n_entries, n_rows, references, -] then entries of four words (base, stride, fill, owner), then at
        NODE_FIRST the first key of each entry: a search examines leaves only where first keys are equal
leaf    column c of row i, 0 <= i < fill, is at base + c * stride + i

`flat_base >= 0` means that all rows are contiguous: column c of row i is at flat_base + c * flat_stride + i.
`owner` names the extent that holds the leaf's memory, for reference counting: the offset of its record.
`scan` is 0, or 1 + the column whose scans are stored; the nodes of such an index continue with a scan area at
NODE_SCAN: (min, max, low, high) of that column over the whole node, then the same for each entry.  The sum is
high * 2**32 + low, where low sums the lower halves of the values and high the (signed) upper halves.
A fold is the number of rows below it and, with scans, their scan.

A reader's position in a flat index is the row number; in a paged one it is leaf_ordinal << OFFSET_BITS | row
with leaf_ordinal = node_index * FANOUT + entry_index.  Positions rise with the keys; ordinals have gaps.
"""

from typing import Final

ROOT_HEADER: Final = 16
NODE_HEADER: Final = 4
ENTRY: Final = 4
FANOUT: Final = 128
FOLD_BITS: Final = 4
FOLD: Final = 1 << FOLD_BITS
BUNCH: Final = 64
LEAF_ROWS: Final = 256
OFFSET_BITS: Final = 40

# Words of the root header.
N_NODES: Final = 0
N_ROWS: Final = 1
ARITY: Final = 2
FLAT_BASE: Final = 3
FLAT_STRIDE: Final = 4
CAPACITY: Final = 5
ROOT_REFERENCES: Final = 6
ROOT_SCAN: Final = 7
ROOT_FOLDS: Final = 8
ROOT_BUNCHES: Final = 9

# Words of the node header.
N_ENTRIES: Final = 0
NODE_ROWS: Final = 1
NODE_REFERENCES: Final = 2

# Words of an entry.
BASE: Final = 0
STRIDE: Final = 1
FILL: Final = 2
OWNER: Final = 3

# The first keys of a node's entries.
NODE_FIRST: Final = NODE_HEADER + ENTRY * FANOUT

# The scan area of a node: SCAN_WORDS for the node, then as many for each entry.
NODE_SCAN: Final = NODE_FIRST + FANOUT
SCAN_WORDS: Final = 4
SCAN_MIN: Final = 0
SCAN_MAX: Final = 1
SCAN_LOW: Final = 2
SCAN_HIGH: Final = 3
