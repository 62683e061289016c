"""Owns the kernel of recursion: rows of queues drive plans, whose output goes into queues, until none is new.

A *driven plan* is a join plan whose parameters are the columns of one row, the driver's.  Each variant of a
recursive rule is one: the driver is what its recursive atom reads.  The kernel takes the rows of a queue in
order, runs the plan for each, collects the output, and appends what is new to the queues of the heads, where
it will drive in turn.  A round costs what its rows cost, since nothing is built or called between rounds.

Correct output: every row that follows from the rows in the queues by the plans, each once.  Everything that
changes lies in arrays, so the kernel stops and continues where it was: when its budget is spent, or when a
queue needs room, which Python gives.  Knows nothing of rules; see `storage.queue.row_queue_kernels` for
queues.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.lftj.directory import BUCKETS, GREATEST, LEAST, is_exact
from dlog.lftj.drive_layout import (
    BUDGET_LEFT,
    CURRENT,
    DONE,
    EQUALS,
    LOOKUP_BLOCK,
    LOOKUP_COLUMN,
    LOOKUP_OUTPUTS,
    N_VARIANTS,
    NEEDY,
    PARAMETER,
    REPEATS,
    ROWS_FULL,
    SEEN_FULL,
    SPENT,
    STAGED,
    TOO_NARROW,
    V_ACTIVE,
    V_BIND,
    V_CODE,
    V_CURSOR,
    V_DRIVER,
    V_FED,
    V_HEADS,
    V_LOOKUP,
    V_NEW,
    V_OFFSET,
    V_PENDING,
    V_ROUND,
    V_ROUNDS,
    V_ROWS,
    V_START,
    V_STATE,
    VARIANT,
    VARIANTS,
)
from dlog.lftj.machine import run_on
from dlog.lftj.opcodes import DIRECTORY, FLAT, LEFT, NEXTS, OUTPUT_FULL, PC, RANGE, SEEKS, STATUS
from dlog.lftj.opcodes import DONE as PLAN_DONE
from dlog.storage.arena.pointer import pointer, pointer_at
from dlog.storage.queue.row_queue_kernels import (
    BEST,
    HASH,
    KEYED,
    OUT_OF_RANGE,
    Q_ARITY,
    Q_BASE,
    Q_CAPACITY,
    Q_COUNT,
    Q_DRIVEN,
    Q_METHOD,
    Q_READY,
    Q_SIZE,
    Q_STALE,
    Q_WAITING,
    QUEUE,
    RUNS,
    WIDE,
    absorb,
)
from dlog.storage.queue.support_kernels import absorb_counted, stage_of


@kernel
def drive(
    arena_words: Words,
    codes: Words,
    states: Words,
    rank_words: Words,
    variant_words: Words,
    queue_words: Words,
    row_words: Words,
    seen_words: Words,
    out_words: Words,
    scratch_words: Words,
    capacity: int,
    budget: int,
) -> int:
    """Run until no variant has a row to be driven by, or until Python must do something; return what.

    `capacity` is the number of rows of the output; scratch holds 2 * capacity words.
    """
    arena, ranks, variants = pointer(arena_words), pointer(rank_words), pointer(variant_words)
    queues, rows, seen = pointer(queue_words), pointer(row_words), pointer(seen_words)
    out, scratch = pointer(out_words), pointer(scratch_words)
    variants[BUDGET_LEFT] = budget
    idle = np.int64(0)
    v = variants[CURRENT]
    while idle < variants[N_VARIANTS]:
        at = VARIANTS + VARIANT * v
        variants[CURRENT] = v
        state, code = pointer_at(states, variants[at + V_STATE]), pointer_at(codes, variants[at + V_CODE])
        while has_work(variants, at, queues):
            idle = np.int64(0)
            status = check_room(variants, at, queues, capacity)
            if status == DONE and variants[at + V_PENDING] == 0:
                if variants[BUDGET_LEFT] <= 0:
                    return SPENT
                begin_round(variants, at, queues)
                if is_lookup(state, variants, at):
                    look_up_rows(arena, state, variants, at, queues, rows, out, capacity, scratch)
                else:
                    feed(arena, code, state, ranks, variants, at, queues, rows, out, capacity)
            if status == DONE:
                status = absorb_pending(variants, at, queues, rows, seen, out, capacity, scratch)
            if status != DONE:
                return status
        idle += 1
        v = v + 1 if v + 1 < variants[N_VARIANTS] else np.int64(0)
    return DONE


@helper
def has_work(variants, at, queues):
    """Whether a variant has output to absorb, a run to continue with, or a row to be driven by."""
    if variants[at + V_PENDING] > 0 or variants[at + V_ACTIVE] == 1:
        return True
    return variants[at + V_CURSOR] < last_row(queues, variants[at + V_DRIVER] * QUEUE)


@helper
def begin_round(variants, at, queues):
    """When a variant has processed all rows of its round, the next one has those that exist now."""
    if variants[at + V_ACTIVE] == 0 and variants[at + V_CURSOR] >= variants[at + V_ROUND]:
        variants[at + V_ROUND] = last_row(queues, variants[at + V_DRIVER] * QUEUE)
        variants[at + V_ROUNDS] += 1


@helper
def last_row(queues, q):
    ready = queues[q + Q_READY]
    return queues[q + Q_COUNT] if ready < 0 else ready


@helper
def check_room(variants, at, queues, capacity):
    """DONE if every head's queue has room for a full output from each head, else what is missing where."""
    head = variants[at + V_HEADS]
    most = variants[head] * capacity
    for _ in range(variants[head]):
        q = variants[head + 1] * QUEUE
        count = queues[q + Q_COUNT] + most + 1  # one more row, for look-ups
        method = queues[q + Q_METHOD]
        variants[NEEDY] = variants[head + 1]
        if method == RUNS:
            if queues[q + Q_WAITING] + most > queues[q + Q_SIZE]:
                return SEEN_FULL
            head += 1 + 2 * queues[q + Q_ARITY]
            continue
        if count > queues[q + Q_CAPACITY]:
            return ROWS_FULL
        count -= queues[q + Q_STALE]  # not in the set any more
        if method == HASH and 2 * count > queues[q + Q_SIZE]:
            return SEEN_FULL
        if method in (WIDE, BEST, KEYED) and 4 * count > queues[q + Q_SIZE]:
            return SEEN_FULL
        head += 1 + 2 * queues[q + Q_ARITY]
    return DONE


