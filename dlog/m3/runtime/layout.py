"""Owns where the words of maps, of the machine's state and of its instructions are.  Has no code.

A map is a table of slots in the arena: `keys`, then the words of its value, then, once a chain has been
followed, one link for each index.
The first word of an empty slot is EMPTY, which no key can be: integers reach from -(2^63 - 1) to 2^63 - 1,
and no code of a float, date or string is that low; the rest of such a slot is undefined, except that a map
with at most one key and one value word has 0 there.  A slot whose value is 0 is dead: it keeps its key, so
that probes continue after it, and is left out when the table is rebuilt.

An exact sum of floats has EXACT_WORDS words: a head and WINDOW digits in base 2^32, balanced as those of
`dlog.algebra`.  The head is 1 + the place of the first digit; 0 if the sum is 0.  A sum whose digits span
more, or that has infinities or NaN, is wide: it has WORDS_PER_SUM words elsewhere in the arena, and its head
is minus their address.  M_SPARE lists wide sums that no slot has; there is one at least whenever a row is
added.

Wide values may be stored apart: a slot then has, after its keys, one word that says where in the arena its
element is.  Elements never move while a table grows; each slot that is not empty has one.  There are at least
M_LIMIT of them, so that kernels find one wherever there is room for a slot.  Columns of slots that
were looked up in such a map have the elements themselves: DIRECT + where one is.

A map whose changes are drained has two words more in each slot, after its value.  If the entry has changed
since it was last drained, these are the next changed slot and the value before; else the first of them is 0.
Slots that changed are moved to a new table even if their value is 0.

A map with initial values has one more value word, which is not 0 for every entry of its domain; so entries of
value 0 stay.

An index serves reads in which only some keys are bound.  It is a table of heads, as long as that of slots,
open addressing by the hash of those keys: a head is 1 + the first slot of a chain, 0 where there is none.
Chains are made when they are first followed, and maintained from then on; only then a table has memory for
them.

An order serves reads of a range of one key: it is a B+-tree of all entries, sorted by the keys in the order
that it is made for: those that are bound, then the one that is compared, then the rest.  Trees are made when
a map is first read by range.  From then on the slots whose values change are noted in a log, which is applied
to the trees before they are read again; if it gets full, the trees are no longer valid and are made again.

A node is a page: the number of its items, the next node of its level, then its items.  An item of a leaf is
an entry: its keys, sorted as the tree is, and the words of its value.  An item of another node is a child:
keys that none of its entries is below and all entries of children before it are, then where it is, then for
each part of a value two words, the sum over its entries: an integer of 128 bits, or a doubled float.  A map
of exact sums has exact sums there, which are computed when they are first read: until then the head is
NOT_COMPUTED.  Entries in leaves share their wide sums with the slots.
"""

from __future__ import annotations

from typing import Final

EMPTY: Final = -(2**63)
LINE: Final = 8  # words that come to the cache together
CHUNK: Final = 1024  # rows that an operation works on at a time: a column of them is 8 KiB

