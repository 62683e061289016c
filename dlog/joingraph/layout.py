"""Owns the layout of a join graph: the contract between the kernels, and the code that writes plans for them.

There are three arrays of words.  `A` is an arena: all records and indices; an id is the place of a record
there, below 2**32.  `words` is the header: the global words, then those of each vertex and atom, then plans.
`state` is where a call stands, so that it can stop and resume.

vertex value   [key words | for each side: list, number | for each side: LOOK]
               `list` is the only join tuple of that side (capacity 1), or a block of them; `number` is
               their number, and the logarithm of the capacity above NUMBER_BITS.  A leaf has a number only:
               of its rows.  LOOK is the number of dead entries, and the bit WATCHED
join tuple     [for each vertex: position << ID_BITS | vertex value | number of payload rows, logarithm of the
               capacity | payload]
               `payload` is the only payload row, or the place of a block of them.  An atom without payload
               has the number of its rows in place of that of payload rows
payload row    [values | the number of rows with these values, if the atom is counted]
index          open addressing, a power of two of words, 0 or hash << ID_BITS | id: vertex values by key, join
               tuples of atoms with several vertices by their vertex values, and payload rows of join tuples
               that have many, by join tuple and values: there the id is 1 + the number of the row

Freed records and blocks are in lists by size, linked through their first words.
"""

from __future__ import annotations

from typing import Final

ID_BITS: Final = 32
ID_MASK: Final = (1 << 32) - 1
NUMBER_BITS: Final = 40
NUMBER_MASK: Final = (1 << 40) - 1

# Global words.
G_SLAB: Final = 0  # the next word for records
G_SLAB_END: Final = 1
G_WASTE: Final = 2  # words at the ends of slabs that were too short
G_USED: Final = 3  # words of records and blocks in use, for each kind
G_LARGEST: Final = 7  # words of the largest block so far
G_LOOKAHEAD: Final = 8
G_FREE_LISTS: Final = 9  # free blocks of lists, by the logarithm of their capacity
G_STACK: Final = 49  # memory of a walk: FRAME words for each vertex
G_VERTICES: Final = 50
G_ATOMS: Final = 51
G_INDEXED: Final = 52  # a join tuple with more payload rows than this has them in an index
G_SLABS: Final = 53  # words of slabs that were taken
G_RESERVE: Final = 54  # words that only `undo` may take
GLOBAL: Final = 56
CLASSES: Final = 40
INDEXED: Final = 16  # what G_INDEXED is, unless a test sets it

RESERVED: Final = 1 << 18  # what G_RESERVE is otherwise

# What words are used for.
VALUES: Final = 0
LISTS: Final = 1
TUPLES: Final = 2
ROWS: Final = 3
KINDS: Final = ("vertex values", "lists", "join tuples", "payload rows")

# Words of an index in the header.
I_BASE: Final = 0
I_MASK: Final = 1
I_USED: Final = 2
INDEX: Final = 3

# Words of a vertex.
V_KEYS: Final = 0
V_WORDS: Final = 1  # of a record
V_FREE: Final = 2
V_INDEX: Final = 3
V_SIDES: Final = 6  # for each side: [atom's words, place of the vertex in the atom, is a leaf]
V_SIDE_WORDS: Final = 3
S_ATOM: Final = 0
S_LOCAL: Final = 1
S_LEAF: Final = 2
VERTEX: Final = V_SIDES + 2 * V_SIDE_WORDS

# Words of an atom.
T_VERTICES: Final = 0
T_ARITY: Final = 1
T_PAYLOAD: Final = 2  # values of a payload row
T_COUNTED: Final = 3
T_ROW: Final = 4  # words of a payload row
T_WORDS: Final = 5  # of a join tuple
T_LEAF: Final = 6
T_FREE: Final = 7
T_TUPLES: Final = 8  # in use
T_ROWS: Final = 9  # rows in the graph
T_INDEX: Final = 10
T_ROW_INDEX: Final = 13
T_FILTERS: Final = 16  # number
T_FILTERS_AT: Final = 17
T_JOINS_AT: Final = 18  # JOIN words for each vertex
T_PAYLOAD_AT: Final = 19  # the column of each payload value
T_SEARCH: Final = 20
T_JOINED: Final = 21  # columns of all vertices: number, then place
T_JOINED_AT: Final = 22
T_BLOCKS: Final = 23  # free blocks of payload rows, by the logarithm of their capacity
ATOM: Final = T_BLOCKS + CLASSES