@helper
def feed(arena, code, state, ranks, variants, at, queues, rows, out, capacity):
    """Run a variant's plan for one row after the other until the output is full, or its round ends."""
    q = variants[at + V_DRIVER] * QUEUE
    base, stride, arity = queues[q + Q_BASE], queues[q + Q_CAPACITY], queues[q + Q_ARITY]
    bind = variants[at + V_BIND]
    cursor, limit = variants[at + V_CURSOR], variants[at + V_ROUND]
    start = variants[at + V_START]
    active = variants[at + V_ACTIVE]
    budget = variants[BUDGET_LEFT]
    staged = variants[STAGED]
    n = np.int64(0)
    while budget > 0:
        if active == 0:
            if cursor >= limit:
                break
            active = bind_row(variants, bind, rows, base + cursor, stride, arity, state)
            cursor += 1
            budget -= 1
            if active == 0:
                continue
            state[PC] = start
        before = n
        n = run_on(arena, code, state, ranks, out, n, capacity, budget)
        if staged > 0:
            set_tops(out, staged, before, n, stage_of(queues, variants[at + V_DRIVER], rows, cursor - 1))
        budget = state[LEFT]
        if state[STATUS] == PLAN_DONE:
            active = np.int64(0)
        elif state[STATUS] == OUTPUT_FULL:
            break
    variants[at + V_FED] += cursor - variants[at + V_CURSOR]
    variants[at + V_CURSOR] = cursor
    queues[q + Q_DRIVEN] = max(queues[q + Q_DRIVEN], cursor)
    variants[at + V_ACTIVE] = active
    variants[at + V_PENDING] = n
    variants[at + V_ROWS] += n
    variants[BUDGET_LEFT] = budget


@helper
def is_lookup(state, variants, at):
    """Whether a variant's next rows can be looked up: its index is flat and has an exact directory."""
    lookup = variants[at + V_LOOKUP]
    if lookup == 0 or variants[at + V_ACTIVE] == 1:
        return False
    block = variants[lookup + LOOKUP_BLOCK]
    directory = state[block + DIRECTORY]
    return state[block + RANGE + FLAT] >= 0 and directory > 0 and is_exact(state, directory)


