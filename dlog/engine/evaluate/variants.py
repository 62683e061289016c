"""Owns the variants of a fixpoint: driven rules with their plans, in the arrays that `lftj.drive` works on.

The table has each variant's position in its queue, and how heads are filled; code and states of all
variants are stored one after the other.  Does not know when a fixpoint is reached, nor what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from dlog.engine.evaluate.driven import Driven, DrivenPlan, head_sources
from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.lftj import drive_layout as d
from dlog.lftj import opcodes as o
from dlog.lftj.directory import add_directories
from dlog.lftj.machine import attach
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.versions import base_name
from dlog.storage.index.index import Index


@dataclass
class Variant:
    """A running driven rule: its plan, its state, and the indices that the state reads."""

    item: Driven
    plan: DrivenPlan
    state: Words = field(default_factory=lambda: NO_WORDS)
    indices: list[Index] = field(default_factory=list)

    def attach(self, store: Store) -> None:
        """A fresh state over the current indices."""
        self.count()
        self.indices = [store.index(use.predicate, use.columns) for use in self.plan.compiled.atoms]
        self.state = self.plan.assembled.initial.copy()
        roots = np.array([index.root for index in self.indices], np.int64)
        attach(store.arena.A, self.state, self.plan.assembled.levels, roots)

    def count(self) -> None:
        """Add what the state has counted to the rule's measure."""
        if len(self.state):
            measure, state = self.item.measure, self.state
            measure.seeks += int(state[o.SEEKS])
            measure.nexts += int(state[o.NEXTS])
            measure.undefined += int(state[o.UNDEFINED])
            self.forget_counts()

    def forget_counts(self) -> None:
        self.state[[o.SEEKS, o.NEXTS, o.UNDEFINED]] = 0

    def twin(self) -> Variant:
        """The same with its own state, for another thread."""
        made = Variant(self.item, self.plan, self.state.copy(), self.indices)
        made.forget_counts()
        return made


