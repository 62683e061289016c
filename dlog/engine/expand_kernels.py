"""Owns the kernel that goes from facts to derivations: a plan, run once for each fact given to it.

No table of the given facts is built: their columns are written into the plan's slots.  What the plan finds is
handed on in small batches, while it is in the cache.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.engine.stage_kernels import take_on
from dlog.engine.stage_layout import SEARCHED
from dlog.engine.stage_table_kernels import has_room
from dlog.jit import Words, helper, kernel, pointer
from dlog.lftj.machine import run_on
from dlog.lftj.opcodes import DONE, NEXTS, OUTPUT_FULL, PC, SCRATCH, SCRATCH_END, SCRATCH_NEXT, SEEKS, STATUS

# Words of a job: how far it has come.
NEXT_FACT: Final = 0
ROWS: Final = 1  # derivations found and not yet taken
RUNNING: Final = 2  # 1: the plan is in the middle of a fact
JOB: Final = 3

# What a job answers.
FINISHED: Final = 0
NEEDS_ROOM: Final = 1
LOOK: Final = 2  # time to look at the clock

# Parameters: [first instruction, columns of a fact], then (kind, operand) for each column.
INTO: Final = 0  # write into the slot at this address
EQUALS: Final = 1  # must be this code
SAME: Final = 2  # must be as in this column
ANY: Final = 3

SLICE: Final = 1 << 18  # join operations between two looks at the clock
FACTS: Final = 1 << 16  # facts between two looks


@kernel
def expand(
    arena_words: Words,
    code_words: Words,
    state_words: Words,
    rank_words: Words,
    parameter_words: Words,
    fact_words: Words,
    id_words: Words,
    n: int,
    job_words: Words,
    out_words: Words,
    source_words: Words,
    capacity: int,
    shape_words: Words,
    mode: int,
    step: int,
    table_words: Words,
    record_words: Words,
    head_words: Words,
    fallen_words: Words,
    absent_words: Words,
    heap_words: Words,
) -> int:
    """Run the plan for each of n facts and let the derivations act; goes on where the job stands.

    Column c of fact i is fact_words[i * k + c]; id_words[i] is its record.
    """
    arena, code, state, ranks = (
        pointer(arena_words), pointer(code_words), pointer(state_words), pointer(rank_words),
    )  # fmt: skip
    parameters, facts, ids, job = (
        pointer(parameter_words), pointer(fact_words), pointer(id_words), pointer(job_words),
    )  # fmt: skip
    out, source, shape = pointer(out_words), pointer(source_words), pointer(shape_words)
    table, records, head = pointer(table_words), pointer(record_words), pointer(head_words)
    fallen, absent, heap = pointer(fallen_words), pointer(absent_words), pointer(heap_words)
    stop = job[NEXT_FACT] + FACTS
    answer = np.int64(FINISHED)
    while True:
        if job[ROWS] == capacity or (job[NEXT_FACT] == n and job[ROWS] > 0):
            if not has_room(head, job[ROWS]):
                answer = np.int64(NEEDS_ROOM)
                break
            take_on(
                out,
                capacity,
                job[ROWS],
                source,
                shape,
                mode,
                step,
                table,
                records,
                head,
                fallen,
                absent,
                heap,
            )
            job[ROWS] = 0
        i = job[NEXT_FACT]
        if i == n:
            break
        if i == stop:
            answer = np.int64(LOOK)
            break
        if job[RUNNING] == 0:
            if not set_parameters(state, parameters, facts, i):
                job[NEXT_FACT] = i + 1
                continue
            job[RUNNING] = 1
        before = state[NEXTS] + state[SEEKS]
        rows = run_on(arena, code, state, ranks, out, job[ROWS], capacity, np.int64(SLICE))
        head[SEARCHED] += state[NEXTS] + state[SEEKS] - before
        for r in range(job[ROWS], rows):
            source[r] = ids[i]
        job[ROWS] = rows
        if state[STATUS] == DONE:
            job[RUNNING] = 0
            job[NEXT_FACT] = i + 1
        elif state[STATUS] != OUTPUT_FULL:
            answer = np.int64(LOOK)
            break
    return int(answer)


@helper
def set_parameters(state, parameters, facts, i):
    """Make the plan ready for a fact; False if its columns are not as they must be."""
    k = parameters[1]
    for c in range(k):
        kind, operand = parameters[2 + 2 * c], parameters[3 + 2 * c]
        value = facts[i * k + c]
        if kind == INTO:
            state[operand] = value
        elif (kind == EQUALS and value != operand) or (kind == SAME and value != facts[i * k + operand]):
            return False
    state[PC] = parameters[0]
    state[SCRATCH_NEXT] = state[SCRATCH_END] = state[SCRATCH]
    return True
