"""Owns the kernels that find derivations from facts: plans, run once for each given fact.

No table of the given facts is built: their columns are written into the plan's slots.  What a plan finds is
passed on in small batches, while it is in the cache.  `expand` runs one plan over given facts; `drive` runs
all plans over the facts that die, round by round, or are born, step by step, until there are none; `follow`
is a whole transaction of a few rows.  Nothing is built or called between rounds.

Plans are one array: PLAN words for each plan, which tell where its parts begin; then the parts.  Code that
writes new roots into a plan sets its P_READY to 0; it is attached to them when it first runs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.heads.stages.layout import (
    BATCH,
    BOUND,
    COLUMNS,
    GAIN,
    LOSE,
    LOWER_LOSE,
    N_RECORDS,
    PREDICATE_MASK,
    RECORD,
    SEARCHED,
    SLOT,
    WIDTH,
    WORK,
)
from dlog.heads.stages.pending_kernels import births, deaths
from dlog.heads.stages.support_kernels import take_on
from dlog.heads.stages.table_kernels import has_room, info, put_changes
from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.lftj.machine import attach_on, run_on
from dlog.lftj.opcodes import DONE, NEXTS, OUTPUT_FULL, PC, SCRATCH, SCRATCH_END, SCRATCH_NEXT, SEEKS, STATUS

# Words of a job: its progress.
NEXT_FACT: Final = 0
ROWS: Final = 1  # derivations found but not yet processed
RUNNING: Final = 2  # 1: the plan is in the middle of a fact
FIRST_FACT: Final = 3  # of the batch
LAST_FACT: Final = 4  # exclusive
CURRENT: Final = 5  # the plan that is running
NUMBER: Final = 6  # of the round or step
LIMIT: Final = 7  # of work: see `dlog.engine.maintain.stages.keep`
MODE: Final = 8  # what derivations mean to their heads
FROM_BATCH: Final = 9  # 1: facts are records of the batch, those of the plan's predicate; 0: rows
FIRST_PLAN: Final = 10
LAST_PLAN: Final = 11  # exclusive
SLICE: Final = 12  # join operations between two checks of the clock
# Words of a transaction of a few rows: it begins with plans [0, CHANGING) for the rows, then come plans
# through facts of the recursion up to THROUGH, then the bound queries.
CHANGING: Final = 13
THROUGH: Final = 14
ALL_PLANS: Final = 15
PREDICATES: Final = 16
CAPACITY: Final = 17  # derivations processed at a time
ROOM: Final = 18  # words of `out`
JOB: Final = 19

# What a job returns.
FINISHED: Final = 0
NEEDS_ROOM: Final = 1
LOOK: Final = 2  # time to check the clock and the work

# Words of a plan.
P_PREDICATE: Final = 0
P_CODE: Final = 1
P_STATE: Final = 2
P_PARAMETERS: Final = 3
P_SHAPE: Final = 4
P_INITIAL: Final = 5  # what the state is set to before the plan is attached, P_INITIAL_WORDS of it
P_LEVELS: Final = 6
P_ROOTS: Final = 7
P_INITIAL_WORDS: Final = 8
P_ATOMS: Final = 9
P_READY: Final = 10  # 1: it is attached to its roots
PLAN: Final = 11

# Parameters: [first instruction, columns of a fact], then (kind, operand) for each column.
INTO: Final = 0  # write into the slot at this address
EQUALS: Final = 1  # must be this code
SAME: Final = 2  # must equal this column
ANY: Final = 3

OPERATIONS: Final = 1 << 18  # join operations between two checks of the clock, unless there is a reason
FACTS: Final = 1 << 16  # facts between two checks


@kernel
def expand(
    arena_words: Words,
    rank_words: Words,
    plan_words: Words,
    job_words: Words,
    fact_words: Words,
    table_words: Words,
    record_words: Words,
    head_words: Words,
    out_words: Words,
) -> int:
    """Run the only plan for facts [NEXT_FACT, LAST_FACT) and apply the derivations; resumes where the job
    stopped.  Column c of fact i is fact_words[i * k + c], unless the facts are in the batch.

    `out` is room for the numbers of facts, CAPACITY words, and columns of derivations, as many words each.
    """
    job, table = pointer(job_words), pointer(table_words)
    return int(
        run_facts(
            pointer(arena_words), pointer(rank_words), pointer(plan_words), job,
            table if job[FROM_BATCH] == 1 else pointer(fact_words),
            table, pointer(record_words), pointer(head_words), pointer(out_words),
        )
    )  # fmt: skip


@kernel
def drive(
    arena_words: Words,
    rank_words: Words,
    plan_words: Words,
    job_words: Words,
    table_words: Words,
    record_words: Words,
    head_words: Words,
    out_words: Words,
) -> int:
    """All rounds of deaths (LOSE) or steps of births (GAIN); resumes where the job stopped.

    At the end the batch has all dead facts, round by round.  REQUIRES: at the start job[CURRENT]
    is job[LAST_PLAN], and job[NUMBER] the number of the last round or step.
    """
    return int(
        run_rounds(
            pointer(arena_words), pointer(rank_words), pointer(plan_words), pointer(job_words),
            pointer(table_words), pointer(record_words), pointer(head_words), pointer(out_words),
        )
    )  # fmt: skip


@kernel
def follow(
    arena_words: Words,
    rank_words: Words,
    plan_words: Words,
    job_words: Words,
    fact_words: Words,
    table_words: Words,
    record_words: Words,
    head_words: Words,
    out_words: Words,
) -> int:
    """A transaction of LAST_FACT rows that only gain derivations (MODE is BOUND) or only lose them
    (LOWER_LOSE): FINISHED, or anything else if there is too much work, and it must be undone.

    At the end `out` has, for each predicate, how many facts are new and gone, then the rows of these.
    REQUIRES: the table has room for CAPACITY derivations; values do not combine; `out` has ROOM words.
    """
    arena, ranks, plans = pointer(arena_words), pointer(rank_words), pointer(plan_words)
    job, table, records = pointer(job_words), pointer(table_words), pointer(record_words)
    head, out = pointer(head_words), pointer(out_words)
    falls = job[MODE] == LOWER_LOSE
    job[NUMBER] = 0
    job[FIRST_FACT] = 0
    job[FROM_BATCH] = 0
    job[FIRST_PLAN] = 0
    job[LAST_PLAN] = job[CHANGING]
    answer = run_plans(arena, ranks, plans, job, pointer(fact_words), table, records, head, out)
    job[FROM_BATCH] = 1
    job[LAST_FACT] = 0
    if answer == FINISHED and falls:
        answer = run_all_rounds(LOSE, arena, ranks, plans, job, table, records, head, out)
        job[FIRST_FACT] = 0
        job[FIRST_PLAN] = job[THROUGH]
        job[LAST_PLAN] = job[ALL_PLANS]
        job[NUMBER] = 0
        job[MODE] = BOUND
        if answer == FINISHED:
            answer = run_plans(arena, ranks, plans, job, table, table, records, head, out)
    if answer == FINISHED:
        answer = run_all_rounds(GAIN, arena, ranks, plans, job, table, records, head, out)
    if answer == FINISHED:
        if 2 * job[PREDICATES] + head[N_RECORDS] * (head[WIDTH] - 2) > job[ROOM]:
            return NEEDS_ROOM
        write_changes(job, table, records, head, out)
    return int(answer)


@helper
def run_all_rounds(mode, arena, ranks, plans, job, table, records, head, out):
    """All rounds of a short transaction."""
    job[MODE] = mode
    job[NUMBER] = 0
    job[LAST_FACT] = 0
    job[FIRST_PLAN] = job[CHANGING]
    job[LAST_PLAN] = job[THROUGH]
    job[CURRENT] = job[LAST_PLAN]
    return run_rounds(arena, ranks, plans, job, table, records, head, out)


@helper
def run_plans(arena, ranks, plans, job, facts, table, records, head, out):
    """Run plans [FIRST_PLAN, LAST_PLAN) for facts [FIRST_FACT, LAST_FACT)."""
    answer = np.int64(FINISHED)
    for plan in range(job[FIRST_PLAN], job[LAST_PLAN]):
        if answer == FINISHED:
            job[CURRENT] = plan
            job[NEXT_FACT] = job[FIRST_FACT]
            answer = run_facts(arena, ranks, plans, job, facts, table, records, head, out)
    return answer


@helper
def run_rounds(arena, ranks, plans, job, table, records, head, out):
    """See `drive`."""
    answer = np.int64(FINISHED)
    while answer == FINISHED:
        if job[CURRENT] == job[LAST_PLAN]:
            if not next_batch(job, records, head):
                break
            if head[WORK] + head[SEARCHED] > job[LIMIT]:
                answer = np.int64(LOOK)
                break
        answer = run_facts(arena, ranks, plans, job, table, table, records, head, out)
        if answer == FINISHED:
            job[CURRENT] += 1
            job[NEXT_FACT] = job[FIRST_FACT]
    return answer


@helper
def next_batch(job, records, head):
    """Begin the next round or step; False if nothing dies or is born."""
    job[NUMBER] += 1
    batch = shifted(records, head[BATCH])
    if job[MODE] == LOSE:
        job[FIRST_FACT] = job[LAST_FACT]
        n = deaths(records, head, job[NUMBER], shifted(batch, job[LAST_FACT]))
    else:
        job[FIRST_FACT] = 0
        n = births(records, head, job[NUMBER], batch)
    job[LAST_FACT] = job[FIRST_FACT] + n
    job[NEXT_FACT] = job[FIRST_FACT]
    job[CURRENT] = job[FIRST_PLAN]
    return n > 0


@helper
def run_facts(arena, ranks, plans, job, facts, table, records, head, out):
    """Run the current plan from fact NEXT_FACT to LAST_FACT.  `facts` is the table, or rows."""
    plan = shifted(plans, PLAN * job[CURRENT])
    state, parameters = shifted(plans, plan[P_STATE]), shifted(plans, plan[P_PARAMETERS])
    code, batch, rows_at = (
        shifted(plans, plan[P_CODE]),
        shifted(records, head[BATCH]),
        shifted(out, job[CAPACITY]),
    )
    if plan[P_READY] == 0:
        make_ready(arena, plans, plan)
    n, capacity = job[LAST_FACT], job[CAPACITY]
    stop = job[NEXT_FACT] + FACTS
    while True:
        if job[ROWS] == capacity or (job[NEXT_FACT] == n and job[ROWS] > 0):
            rows = job[ROWS]
            if not has_room(head, rows):
                return np.int64(NEEDS_ROOM)
            shape = shifted(plans, plan[P_SHAPE])
            take_on(rows_at, capacity, rows, out, shape, job[MODE], job[NUMBER], table, records, head)
            job[ROWS] = 0
        i = job[NEXT_FACT]
        if i == n:
            return np.int64(FINISHED)
        if i == stop:
            return np.int64(LOOK)
        record = batch[i] if job[FROM_BATCH] == 1 else np.int64(0)
        if job[RUNNING] == 0:
            at = i * parameters[1]
            wanted = True
            if job[FROM_BATCH] == 1:
                at = records[record * RECORD + SLOT] * head[WIDTH]
                wanted = (table[at + head[WIDTH] - 2] >> 1) & PREDICATE_MASK == plan[P_PREDICATE]
            if not wanted or not set_parameters(state, parameters, facts, at):
                job[NEXT_FACT] = i + 1
                continue
            job[RUNNING] = 1
        before = state[NEXTS] + state[SEEKS]
        rows = run_on(arena, code, state, ranks, rows_at, job[ROWS], capacity, job[SLICE])
        head[SEARCHED] += state[NEXTS] + state[SEEKS] - before
        for r in range(job[ROWS], rows):
            out[r] = record
        job[ROWS] = rows
        if state[STATUS] == DONE:
            job[RUNNING] = 0
            job[NEXT_FACT] = i + 1
        elif state[STATUS] != OUTPUT_FULL:
            return np.int64(LOOK)


@helper
def make_ready(arena, plans, plan):
    """Attach a plan to its roots; what earlier versions left in its state would be wrong."""
    state, initial = shifted(plans, plan[P_STATE]), shifted(plans, plan[P_INITIAL])
    for w in range(plan[P_INITIAL_WORDS]):
        state[w] = initial[w]
    roots = shifted(plans, plan[P_ROOTS])
    attach_on(arena, state, shifted(plans, plan[P_LEVELS]), roots, plan[P_ATOMS])
    plan[P_READY] = 1


@helper
def set_parameters(state, parameters, facts, at):
    """Prepare the plan for the fact at an address; False if its columns do not match."""
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


@helper
def write_changes(job, table, records, head, out):
    """For each predicate how many facts are new and gone, then their rows, one predicate after the other.
    REQUIRES: there is room for a row of every record."""
    end = 2 * job[PREDICATES]
    for predicate in range(job[PREDICATES]):
        for gone in range(2):
            n = put_changes(predicate, table, records, head, gone == 1, shifted(out, end))
            out[2 * predicate + gone] = n
            end += n * info(head, predicate, COLUMNS)