class Variants:
    """Some running variants, over queues that `number` gives by predicate."""

    def __init__(
        self,
        store: Store,
        number: Mapping[str, int],
        members: list[Variant],
        output_rows: int,
        staged: bool,
    ):
        """`output_rows`: rows of output at a time; `staged`: each comes with the stage of its driver."""
        self.store, self.number, self.members = store, number, members
        self.columns = max((v.plan.assembled.n_columns for v in members), default=0) or 1
        self.heads = max((len(v.item.rule.heads) for v in members), default=1)
        self.output_rows = output_rows
        self.out = np.empty((self.columns + 1) * output_rows, np.int64)  # a column for stages
        self.table = self._table(staged)
        for variant in members:
            variant.attach(store)
        self.lay_out()

    def _table(self, staged: bool) -> Words:
        """The variants in the form of `lftj.drive`, all at their first row."""
        words = [0] * (d.VARIANTS + d.VARIANT * len(self.members))
        words[d.N_VARIANTS] = len(self.members)
        words[d.STAGED] = self.columns * self.output_rows if staged else 0
        for number, variant in enumerate(self.members):
            at = d.VARIANTS + d.VARIANT * number
            item = variant.item
            words[at + d.V_DRIVER] = self.number[base_name(item.driver.predicate)]
            words[at + d.V_BIND] = len(words)
            words += [word for pair in variant.plan.binding for word in pair]
            if variant.plan.lookup:
                words[at + d.V_LOOKUP] = len(words)
                words += variant.plan.lookup
            words[at + d.V_HEADS] = len(words)
            words.append(len(item.rule.heads))
            for head in item.rule.heads:
                words.append(self.number[head.predicate])
                words += [word for pair in head_sources(self.store, item, head) for word in pair]
        return np.array(words, np.int64)

    def records(self) -> list[Words]:
        """The words of each variant in the table."""
        return list(self.table[d.VARIANTS :][: d.VARIANT * len(self.members)].reshape(-1, d.VARIANT))

    def driven_by(self, q: int) -> list[Words]:
        """The words of those that the rows of a queue drive."""
        return [record for record in self.records() if record[d.V_DRIVER] == q]

    @property
    def current(self) -> Driven:
        return self.members[int(self.table[d.CURRENT])].item

    def pending(self, q: int) -> Words:
        """The rows that the current variant puts into a queue."""
        at = d.VARIANTS + d.VARIANT * int(self.table[d.CURRENT])
        n = int(self.table[at + d.V_PENDING])
        out = self.out.reshape(-1, self.output_rows)[:, :n]  # the last column does not belong to the output
        item = self.current
        parts = []
        for head in item.rule.heads:
            if self.number[head.predicate] == q:
                sources = head_sources(self.store, item, head)
                parts.append(np.stack([out[s] if s >= 0 else np.full(n, code) for s, code in sources]))
        return np.concatenate(parts, axis=1)

    # Code and states

    def lay_out(self) -> None:
        """Code and states of all variants, each kind in one array."""
        self.ranked = any(v.plan.compiled.uses_ranks for v in self.members)
        self.use_records = any(v.item.uses_records for v in self.members)
        self.codes = np.concatenate([v.plan.assembled.code for v in self.members] or [NO_WORDS])
        self.states = np.concatenate([v.state for v in self.members] or [NO_WORDS])
        code = state = 0
        for record, variant in zip(self.records(), self.members, strict=True):
            record[d.V_CODE], record[d.V_STATE] = code, state
            record[d.V_START] = variant.plan.assembled.initial[o.PC]
            variant.state = self.states[state : state + len(variant.state)]
            code += len(variant.plan.assembled.code)
            state += len(variant.state)

    @contextmanager
    def records_ready(self, room: int) -> Iterator[None]:
        """While plans may make so many records."""
        if not self.use_records:
            yield
            return
        with self.store.dictionary.records.addresses(room) as words:
            for variant in self.members:
                variant.state[o.RECORDS] = words.ctypes.data
            yield

    def add_directories(self) -> None:
        changed = False
        for variant in self.members:
            state = add_directories(self.store.arena.A, variant.state, variant.plan.assembled.ranges)
            changed |= state is not variant.state
            variant.state = state
        if changed:
            self.lay_out()

    def use_plan(self, variant: Variant, plan: DrivenPlan) -> None:
        """Another plan for a variant; it has to be attached."""
        variant.plan = plan
        record = self.records()[self.members.index(variant)]
        at = int(record[d.V_BIND])
        words = [word for pair in plan.binding for word in pair]
        self.table[at : at + len(words)] = words
        if record[d.V_LOOKUP] and plan.lookup:
            at = int(record[d.V_LOOKUP])
            self.table[at : at + len(plan.lookup)] = plan.lookup
        else:
            record[d.V_LOOKUP] = 0

    # Their positions in the queues

    def rewind(self) -> None:
        """All at their first row."""
        for record in self.records():
            record[[d.V_CURSOR, d.V_ROUND]] = 0

    def first_to_drive(self, q: int) -> int:
        """Rows of a queue before this one have driven everything that they can."""
        return min([int(record[d.V_CURSOR]) for record in self.driven_by(q)], default=0)

    def shift(self, q: int, by: int) -> None:
        """The rows of a queue have got other numbers."""
        for record in self.driven_by(q):
            record[[d.V_CURSOR, d.V_ROUND]] += by

    def renumber(self, q: int, kept: Words) -> None:
        """Only these rows of a queue are left; its variants continue with those that were next."""
        for record in self.driven_by(q):
            cursor, round_end = np.searchsorted(kept, record[[d.V_CURSOR, d.V_ROUND]])
            if cursor == len(kept) or kept[cursor] != record[d.V_CURSOR]:
                record[d.V_OFFSET] = 0  # its unfinished row was replaced: the new one will drive
            record[d.V_CURSOR], record[d.V_ROUND] = cursor, round_end
