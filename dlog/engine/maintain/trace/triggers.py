"""Owns triggers of rules maintained by their traces: one row of a base predicate in one call of a kernel.

There is one if a single rule reads the predicate, has a trace and is one join with plain heads;
other rows take the general path.  See `dlog.engine.maintain.trace.row_kernels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import ClassVar
from weakref import ref

import numpy as np

from dlog.engine.commit.oracle_report import OracleReport, ReportsOnRequest
from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.trace import row_layout as k
from dlog.engine.maintain.trace.held_roots import Held
from dlog.engine.maintain.trace.keep import TraceStrategy
from dlog.engine.maintain.trace.planned import Traces
from dlog.engine.maintain.trace.row_kernels import fire_traced
from dlog.engine.maintain.trace.rule_traces import TraceDeltas
from dlog.engine.maintain.triggers.kernels import TOO_LARGE
from dlog.engine.maintain.triggers.terminal_head import Head, HeadChange
from dlog.engine.maintain.triggers.trigger import Joins, Output, Room, Rows, Trigger, Use
from dlog.engine.maintain.triggers.trigger_search import accounts, head_alone, is_read, plain_head
from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.lftj.plan import Not, walk
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.deltas import ERASE, INSERT
from dlog.sensitivity.index_kernels import op_words, work_words
from dlog.sensitivity.oracle import Oracle
from dlog.sensitivity.watches import ANY, KEY, PREFIX, TRACED, Watch
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.layout import ROOT_REFERENCES
from dlog.storage.relation.relation import Order, Relation
from dlog.storage.relation.relation_group import RelationGroup, Undone
from dlog.storage.scan.interval_kernels import STATE_WORDS

# Rows of an output, notes of one kind, contributions: of a coarse trace, and of one that is exact somewhere.
CAPACITY = {False: 256, True: 1024}
BUDGET = 1 << 14


@dataclass
class TraceTrigger(Trigger):
    deltas: TraceDeltas = field(kw_only=True)
    traces: Traces = field(kw_only=True)
    # For each sensitivity index its first root among those of all, and how many it has; their places.
    note_roots: list[tuple[int, int]] = field(kw_only=True)
    note_places: memoryview = field(kw_only=True)
    tables: Words = field(kw_only=True)  # what the kernel reads
    written: Words = field(kw_only=True)  # what it writes
    held: Held = field(kw_only=True)
    changed_notes: dict[str, Relation] = field(default_factory=dict)
    results: memoryview = field(init=False)
    contributions: memoryview = field(init=False)
    edits: memoryview = field(init=False)
    shape: memoryview = field(init=False)
    later: Relation | None = None
    head: Head | None = field(kw_only=True)  # the only one, if it has the outputs and no rule reads it
    changed_head: HeadChange | None = None
    keeps_state: ClassVar[bool] = True
    has_reports: ClassVar[bool] = True
    checks_keys: ClassVar[bool] = False

    def __post_init__(self, arena: Arena, room: Room | None) -> None:
        super().__post_init__(arena, room)
        self.shape, room = self.one.shape.data, self.one
        self.shape[k.LEAST], self.shape[k.MOST] = self.least, self.most
        self.results = self.written.data[self.shape[k.RESULTS] :]
        self.contributions = self.written.data[self.shape[k.FOUND] :]
        self.edits = self.written.data[self.shape[k.EDITS] :]
        self.rows_written = self.written.data[self.shape[k.ROWS] :]
        changed = k.CHANGED + k.INDEX_RESULT * len(self.note_roots)
        self.changed_words = self.results[k.CHANGED : changed]
        self.contribution_words = len(self.traces.keys) + 3
        self.given = (arena.A, room.shape, self.tables, room.available, self.written)
        self.put_row = Struct(f"{self.arity}q").pack_into
        head = () if self.head is None else (self.head.name, *self.head.others)
        self.others = (*head, *(name for name, _, _ in self.joins.others))
        if self.head is not None:
            self.held.shapes.append(self.shape)
        self.kernel = fire_traced

    def fits(self, relation: Relation) -> bool:
        """Still valid, unless the next firing finds that the data has grown or shrunk a lot."""
        if self.outgrown or self.deltas.traces is not self.traces or self.deltas.is_due:
            return False
        roots = self.held.roots
        if roots and roots[0] is relation.bare_roots:
            return True
        return self.least <= relation.rows_in(self.orders) <= self.most

    def bring_roots(self, relations: Mapping[str, Relation], committed: Mapping[str, Relation]) -> bool:
        held, group = self.held, relations.get(self.traces.name)
        if not isinstance(group, RelationGroup):
            return False
        held.version, others = group, tuple(map(relations.get, self.others))
        roots = (relations[self.name].bare_roots, group.bare_roots)
        if roots == held.roots and others == held.others and self._has_orders(others):
            return True
        held.roots, held.others = (), ()
        group.put_roots(self.note_places)
        relations[self.name].put_roots(self.places)
        if self.head is not None:
            kept = self.head.bring_roots(relations)
            for shape in held.shapes:
                shape[k.HEAD_KEPT] = kept
        if not super().bring_roots(relations, committed):
            held.version = None
            return False
        if all(roots):
            held.roots, held.others = roots, others
        return True

    def _has_orders(self, others: tuple[Relation | None, ...]) -> bool:
        """Whether the head has no more orders than there are in its places: orders may have been added."""
        if self.head is None:
            return True
        head = others[0]
        return head is not None and head.n_orders == len(self.head.orders)

    def let_go(self) -> None:
        super().let_go()
        self.held.roots = self.held.others = ()

    def fire(self, arena: Arena, relation: Relation, rows: Rows) -> int:
        """REQUIRES: `bring_roots` has returned true."""
        held, kernel = self.held, self.kernel
        if len(rows) > 1:
            held.version = None
            return TOO_LARGE
        self.put_row(self.row_words, 0, *rows[0])
        ranks = NO_WORDS if self.ranks is None else self.ranks()
        with arena.lock:
            arena.hand_over()
            self.shape[k.IN_PLACE] = in_place = held.may_change()
            found: int = kernel(*self.given, ranks, self.one.rows)
            if found < 0:
                held.version = None
                return found
            self.deltas.led += self.results[k.CONTRIBUTIONS]
            self.changed_notes = self._take_notes(in_place)
            self.changed_head = self._take_head(arena) if found and self.head is not None else None
        roots, version = self.one.new_roots.tolist(), held.version
        self.later = relation.of_roots(roots)
        # The kernel has put the new roots into the places of the old ones.
        held.roots = (roots, version.bare_roots) if version is not None and version.is_bare else ()
        if self.changed_head is not None:
            held.others = (self.changed_notes[self.changed_head.name], *held.others[1:])
        held.version = None
        if kernel is fire_traced:  # as in `Trigger.fire`
            self.kernel = getattr(fire_traced, "target", fire_traced)
        return found

    def version(self, relation: Relation) -> Relation:
        """Returned once, like what `put_state` puts."""
        later, self.later = self.later, None
        assert later is not None
        return later

    def undo(self) -> Undone:
        """Undoes the last firing's change of the sensitivity indices.  REQUIRES: the lock is held."""
        return self.edits[: self.results[k.EDIT_WORDS]].tobytes(), self.changed_words.tobytes()

    def _take_notes(self, in_place: bool) -> dict[str, Relation]:
        """The new version of the sensitivity indices, from a firing's roots.  REQUIRES: the lock is held."""
        held, results = self.held, self.results
        version = held.version
        if version is None or not results[k.EDIT_WORDS]:
            return {}
        roots = self.note_places.tolist()
        if in_place:
            later = version.followed_in_place(roots, self.undo)
            held.before = ref(version)
        else:
            words = version.arena.words
            for i, (first, orders) in enumerate(self.note_roots):
                at = k.CHANGED + i * k.INDEX_RESULT
                for root in () if results[at] or results[at + 1] else roots[first : first + orders]:
                    words[root + ROOT_REFERENCES] += 1  # both versions have it
            later = version.of_roots(roots)
        held.version = later
        return {self.traces.name: later}

    def _take_head(self, arena: Arena) -> HeadChange | None:
        """The change of the head, whose new version is one of what has changed; None: nothing was done."""
        n, head = self.results[k.HEAD_CHANGED], self.head
        if n <= 0 or head is None:
            return None
        self.changed_notes[head.name] = head.changed(arena)
        words, gained = self.rows_written[: n * head.arity].tobytes(), self.results[k.HEAD_GAINED]
        return HeadChange(head.name, head.orders[0], words, gained)

    def put_state(self, relations: dict[str, Relation]) -> None:
        """Another transaction could change a version in place that the trigger still holds."""
        relations.update(self.changed_notes)
        self.changed_notes = {}

    def oracle_reports(self) -> ReportsOnRequest:
        """The contributions are copied, since the next firing overwrites them; the rest is lazy."""
        rows = self.contributions[: self.results[k.CONTRIBUTIONS] * self.contribution_words].tobytes()
        return lambda: [self._looked(rows)]

    def _looked(self, contributions: bytes) -> OracleReport:
        found = np.frombuffer(contributions, np.int64).reshape(-1, self.contribution_words)
        return self.deltas.oracle_report(_oracle(found, self.contribution_words - 3))

    @property
    def operations(self) -> int:
        return self.results[k.OPERATIONS]

    def costs(self) -> int:
        return self.results[k.OPERATIONS]

    def changed_heads(self, store: Store, found: int) -> Mapping[str, Change] | None:
        change, self.changed_head = self.changed_head, None
        return change

    def outputs(self) -> list[Output]:
        start, capacity = int(self.one.shape[k.OUT]), int(self.one.shape[k.CAPACITY])
        size = capacity * self.joins.width
        out = self.written[start : start + 2 * size]
        return [
            Output(use, out[i * size : (i + 1) * size], capacity, self.results[i])
            for i, use in enumerate(self.uses)
            if self.results[i]
        ]