@helper
def look_up_rows(arena, state, variants, at, queues, rows, out, capacity, scratch):
    """As `feed`, for a look-up: its own loop is three times faster than the machine.  O(rows + output).

    First where the values of each row are, for as many rows as scratch holds, then all values: so the memory
    that the first loop waits for is requested many rows ahead.
    """
    q = variants[at + V_DRIVER] * QUEUE
    lookup = variants[at + V_LOOKUP]
    block = variants[lookup + LOOKUP_BLOCK]
    stride, first = queues[q + Q_CAPACITY], queues[q + Q_BASE]
    cursor, offset = variants[at + V_CURSOR], variants[at + V_OFFSET]
    last = min(variants[at + V_ROUND], cursor + min(variants[BUDGET_LEFT], capacity))
    locate(
        state, block, rows, first + stride * variants[lookup + LOOKUP_COLUMN] + cursor, last - cursor, scratch
    )
    start = cursor
    values = state[block + RANGE + FLAT]
    n = np.int64(0)
    while cursor < last:
        lo = scratch[2 * (cursor - start)] + offset
        found = scratch[2 * (cursor - start) + 1] - lo
        m = min(found, capacity - n)
        write_found(arena, values + lo, m, variants, lookup, rows, first + cursor, stride, out, n, capacity)
        if variants[STAGED] > 0:
            top = stage_of(queues, variants[at + V_DRIVER], rows, cursor)
            set_tops(out, variants[STAGED], n, n + m, top)
        n += m
        if m < found:
            offset += m
            break
        offset = np.int64(0)
        cursor += 1
    state[SEEKS] += cursor - start
    state[NEXTS] += n
    variants[BUDGET_LEFT] -= cursor - start + n + 1
    variants[at + V_FED] += cursor - start
    variants[at + V_CURSOR] = cursor
    queues[q + Q_DRIVEN] = max(queues[q + Q_DRIVEN], cursor + 1 if offset > 0 else cursor)
    variants[at + V_OFFSET] = offset
    variants[at + V_PENDING] = n
    variants[at + V_ROWS] += n


@helper
def locate(state, block, rows, sought, n, out):
    """The range of rows of an index for each of n keys, by its exact directory: out[2i] to out[2i + 1]."""
    directory = state[block + DIRECTORY]
    least, greatest = state[directory + LEAST], state[directory + GREATEST]
    buckets = directory + BUCKETS
    for i in range(n):
        key = rows[sought + i]
        inside = key >= least and key <= greatest  # before the difference, which may not fit
        bucket = buckets + (key - least if inside else np.int64(0))
        out[2 * i] = state[bucket]
        out[2 * i + 1] = state[bucket + 1] if inside else state[bucket]


@helper
def write_found(arena, values, m, variants, lookup, rows, row, stride, out, n, capacity):
    """Write m rows of output from n on: the values, beside the driver's."""
    to = n
    for c in range(variants[lookup + LOOKUP_OUTPUTS]):
        column = variants[lookup + LOOKUP_OUTPUTS + 1 + c]
        if column < 0:
            for i in range(m):
                out[to + i] = arena[values + i]
        else:
            value = rows[row + column * stride]
            for i in range(m):
                out[to + i] = value
        to += capacity


@helper
def bind_row(variants, bind, rows, row, stride, arity, state):
    """Put a row's values where a plan expects them; 0 if the driver's atom does not match it, else 1."""
    for c in range(arity):
        kind, operand = variants[bind + 2 * c], variants[bind + 2 * c + 1]
        value = rows[row + c * stride]
        if kind == PARAMETER:
            state[operand] = value
        elif (kind == EQUALS and value != operand) or (
            kind == REPEATS and value != rows[row + operand * stride]
        ):
            return np.int64(0)
    return np.int64(1)


@helper
def absorb_pending(variants, at, queues, rows, seen, out, capacity, scratch):
    """Append a variant's output to the queues of its heads; DONE or TOO_NARROW.

    It may begin again after Python has widened a set: existing rows are not added again.  Where
    derivations are counted a variant has one head.
    """
    head = variants[at + V_HEADS]
    n = variants[at + V_PENDING]
    staged = variants[STAGED]
    for _ in range(variants[head]):
        q = variants[head + 1]
        if staged > 0:
            found = absorb_counted(
                queues, q, rows, seen, out, capacity, n, variants, head + 2, staged, scratch
            )
        else:
            found = absorb(queues, q, rows, seen, out, capacity, n, variants, head + 2, scratch)
        if found == OUT_OF_RANGE:
            variants[NEEDY] = q
            return TOO_NARROW
        variants[at + V_NEW] += found
        head += 1 + 2 * queues[q * QUEUE + Q_ARITY]
    variants[at + V_PENDING] = 0
    return DONE


@helper
def set_tops(out, staged, start, end, top):
    for i in range(start, end):
        out[staged + i] = top
