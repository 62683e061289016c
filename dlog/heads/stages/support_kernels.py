"""Owns what derivations do to their heads: support counts, facts that fall, facts that are derived.

A derivation is a row of columns and a *shape*, which tells where in it the head and the recursive body facts
are.  Its body facts must exist, each in the sense of the mode (`layout`); it counts for its head if
their stages are all below the head's.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.heads.stages.layout import (
    ABSENT,
    ABSENT_LIST,
    BOUND,
    COLUMNS,
    COMBINE,
    COUNT,
    FALLEN,
    GAIN,
    IDENTITY,
    IMPROVED,
    KEY,
    LOSE,
    LOWER_GAIN,
    LOWER_LOSE,
    MIN,
    N_ABSENT,
    N_FALLEN,
    PENDING,
    RECORD,
    SHAPE,
    SLOTS,
    STAGE,
    STAGE_BITS,
    WARMED,
    WHEN,
    WIDTH,
    WORK,
)
from dlog.heads.stages.pending_kernels import pend
from dlog.heads.stages.table_kernels import find, hash_start, hash_word, home, info, insert, touch
from dlog.jit import Words, helper, kernel, pointer

WORTH_WARMING: Final = 8  # derivations; and a thousand times as many entries


@kernel
def take(
    row_words: Words,
    stride: int,
    n: int,
    source_words: Words,
    shape_words: Words,
    mode: int,
    step: int,
    table_words: Words,
    record_words: Words,
    head_words: Words,
) -> None:
    """Apply n derivations to their heads.  REQUIRES: has_room(n)."""
    take_on(
        pointer(row_words), stride, n, pointer(source_words), pointer(shape_words), mode, step,
        pointer(table_words), pointer(record_words), pointer(head_words),
    )  # fmt: skip


@helper
def take_on(rows, stride, n, source, shape, mode, step, table, records, head):
    predicate = shape[SHAPE]
    head[WORK] += n
    if n >= WORTH_WARMING and head[SLOTS] > WORTH_WARMING << 10:
        warm(table, head, shape, rows, stride, n)
    for i in range(n):
        top = greatest_stage(table, records, head, shape, rows, stride, i, source, mode, step)
        if top >= 0:
            load(head, shape, SHAPE, rows, stride, i, predicate)
            if mode in (LOSE, LOWER_LOSE):
                lose(table, records, head, predicate, top, step)
            else:
                gain(table, records, head, predicate, top, mode)


@helper
def fact_words(head):
    """Of one fact in a shape."""
    return 1 + 2 * (head[WIDTH] - 2)


@helper
def warm(table, head, shape, rows, stride, n):
    """Read the entries that derivations will search for, all at once: the processor then waits for many
    of them together, which takes a fraction of the time."""
    width, slots = head[WIDTH], head[SLOTS]
    read = np.int64(0)
    for f in range(shape[1] + 1):
        if f > 0 and f - 1 == shape[0]:
            continue
        at = SHAPE + f * fact_words(head)
        predicate = shape[at]
        identity = info(head, predicate, IDENTITY)
        for i in range(n):
            h, last = hash_start(predicate), np.int64(0)
            for c in range(identity):
                word = shape[at + 2 + 2 * c]
                last = word if shape[at + 1 + 2 * c] == 1 else rows[word * stride + i]
                if c < identity - 1:
                    h = hash_word(h, last)
            read ^= table[home(h, last, slots) * width + width - 2]
    head[WARMED] = read


@helper
def greatest_stage(table, records, head, shape, rows, stride, i, source, mode, step):
    """The greatest stage in a derivation's body, 0 without recursive facts; -1: it does not count here."""
    top = np.int64(0)
    changed = shape[0]
    for j in range(shape[1]):
        at = SHAPE + (j + 1) * fact_words(head)
        if j == changed:
            stage = records[source[i] * RECORD + STAGE]
        else:
            predicate = shape[at]
            load(head, shape, at, rows, stride, i, predicate)
            stage = body_stage(table, records, head, predicate, mode, step, j < changed)
            if stage < 0:
                return stage
        top = max(top, stage)
    return top


@helper
def body_stage(table, records, head, predicate, mode, step, before):
    """The stage of the body fact at KEY, or -1 when a derivation with it does not count here.

    `before`: the fact comes before the changed one in the body; a derivation through several changed facts
    counts at the first of them.
    """
    slot = find(table, head, predicate)
    if slot < 0:
        return np.int64(-1)
    width = head[WIDTH]
    at = slot * width
    if info(head, predicate, COMBINE) != 0:
        last = info(head, predicate, COLUMNS) - 1
        if table[at + last] != head[head[KEY] + last]:
            return np.int64(-1)
    state = table[at + width - 2]
    if state & 1 == 0:
        return state >> STAGE_BITS
    r = (state >> STAGE_BITS) * RECORD
    when = records[r + WHEN]
    if when in (PENDING, ABSENT):
        return np.int64(-1)
    if mode in (GAIN, BOUND):
        counts = when >= 0 and not (before and when == step)
    elif mode == LOSE:
        counts = when >= 0 or -when > step or (-when == step and not before)
    else:
        counts = True
    return records[r + STAGE] if counts else np.int64(-1)


