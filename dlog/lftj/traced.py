"""Owns the execution of traced plans over indices: whole, or under a guide.

Correct output: the rows that the plan emits (under a guide: those with values that it admits), and the
rows of each note, both maybe several times.  Knows nothing of the purpose of notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from dlog.jit import DISABLED, Words
from dlog.lftj import opcodes as o
from dlog.lftj.directory import add_directories
from dlog.lftj.machine import attach
from dlog.lftj.trace_assemble import AssembledTrace
from dlog.lftj.trace_machine import run_traced
from dlog.lftj.triejoin import BATCH_ROWS, BUDGET, FIRST_BUDGET, FIRST_ROWS, NO_WORDS

_run = np.errstate(all="ignore")(run_traced) if DISABLED else run_traced


@dataclass(frozen=True)
class Traced:
    """The result of a run: emitted rows (n, columns), those of each note in parts, its seeks, nexts and opens
    together, and the nexts alone."""

    rows: Words
    parts: list[list[Words]]
    widths: tuple[int, ...]
    operations: int
    nexts: int

    @cached_property
    def notes(self) -> list[Words]:
        """The rows of each note as one array."""
        return [_joined(parts, width) for parts, width in zip(self.parts, self.widths, strict=True)]


class TooMuchNoted(Exception):
    """The notes of a run are larger than its caller allowed."""


def run_trace(
    assembled: AssembledTrace,
    words: Words,
    roots: Sequence[int],
    ranks: Words = NO_WORDS,
    guide: Words = NO_WORDS,
    rows: int = FIRST_ROWS,
    between: Callable[[], None] | None = None,
    most_words: float = inf,
) -> Traced:
    """Run a plan to its end.  `guide` is as in `dlog.lftj.guide`, its child addresses counted from its
    own start; its first two words are begin and end of the node of the first depth.  `rows` is the first
    size of buffers.  `between` is called after every slice of operations, and may raise.  If the notes have
    more than `most_words`, raises `TooMuchNoted`.
    """
    plain = assembled.assembled
    state = np.concatenate([plain.initial, _placed(guide, len(plain.initial))])
    if len(guide):
        state[assembled.guide : assembled.guide + 2] = state[len(plain.initial) : len(plain.initial) + 2]
    attach(words, state, plain.levels, np.array(roots, np.int64))
    k, n_notes = plain.n_columns, len(assembled.widths)
    emitted: list[Words] = []
    notes: list[list[Words]] = [[] for _ in range(n_notes)]
    budget = FIRST_BUDGET
    while state[o.STATUS] != o.DONE:
        out = np.empty((max(k, 1), rows), np.int64)
        trace = np.empty(max(1, sum(assembled.widths) * rows), np.int64)
        n = _run(words, plain.code, state, ranks, out.reshape(-1), rows, trace, rows, budget)
        if n:
            emitted.append(out[:k, :n])
        _drain(assembled, state, trace, rows, notes)
        rows = min(8 * rows, BATCH_ROWS) if rows < BATCH_ROWS else rows
        if budget > FIRST_BUDGET and not len(guide):
            state = add_directories(words, state, plain.ranges)
        budget = min(2 * budget, BUDGET)
        if between is not None:
            between()
        if sum(part.size for parts in notes for part in parts) > most_words:
            raise TooMuchNoted
    found = np.concatenate(emitted, axis=1).T if emitted else np.empty((0, max(k, 0)), np.int64)
    operations = int(state[o.SEEKS] + state[o.NEXTS] + state[o.OPENS])
    return Traced(found, notes, assembled.widths, operations, int(state[o.NEXTS]))


def _placed(guide: Words, base: int) -> Words:
    """A guide with addresses in a state that ends at `base`."""
    placed = guide.copy()
    children = placed[2:].reshape(-1, 4)[:, 2:] if len(guide) else placed.reshape(-1, 4)[:, 2:]
    children[children[:, 0] >= 0] += base
    if len(guide) and placed[0] >= 0:
        placed[:2] += base
    return placed


def _drain(
    assembled: AssembledTrace, state: Words, trace: Words, room: int, notes: list[list[Words]]
) -> None:
    at = 0
    for i, width in enumerate(assembled.widths):
        n = int(state[assembled.fills + i])
        if n:
            written = trace[at : at + n * width].reshape(n, width)
            notes[i].append(written if 2 * n > room else written.copy())  # the buffer is not used again
        at += width * room
    state[assembled.fills : assembled.fills + len(assembled.widths)] = 0


def _joined(parts: list[Words], width: int) -> Words:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty((0, width), np.int64)
