"""Owns triggers of rules that are kept by their traces: one row of a base predicate in one call of a kernel.

There is one where a single rule reads the predicate, keeps a coarse trace and is one join with plain heads;
other rows go the general way.  See `dlog.engine.trace_row_kernels`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dlog.engine.looked import Asked
from dlog.engine.maintain import Maintenance
from dlog.engine.one_row_kernels import TOO_LARGE
from dlog.engine.store import Store
from dlog.engine.trace_deltas import TraceDeltas, Traces
from dlog.engine.trace_row_kernels import CHECK, SHAPE, WATCH, fire_traced
from dlog.engine.trace_strategy import TraceStrategy
from dlog.engine.trigger_search import is_read, plain_head
from dlog.engine.triggers import Joins, Output, Room, Rows, Trigger, Use
from dlog.jit import Words
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.deltas import ERASE, INSERT
from dlog.sensitivity.oracle import Oracle
from dlog.sensitivity.watches import ANY, COARSE, KEY, PREFIX, Watch
from dlog.storage.index import Index
from dlog.storage.interval_kernels import STATE_WORDS
from dlog.storage.relation import Order, Relation

CAPACITY = 256  # rows of an output, notes of one kind, contributions
BUDGET = 1 << 14
OTHERS = 1024  # from this number on a source is a place in a row of a note


@dataclass
class TraceTrigger(Trigger):
    deltas: TraceDeltas = field(kw_only=True)
    traces: Traces = field(kw_only=True)
    first_note: int = field(kw_only=True)  # the place of the first note's root
    arrays: tuple[Words, ...] = field(kw_only=True)  # what the kernel takes between `available` and ranks
    buffers: tuple[Words, ...] = field(kw_only=True)  # found, work, out, trace, results
    changed_notes: dict[str, Relation] = field(default_factory=dict)
    held: dict[str, Relation] = field(default_factory=dict)

    def fits(self, relation: Relation) -> bool:
        return self.deltas.traces is self.traces and super().fits(relation)

    def bring_roots(self, relations: Mapping[str, Relation]) -> bool:
        for place, name in enumerate(self.traces.names, self.first_note):
            relation = relations.get(name)
            if relation is None:
                return False
            if self.held.get(name) is not relation:
                self.held[name] = relation
                self.places[place] = next(iter(relation._indices.values())).root
        return super().bring_roots(relations)

    def fire(self, store: Store, relation: Relation, rows: Rows) -> int:
        if len(rows) > 1:
            return TOO_LARGE
        places, words, arena, room = self.places, self.row_words, store.arena, self.one
        for place, index in enumerate(relation._indices.values()):
            places[place] = index.root
        for place, code in enumerate(rows[0]):
            words[place] = code
        with arena.lock:
            if arena._pending:
                arena.release_dropped()
            found = fire_traced(  # type: ignore[call-arg]
                arena.A,
                room.shape,
                self.order_words,
                room.available,
                *self.arrays,
                self.ranks(),
                room.rows,
                *self.buffers,
            )
        self._take_notes(store, found)
        return found

    def _take_notes(self, store: Store, found: int) -> None:
        """The new versions of sensitivity indices, from the roots that a firing made."""
        self.changed_notes = {}
        if found < 0:
            return
        n = len(self.traces.names)
        results = self.buffers[-1].data
        for i, name in enumerate(self.traces.names):
            if results[3 + 2 * n + i]:
                root = self.places[self.first_note + n + i]
                index = Index(store.arena, root, self.traces.upkeep.specs[i].arity)
                self.changed_notes[name] = Relation.of_index(index)

    def state(self) -> Mapping[str, Relation]:
        return self.changed_notes

    def looked(self) -> Asked:
        """The contributions are copied, since the next firing writes over them; the rest waits."""
        found, results = self.buffers[0], self.buffers[-1]
        width = len(self.traces.keys)
        rows = found[: int(results[-1]) * (width + 3)].reshape(-1, width + 3).copy()
        return lambda: [self.deltas.looked(_oracle(rows, width))]

    @property
    def operations(self) -> int:
        return int(self.buffers[-1][2])

    def outputs(self) -> list[Output]:
        out, results = self.buffers[2], self.buffers[-1]
        size = len(out) // 2
        return [
            Output(use, out[i * size : (i + 1) * size], CAPACITY, int(results[i]))
            for i, use in enumerate(self.uses)
            if results[i]
        ]


def _oracle(found: Words, width: int) -> Oracle:
    """Of contributions as the kernel leaves them."""
    return Oracle.of_rows(width, np.column_stack([-1 - found[:, 0], found[:, 1:]]))


def trace_trigger(maintenance: Maintenance, store: Store, name: str, sign: int) -> TraceTrigger | None:
    """A trigger for rows of a predicate; None: they go the general way."""
    readers = maintenance.readers.get(name, ())
    strategy = maintenance.strategy(readers[0], store) if len(readers) == 1 else None
    if not isinstance(strategy, TraceStrategy) or strategy.by_existence or len(strategy.stratum.rules) > 1:
        return None
    if not strategy.traced or strategy.aggregates or not strategy.ready(store):
        return None
    (deltas,) = strategy.traced
    traces = deltas.traces
    if traces is None or deltas.granularity != COARSE or len(deltas.pipeline.operations) > 1:
        return None
    if any(watch.level < 0 for watch in traces.upkeep.watched.watches):
        return None
    heads = [h for h in deltas.rule.heads if h.predicate == strategy.name]
    targets = [plain_head(store, deltas.rule, head, deltas.outputs_of_join) for head in heads]
    if any(target is None for target in targets):
        return None
    ends = not is_read(maintenance, strategy.name) and not store.predicates[strategy.name].is_functional
    found = tuple(target for target in targets if target is not None)
    uses = [Use(strategy, s, found, ends=ends) for s in (ERASE, INSERT)]
    return _assembled(maintenance, store, name, sign, deltas, traces, uses)


def _assembled(
    maintenance: Maintenance,
    store: Store,
    name: str,
    sign: int,
    deltas: TraceDeltas,
    traces: Traces,
    uses: list[Use],
) -> TraceTrigger:
    indices = [store.index(use.predicate, use.columns) for use in traces.atoms]
    relation = store.relations[name]
    orders = tuple(relation._indices)
    others: dict[tuple[str, Order], int] = {}
    atoms: list[int] = []
    own_orders = []
    for use, index in zip(traces.atoms, indices, strict=True):
        read = store.relations[use.predicate]
        order = next(o for o in read.orders if read.index(o) is index)
        if use.predicate == name:
            own = orders.index(order)
            atoms += [own, len(orders) + own, own]
        else:
            own = -1
            place = others.setdefault((use.predicate, order), 2 * len(orders) + len(others))
            atoms += [place, place, -1]
        own_orders.append(own)
    first_note = 2 * len(orders) + len(others)
    guided, specs = traces.upkeep.guided, traces.upkeep.specs
    watches, checks = _tables(traces)
    notes = [w for i, s in enumerate(specs) for w in (s.prefix, s.arity, first_note + i)]
    width, n_notes = len(traces.upkeep.watched.keys), len(specs)
    columns = guided.assembled.n_columns
    initial = guided.assembled.initial
    guide_words = 2 + 4 * CAPACITY * max(width, 1)
    shape = np.zeros(SHAPE, np.int64)
    declared = store.predicates[name]
    shape[:13] = [
        declared.arity,
        1 if sign == INSERT else 0,
        len(orders),
        len(traces.atoms),
        len(watches) // (WATCH + width),
        width,
        n_notes,
        CAPACITY,
        BUDGET,
        columns,
        guided.fills,
        guided.guide,
        len(initial),
    ]
    widest = max([columns, *(s.arity for s in specs), width + 4])
    buffers = (
        np.zeros(CAPACITY * (width + 3), np.int64),
        np.zeros(STATE_WORDS + 6 * CAPACITY * (widest + 2) + 64, np.int64),
        np.zeros(max(1, 2 * CAPACITY * columns), np.int64),
        np.zeros(max(2, 2 * CAPACITY * sum(s.arity for s in specs)), np.int64),
        np.zeros(4 + 3 * n_notes, np.int64),
    )
    arrays = (
        np.array(atoms, np.int64),
        watches,
        checks,
        np.array(notes or [0], np.int64),
        guided.assembled.code,
        initial,
        guided.assembled.levels,
        np.zeros(len(initial) + guide_words, np.int64),
        np.zeros(max(1, len(traces.atoms)), np.int64),
    )
    available = np.zeros(first_note + 2 * n_notes, np.int64)
    room = Room(shape, available, np.zeros(declared.arity, np.int64))
    ranks = store.dictionary
    return TraceTrigger(
        name=name,
        sign=sign,
        arity=declared.arity,
        functional_keys=declared.n_keys if declared.is_functional else -1,
        orders=orders,
        rows=max(1, len(relation)),
        uses=uses,
        joins=Joins([(plain, order, place) for (plain, order), place in others.items()], width=columns),
        ranks=(lambda: ranks.rank) if traces.compiled.uses_ranks else (lambda: NO_WORDS),
        strata=frozenset(maintenance.readers.get(name, ())),
        ways={use.strategy.name: use.strategy.way for use in uses},
        arena=store.arena,
        room=room,
        deltas=deltas,
        traces=traces,
        first_note=first_note,
        arrays=arrays,
        buffers=buffers,
    )


def _tables(traces: Traces) -> tuple[Words, Words]:
    """Watches and their checks, as the kernel has them."""
    watched = traces.upkeep.watched
    width = len(watched.keys)
    words: list[int] = []
    checks: list[int] = []
    for watch in watched.watches:
        first = len(checks) // CHECK
        checks += _checks(watch, watched.constants) if watch.note < 0 else []
        wild = sum(1 << d for d in watch.wild)
        n = len(checks) // CHECK - first
        words += [watch.atom, watch.level, watch.depth, watch.note, wild, first, n, int(watch.below)]
        words += [_source(watch, d) for d in range(width)]
    return np.array(words or [0], np.int64), np.array(checks or [0], np.int64)


def _checks(watch: Watch, constants: Mapping[int, int]) -> list[int]:
    slots = (*watch.prefix, *(() if watch.key is None else (watch.key,)))
    found: list[int] = []
    for column, slot in enumerate(slots):
        if slot in constants:
            found += [0, column, constants[slot]]
        elif slot in slots[:column]:
            found += [1, column, slots.index(slot)]
    return found


def _source(watch: Watch, depth: int) -> int:
    if depth >= watch.depth:
        return -1
    kind, place = watch.sources[depth]
    if kind == PREFIX:
        return place
    if kind == KEY:
        return len(watch.prefix)
    return -1 if kind == ANY else OTHERS + len(watch.prefix) + watch.below + 2 + place
