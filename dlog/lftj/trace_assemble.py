"""Owns the translation of a traced plan into words: as `assemble`, with notes and guided leaps.

Two programs come of one traced plan: one for whole runs, in which leaps are as fast as ever, and one for runs
under a guide.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dlog.jit import Words
from dlog.lftj import opcodes as o
from dlog.lftj.assemble import INT64_MAX, INT64_MIN, Assembled, Assembler, Label, finished
from dlog.lftj.plan import Emit, Leap, Seek, Step, Value
from dlog.lftj.traced_plan import ALL, COVER, EACH, POINT, SPAN, Note, TracedPlan


@dataclass(frozen=True)
class AssembledTrace:
    """A traced plan in words.

    `fills` is the address of the number of rows of each note, one word after the other; `guide` that of two
    words for each guided depth and one more: where the guide's items are.
    """

    traced: TracedPlan
    assembled: Assembled
    fills: int
    guide: int

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of words of a row of each note."""
        return tuple(len(note.words) for note in self.traced.notes)


def assemble_trace(traced: TracedPlan, guided: bool) -> AssembledTrace:
    """O(size of the plan)."""
    traced.plan.check()
    assembler = _TraceAssembler(traced.plan, traced=traced, is_guided=guided)
    code = assembler.program()
    return AssembledTrace(traced, finished(assembler, code), assembler.fills, assembler.guide)


