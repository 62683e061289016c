"""Owns triggers: what a row of a base predicate that comes or goes sets off, ready to be fired.

There is one when every stratum that reads the predicate keeps support counts, or the sums of groups, and has
only plain joins over it.  All indices and all delta joins are then one call of a kernel, for one row or for
some.  Knows nothing of what becomes of the rows that joins give: see `few_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dlog.engine.delta_strategy import DeltaStrategy
from dlog.engine.few_rows_kernels import MARK_ROWS, fire_rows
from dlog.engine.heads import stored_as
from dlog.engine.looked import Asked, nowhere
from dlog.engine.maintain import Maintenance
from dlog.engine.one_group import OneGroup, one_group
from dlog.engine.one_kept import OneKept, one_kept
from dlog.engine.one_row_kernels import TOO_LARGE, V_STATE, V, fire
from dlog.engine.rule_deltas import Planned, RuleDeltas
from dlog.engine.store import Store
from dlog.heads.group_kernels import GROUP
from dlog.ir.rules import Atom, Const, Program, Rule, Var
from dlog.jit import Words
from dlog.lftj.assemble import Assembled
from dlog.lftj.opcodes import CHUNK, NEXTS, SEEKS
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.deltas import INSERT
from dlog.planning.pipeline import Join
from dlog.planning.versions import is_change, old_name
from dlog.storage.arena import Arena
from dlog.storage.index import Index
from dlog.storage.relation import Order, Relation

Rows = Sequence[tuple[int, ...]] | Words  # of codes

CAPACITY = 256  # rows of a join that the short way takes
CAPACITY_OF_SOME = 1 << 13  # the same for several rows at once
BUDGET = 1 << 14  # operations of a join: about 100 us
BUDGET_OF_SOME = 1 << 17  # the same for several rows at once
REPLAN = 16
NEVER = object()  # in place of a trigger: rows of a predicate always go the general way


@dataclass(frozen=True)
class Use:
    """A join of a trigger and where its rows go."""

    strategy: DeltaStrategy
    sign: int
    # For each column of a head: whether it is a slot, and its column or its code.
    heads: tuple[tuple[tuple[bool, int], ...], ...]
    group: OneGroup | OneKept | None = None  # of an aggregation
    ends: bool = False  # whether the heads are read by no rule and cannot give a key two values


class Output(NamedTuple):
    """The rows that a join gave: column c of row i is words[c * stride + i]."""

    use: Use
    words: Words
    stride: int
    n: int

    def column(self, c: int) -> Words:
        return self.words[c * self.stride : c * self.stride + self.n]

    def rows(self) -> list[list[int]]:
        return self.words.reshape(-1, self.stride)[:, : self.n].T.tolist()


# A join, assembled, the atoms it reads as (predicate, columns), and whether it compares strings.
_Found = tuple[Use, Assembled, tuple[tuple[str, tuple[int, ...]], ...], bool]


@dataclass
class Room:
    """What a kernel writes for transactions up to a size; `shape` tells it the capacity."""

    marks_held: list[Index]
    shape: Words
    marks: Words
    available: Words
    out: Words
    counts: Words
    rows: Words
    net: Words


@dataclass
class Trigger:
    """What one more or one less row of a predicate sets off.  Valid as long as `fits` says so."""

    name: str
    sign: int
    arity: int
    functional_keys: int  # of a function, else -1
    orders: tuple[Order, ...]
    rows: int  # of the relation when plans were made
    uses: list[Use]
    others: list[tuple[str, Order, int]]  # predicate, order, place among the available roots
    mark_orders: list[Order]
    order_words: Words
    joins: Words
    words: Words
    initial: Words
    states: Words
    roots: Words
    width: int  # columns of an output
    ranks: Callable[[], Words]
    strata: frozenset[int]
    ways: Mapping[str, str]  # of the strata, by their first predicates: see `Cycle.ways`
    one: Room
    some: Room | None = None  # for several rows, made when they first come
    seen: dict[str, Relation] = field(default_factory=dict)
    # Views, which are written one word at a time in a third of the time that arrays take.
    most: int = field(init=False)
    places: memoryview = field(init=False)
    row_words: memoryview = field(init=False)
    used: Room = field(init=False)  # by the last firing
    alone: OneGroup | None = field(init=False)  # what the only join leads to, if nobody reads its head

    def __post_init__(self) -> None:
        only = self.uses[0] if len(self.uses) == 1 else None
        is_alone = only is not None and only.ends and isinstance(only.group, OneGroup)
        self.alone = only.group if is_alone else None  # type: ignore[union-attr, assignment]
        self.most = self.rows * REPLAN
        self.used = self.one
        self.places, self.row_words = self.one.available.data, self.one.rows.data

    def fits(self, relation: Relation) -> bool:
        indices = relation._indices
        n = len(next(iter(indices.values())))
        return len(indices) == len(self.orders) and self.rows <= n * REPLAN and n <= self.most

    def bring_roots(self, relations: Mapping[str, Relation]) -> bool:
        """Look up the indices of other predicates again where these have new versions."""
        for name, order, place in self.others:
            relation = relations[name]
            if self.seen.get(name) is not relation:
                index = relation._indices.get(order)
                if index is None:
                    return False
                self.places[place] = index.root
        for name, _, _ in self.others:
            self.seen[name] = relations[name]
        return True

    def fire(self, store: Store, relation: Relation, rows: Rows) -> int:
        """See `one_row_kernels.fire`."""
        arena, places = store.arena, self.places
        for place, index in enumerate(relation._indices.values()):
            places[place] = index.root
        if len(rows) > 1:
            return self._fire_some(store, rows)
        room, words = self.one, self.row_words
        for place, code in enumerate(rows[0]):
            words[place] = code
        self.used = room
        with arena.lock:
            if arena._pending:
                arena.release_dropped()
            return fire(
                arena.A,
                room.shape,
                self.order_words,
                room.marks,
                room.available,
                self.joins,
                self.words,
                self.initial,
                self.states,
                self.roots,
                self.ranks(),
                room.rows,
                room.out,
                room.counts,
            )

    def _fire_some(self, store: Store, rows: Rows) -> int:
        n, arena = len(rows), store.arena
        if n > MARK_ROWS:
            return TOO_LARGE
        if self.some is None:
            self.some = _room(arena, self, MARK_ROWS)
        self.used = room = self.some
        kept = len(self.one.available) - len(self.mark_orders)
        room.available[:kept] = self.one.available[:kept]
        room.rows[: n * self.arity] = np.asarray(rows, np.int64).reshape(-1)
        with arena.lock:
            arena.release_dropped()
            return fire_rows(
                arena.A,
                room.shape,
                self.order_words,
                room.marks,
                room.available,
                self.joins,
                self.words,
                self.initial,
                self.states,
                self.roots,
                self.ranks(),
                room.rows,
                n,
                room.net,
                room.out,
                room.counts,
            )

    def state(self) -> Mapping[str, Relation]:
        """What else the last firing changed, besides the predicate: what strategies keep."""
        return NO_STATE

    def looked(self) -> Asked:
        """Where the last firing looked again at a rule that is kept by its trace."""
        return nowhere

    @property
    def operations(self) -> int:
        """Of the last firing."""
        return int(self.used.counts[len(self.uses)])

    def costs(self) -> Mapping[str, int]:
        """Operations of the last firing by the names of `ways`.  O(joins)."""
        if len(self.ways) == 1:
            return dict.fromkeys(self.ways, self.operations)
        costs = dict.fromkeys(self.ways, 0)
        for use, start in zip(self.uses, self.joins[V_STATE::V].tolist(), strict=False):
            costs[use.strategy.name] += int(self.states[start + SEEKS] + self.states[start + NEXTS])
        return costs

    def changed(self, rows: Rows) -> Rows:
        """Of the rows of the last firing those that it changed; not to be kept."""
        if self.used is self.one:
            return rows
        return self.used.net[: int(self.used.counts[-1]) * self.arity].reshape(-1, self.arity).copy()

    def version(self, relation: Relation) -> Relation:
        """The new version of the predicate: takes over the roots that the last firing made."""
        arena, arity = relation.arena, relation.arity
        place = len(self.orders)
        roots = self.used.available[place : 2 * place].tolist()
        indices = {order: Index(arena, root, arity) for order, root in zip(self.orders, roots, strict=True)}
        return relation._version(indices)

    def outputs(self) -> list[Output]:
        """Joins that gave rows.  REQUIRES: some did."""
        room = self.used
        capacity = int(room.shape[5])
        size = capacity * self.width
        counts = room.counts.tolist()
        if len(self.uses) == 1:
            return [Output(self.uses[0], room.out, capacity, counts[0])]
        return [
            Output(use, room.out[j * size : (j + 1) * size], capacity, counts[j])
            for j, use in enumerate(self.uses)
            if counts[j]
        ]


NO_STATE: Mapping[str, Relation] = {}
NO_WORD = np.zeros(1, np.int64)
NO_ROOM = Room([], *(NO_WORD,) * 7)


def find_trigger(maintenance: Maintenance, store: Store, name: str, sign: int) -> Trigger | None:
    """The trigger of a predicate, made at its first use; None: its rows go the general way."""
    key = (name, sign)
    trigger = maintenance.triggers.get(key)
    if isinstance(trigger, Trigger) and trigger.fits(store.relations[name]):
        return trigger
    if trigger is NEVER:
        return None
    if not _is_simple(maintenance, store, name):
        return _other_trigger(maintenance, store, key)
    maintenance.prepare(maintenance.readers.get(name, ()), store)
    strategies = _readers(maintenance, store, name)
    if not all(strategy.ready(store) for strategy in strategies):
        return None  # until the first transaction has made their counts
    made = _make(maintenance, store, name, sign, strategies)
    maintenance.triggers[key] = NEVER if made is None else made
    return made


def _other_trigger(maintenance: Maintenance, store: Store, key: tuple[str, int]) -> Trigger | None:
    """The trigger of a predicate that a traced rule reads."""
    from dlog.engine.trace_triggers import trace_trigger

    name, sign = key
    strategies = [maintenance.strategy(number, store) for number in maintenance.readers.get(name, ())]
    if not _may_trigger(maintenance, name) or any(type(s) is DeltaStrategy for s in strategies):
        maintenance.triggers[key] = NEVER
        return None
    if not all(strategy is not None and strategy.ready(store) for strategy in strategies):
        return None
    made = trace_trigger(maintenance, store, name, sign)
    maintenance.triggers[key] = NEVER if made is None else made
    return made


def _may_trigger(maintenance: Maintenance, name: str) -> bool:
    program = maintenance.program
    if name in maintenance.owner or program.predicates[name].arity == 0 or _meets_table(maintenance, name):
        return False
    return _reads_apart(maintenance, program, name)


def _readers(maintenance: Maintenance, store: Store, name: str) -> list[DeltaStrategy]:
    strategies = [maintenance.strategy(number, store) for number in maintenance.readers.get(name, ())]
    return [s for s in strategies if type(s) is DeltaStrategy]


def _is_simple(maintenance: Maintenance, store: Store, name: str) -> bool:
    strategies = _readers(maintenance, store, name)
    if len(strategies) < len(maintenance.readers.get(name, ())):
        return False
    if any(s.by_existence or (s.aggregates and s.plain) for s in strategies):
        return False
    return _may_trigger(maintenance, name)


def _meets_table(maintenance: Maintenance, name: str) -> bool:
    """Whether a predicate is said never to change, or one that may follow from it."""
    return any(table == name or table in maintenance.owner for table in maintenance.tables)


def _make(
    maintenance: Maintenance, store: Store, name: str, sign: int, strategies: list[DeltaStrategy]
) -> Trigger | None:
    found: list[_Found] = []
    for strategy in strategies:
        for deltas in (*strategy.plain, *(a.deltas for a in strategy.aggregates)):
            for planned in deltas.variants:
                if planned.variant.changed != name:
                    continue
                if planned.variant.group >= 0:
                    return None
                if (planned.variant.sign > 0) == (sign > 0):
                    made = _use(store, strategy, deltas, planned, is_read(maintenance, strategy.name))
                    if made is None:
                        return None
                    found.append(made)
    return _assembled(maintenance, store, name, sign, found)


def _reads_apart(maintenance: Maintenance, program: Program, name: str) -> bool:
    """Whether no reader of a predicate also reads something that follows from it."""
    following: set[str] = set()
    waiting = [name]
    while waiting:
        for number in maintenance.readers.get(waiting.pop(), ()):
            for head in program.strata[number].predicates:
                if head not in following:
                    following.add(head)
                    waiting.append(head)
    for number in maintenance.readers.get(name, ()):
        reads = {a.predicate for r in program.strata[number].rules for a, _ in r.body.atoms()}
        if reads & following:
            return False
    return True


def is_read(maintenance: Maintenance, name: str) -> bool:
    """Whether anything follows from a predicate: other rules, or an error."""
    constraints = maintenance.program.constraints
    return bool(maintenance.readers.get(name)) or any(c.violations == name for c in constraints)


def _use(
    store: Store, strategy: DeltaStrategy, deltas: RuleDeltas, planned: Planned, is_read: bool
) -> _Found | None:
    operations = planned.pipeline.operations
    if len(operations) != 1 or not isinstance(operations[0], Join):
        return None
    join = operations[0]
    if strategy.aggregates:
        return _group_use(store, strategy, deltas, planned, join, is_read)
    heads = [h for h in deltas.rule.heads if h.predicate == strategy.name]
    targets = [plain_head(store, deltas.rule, head, join.outputs) for head in heads]
    if any(t is None for t in targets):
        return None
    ends = not is_read and not store.predicates[strategy.name].is_functional
    use = Use(strategy, planned.variant.sign, tuple(t for t in targets if t is not None), ends=ends)
    return _found(deltas, join, use)


def _group_use(
    store: Store, strategy: DeltaStrategy, deltas: RuleDeltas, planned: Planned, join: Join, is_read: bool
) -> _Found | None:
    group = one_group(store, strategy, join.outputs) or one_kept(store, strategy, join.outputs)
    if group is None:
        return None
    ends = not is_read and _has_one_value(store, strategy.name, group)
    return _found(deltas, join, Use(strategy, planned.variant.sign, (), group, ends))


def _has_one_value(store: Store, name: str, group: OneGroup | OneKept) -> bool:
    """Whether rows of a head with one key are of one group."""
    declared = store.predicates[name]
    keys = {place for place in group.head[: declared.n_keys] if place[0] == GROUP}
    return not declared.is_functional or len(keys) == len(group.groups)


def _found(deltas: RuleDeltas, join: Join, use: Use) -> _Found:
    plan = deltas.runner.planned(join, list(join.forms), join.outputs, None)
    atoms = tuple((atom.predicate, atom.columns) for atom in plan.compiled.atoms)
    return use, plan.assembled, atoms, plan.compiled.uses_ranks


def plain_head(
    store: Store, rule: Rule, head: Atom, outputs: tuple[str, ...]
) -> tuple[tuple[bool, int], ...] | None:
    columns = []
    for operand, type in zip(head.args, store.column_types(head.predicate), strict=True):
        if isinstance(operand, Const):
            code = store.encode(operand, type)
            if code is None:
                return None
            columns.append((False, code))
        elif isinstance(operand, Var) and stored_as(rule, operand, type) and operand.name in outputs:
            columns.append((True, outputs.index(operand.name)))
        else:
            return None
    return tuple(columns)


def _assembled(
    maintenance: Maintenance,
    store: Store,
    name: str,
    sign: int,
    found: list[_Found],
) -> Trigger:
    arity = store.predicates[name].arity
    for _, _, atoms, _ in found:  # every order that some plan reads
        for predicate, columns in atoms:
            if not is_change(predicate):
                plain = name if predicate == old_name(name) else predicate.removeprefix(old_name(""))
                store.index(plain, columns)
    relation = store.relations[name]
    orders = tuple(relation._indices)
    places: dict[tuple[str, Order], int] = {}
    marks: list[Order] = []
    others: list[tuple[str, Order, int]] = []
    words: list[Words] = []
    joins: list[int] = []
    n_words = n_state = 0
    initials: list[Words] = []

    def place(predicate: str, columns: tuple[int, ...]) -> int:
        plain = predicate.removeprefix(old_name(""))
        if is_change(predicate):
            order = (*columns, *(c for c in range(arity) if c not in columns))
            if order not in marks:
                marks.append(order)
            return -1 - marks.index(order)
        order = next(o for o in store.relations[plain].orders if o[: len(columns)] == columns)
        if plain == name:
            at = list(orders).index(order)
            return at if predicate != plain else len(orders) + at
        if (plain, order) not in places:
            places[plain, order] = len(places)
            others.append((plain, order, len(places) - 1))
        return 2 * len(orders) + places[plain, order]

    def put(array: Words) -> int:
        nonlocal n_words
        words.append(array)
        n_words += len(array)
        return n_words - len(array)

    sources: list[tuple[int, list[int]]] = []
    for _, assembled, atoms, _ in found:
        initial = len(assembled.initial) - CHUNK
        at = [place(predicate, columns) for predicate, columns in atoms]
        sources.append((len(joins), at))
        joins += [put(assembled.code), n_state, initial, put(assembled.levels), 0, len(atoms)]
        initials.append(assembled.initial)
        n_state += len(assembled.initial)
    first_mark = 2 * len(orders) + len(others)
    for start, at in sources:
        resolved = [first_mark - 1 - p if p < 0 else p for p in at]
        joins[start + 4] = put(np.array(resolved, np.int64))
    declared = store.predicates[name]
    uses_ranks = any(ranks for _, _, _, ranks in found)
    trigger = Trigger(
        name,
        sign,
        arity,
        declared.n_keys if declared.is_functional else -1,
        orders,
        max(1, len(relation)),
        [use for use, _, _, _ in found],
        [(plain, order, 2 * len(orders) + p) for plain, order, p in others],
        marks,
        np.array([c for order in orders for c in order], np.int64),
        np.array(joins, np.int64) if joins else np.zeros(V, np.int64),
        np.concatenate(words) if words else np.zeros(1, np.int64),
        np.concatenate(initials) if initials else np.zeros(1, np.int64),
        np.concatenate(initials) if initials else np.zeros(1, np.int64),
        np.zeros(max([1, *(len(a.ranges) for _, a, _, _ in found)]), np.int64),
        max([1, *(a.n_columns for _, a, _, _ in found)]),
        (lambda: store.dictionary.rank) if uses_ranks else (lambda: NO_WORDS),
        frozenset(maintenance.readers.get(name, ())),
        {s.name: s.way for s in _readers(maintenance, store, name)},
        NO_ROOM,
    )
    trigger.one = _room(store.arena, trigger, 1)
    trigger.__post_init__()
    return trigger


def _room(arena: Arena, trigger: Trigger, rows: int) -> Room:
    """For transactions of up to so many rows."""
    k, n_orders, n_joins = trigger.arity, len(trigger.orders), len(trigger.uses)
    marks = [_mark(arena, k, rows) for _ in trigger.mark_orders]
    roots = [index.root for index in marks]
    described = [(root, *order) for root, order in zip(roots, trigger.mark_orders, strict=True)]
    capacity, budget = (CAPACITY, BUDGET) if rows == 1 else (CAPACITY_OF_SOME, BUDGET_OF_SOME)
    op = 1 if trigger.sign == INSERT else 0
    shape = [k, op, n_orders, len(marks), n_joins, capacity, trigger.width, budget]
    available = np.zeros(2 * n_orders + len(trigger.others) + len(marks), np.int64)
    available[len(available) - len(marks) :] = roots
    return Room(
        marks,
        np.array(shape, np.int64),
        np.array(described, np.int64).reshape(-1),
        available,
        np.zeros(max(1, n_joins) * capacity * trigger.width, np.int64),
        np.zeros(n_joins + 2, np.int64),
        np.zeros(rows * k, np.int64),
        np.zeros(rows * k, np.int64),
    )


def _mark(arena: Arena, k: int, rows: int) -> Index:
    """A flat index with room for so many rows, whatever they are."""
    return Index.build(arena, np.repeat(np.arange(rows).reshape(-1, 1), k, axis=1), k)
