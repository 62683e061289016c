"""Owns two instructions of the machine: making a record of values, and reading a field of one.

Both go to the table of records by its addresses, which state[RECORDS] leads to (see
`storage.dictionary.records.layout`).  Whoever runs a plan with such steps puts it there, holds the table's
arrays and its lock until the run returns, and has made room for as many records as the run has operations.
"""

from __future__ import annotations

from dlog.jit import helper, pointer_to
from dlog.lftj.opcodes import ARGS, RECORDS
from dlog.storage.dictionary.records.layout import (
    AT_CONSTRUCTORS,
    AT_DIRECTORY,
    AT_HEAP,
    AT_MASK,
    AT_META,
    AT_PLACES,
    AT_SLOTS,
    FIRST_ID,
    HEADER,
)
from dlog.storage.dictionary.records.record_kernels import code_of, hash_fields, place_of


@helper
def make_record(code, pc, state):
    """Bind a slot to the record with some values, which is stored if it is new.  O(fields) expected."""
    table = pointer_to(state[RECORDS])
    shape, arity, fields = code[pc + ARGS], code[pc + ARGS + 1], code[pc + ARGS + 2]
    for c in range(arity):
        state[fields + c] = state[code[pc + ARGS + 4 + c]]
    hashed = hash_fields(shape, state, fields, 1, arity)
    state[code[pc + ARGS + 3]] = code_of(
        shape, state, fields, 1, arity, hashed, pointer_to(table[AT_SLOTS]), table[AT_MASK],
        pointer_to(table[AT_DIRECTORY]), pointer_to(table[AT_PLACES]), pointer_to(table[AT_HEAP]),
        pointer_to(table[AT_META]),
    )  # fmt: skip


@helper
def read_field(code, pc, state):
    """Bind a slot to a field of a record; False if another constructor made it.  O(1)."""
    record = state[code[pc + ARGS + 3]]
    if record < FIRST_ID:
        return False
    table = pointer_to(state[RECORDS])
    place = place_of(record - FIRST_ID, pointer_to(table[AT_DIRECTORY]), pointer_to(table[AT_PLACES]))
    if place < 0:
        return False
    heap = pointer_to(table[AT_HEAP])
    if pointer_to(table[AT_CONSTRUCTORS])[heap[place + 1]] != code[pc + ARGS]:
        return False
    state[code[pc + ARGS + 2]] = heap[place + HEADER + code[pc + ARGS + 1]]
    return True