@helper
def load(head, shape, at, rows, stride, i, predicate):
    """Write one fact of a derivation to KEY."""
    key = head[KEY]
    for c in range(info(head, predicate, COLUMNS)):
        word = shape[at + 2 + 2 * c]
        head[key + c] = word if shape[at + 1 + 2 * c] == 1 else rows[word * stride + i]


@helper
def lose(table, records, head, predicate, top, step):
    """The head at KEY loses a derivation; without any from lower stages it falls."""
    slot = find(table, head, predicate)
    if slot < 0:
        return
    width = head[WIDTH]
    at = slot * width
    state = table[at + width - 2]
    if info(head, predicate, COMBINE) != 0:
        last = info(head, predicate, COLUMNS) - 1
        if table[at + last] != head[head[KEY] + last]:
            return
    if state & 1 == 0:
        if state >> STAGE_BITS <= top:
            return
    else:
        r = (state >> STAGE_BITS) * RECORD
        if records[r + WHEN] < 0 or records[r + WHEN] == PENDING or records[r + STAGE] <= top:
            return
    record = touch(table, records, head, slot)
    r = record * RECORD
    records[r + COUNT] -= 1
    if records[r + COUNT] == 0:
        records[r + WHEN] = -(step + 1)
        records[head[FALLEN] + head[N_FALLEN]] = record
        head[N_FALLEN] += 1


@helper
def gain(table, records, head, predicate, top, mode):
    """The head at KEY gets a derivation."""
    slot = find(table, head, predicate)
    combine = info(head, predicate, COMBINE)
    value = np.int64(0)
    if info(head, predicate, COLUMNS) > 0:
        value = head[head[KEY] + info(head, predicate, COLUMNS) - 1]
    if slot < 0:
        record = insert(table, records, head, ~slot, predicate)
        note(table, records, head, record, predicate, value, top + 1, mode)
        return
    width = head[WIDTH]
    at = slot * width
    state = table[at + width - 2]
    when = records[(state >> STAGE_BITS) * RECORD + WHEN] if state & 1 else np.int64(0)
    if when < 0:
        if mode != LOWER_GAIN:
            note(table, records, head, state >> STAGE_BITS, predicate, value, top + 1, mode)
        return
    if combine != 0:
        current = table[at + info(head, predicate, COLUMNS) - 1]
        if value != current:
            if when == PENDING:
                if better(head, predicate, value, current):
                    pend(table, records, head, state >> STAGE_BITS, predicate, value, top + 1)
            elif better(head, predicate, value, current):
                improve(table, records, head, slot, mode)
            return
    if when == PENDING:
        record = state >> STAGE_BITS
        if top + 1 < records[record * RECORD + STAGE]:
            pend(table, records, head, record, predicate, value, top + 1)
        elif top + 1 == records[record * RECORD + STAGE]:
            records[record * RECORD + COUNT] += 1
        return
    stage = records[(state >> STAGE_BITS) * RECORD + STAGE] if state & 1 else state >> STAGE_BITS
    if top < stage:
        record = touch(table, records, head, slot)
        records[record * RECORD + COUNT] += 1


@helper
def note(table, records, head, record, predicate, value, stage, mode):
    """A fact that does not exist has a derivation: it is pending or, while facts may fall, to be searched
    for.
    """
    if mode == LOWER_GAIN:
        records[head[ABSENT_LIST] + head[N_ABSENT]] = record
        head[N_ABSENT] += 1
    else:
        pend(table, records, head, record, predicate, value, stage)


@helper
def improve(table, records, head, slot, mode):
    """A better value for a key has been derived: its current one will fall, and what depends on it."""
    record = touch(table, records, head, slot)
    r = record * RECORD
    if records[r + IMPROVED] == 0:
        records[r + IMPROVED] = 1
        if mode == LOWER_GAIN:
            records[r + WHEN] = -1
        records[head[FALLEN] + head[N_FALLEN]] = record
        head[N_FALLEN] += 1


@helper
def better(head, predicate, a, b):
    """Whether the value a is better than b."""
    return a < b if info(head, predicate, COMBINE) == MIN else a > b
