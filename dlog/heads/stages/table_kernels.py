"""Owns the kernels of the table of stages: finding facts, touching them, and ending a transaction.

Knows nothing of derivations.  Callers make sure that there is room (`has_room`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.heads.stages.layout import (
    ABSENT,
    COLUMNS,
    COMBINE,
    COUNT,
    HEADER,
    IDENTITY,
    INVERSE,
    KEY,
    LIVE,
    MOST_LIVE,
    MOST_RECORDS,
    MULTIPLIER,
    N_ABSENT,
    N_FALLEN,
    N_HEAP,
    N_RECORDS,
    NEIGHBOUR_BITS,
    NEIGHBOURS,
    OLD_COUNT,
    OLD_STAGE,
    OLD_VALUE,
    PREDICATE_MASK,
    PREDICATE_WORDS,
    RECORD,
    SEARCHED,
    SHOWN,
    SHOWN_VALUE,
    SLOT,
    SLOTS,
    STAGE,
    STAGE_BITS,
    STRIDE,
    WHEN,
    WIDTH,
    WORD_MASK,
    WORK,
)
from dlog.jit import Words, helper, kernel, pointer
from dlog.storage.queue.support_kernels import COUNT_BITS

FILLED: Final = 64  # facts inserted into the table at a time
HALF_MASK: Final = (1 << 32) - 1


@helper
def info(head, predicate, word):
    return head[HEADER + PREDICATE_WORDS * predicate + word]


@helper
def home_of(words, at, n, predicate, slots):
    """The home slot of a fact whose first n columns are at `at`."""
    h = hash_start(predicate)
    for c in range(n - 1):
        h = hash_word(h, words[at + c])
    return home(h, words[at + n - 1] if n > 0 else np.int64(0), slots)


@helper
def hash_start(predicate):
    return (predicate + 1) * np.int64(MULTIPLIER)


@helper
def hash_word(h, word):
    h = (h ^ word) * np.int64(MULTIPLIER)
    return h ^ (h & np.int64(WORD_MASK)) >> 32


@helper
def home(h, last, slots):
    """The slot by a hash of all columns but the last, and that one.

    Facts that differ in the last bits of it only are neighbours: when many come in order, memory is fetched
    for several of them at once.
    """
    h = hash_word(h, last >> NEIGHBOUR_BITS)
    group = ((h >> 32 & np.int64(HALF_MASK)) * (slots >> NEIGHBOUR_BITS)) >> 32
    return group << NEIGHBOUR_BITS | (last ^ h) & (NEIGHBOURS - 1)


@helper
def after(slot, slots):
    """Where to search next: not among the neighbours, which tend to be taken, too."""
    slot += STRIDE
    return slot if slot < slots else slot - slots


@helper
def steps(start, end, head):
    """How many slots a search visits from one to another."""
    slots = head[SLOTS]
    return (end - start if end >= start else end - start + slots) * head[INVERSE] % slots


@helper
def find(table, head, predicate):
    """The slot of the fact whose row is at KEY, or ~slot where it would go."""
    n = info(head, predicate, IDENTITY)
    width, key, slots = head[WIDTH], head[KEY], head[SLOTS]
    slot = home_of(head, key, n, predicate, slots)
    while True:
        at = slot * width
        state = table[at + width - 2]
        if state == 0:
            return ~slot
        if (state >> 1) & PREDICATE_MASK == predicate:
            c = 0
            while c < n and table[at + c] == head[key + c]:
                c += 1
            if c == n:
                return slot
        slot = after(slot, slots)


@helper
def touch(table, records, head, slot):
    """The record of a fact, made when there is none."""
    width = head[WIDTH]
    at = slot * width
    state = table[at + width - 2]
    if state & 1:
        return state >> STAGE_BITS
    predicate = (state >> 1) & PREDICATE_MASK
    record = new_record(table, records, head, slot, predicate)
    r = record * RECORD
    records[r + STAGE] = records[r + OLD_STAGE] = state >> STAGE_BITS
    records[r + COUNT] = records[r + OLD_COUNT] = table[at + width - 1]
    records[r + SHOWN] = 1
    return record


@helper
def new_record(table, records, head, slot, predicate):
    """A record for an entry whose columns are set; the fact did not exist before the transaction."""
    width = head[WIDTH]
    record = head[N_RECORDS]
    head[N_RECORDS] = record + 1
    r = record * RECORD
    for w in range(RECORD):
        records[r + w] = 0
    records[r + SLOT] = slot
    columns = info(head, predicate, COLUMNS)
    if columns > 0:
        value = table[slot * width + columns - 1]
        records[r + OLD_VALUE] = value
        records[r + SHOWN_VALUE] = value
    table[slot * width + width - 2] = record << STAGE_BITS | predicate << 1 | 1
    return record


@helper
def insert(table, records, head, slot, predicate):
    """Add a fact that did not exist, from the row at KEY, as absent; returns its record."""
    at = slot * head[WIDTH]
    for c in range(info(head, predicate, COLUMNS)):
        table[at + c] = head[head[KEY] + c]
    head[LIVE] += 1
    record = new_record(table, records, head, slot, predicate)
    records[record * RECORD + WHEN] = ABSENT
    return record


@helper
def remove(table, records, head, slot):
    """Remove an entry; those after it move up, so that no search ends too early."""
    width, slots = head[WIDTH], head[SLOTS]
    hole = slot
    at = slot
    while True:
        at = after(at, slots)
        state = table[at * width + width - 2]
        if state == 0:
            break
        predicate = (state >> 1) & PREDICATE_MASK
        belongs = home_of(table, at * width, info(head, predicate, IDENTITY), predicate, slots)
        if steps(belongs, at, head) >= steps(hole, at, head):
            for w in range(width):
                table[hole * width + w] = table[at * width + w]
            if state & 1:
                records[(state >> STAGE_BITS) * RECORD + SLOT] = hole
            hole = at
    table[hole * width + width - 2] = 0
    head[LIVE] -= 1


@helper
def has_room(head, n):
    """Whether n derivations can be applied without growing anything."""
    most = head[MOST_RECORDS]
    return head[N_RECORDS] + n <= most and head[N_HEAP] + n <= most and head[LIVE] + n <= head[MOST_LIVE]


@kernel
def rehash(
    old_words: Words, old_slots: int, table_words: Words, record_words: Words, head_words: Words
) -> None:
    """Put all entries into a new, empty table whose SLOTS are set."""
    old, table = pointer(old_words), pointer(table_words)
    records, head = pointer(record_words), pointer(head_words)
    width, slots = head[WIDTH], head[SLOTS]
    for i in range(old_slots):
        state = old[i * width + width - 2]
        if state != 0:
            predicate = (state >> 1) & PREDICATE_MASK
            slot = home_of(old, i * width, info(head, predicate, IDENTITY), predicate, slots)
            while table[slot * width + width - 2] != 0:
                slot = after(slot, slots)
            for w in range(width):
                table[slot * width + w] = old[i * width + w]
            if state & 1:
                records[(state >> STAGE_BITS) * RECORD + SLOT] = slot


@kernel
def fill(
    predicate: int, block: Words, n: int, home_words: Words, table_words: Words, head_words: Words
) -> None:
    """Insert n facts that do not exist, untouched by any transaction.  REQUIRES: room for them.

    Column c of fact i is block[c * n + i]; after the columns come the supports.  The home slots are computed
    for some of them at a time, and read: so the processor waits for memory once, not for each.
    """
    columns, homes = pointer(block), pointer(home_words)
    table, head = pointer(table_words), pointer(head_words)
    k, width, slots = info(head, predicate, COLUMNS), head[WIDTH], head[SLOTS]
    used = np.int64(0)
    for start in range(0, n, FILLED):
        end = min(n, start + FILLED)
        for i in range(start, end):
            homes[i] = home_in_columns(columns, i, n, info(head, predicate, IDENTITY), predicate, slots)
        for i in range(start, end):
            used += table[homes[i] * width + width - 2] != 0
        for i in range(start, end):
            slot = homes[i]
            while table[slot * width + width - 2] != 0:
                slot = after(slot, slots)
            at = slot * width
            for c in range(k):
                table[at + c] = columns[c * n + i]
            support = columns[k * n + i]
            table[at + width - 2] = (support >> COUNT_BITS) << STAGE_BITS | predicate << 1
            table[at + width - 1] = support & ((1 << COUNT_BITS) - 1)
    homes[0] = used  # so that the reads are not optimised away
    head[LIVE] += n


@helper
def home_in_columns(columns, i, stride, n, predicate, slots):
    """Like `home_of`, for a row that is stored in columns."""
    h = hash_start(predicate)
    for c in range(n - 1):
        h = hash_word(h, columns[c * stride + i])
    return home(h, columns[(n - 1) * stride + i] if n > 0 else np.int64(0), slots)


@kernel
def read_facts(
    batch: Words,
    predicate: int,
    table_words: Words,
    record_words: Words,
    head_words: Words,
    out_words: Words,
    chosen_words: Words,
) -> int:
    """Rows of those facts of a batch that belong to a predicate, and their records; returns their number."""
    table, records, head = pointer(table_words), pointer(record_words), pointer(head_words)
    out, chosen = pointer(out_words), pointer(chosen_words)
    width, k = head[WIDTH], info(head, predicate, COLUMNS)
    m = np.int64(0)
    for i in range(len(batch)):
        at = records[batch[i] * RECORD + SLOT] * width
        if (table[at + width - 2] >> 1) & PREDICATE_MASK == predicate:
            for c in range(k):
                out[m * k + c] = table[at + c]
            chosen[m] = batch[i]
            m += 1
    return int(m)


@kernel
def read_changes(
    batch: Words,
    predicate: int,
    shown: int,
    table_words: Words,
    record_words: Words,
    head_words: Words,
    new_words: Words,
    old_words: Words,
    counts: Words,
) -> None:
    """Which facts of a batch became added or removed rows of a predicate, since the transaction began.

    `shown`: since they were last shown instead, and from now on they are.  `counts` gets the number of new
    and removed ones.  Rows are written one after the other.
    """
    table, records, head = pointer(table_words), pointer(record_words), pointer(head_words)
    new, old = pointer(new_words), pointer(old_words)
    width, k = head[WIDTH], info(head, predicate, COLUMNS)
    n_new, n_old = np.int64(0), np.int64(0)
    has_values = info(head, predicate, COMBINE) != 0
    for i in range(len(batch)):
        r = batch[i] * RECORD
        alive = records[r + WHEN] >= 0
        was = records[r + SHOWN] == 1 if shown == 1 else records[r + OLD_STAGE] > 0
        if alive == was and not has_values:  # most facts only gain or lose a derivation
            continue
        at = records[r + SLOT] * width
        if (table[at + width - 2] >> 1) & PREDICATE_MASK != predicate:
            continue
        then = records[r + SHOWN_VALUE] if shown == 1 else records[r + OLD_VALUE]
        same = k == 0 or table[at + k - 1] == then
        if alive and not (was and same):
            for c in range(k):
                new[n_new * k + c] = table[at + c]
            n_new += 1
        if was and not (alive and same):
            for c in range(k):
                old[n_old * k + c] = table[at + c]
            if k > 0:
                old[n_old * k + k - 1] = then
            n_old += 1
        if shown == 1:
            records[r + SHOWN] = 1 if alive else 0
            if k > 0:
                records[r + SHOWN_VALUE] = table[at + k - 1]
    counts[0], counts[1] = n_new, n_old


@helper
def put_changes(predicate, table, records, head, gone, to):
    """Write the rows of a predicate that were added, or removed, since the transaction began; returns how
    many.

    REQUIRES: values do not combine."""
    width, k = head[WIDTH], info(head, predicate, COLUMNS)
    n = np.int64(0)
    for record in range(head[N_RECORDS]):
        r = record * RECORD
        alive, was = records[r + WHEN] >= 0, records[r + OLD_STAGE] > 0
        at = records[r + SLOT] * width
        if alive != was and was == gone and (table[at + width - 2] >> 1) & PREDICATE_MASK == predicate:
            for c in range(k):
                to[n * k + c] = table[at + c]
            n += 1
    return n


@kernel
def settle(table_words: Words, record_words: Words, head_words: Words, back: int) -> None:
    """End the transaction: entries become what their records say; `back`: what they were before it."""
    settle_on(pointer(table_words), pointer(record_words), pointer(head_words), back)


@helper
def settle_on(table, records, head, back):
    width = head[WIDTH]
    for record in range(head[N_RECORDS]):
        r = record * RECORD
        at = records[r + SLOT] * width
        predicate = (table[at + width - 2] >> 1) & PREDICATE_MASK
        stays = records[r + OLD_STAGE] > 0 if back == 1 else records[r + WHEN] >= 0
        if stays:
            stage = records[r + OLD_STAGE] if back == 1 else records[r + STAGE]
            table[at + width - 2] = stage << STAGE_BITS | predicate << 1
            table[at + width - 1] = records[r + OLD_COUNT] if back == 1 else records[r + COUNT]
            if back == 1 and info(head, predicate, COLUMNS) > 0:
                table[at + info(head, predicate, COLUMNS) - 1] = records[r + OLD_VALUE]
    for record in range(head[N_RECORDS]):
        at = records[record * RECORD + SLOT] * width
        state = table[at + width - 2]
        if state & 1 and state >> STAGE_BITS == record:
            remove(table, records, head, records[record * RECORD + SLOT])
    head[N_RECORDS] = 0
    head[N_FALLEN] = 0
    head[N_ABSENT] = 0
    head[N_HEAP] = 0
    head[WORK] = 0
    head[SEARCHED] = 0


@kernel
def read_stages(predicate: int, table_words: Words, head_words: Words, out_words: Words) -> int:
    """Every fact of a predicate with its stage and count after its columns; returns how many."""
    table, head, out = pointer(table_words), pointer(head_words), pointer(out_words)
    width, k = head[WIDTH], info(head, predicate, COLUMNS)
    n = np.int64(0)
    for slot in range(head[SLOTS]):
        at = slot * width
        state = table[at + width - 2]
        if state != 0 and (state >> 1) & PREDICATE_MASK == predicate:
            for c in range(k):
                out[n * (k + 2) + c] = table[at + c]
            out[n * (k + 2) + k] = state >> STAGE_BITS
            out[n * (k + 2) + k + 1] = table[at + width - 1]
            n += 1
    return int(n)
