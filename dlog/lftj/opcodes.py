"""Owns the numbers that the assembler and the machine share: operation codes, instruction and state layout.

An instruction is a run of words of the code array.  Its first three are the operation, where to continue on
success and where to continue on failure; operands that name values or ranges are addresses in the state
array.

The state array holds everything that changes while a join runs:

header     see below
slots      one word each
ranges     for each atom and level 0..arity one block of RANGE words.  The block of level L holds the range
           [LO, HI) of rows that agree with what was bound at the levels before L.  The block of level L+1 is
           also the cursor that narrows level L: LO its current row, HI the end of that key's run.
own        words of single instructions: the order of a Leap's participants, the branch an Or is in, ...
scratch    CHUNK keys, where a batched Leap collects what it found but has not written
directory  any number, added between two slices of a run: see `directory`
"""

from typing import Final

# Header of the state.
PC: Final = 0
STATUS: Final = 1
SEEKS: Final = 2
NEXTS: Final = 3
OPENS: Final = 4
COMPARISONS: Final = 5
UNDEFINED: Final = 6
EMITTED: Final = 7
SCRATCH_NEXT: Final = 8  # the first key in scratch that is not yet written
SCRATCH_END: Final = 9
TAKEN_A: Final = 10  # how far `intersect` got in its two inputs
TAKEN_B: Final = 11
SCRATCH: Final = 12  # address of the scratch
LEFT: Final = 13  # the budget left after a slice
RECORDS: Final = 14  # address of the addresses of the table of records: see `record_steps`
HEADER: Final = 16

# A range block.
LO: Final = 0
HI: Final = 1
FLAT: Final = 2  # address of row 0 of the level's column if the index is flat, else -1
ROOT: Final = 3
COLUMN: Final = 4
LAST: Final = 5  # 1 if this is the last column, so that every run has one row
DIRECTORY: Final = 6  # address of the level's directory in the state, 0 if there is none yet, -1 if never
FAR: Final = 7  # how many seeks would have been shorter with a directory
RANGE: Final = 8

CHUNK: Final = (
    1024  # keys of the leader that a batch takes at a time; 8 KiB of scratch stay in the first cache
)

# Status of a run.
DONE: Final = 0
OUTPUT_FULL: Final = 1
BUDGET: Final = 2
TRACE_FULL: Final = 3  # of a traced run: some note has no room

# Operations.  Words after (op, next, fail):
HALT: Final = 0
LEAP_OPEN: Final = 1  #   slot, own, n, n_lower, n_upper, its LEAP_NEXT, n ranges, bounds as (slot, strict)
LEAP_NEXT: Final = 2  #   address of its LEAP_OPEN
BATCH_OPEN: Final = 3  #  the same, with the place of its columns instead of LEAP_NEXT
BATCH_NEXT: Final = 4  #  address of its BATCH_OPEN
SEEK: Final = 5  #        range, slot
VALUE: Final = 6  #       range, slot
HOLDS: Final = 7  #       range
COMPARE: Final = 8  #     comparison, slot, slot
RANK_COMPARE: Final = 9  # comparison, slot, slot
COMPUTE: Final = 10  #    operation, kind, dst, slot, slot
RANGE_OPEN: Final = 11  # slot, own, start, end, step (-1: none), kind
RANGE_NEXT: Final = 12  # address of its RANGE_OPEN
SET: Final = 13  #        own, word: remember the branch an Or is in
REDO: Final = 14  #       own: go to the address it holds
EMIT: Final = 15  #       n, slots
COUNT: Final = 16
JUMP: Final = 17
MAKE: Final = 24  #       shape, n, own, dst, n slots
FIELD: Final = 25  #      constructor, index, dst, slot
# Only in traced plans: see `trace_machine`.
NOTE: Final = 18  #        own, words of the notes before it, n, n addresses of what is written
SPAN: Final = 19  #        own, n, n_lower, n_upper, n ranges, bounds as (slot, strict)
GUIDED_OPEN: Final = 20  # as LEAP_OPEN; after its bounds the address of the guide's words of this depth
GUIDED_NEXT: Final = 21  # address of its GUIDED_OPEN
EXACT_OPEN: Final = 22  #  as GUIDED_OPEN; then for each participant its NOTE, 0 if it has none
EXACT_NEXT: Final = 23  #  address of its EXACT_OPEN

# Places of operands, from the start of an instruction.
NEXT: Final = 1
FAIL: Final = 2
ARGS: Final = 3
L_SLOT: Final = 3
L_OWN: Final = 4
L_COUNT: Final = 5
L_LOWER: Final = 6
L_UPPER: Final = 7
L_AGAIN: Final = 8
L_COLUMNS: Final = 8  # the number of columns, -1 to count only; then for each its slot, -1 for the key
L_RANGES: Final = 9

COMPARISON: Final = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
KIND: Final = {"int": 0, "unsigned": 1, "float": 2, "string": 3}
