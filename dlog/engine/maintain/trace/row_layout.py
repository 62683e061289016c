"""Owns the layout of what a transaction of one row over a traced rule reads and writes.

`dlog.engine.maintain.trace.row_kernels` works on it, `dlog.engine.maintain.trace.triggers` makes it.
"""

from __future__ import annotations

from typing import Final

# Words of the shape.
ARITY: Final = 0
OP: Final = 1
N_ORDERS: Final = 2
N_ATOMS: Final = 3
N_WATCHES: Final = 4
N_WIDE: Final = 5
WIDTH: Final = 6  # key variables
N_INDICES: Final = 7  # sensitivity indices: the first notes
N_NOTES: Final = 8  # all notes, including those of what is covered
IN_PLACE: Final = 9  # whether pages of sensitivity indices are changed in place: 0 or 1
CAPACITY: Final = 10  # rows of an output, of a note, and contributions
BUDGET: Final = 11
COLUMNS: Final = 12
FILLS: Final = 13
GUIDE: Final = 14
INITIAL_WORDS: Final = 15  # of the state before the guide
TRACE_WORDS: Final = 16  # of the notes of one version
WIDE_WORDS: Final = 33  # of a wider contribution
# Where tables begin.
ORDERS: Final = 17  # for each index of the predicate its column order
ATOMS: Final = 18
WATCHES: Final = 19
CHECKS: Final = 20
WIDE: Final = 21
NOTES: Final = 22
CODE: Final = 23
INITIAL: Final = 24
LEVELS: Final = 25
# Where the written parts begin.
RESULTS: Final = 26
STATE: Final = 27
ROOTS: Final = 28
FOUND: Final = 29  # contributions of width + 3 words, the wild depths last
OUT: Final = 30  # both outputs, in columns; afterwards what is erased and what is inserted
TRACE: Final = 31  # the notes of both versions
WORK: Final = 32
EDITS: Final = 34  # what the indices gain and lose
ROWS: Final = 35  # what is inserted and then what is erased, row by row
# The terminal head: how many orders it has, 0 to leave it alone, where these are in the tables, and the
# place of its first root; new ones come after all of them.
HEAD_KEPT: Final = 36
HEAD_LAYOUT: Final = 37
HEAD_ROOT: Final = 38
OPS: Final = 39  # the same by context, for each index OPS_WORDS words: see `put_ops`
OPS_WORDS: Final = 40
GROWS: Final = 41  # 1: an inserted row removes no assignment, and every index is by context
LEAST: Final = 42  # the fewest rows that the predicate may have, and the most
MOST: Final = 43
SHARED: Final = 44  # for each order how many first columns the row has in common with another one
SHAPE: Final = 45

# Words of an atom: places of the roots that it reads, old and new, and its order if it reads the row's own
# predicate, else -1.
ATOM: Final = 3
# Words of a watch; then for each key variable where it is found: a column of the row, or from OTHERS on the
# place in a row of the note; -1: anywhere.
W_ATOM: Final = 0
W_LEVEL: Final = 1
W_DEPTH: Final = 2
W_NOTE: Final = 3  # -1: not traced
W_WILD: Final = 4  # depths as bits
W_CHECKS: Final = 5  # where they begin, and how many they are
W_BELOW: Final = 7  # whether its note is that of the level below
W_ENDS: Final = 8
WATCH: Final = 9
OTHERS: Final = 1024
# What a watch contributes: the key; the interval that holds it; the key with the intervals of other
# participants that hold it.
KEY, INTERVAL, WIDER = 0, 1, 2
CHECK: Final = 3  # 0 for a constant, 1 for the same as another column; the column; the constant or the other
# Words of a wider contribution: its watch, the note that widens it, then for each column of a context of that
# note whether it is a constant, and this or the number of a key variable.
WIDER_WORDS: Final = 2
# Words of a note: columns of its prefix, its arity, the place of its first root, its orders and where these
# are in the tables, the note of what is covered or -1, its atom, where its rows begin in the trace.
N_PREFIX: Final = 0
N_ARITY: Final = 1
N_ROOT: Final = 2
N_KEPT: Final = 3
N_LAYOUT: Final = 4
N_COVER: Final = 5
N_ATOM: Final = 6
N_TRACE: Final = 7
NOTE: Final = 8
# Words of the results; then those of each index, then the fills of the notes of both versions.
ERASED: Final = 0
INSERTED: Final = 1
OPERATIONS: Final = 2
CONTRIBUTIONS: Final = 3
HEAD_CHANGED: Final = 4  # rows of the head that were added or removed, or NEEDS_BATCH; 0 if it was left alone
HEAD_GAINED: Final = 5
EDIT_WORDS: Final = 6  # of the edits of all indices
COVERS: Final = 7  # the version whose covers are used: 1 if the old one was not run
CHANGED: Final = 8
# Words of an index: how many rows it gained and lost, and where these are in the edits.
GAINED: Final = 0
LOST: Final = 1
EDIT: Final = 2
INDEX_RESULT: Final = 3