# Words of a map in the array of all maps.
M_BASE: Final = 0  # of the first slot, in the arena
M_MASK: Final = 1  # slots - 1; slots are a power of 2
M_SHIFT: Final = 2  # of a hash, to a slot
M_USED: Final = 3  # slots that are not empty
M_LIMIT: Final = 4  # as many slots may be used before the table is rebuilt
M_KEYS: Final = 5
M_VALUES: Final = 6
M_WORDS: Final = 7  # of a slot; perhaps more than are used, to fill lines of the cache
M_KINDS: Final = 8  # where in the array of all maps the kinds of its value words are
M_LINKED: Final = 9  # whether chains hold the live slots: not before one is followed
M_UPDATES: Final = 10  # rows added since the live slots were counted
M_INDICES: Final = 11  # how many
M_INDEX: Final = 12  # where in the array of all maps their key places are: each a count, then that many
M_APART: Final = 13  # words of an element that lies apart from its slot; 0: values are in the slots
M_SPARE: Final = 14  # the first element, or wide sum, that is free; its first word gives the next; 0: none
M_FRESH: Final = 15  # the next element that was never used
M_LOG: Final = 16  # where the log of changed slots is, in the arena
M_LOG_SIZE: Final = 17
M_LOGGED: Final = 18  # how many it has; -1: the map's trees are not valid, nothing is noted
M_APPLIED: Final = 19  # how many of them are applied to all trees
M_ORDERS: Final = 20  # how many
M_ORDER: Final = 21  # where in the array of all maps they are
M_DRAINED: Final = 22  # where in a slot the words of a change are; 0: changes are not drained
M_CHANGED: Final = 23  # the first changed slot: 2 + its number, or LAST
M_ROOM: Final = 24  # the most rows that were added at once since the live slots were counted
M_WORDS_OF_MAP: Final = 28

# Words of an order.
T_ROOT: Final = 0  # the tree's root; 0: it is not made
T_HEIGHT: Final = 1  # levels above the leaves
T_ENTRIES: Final = 2
T_FREE: Final = 3  # the first free page; its second word gives the next; 0: none
T_SPARE: Final = 4  # how many pages are free
T_KEYS: Final = 5
T_PLACES: Final = 6  # where in the array of all maps the places of its keys are listed
T_PARTS: Final = 7  # of a value: how many sums an item has
T_KINDS: Final = 8  # where in the array of all maps the kinds of parts are, each with its first word
T_VALUES: Final = 9  # words of a value, in a leaf
T_LEAF: Final = 10  # items of a leaf, at most
T_INNER: Final = 11  # items of another node, at most
T_SUM: Final = 12  # words of a sum of a part
T_MAP: Final = 13  # the address of its map
T_KEY: Final = 14  # memory for keys that are searched, MOST_KEYS words
MOST_KEYS: Final = 24
T_PATH: Final = T_KEY + MOST_KEYS  # memory for a path: for each level its node and the item
LEVELS: Final = 24
T_WORDS: Final = T_PATH + 2 * LEVELS

NOT_COMPUTED: Final = EMPTY

NODE_COUNT: Final = 0
NODE_NEXT: Final = 1
NODE_ITEMS: Final = 2

# A range has four bounds: two from below, two from above; the second ones may be NO_BOUND.  How a bound
# compares a key: -1 and -2 without a comparison, else 8 * what is compared + the operator.  A bound is where
# a condition turns from true to false, for keys in their order.
ALL_AFTER, ALL_BEFORE, NO_BOUND = -1, -2, -3
BOUND_WORDS: Final = 4  # how, compared with which column, columns of what is added to the key
(
    KEY_ITSELF,  # its word
    KEY_AS_FLOAT,  # of an integer: the code of a float
    KEY_PLUS,  # integers: key + column
    LESS_KEY,  # integers: column - key
    FLOAT_PLUS,  # floats: key + doubled columns
    FLOAT_LESS,  # floats: doubled columns - key
    INT_PLUS_FLOAT,  # the same for an integer as key
    FLOAT_LESS_INT,
) = range(8)

# Kinds of value words.  A float of 106 bits is two words, whose sum it is: what was added to it can be
# subtracted without a remainder.
INT, FLOAT, DOUBLED, LOW, EXACT, DIGIT = range(6)

WINDOW: Final = 5  # digits of an exact sum in a slot: with head and two keys, a line of the cache
EXACT_WORDS: Final = WINDOW + 1

DIRECT: Final = 1 << 62

LINKS: Final = -1  # asked for as room: memory for chains
WIDE: Final = -2  # the same: for wide sums
TREES: Final = -3  # the same: for trees
PAGES: Final = -4  # the same: for nodes of trees

CHANGE_WORDS: Final = 2  # of a slot of a map whose changes are drained
LAST: Final = 1  # after the last changed slot