def _only_grows(traces: Traces) -> bool:
    """Whether one more row removes no assignment, and all indices are by context."""
    upkeep = traces.upkeep
    has_not = any(isinstance(step, Not) for step in walk(upkeep.watched.traced.plan.steps))
    return not has_not and all(number in upkeep.covers for number in range(len(upkeep.specs)))


def _oracle(found: Words, width: int) -> Oracle:
    """Of contributions as the kernel leaves them."""
    return Oracle.of_rows(width, np.column_stack([-1 - found[:, 0], found[:, 1:]]))


def trace_trigger(maintenance: Maintenance, store: Store, name: str, sign: int) -> TraceTrigger | None:
    """A trigger for rows of a predicate; None: they take the general path."""
    readers = maintenance.readers.get(name, ())
    strategy = maintenance.strategy(readers[0], store) if len(readers) == 1 else None
    if not isinstance(strategy, TraceStrategy) or strategy.by_existence or len(strategy.stratum.rules) > 1:
        return None
    if not strategy.traced or strategy.aggregates or not strategy.ready(store):
        return None
    (deltas,) = strategy.traced
    traces = deltas.traces
    if traces is None or len(traces.pipeline.operations) > 1 or traces.upkeep.shared:
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
    orders = tuple(relation.orders)
    others: dict[tuple[str, Order], int] = {}
    atoms: list[int] = []
    for use, index in zip(traces.atoms, indices, strict=True):
        read = store.relations[use.predicate]
        order = read.order_of(index)
        if use.predicate == name:
            own = orders.index(order)
            atoms += [own, len(orders) + own, own]
        else:
            place = others.setdefault((use.predicate, order), 2 * len(orders) + len(others))
            atoms += [place, place, -1]
    first_note = 2 * len(orders) + len(others)
    capacity = CAPACITY[bool(traces.upkeep.watched.traced.exact)]
    layout = _Layout()
    layout.put(k.ORDERS, [c for order in orders for c in order])
    layout.put(k.ATOMS, atoms)
    note_roots, n_roots = _put_notes(layout, traces, first_note, capacity)
    _put_watches(layout, traces)
    _put_program(layout, traces, capacity, len(orders))
    declared, shape = store.predicates[name], layout.shape
    shape[k.ARITY], shape[k.OP] = declared.arity, 1 if sign == INSERT else 0
    shape[k.N_ORDERS], shape[k.N_ATOMS] = len(orders), len(traces.atoms)
    shape[k.CAPACITY], shape[k.BUDGET] = capacity, BUDGET
    shape[k.GROWS] = sign == INSERT and _only_grows(traces)
    head_name, head_root = head_alone(uses, store, int(shape[k.COLUMNS])), first_note + n_roots
    head_orders = () if head_name is None else tuple(store.relations[head_name].orders)
    other = maintenance.triggers.get((name, -sign))
    if isinstance(other, TraceTrigger) and other.traces is traces and other.orders == orders:
        available, written, held, seen = other.one.available, other.written, other.held, other.seen
        head = other.head if other.head is not None and other.head.orders == head_orders else None
    else:
        available = np.zeros(head_root + 2 * len(head_orders), np.int64)
        written, held, seen = np.zeros(layout.room, np.int64), Held(), {}
        places = available.data[head_root:]
        head = None if head_name is None else Head(head_name, store.relations[head_name], places)
    layout.put(k.HEAD_LAYOUT, [c for order in head_orders for c in order])
    shape[k.HEAD_ROOT] = head_root
    room = Room(len(orders), shape, available, np.zeros(declared.arity, np.int64))
    ranks = store.dictionary
    return TraceTrigger(
        name=name,
        sign=sign,
        arity=declared.arity,
        functional_keys=declared.n_keys if declared.is_functional else -1,
        orders=orders,
        rows=max(1, len(relation)),
        uses=uses,
        joins=Joins([(*other, place) for other, place in others.items()], width=int(shape[k.COLUMNS])),
        ranks=(lambda: ranks.rank) if traces.compiled.uses_ranks else None,
        strata=frozenset(maintenance.readers.get(name, ())),
        ways={use.strategy.name: use.strategy.way for use in uses},
        accounts=accounts(maintenance, store, name),
        arena=store.arena,
        room=room,
        deltas=deltas,
        traces=traces,
        note_roots=[(place - first_note, n) for place, n in note_roots],
        note_places=available.data[first_note:head_root],
        tables=np.array(layout.tables, np.int64),
        written=written,
        held=held,
        head=head,
        seen=seen,
    )