@dataclass
class _TraceAssembler(Assembler):
    traced: TracedPlan = field(kw_only=True)
    is_guided: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fills = self.own(len(self.traced.notes))
        self.guide = self.own(2 * (len(self.traced.guided) + 1))
        self.least, self.greatest = self.own(1), self.own(1)
        self.words_at |= {self.least: INT64_MIN, self.greatest: INT64_MAX}
        for depth in range(len(self.traced.guided) + 1):
            self.words_at[self.guide + 2 * depth] = -1
        numbered = [((note.atom, note.level), i) for i, note in enumerate(self.traced.notes)]
        self.covers = {p: i for p, i in numbered if self.traced.notes[i].form == COVER}
        self.notes = {p: i for p, i in numbered if self.traced.notes[i].form != COVER}
        self.missed = {n.missed: i for i, n in enumerate(self.traced.notes) if n.missed is not None}

    def program(self) -> Words:
        fail = self.put(o.HALT, Label(0))
        self.start = len(self.words)
        *steps, end = self.traced.plan.steps
        batch = None
        if steps and not self.is_guided and self.is_quick(steps[-1]):
            batch = steps.pop()
        for step in steps:
            fail = self.step(step, fail)
        if isinstance(batch, Leap):
            self.before_leap(batch, fail)
            self.leap(batch, fail, False, end)
        elif isinstance(end, Emit):
            self.put(o.EMIT, fail, len(end.slots), *map(self.slot, end.slots))
        else:
            self.put(o.COUNT, fail)
        return np.array([w.address if isinstance(w, Label) else w for w in self.words], np.int64)

    def step(self, step: Step, fail: Label, first: bool = False) -> Label:
        match step:
            case Leap():
                if self.traced.is_exact(step):
                    return self.exact_leap(step, fail)
                self.before_leap(step, fail)
                depth = self.depth(step)
                return self.leap(step, fail, False) if depth < 0 else self.guided_leap(step, fail, depth)
            case Seek():
                if (step.atom, step.level) in self.missed:
                    self.seek_or_note(step, fail)
                    return fail
                self.note_at(step.atom, step.level, fail, self.slot(step.operand), self.slot(step.operand))
            case Value():
                self.note_at(step.atom, step.level, fail, self.least, self.greatest)
        return super().step(step, fail, False)

    def is_quick(self, step: Step) -> bool:
        """Whether a last step may be evaluated in batches."""
        return self.is_batched(step) and not (isinstance(step, Leap) and self.traced.is_exact(step))

    def depth(self, step: Leap) -> int:
        """The depth at which a leap is guided; -1 if it is not."""
        guided = self.traced.guided
        return guided.index(step.slot) if self.is_guided and step.slot in guided else -1

    # ---- notes

    def seek_or_note(self, step: Seek, fail: Label) -> None:
        """A seek; if it fails, a note."""
        missed, following = Label(), Label()
        self.put(o.SEEK, missed, self.block(step.atom, step.level), self.slot(step.operand), next=following)
        number = self.missed[step.atom, step.level]
        missed.address = self.note(number, fail, self.least, self.greatest, next=fail).address
        following.address = len(self.words)

    def note_at(self, atom: int, level: int, fail: Label, a: int, b: int) -> None:
        number = self.notes.get((atom, level))
        if number is not None:
            self.note(number, fail, a, b)

    def note(self, number: int, fail: Label, a: int, b: int, next: Label | None = None) -> Label:
        """Write one row.  The notes are stored one after the other, each with room for the same number of
        rows.
        """
        before = sum(len(note.words) for note in self.traced.notes[:number])
        ends = {"a": a, "b": b}
        words = [ends[w] if isinstance(w, str) else self.slot(w) for w in self.traced.notes[number].words]
        return self.put(o.NOTE, fail, self.fills + number, before, len(words), *words, next=next)

    def before_leap(self, step: Leap, fail: Label) -> None:
        """Notes of a leap's participants that need no check of their keys first."""
        found = [self.notes[p] for p in step.participants if p in self.notes]
        notes = self.traced.notes
        for number in found:
            if notes[number].form == ALL:
                self.note(number, fail, self.least, self.greatest)
        spans = [number for number in found if notes[number].form == SPAN]
        if spans:
            own = self.span(step, [(number, notes[number]) for number in spans], fail)
            for number in spans:
                assert notes[number].span == notes[spans[0]].span, "a leap has one span"
                self.note(number, fail, own, own + 1)
        assert not any(notes[number].form in (POINT, EACH) for number in found), "not the note of a leap"

    def span(self, step: Leap, spans: list[tuple[int, Note]], fail: Label) -> int:
        """If it is empty, the note that also covers a seek is still written."""
        own, note = self.own(2), spans[0][1]
        shared = [number for number, note in spans if note.missed is not None]
        empty, following = Label() if shared else fail, Label()
        bounds = [(self.slot(slot), int(strict)) for slot, strict in (*step.lower, *step.upper)]
        blocks = [self.block(atom, level) for atom, level in note.span]
        counts = (len(blocks), len(step.lower), len(step.upper))
        words = (word for bound in bounds for word in bound)
        self.put(o.SPAN, empty, own, *counts, *blocks, *words, next=following)
        for number in shared:  # at most one: that of the step before
            empty.address = self.note(number, fail, self.least, self.greatest, next=fail).address
        following.address = len(self.words)
        return own

    # ---- guided leaps

    def guided_leap(self, step: Leap, fail: Label, depth: int) -> Label:
        """As `leap`, between bounds that the guide sets: they follow the leap's own words."""
        n = len(step.participants)
        own = self.own(2 * n + 1 + 4)
        args = self.leap_words(step, own, own + 2 * n + 3)
        tail = Label()
        args[5] = tail
        following = Label()
        at = self.put(o.GUIDED_OPEN, fail, *args, self.guide + 2 * depth, next=following)
        again = self.put(o.GUIDED_NEXT, fail, at)
        tail.address = again.address
        following.address = len(self.words)
        return again

    def leap_words(self, step: Leap, own: int, bounds: int) -> list[int | Label]:
        """slot, own, n, n_lower, n_upper, again, ranges, bounds: with two more at an address."""
        lower = [*((self.slot(slot), int(strict)) for slot, strict in step.lower), (bounds, 0)]
        upper = [*((self.slot(slot), int(strict)) for slot, strict in step.upper), (bounds + 1, 0)]
        args: list[int | Label] = [
            self.slot(step.slot),
            own,
            len(step.participants),
            len(lower),
            len(upper),
            0,
        ]
        args += [self.block(atom, level) for atom, level in step.participants]
        args += [word for bound in lower + upper for word in bound]
        return args

    def exact_leap(self, step: Leap, fail: Label) -> Label:
        """Own words: the guide's item and end, two bounds, the phase, the ends of the next note, the greatest
        key so far.  In a leap that a guide restricts, those without notes come first: if one of them lacks a
        key, nothing is noted, and covers say what of the earlier notes is replaced.  Other leaps have no
        covers: what they noted is found by running them again, so their order never changes."""
        if self.is_guided and self.depth(step) >= 0:
            participants = sorted(step.participants, key=lambda p: p in self.notes)
            step = replace(step, participants=tuple(participants))
        own = self.own(8)
        args = self.leap_words(step, own, own + 2)
        tail = Label()
        args[5] = tail
        depth = self.depth(step)
        following = Label()
        args.append(self.guide + 2 * depth if depth >= 0 else 0)
        numbers = [self.notes.get(p) for p in step.participants]
        numbers += [self.covers.get(p) if self.is_guided else None for p in step.participants]
        templates = [Label(0 if number is None else -1) for number in numbers]
        at = self.put(o.EXACT_OPEN, fail, *args, *templates, next=following)
        again = self.put(o.EXACT_NEXT, fail, at)
        tail.address = again.address
        for number, label in zip(numbers, templates, strict=True):
            if number is not None:
                label.address = self.note(number, fail, own + 5, own + 6).address
        following.address = len(self.words)
        return again