END_OF_CHAIN: Final = -1
UNLINKED: Final = -2  # the link of a slot that no chain holds

# Words of the machine's state.
PC: Final = 0
STATUS: Final = 1
FIRST: Final = 2  # of the rows that the trigger runs for
COUNT: Final = 3
EVENT: Final = 4  # the current event
ASKED: Final = 5  # a request to Python: a map that must grow, or a call
ROOM: Final = 6  # for how many more entries; or LINKS
OVERFLOW: Final = 7  # 1 + the address of the instruction that overflowed, or 0
INPUT: Final = 8  # where the rows of the event begin in the input
STRIDE: Final = 9  # from a column of the input to the next
BY_ROW: Final = 10  # whether the event's rows go one by one through code for one row
ONE: Final = 11  # always 1: the frame of such code
BUDGET: Final = 12  # how many instructions, or rows one by one, until the machine pauses
HELD: Final = 13  # the first sum of cofactors that is deferred until rows are done; 0: none
RESUME: Final = 14  # the row that an instruction on exact sums continues with after it got memory
SELECTED: Final = 15  # 1: the rows of the event are those that another array lists
DRAINED: Final = 16  # changed entries that were written when all rows were done
STATE_HEADER: Final = 17

# Words of a drain: maps with the same keys, which may come in any order.
D_MAPS: Final = 0  # how many; 0: nothing is drained
D_KEYS: Final = 1
D_FIRST: Final = 2  # for each map its address, then the place in it of each key

# Words of an event: rows of one relation, `step` of them at a time.
E_ENTRY: Final = 0
E_INPUT: Final = 1
E_STRIDE: Final = 2
E_FIRST: Final = 3
E_END: Final = 4
E_STEP: Final = 5
E_ROWS: Final = 6  # where the code for one row begins; -1: there is none, or the rows are many
E_SELECTED: Final = 7  # 1: its rows are numbers of rows, in another array than the input
E_WORDS: Final = 8

# Words of a step, from which events are made: rows of one relation.  Each sign has its trigger.
S_INPUT: Final = 0
S_STRIDE: Final = 1
S_SIGNS: Final = 2  # where its multiplicities begin in the input; -1: a batch trigger takes all rows
S_NEXT: Final = 3  # the first row that no event has yet
S_INSERT: Final = 4  # entry, step and rows, as of an event
S_DELETE: Final = 7
S_WORDS: Final = 10
AHEAD: Final = 4  # events: this far before a row its slots are prefetched
NEAR: Final = 2  # events: and its elements, where they are apart
ROW_CODE_ROWS: Final = 4  # rows: more of them are better processed together

# Why the machine stopped.
DONE, GROW, CALL, PAUSE, SWITCH = range(5)  # SWITCH: the next event is for the other machine