@dataclass
class _Layout:
    """Tables, one after the other, and how much room is needed for what is written."""

    shape: Words = field(default_factory=lambda: np.zeros(k.SHAPE, np.int64))
    tables: list[int] = field(default_factory=list)
    room: int = 0

    def put(self, name: int, words: Iterable[int]) -> None:
        self.shape[name] = len(self.tables)
        self.tables += words

    def reserve(self, name: int, words: int) -> None:
        self.shape[name] = self.room
        self.room += words


def _put_notes(
    layout: _Layout, traces: Traces, first: int, capacity: int
) -> tuple[list[tuple[int, int]], int]:
    """The places of the roots of each sensitivity index, and the number of all."""
    upkeep = traces.upkeep
    table: list[int] = []
    places: list[tuple[int, int]] = []
    n_roots = trace = 0
    for i, note in enumerate(upkeep.watched.traced.notes):
        arity = len(note.words)
        if i < len(upkeep.specs):
            spec = upkeep.specs[i]
            orders = [tuple(range(arity)), *([spec.context_order] if spec.by_context else [])]
            places.append((first + n_roots, len(orders)))
            table += [spec.prefix, arity, first + n_roots, len(orders), len(layout.tables)]
            table += [upkeep.covers.get(i, -1), note.atom, trace]
            layout.tables += [column for order in orders for column in order]
            n_roots += len(orders)
        else:
            table += [0, arity, 0, 0, 0, -1, note.atom, trace]
        trace += arity * capacity
    layout.put(k.NOTES, table)
    layout.shape[k.N_INDICES], layout.shape[k.N_NOTES] = len(places), len(table) // k.NOTE
    layout.shape[k.TRACE_WORDS] = trace
    return places, n_roots


