"""Owns the layout of driven plans in arrays: the contract between `lftj.drive` and its callers."""

from typing import Final

# Words of the variants' array: a header, then VARIANT words each, then their bindings and heads.
N_VARIANTS: Final = 0
CURRENT: Final = 1  # the current variant
NEEDY: Final = 2  # the queue that needs something
BUDGET_LEFT: Final = 3
STAGED: Final = 4  # where in the output the stage of each row's driver is; 0: derivations are not counted
VARIANTS: Final = 5

V_DRIVER: Final = 0  # queue
V_CODE: Final = 1  # where its code begins among all code, its state among all state
V_STATE: Final = 2
V_START: Final = 3
V_CURSOR: Final = 4  # the next row to drive it
V_ACTIVE: Final = 5  # 1 if the run for the row before has not ended
V_PENDING: Final = 6  # rows of output not yet in queues
V_BIND: Final = 7  # where its bindings are: for each column of the driver an action and an operand
V_HEADS: Final = 8  # where its heads are: their number, then for each its queue and two words per column
V_ROWS: Final = 9  # rows of output so far
V_NEW: Final = 10
V_FED: Final = 11  # rows that drove it
V_ROUND: Final = 12  # where its round ends: at the last row that existed when it began
V_ROUNDS: Final = 13
V_LOOKUP: Final = 14  # where its look-up is described; 0: it is not one
V_OFFSET: Final = 15  # rows of output that a look-up's unfinished row has given already
VARIANT: Final = 16

# A look-up: the plan is one seek of a driver's column and then all values of the index's last column.
LOOKUP_BLOCK: Final = 0  # the range block of the first level
LOOKUP_COLUMN: Final = 1  # the driver's column that is sought
LOOKUP_OUTPUTS: Final = 2  # the number of output columns, then for each the driver's column, -1 for the value

# Actions for a column of the driver.
PARAMETER: Final = 1  # operand: where in the state
EQUALS: Final = 2  # operand: code
REPEATS: Final = 3  # operand: an earlier column

# Why the kernel returned.
DONE: Final = 0
SPENT: Final = 1
ROWS_FULL: Final = 2  # the needy queue needs room for rows
SEEN_FULL: Final = 3  # its hash table does, or its packed rows have no more room to wait in
TOO_NARROW: Final = 4  # a pending row lies outside what its set can hold