# Instructions.  `frame` is a word of the state that holds a number of rows, columns are offsets.
(
    END,  # the trigger is done for these rows
    JUMP,  # to
    JUMP_EMPTY,  # frame, to
    JUMP_FALSE,  # column, to: by its first row
    ROOT,  # frame, batch: as many rows as the event has, or one
    LOAD,  # frame, out, input column
    DELTA_OPEN,  # cursor
    DELTA_NEXT,  # frame, cursor, exit
    DELTA_LOAD,  # frame, cursor, out, input column
    INPUT_GATHER,  # frame, rows, out, input column: rows of the event
    DELTA_GATHER,  # frame, rows, out, input column, delta's frame, cursor
    HASH,  # frame, out, n, columns..
    LOOK_UP,  # frame, map, hash, n, keys.., values..
    LOOK_UP_TIMES,  # frame, map, hash, n, keys.., value, out: the value times that of the entry, an int
    LOOK_UP_PRODUCT,  # frame, hash, keys, value, out, n, maps..: times the entries of maps with one key
    SLOTS,  # frame, map, hash, n, keys.., out: the slots of rows, made where there are none
    FOUND,  # frame, map, hash, n, keys.., out: 1 or 0
    CHAIN_FOUND,  # frame, map, hash, n, keys.., out, index: whether any entry agrees, also one of value 0
    CHAIN_OPEN,  # frame, map, index, hash, cursor, rows, slots, n, keys..
    CHAIN_NEXT,  # frame, map, index, cursor, rows, slots, row out, slot out, exit
    SCAN_OPEN,  # cursor
    SCAN_NEXT,  # frame, parent, map, cursor, row out, slot out, exit
    RANGE_SUM,  # frame, map, order, n, work, four bounds, keys.., values..: sums over ranges
    RANGE_MERGE,  # frame, map, order, n, 0, to map, to slots, four bounds, keys..: exact sums over ranges
    RANGE_OPEN,  # frame, map, order, cursor
    RANGE_NEXT,  # frame, parent, map, order, cursor, row out, slot out, exit, either, n, four bounds, keys..
    SLOT_LOAD,  # frame, map, slots, word, out
    GATHER,  # frame, column, rows, out
    SPREAD,  # frame, column, out: its first row
    ZERO,  # frame, out
    ROW_SUM,  # frame, kind, column, rows, out; a doubled float has its low columns last: low, out
    ADD,  # frame, kind, a, b, out; with low columns last: a, b, out
    MULTIPLY,  # as ADD
    MULTIPLY_DECIMAL,  # frame, unit, a, b, out
    DIVIDE,  # frame, 0, a, b, out: of floats; 0 where b is 0
    CONVERT,  # frame, how, a, out
    COMPARE,  # frame, op, a, b, out
    RANK,  # frame, a, out: of texts
    NONZERO,  # frame, n, columns.., out
    EITHER,  # frame, a, b, out
    INVERT,  # frame, a, out
    FILTER,  # frame, condition, child, rows out
    ACCUMULATE,  # frame, map, hash, n, keys.., values..
    TOTAL,  # frame, map, values..: of a map without keys
    CLEAR,  # map
    ERASE,  # frame, map, slots: makes entries 0
    FORGET,  # frame, map, hash, n, keys..: makes entries 0
    FIND,  # frame, map, hash, n, keys.., out: the slots of rows, or a negative number
    ELEMENTS,  # frame, map or block, slots, factor, plan, columns..: adds products of cofactors
    BLOCK_ZERO,  # frame, block, words: an element of each row, in the state
    BLOCK_NONZERO,  # frame, block, words, out
    EXACT_ADD,  # frame, map, slots, weights, high, low: adds integers times doubled floats to exact sums
    EXACT_MERGE,  # frame, map, slots, weights, source, source slots: and integers times exact sums
    EXACT_LOAD,  # frame, map, slots, high, low: exact sums as doubled floats
    CALL_PYTHON,  # which, frame
    ROW_AHEAD,  # whether any is wide, (keys, input columns.., n, maps..).., 0: maps that will be read
    ROW_LOADS,  # n, then n times: out, input column
    ROW_FLOATS,  # n, then n times: a, out: CONVERT from integers to bits
    ROW_FINDS,  # key, n, then n times: map, out: FIND of one key
    ROW_SLOT,  # map, key, out: SLOTS of one key, of a map without indices
    ROW_PRODUCT,  # key, value, out, n, maps..: as LOOK_UP_PRODUCT, of plain maps
    ROW_ADD,  # map, key, value: to an entry of a plain map
    ROW_TOTAL,  # map, value: of a plain map without keys
    ROW_HOLD,  # map, factor, plan, columns..: ELEMENTS of a map without keys that no trigger reads
) = range(64)  # fmt: skip

# How CONVERT converts.  A float in a value is its bits; in a key it is its code, in the order of floats.
INT_TO_BITS, BITS_TO_CODE, CODE_TO_BITS, INT_TO_CODE, CODE_TO_INT, BITS_TO_INT = range(6)
