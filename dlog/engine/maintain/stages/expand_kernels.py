"""Owns the kernels that go from facts to derivations: plans, run once for each fact given to them.

No table of the given facts is built: their columns are written into the plan's slots.  What a plan finds is
handed on in small batches, while it is in the cache.  `expand` runs one plan over given rows; `drive` runs
all plans over the facts that die, round by round, or are born, step by step, until there are none: a round
costs what its facts cost, since nothing is built or called between rounds.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.engine.maintain.stages.layout import (
    LOSE,
    PREDICATE_MASK,
    RECORD,
    SEARCHED,
    SLOT,
    WIDTH,
    WORK,
)
from dlog.engine.maintain.stages.pending_kernels import births, deaths
from dlog.engine.maintain.stages.support_kernels import take_on
from dlog.engine.maintain.stages.table_kernels import has_room
from dlog.jit import Words, helper, kernel, pointer, pointer_at
from dlog.lftj.machine import run_on
from dlog.lftj.opcodes import DONE, NEXTS, OUTPUT_FULL, PC, SCRATCH, SCRATCH_END, SCRATCH_NEXT, SEEKS, STATUS

# Words of a job: how far it has come.
NEXT_FACT: Final = 0
ROWS: Final = 1  # derivations found and not yet taken
RUNNING: Final = 2  # 1: the plan is in the middle of a fact
FIRST_FACT: Final = 3  # of the batch
LAST_FACT: Final = 4  # behind it
PLAN: Final = 5  # the plan that is at work
NUMBER: Final = 6  # of the round or step
LIMIT: Final = 7  # of work: see `stages`
JOB: Final = 8

# What a job answers.
FINISHED: Final = 0
NEEDS_ROOM: Final = 1
LOOK: Final = 2  # time to look at the clock, and at the work

# A plan: its predicate, and where in the plans' words its code, state, parameters and shape begin.
PLAN_WORDS: Final = 5

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
    """Run a plan for each of n facts and let the derivations act; goes on where the job stands.

    Column c of fact i is fact_words[i * k + c]; id_words[i] is its record.
    """
    job = pointer(job_words)
    job[LAST_FACT] = n
    answer = run_facts(
        pointer(arena_words), pointer(rank_words), pointer(code_words), pointer(state_words),
        pointer(parameter_words), pointer(shape_words), pointer(fact_words), pointer(id_words),
        np.int64(-1), job, pointer(out_words), pointer(source_words), capacity, mode, step,
        pointer(table_words), pointer(record_words), pointer(head_words),
        pointer(fallen_words), pointer(absent_words), pointer(heap_words),
    )  # fmt: skip
    return int(answer)


@kernel
def drive(
    arena_words: Words,
    rank_words: Words,
    plan_words: Words,
    n_plans: int,
    job_words: Words,
    batch_words: Words,
    out_words: Words,
    source_words: Words,
    capacity: int,
    mode: int,
    table_words: Words,
    record_words: Words,
    head_words: Words,
    fallen_words: Words,
    absent_words: Words,
    heap_words: Words,
) -> int:
    """All rounds of deaths (LOSE) or steps of births (GAIN) to come; goes on where the job stands.

    All that died is in the batch at the end, one round after the other.  REQUIRES: at the start job[PLAN] is
    n_plans, and job[NUMBER] the number of the last round or step.
    """
    arena, ranks, job, batch = (
        pointer(arena_words), pointer(rank_words), pointer(job_words), pointer(batch_words),
    )  # fmt: skip
    table, records, head = pointer(table_words), pointer(record_words), pointer(head_words)
    fallen, absent, heap = pointer(fallen_words), pointer(absent_words), pointer(heap_words)
    answer = np.int64(FINISHED)
    while answer == FINISHED:
        if job[PLAN] == n_plans:
            if not next_batch(job, batch, mode, records, head, fallen, heap):
                break
            if head[WORK] + head[SEARCHED] > job[LIMIT]:
                answer = np.int64(LOOK)
                break
        at = PLAN_WORDS * job[PLAN]
        code, state = pointer_at(plan_words, plan_words[at + 1]), pointer_at(plan_words, plan_words[at + 2])
        answer = run_facts(
            arena, ranks, code, state, pointer_at(plan_words, plan_words[at + 3]),
            pointer_at(plan_words, plan_words[at + 4]), table, batch, plan_words[at], job,
            pointer(out_words), pointer(source_words), capacity, mode, job[NUMBER],
            table, records, head, fallen, absent, heap,
        )  # fmt: skip
        if answer == FINISHED:
            job[PLAN] += 1
            job[NEXT_FACT] = job[FIRST_FACT]
    return int(answer)


@helper
def next_batch(job, batch, mode, records, head, fallen, heap):
    """Begin the next round or step; False if nothing dies or is born."""
    job[NUMBER] += 1
    if mode == LOSE:
        job[FIRST_FACT] = job[LAST_FACT]
        n = deaths(records, head, fallen, job[NUMBER], batch, job[LAST_FACT])
    else:
        job[FIRST_FACT] = 0
        n = births(heap, records, head, job[NUMBER], batch)
    job[LAST_FACT] = job[FIRST_FACT] + n
    job[NEXT_FACT] = job[FIRST_FACT]
    job[PLAN] = 0
    return n > 0


@helper
def run_facts(
    arena, ranks, code, state, parameters, shape, facts, ids, predicate, job, out, source, capacity, mode,
    step, table, records, head, fallen, absent, heap,
):  # fmt: skip
    """Run a plan from fact NEXT_FACT to LAST_FACT.

    With a predicate, only for its facts, whose columns are in the table; else for rows, all of them.
    """
    n = job[LAST_FACT]
    stop = job[NEXT_FACT] + FACTS
    while True:
        if job[ROWS] == capacity or (job[NEXT_FACT] == n and job[ROWS] > 0):
            rows = job[ROWS]
            if not has_room(head, rows):
                return np.int64(NEEDS_ROOM)
            take_on(
                out, capacity, rows, source, shape, mode, step, table, records, head, fallen, absent, heap
            )
            job[ROWS] = 0
        i = job[NEXT_FACT]
        if i == n:
            return np.int64(FINISHED)
        if i == stop:
            return np.int64(LOOK)
        if job[RUNNING] == 0:
            at = i * parameters[1]
            wanted = True
            if predicate >= 0:
                at = records[ids[i] * RECORD + SLOT] * head[WIDTH]
                wanted = (table[at + head[WIDTH] - 2] >> 1) & PREDICATE_MASK == predicate
            if not wanted or not set_parameters(state, parameters, facts, at):
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
            return np.int64(LOOK)


@helper
def set_parameters(state, parameters, facts, at):
    """Make the plan ready for the fact at an address; False if its columns are not as they must be."""
    for c in range(parameters[1]):
        kind, operand = parameters[2 + 2 * c], parameters[3 + 2 * c]
        value = facts[at + c]
        if kind == INTO:
            state[operand] = value
        elif (kind == EQUALS and value != operand) or (kind == SAME and value != facts[at + operand]):
            return False
    state[PC] = parameters[0]
    state[SCRATCH_NEXT] = state[SCRATCH_END] = state[SCRATCH]
    return True
