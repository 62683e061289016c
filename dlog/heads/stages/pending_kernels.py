"""Owns the order in which pending facts are born: a heap by value, where values combine, and stage."""

from __future__ import annotations

import numpy as np

from dlog.heads.stages.layout import (
    COLUMNS,
    COMBINE,
    COUNT,
    FALLEN,
    HEAP,
    HEAP_WORDS,
    IMPROVED,
    MIN,
    N_FALLEN,
    N_HEAP,
    PENDING,
    RECORD,
    SLOT,
    STAGE,
    WHEN,
    WIDTH,
)
from dlog.heads.stages.table_kernels import info
from dlog.jit import Words, helper, kernel, pointer, shifted


@helper
def priority(head, predicate, value):
    combine = info(head, predicate, COMBINE)
    if combine == 0:
        return np.int64(0)
    return value if combine == MIN else ~value


@helper
def pend(table, records, head, record, predicate, value, stage):
    """(Re)place a fact among the pending ones, with one derivation."""
    r = record * RECORD
    records[r + WHEN] = PENDING
    records[r + STAGE] = stage
    records[r + COUNT] = 1
    if info(head, predicate, COMBINE) != 0:
        table[records[r + SLOT] * head[WIDTH] + info(head, predicate, COLUMNS) - 1] = value
    push(shifted(records, head[HEAP]), head, priority(head, predicate, value), stage, record)


@helper
def push(heap, head, first, second, record):
    i = head[N_HEAP]
    head[N_HEAP] = i + 1
    heap[i * HEAP_WORDS] = first
    heap[i * HEAP_WORDS + 1] = second
    heap[i * HEAP_WORDS + 2] = record
    while i > 0 and comes_before(heap, i, (i - 1) >> 1):
        swap(heap, i, (i - 1) >> 1)
        i = (i - 1) >> 1


@helper
def pop(heap, head):
    """Drop the first element."""
    n = head[N_HEAP] - 1
    head[N_HEAP] = n
    for w in range(HEAP_WORDS):
        heap[w] = heap[n * HEAP_WORDS + w]
    i = np.int64(0)
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and comes_before(heap, child + 1, child):
            child += 1
        if not comes_before(heap, child, i):
            break
        swap(heap, child, i)
        i = child


@helper
def comes_before(heap, i, j):
    a, b = i * HEAP_WORDS, j * HEAP_WORDS
    return heap[a] < heap[b] or (heap[a] == heap[b] and heap[a + 1] < heap[b + 1])


@helper
def swap(heap, i, j):
    for w in range(HEAP_WORDS):
        a, b = i * HEAP_WORDS + w, j * HEAP_WORDS + w
        heap[a], heap[b] = heap[b], heap[a]


@kernel
def next_births(record_words: Words, head_words: Words, step: int, out_words: Words) -> int:
    """Add the first pending facts, all of one value and stage; returns how many there are."""
    return int(births(pointer(record_words), pointer(head_words), step, pointer(out_words)))


@kernel
def next_deaths(record_words: Words, head_words: Words, number: int, out_words: Words) -> int:
    """Mark the fallen facts as dead in the round of this number; returns how many there are."""
    return int(deaths(pointer(record_words), pointer(head_words), number, pointer(out_words)))


@helper
def births(records, head, step, out):
    heap, n = shifted(records, head[HEAP]), np.int64(0)
    first, second = np.int64(0), np.int64(0)
    while head[N_HEAP] > 0:
        record = heap[2]
        r = record * RECORD
        if n > 0 and (heap[0] != first or heap[1] != second):
            break
        # A fact that was placed again, further to the front, has been born or is elsewhere in the heap.
        if records[r + WHEN] == PENDING and records[r + STAGE] == heap[1]:
            first, second = heap[0], heap[1]
            records[r + WHEN] = step
            out[n] = record
            n += 1
        pop(heap, head)
    return n


@helper
def deaths(records, head, number, out):
    n = head[N_FALLEN]
    for i in range(n):
        record = records[head[FALLEN] + i]
        records[record * RECORD + WHEN] = -number
        records[record * RECORD + IMPROVED] = 0
        out[i] = record
    head[N_FALLEN] = 0
    return n
