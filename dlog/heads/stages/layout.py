"""Owns the layout of stages in arrays: the contract of the kernels that maintain the facts of a recursion.

`head` is the header below, then PREDICATE_WORDS for each predicate (its columns, how many of them identify a
fact, how values combine), then room for one row.  `table` is open addressing in steps of STRIDE: an entry is
the columns of a fact, STATE and COUNT.  STATE is 0 for an empty slot, else

    stage << STAGE_BITS | predicate << 1          of a fact that the transaction has not touched
    record << STAGE_BITS | predicate << 1 | 1     of one that it has: the rest is in that record

`records` hold what a touched fact is now and what it was before the transaction.  WHEN is its state:

    0        exists since before the transaction            PENDING  derived, to be born at its stage
    n > 0    born in step n of the transaction              ABSENT   searched for, does not exist
    -n < 0   dies in round n

After the records, in the same array, are four lists: `fallen` collects facts that die in the next round,
`absent` facts that a change may have derived, `batch` the facts of a round, `heap` the pending ones by (value
if values combine, stage).  The header tells where each begins.
"""

from typing import Final

# The header.
SLOTS: Final = 0  # a multiple of NEIGHBOURS, not of STRIDE, and more than that
WIDTH: Final = 1  # words of an entry
LIVE: Final = 2  # entries in use
MOST_LIVE: Final = 3
N_RECORDS: Final = 4
MOST_RECORDS: Final = 5  # also of the lists
N_FALLEN: Final = 6
N_ABSENT: Final = 7
N_HEAP: Final = 8
WORK: Final = 9  # derivations examined since the transaction began
KEY: Final = 10  # where the room for one row begins
SEARCHED: Final = 11  # join operations since the transaction began
WARMED: Final = 12  # the result of reading ahead; meaningless
INVERSE: Final = 13  # STRIDE * INVERSE is 1, modulo SLOTS
FALLEN: Final = 14  # where the lists after the records begin
ABSENT_LIST: Final = 15
BATCH: Final = 16
HEAP: Final = 17
HEADER: Final = 18
PREDICATE_WORDS: Final = 3
NEIGHBOUR_BITS: Final = 6
NEIGHBOURS: Final = 1 << NEIGHBOUR_BITS
STRIDE: Final = NEIGHBOURS + 3  # a prime
COLUMNS: Final = 0
IDENTITY: Final = 1
COMBINE: Final = 2
MIN: Final = 1
MAX: Final = 2

STAGE_BITS: Final = 17
PREDICATE_MASK: Final = (1 << (STAGE_BITS - 1)) - 1

# A record.
SLOT: Final = 0
STAGE: Final = 1
COUNT: Final = 2
WHEN: Final = 3
OLD_STAGE: Final = 4  # 0: did not exist
OLD_COUNT: Final = 5
OLD_VALUE: Final = 6
SHOWN: Final = 7  # whether the relation that rules read contains the fact
SHOWN_VALUE: Final = 8
IMPROVED: Final = 9  # a better value has been derived
RECORD: Final = 10

PENDING: Final = 1 << 60
ABSENT: Final = -(1 << 60)

# What derivations mean to their heads.
LOWER_GAIN: Final = 0  # derivations that hold now, over the facts before the transaction
LOWER_LOSE: Final = 1  # derivations that held, over the same
LOSE: Final = 2  # derivations through facts that die in this round
GAIN: Final = 3  # derivations through facts born in this step
BOUND: Final = 4  # derivations of facts that do not exist

# A shape: [place of the changed fact among the body facts or -1, number of body facts, -, -], then for the
# head and each body fact [predicate, then (is constant, constant or column) for each column].
SHAPE: Final = 4
HEAP_WORDS: Final = 3
MULTIPLIER: Final = -7046029254386353131  # 2^64 / golden ratio, as a signed word
WORD_MASK: Final = (1 << 63) - 1