def _put_program(layout: _Layout, traces: Traces, capacity: int, n_orders: int) -> None:
    """What the machine runs, and room for it."""
    guided, shape = traces.upkeep.guided, layout.shape
    plan, width = guided.assembled, len(traces.upkeep.watched.keys)
    layout.put(k.CODE, plan.code.tolist())
    layout.put(k.INITIAL, plan.initial.tolist())
    layout.put(k.LEVELS, plan.levels.tolist())
    shape[k.COLUMNS], shape[k.FILLS], shape[k.GUIDE] = plan.n_columns, guided.fills, guided.guide
    shape[k.WIDTH], shape[k.INITIAL_WORDS] = width, len(plan.initial)
    layout.reserve(k.RESULTS, k.CHANGED + int(k.INDEX_RESULT * shape[k.N_INDICES] + 2 * shape[k.N_NOTES]))
    layout.reserve(k.STATE, len(plan.initial) + 2 + 4 * capacity * max(width, 1))
    layout.reserve(k.ROOTS, len(traces.atoms))
    layout.reserve(k.SHARED, n_orders)
    layout.reserve(k.FOUND, capacity * (width + 3))
    layout.reserve(k.OUT, 2 * capacity * plan.n_columns)
    layout.reserve(k.ROWS, 2 * capacity * plan.n_columns)
    layout.reserve(k.TRACE, 2 * int(shape[k.TRACE_WORDS]))
    widest = max([plan.n_columns, width + 4, *(len(n.words) for n in guided.traced.notes)])
    layout.reserve(k.WORK, STATE_WORDS + 64 + 5 * capacity * widest + work_words(widest, capacity, capacity))
    layout.reserve(k.EDITS, 3 * capacity * widest * int(shape[k.N_INDICES]))
    shape[k.OPS_WORDS] = op_words(widest, capacity, capacity)
    layout.reserve(k.OPS, int(shape[k.OPS_WORDS] * shape[k.N_INDICES]))