# Words of an atom's vertex.
J_VERTEX: Final = 0  # its words
J_SIDE: Final = 1
J_REGISTER: Final = 2  # where in the state the vertex value is
J_COLUMNS_AT: Final = 3
J_FAR: Final = 4  # where in a vertex value the far side's number is
J_NEAR: Final = 5  # where in a vertex value this side's list is
J_LOOK: Final = 6  # where in a vertex value this side's LOOK is
J_FAR_LOOK: Final = 7
JOIN: Final = 8

# A filter: [comparison, column, column or code, is a code].
FILTER: Final = 4

# Words of a search.
P_STEPS: Final = 0
P_STEPS_AT: Final = 1
P_LOADS: Final = 2  # of the start: (column or key word, slot)
P_LOADS_AT: Final = 3
P_OUTPUTS: Final = 4
P_OUTPUTS_AT: Final = 5  # (payload word of the last step or -1, slot, slot for the row after an update)
P_BLOCK: Final = 6  # 1: the last step is payload without tests, which is emitted as a block
P_VERTEX: Final = 7  # whose values the search goes through, or -1
P_PAIRS: Final = 8  # whether rows with the same vertex values have the same paths
P_REGISTER: Final = 9  # of the vertex
P_AFTER: Final = 10  # how far the slots of the row after an update are behind those of the row before
SEARCH: Final = 11

# Words of a step.
K_KIND: Final = 0
K_ATOM: Final = 1  # its words
K_REGISTER: Final = 2  # where in the state the vertex value is that leads here
K_NEAR: Final = 3  # where in it this side's list is
K_PARENT: Final = 4
K_END: Final = 5
K_TUPLE: Final = 6  # where in the state the atom's join tuple is
K_LOADS: Final = 7
K_LOADS_AT: Final = 8  # (register, key word, slot), or for payload (word, slot)
K_TESTS: Final = 9
K_TESTS_AT: Final = 10  # (comparison, slot, slot or code, is a code)
K_OTHERS: Final = 11
K_OTHERS_AT: Final = (
    12  # for each further vertex: (place in the join tuple, register, place of far number, of far LOOK)
)
K_LOOK: Final = 13  # where in the vertex value LOOK is
K_LOCAL: Final = 14  # the place of the vertex in the atom
STEP: Final = 15

ENTER: Final = 0
LEAF: Final = 1
PAYLOAD: Final = 2

# Look-ahead: none, whether vertex values have anything on their far side, or that of `lookahead_kernels`.
NONE: Final = 0
LOCAL: Final = 1
MARKS: Final = 2

# Words of the state.
S_CHANGED: Final = 0  # the words of the changed atom
S_MODE: Final = 1  # what the call does
S_N: Final = 2  # rows given
S_NEXT: Final = 3  # the next row
S_APPLIED: Final = 4  # changes of rows that are in the graph
S_PHASE: Final = 5  # of the current row: see `change_kernels`
S_EMITS: Final = 6
S_OUT: Final = 7  # rows in `out`
S_CAPACITY: Final = 8
S_VISITS: Final = 9  # join tuples entered
S_LEVEL: Final = 10
S_ENTERING: Final = 11  # 1: the level's step begins
S_SIGN: Final = 12
S_GROW: Final = 13  # the index that is too full
S_SEARCH: Final = 14
S_SLOT: Final = 15  # of an index whose vertex values are gone through
S_LEVELS_AT: Final = 16
S_OFFSET: Final = 17  # of the first row in the block being emitted that is not yet written
S_ROW: Final = 18  # the place of the changed row in `rows`
S_PAIR: Final = 19  # an update: the place of the row after, or -1
S_TOO_MANY: Final = 20
STATE: Final = 21

# Words of a level.
L_CURSOR: Final = 0
L_COUNT: Final = 1  # product of the numbers of rows so far
L_DEEPEST: Final = 2  # the deepest level reached behind the current join tuple or row
L_BEST: Final = 3  # behind any of this list
LEVEL: Final = 4
FILTERED: Final = 1 << 20  # a level: a comparison has failed, so nothing is known of what is behind

# What a call does.
INSERT: Final = 0
ERASE: Final = 1
UPDATE: Final = 2  # rows are pairs: the row before and after

# What a call returns.
DONE: Final = 0
FULL: Final = 1  # `out` is full
GROW: Final = 2  # an index is too full
NO_ROOM: Final = 3
BROKEN: Final = 4  # a row that is erased is not in the graph
TOO_MANY: Final = 5  # the number of assignments for one row does not fit a word

EQ: Final = 0
NE: Final = 1
LT: Final = 2
LE: Final = 3
GT: Final = 4
GE: Final = 5
FRAME: Final = 5
WATCHED: Final = 1 << 40  # a bit of LOOK