def _put_watches(layout: _Layout, traces: Traces) -> None:
    """Watches, their checks, and what makes contributions wider."""
    watched = traces.upkeep.watched
    words: list[int] = []
    checks: list[int] = []
    wide: list[int] = []
    for number, watch in enumerate(watched.watches):
        first = len(checks) // k.CHECK
        checks += _checks(watch, watched.constants) if watch.note < 0 else []
        wild = sum(1 << d for d in watch.wild)
        n = len(checks) // k.CHECK - first
        words += [watch.atom, watch.level, watch.depth, watch.note, wild, first, n, int(watch.below)]
        words += [_ends(traces, watch), *(_source(watch, d) for d in range(len(watched.keys)))]
        if _ends(traces, watch) == k.WIDER:
            wide += [word for other in watched.widening(watch) for word in _wider(traces, number, other)]
    layout.put(k.WATCHES, words)
    layout.put(k.CHECKS, checks)
    layout.put(k.WIDE, wide)
    layout.shape[k.N_WATCHES] = len(watched.watches)
    layout.shape[k.WIDE_WORDS] = widest = _wide_words(traces)
    layout.shape[k.N_WIDE] = len(wide) // widest


def _ends(traces: Traces, watch: Watch) -> int:
    if not traces.upkeep.watched.is_exact(watch):
        return k.KEY
    return k.INTERVAL if watch.how == TRACED else k.WIDER


def _wider(traces: Traces, number: int, other: Watch) -> list[int]:
    """A watch's contributions are made wider by the index of another one."""
    watched = traces.upkeep.watched
    found = [number, other.note]
    for slot in (*other.prefix, *other.others):
        if slot in watched.keys:
            found += [0, watched.keys.index(slot)]
        else:
            found += [1, watched.constants[slot]]
    return found + [0] * (_wide_words(traces) - len(found))


def _wide_words(traces: Traces) -> int:
    return k.WIDER_WORDS + 2 * max([0, *(spec.arity - 2 for spec in traces.upkeep.specs)])


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
    return -1 if kind == ANY else k.OTHERS + len(watch.prefix) + watch.below + 2 + place
