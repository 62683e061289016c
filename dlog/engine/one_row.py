"""Owns the short way of a transaction that inserts or erases one base fact.

Correct output: as `maintain`, which it leaves everything to that is not simple.  It is simple when every
stratum that reads the predicate keeps support counts and has only plain joins over it.  Most single rows then
derive nothing and cost one call of a kernel; what they do derive goes on by the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dlog.engine.delta_strategy import DeltaStrategy, counts_name
from dlog.engine.heads import stored_as
from dlog.engine.maintain import Maintenance, maintain
from dlog.engine.one_group import OneGroup, one_group
from dlog.engine.one_kept import OneKept, one_kept
from dlog.engine.one_row_kernels import NOTHING, TOO_LARGE, V, fire
from dlog.engine.rule_deltas import Planned, RuleDeltas
from dlog.engine.store import Store
from dlog.engine.strategy import Cycle
from dlog.heads.counts import apply_counts
from dlog.heads.lookup import look_up
from dlog.ir.rules import Atom, Const, Program, Rule, Var
from dlog.jit import Words
from dlog.lftj.assemble import Assembled
from dlog.lftj.opcodes import CHUNK
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.deltas import INSERT
from dlog.planning.pipeline import Join
from dlog.planning.versions import is_change, is_old, old_name
from dlog.storage.batch import Change
from dlog.storage.index import Index
from dlog.storage.relation import Order, Relation

CAPACITY = 256  # rows of a join that the short way takes
BUDGET = 1 << 14  # operations of a join: about 100 us
REPLAN = 16
FEW_ROWS = 4  # of a head that change one by one
FEW_GROUPS = 4  # assignments of an aggregation that the short way takes
NEVER = object()  # in place of a trigger: rows of a predicate always go the general way


@dataclass(frozen=True)
class _Use:
    """A join of a trigger and where its rows go."""

    strategy: DeltaStrategy
    sign: int
    # For each column of a head: whether it is a slot, and its column or its code.
    heads: tuple[tuple[tuple[bool, int], ...], ...]
    group: OneGroup | OneKept | None = None  # of an aggregation
    ends: bool = False  # whether the heads are read by no rule and cannot give a key two values


# A join, assembled, the atoms it reads as (predicate, columns), and whether it compares strings.
_Found = tuple[_Use, Assembled, tuple[tuple[str, tuple[int, ...]], ...], bool]


@dataclass
class Trigger:
    """What one more or one less row of a predicate sets off.  Valid as long as `fits` says so."""

    name: str
    sign: int
    arity: int
    functional_keys: int  # of a function, else -1
    orders: tuple[Order, ...]
    rows: int  # of the relation when plans were made
    uses: list[_Use]
    others: list[tuple[str, Order, int]]  # predicate, order, place among the available roots
    marks_held: list[Index]
    shape: Words
    order_words: Words
    marks: Words
    available: Words
    joins: Words
    words: Words
    initial: Words
    states: Words
    roots: Words
    ranks: Callable[[], Words]
    out: Words
    counts: Words
    row: Words
    strata: frozenset[int]
    ways: Mapping[str, str]  # of the strata, by their first predicates: see `Cycle.ways`
    seen: dict[str, Relation] = field(default_factory=dict)
    # Views, which are written one word at a time in a third of the time that arrays take.
    most: int = field(init=False)
    places: memoryview = field(init=False)
    row_words: memoryview = field(init=False)

    def __post_init__(self) -> None:
        self.most = self.rows * REPLAN
        self.places, self.row_words = self.available.data, self.row.data

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
                self.available[place] = index.root
        for name, _, _ in self.others:
            self.seen[name] = relations[name]
        return True

    def fire(self, store: Store, relation: Relation, row: tuple[int, ...]) -> int:
        """See `one_row_kernels.fire`."""
        arena, places, words = store.arena, self.places, self.row_words
        for place, index in enumerate(relation._indices.values()):
            places[place] = index.root
        for place, code in enumerate(row):
            words[place] = code
        with arena.lock:
            if arena._pending:
                arena.release_dropped()
            return fire(
                arena.A,
                self.shape,
                self.order_words,
                self.marks,
                self.available,
                self.joins,
                self.words,
                self.initial,
                self.states,
                self.roots,
                self.ranks(),
                self.row,
                self.out,
                self.counts,
            )

    def version(self, relation: Relation) -> Relation:
        """The new version of the predicate: takes over the roots that `fire` made."""
        arena, arity, places = relation.arena, relation.arity, self.places
        place = len(self.orders)
        indices = {}
        for order in self.orders:
            indices[order] = Index(arena, places[place], arity)
            place += 1
        return relation._version(indices)

    def outputs(self) -> list[tuple[_Use, Words]]:
        """Joins that gave rows, with these as (columns, n)."""
        capacity, columns = int(self.shape[5]), int(self.shape[6])
        out = self.out.reshape(-1, columns, capacity)
        counts = self.counts.tolist()
        return [(use, out[j, :, : counts[j]]) for j, use in enumerate(self.uses) if counts[j]]


def follow_row(
    maintenance: Maintenance,
    trigger: Trigger,
    store: Store,
    row: tuple[int, ...],
    begin: Callable[[], Cycle],
) -> tuple[Relation, int] | None:
    """(The predicate's new version, operations); None: not simple, and nothing has been done.

    A row that changes nothing gives the same version.  What the row derives is done in a cycle that `begin`
    makes.
    """
    relation = store.relations[trigger.name]
    if not trigger.bring_roots(store.relations):
        return None
    found = trigger.fire(store, relation, row)
    if found == NOTHING:
        return relation, 0
    if found == TOO_LARGE:
        return None
    later = trigger.version(relation)
    operations = int(trigger.counts[len(trigger.uses)])
    if trigger.functional_keys >= 0 and trigger.sign > 0 and not _is_function(trigger, later, row):
        return None
    if found:
        outputs = trigger.outputs()
        cycle = begin()
        if not all(use.strategy.ready(store) for use, _ in outputs):
            return None
        store.relations[trigger.name] = later
        store.relations[old_name(trigger.name)] = relation
        if not _follow_heads(maintenance, trigger, cycle, outputs):
            return None
    return later, operations


def _is_function(trigger: Trigger, later: Relation, row: tuple[int, ...]) -> bool:
    key = np.array([row[: trigger.functional_keys]], np.int64)
    return int(look_up(later, key)[0][0]) == 1


def _follow_heads(
    maintenance: Maintenance, trigger: Trigger, cycle: Cycle, outputs: list[tuple[_Use, Words]]
) -> bool:
    """False: not simple, the cycle must be dropped."""
    relations = cycle.store.relations
    for strategy in dict.fromkeys(use.strategy for use, _ in outputs):
        own = [(use, output) for use, output in outputs if use.strategy is strategy]
        if any(use.group is not None for use, _ in own):
            use, output = own[0]
            small = len(own) == 1 and output.shape[1] <= FEW_GROUPS
            if use.group is None or not small or not use.group.follow(cycle, output, use.sign):
                return False
            continue
        parts = [_head_rows(head, output, use.sign) for use, output in own for head in use.heads]
        rows, signs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        counts, head = counts_name(strategy.name), relations[strategy.name]
        alone = not len(relations[counts]) and strategy.counts_are_one(cycle.store)
        if alone and len(rows) <= FEW_ROWS:
            cycle.publish(strategy.name, *_change_few(head, rows, signs))
            continue
        later, relations[counts], change = apply_counts(head, relations[counts], rows, signs)
        cycle.publish(strategy.name, later, change)
    if all(use.ends for use, _ in outputs):  # nothing is to be checked, and nobody reads the heads
        for use, _ in outputs:
            relations.pop(old_name(use.strategy.name), None)
        del relations[old_name(trigger.name)]
        return True
    maintain(maintenance, cycle, done=trigger.strata)
    for name in [n for n in relations if is_old(n) or is_change(n)]:
        del relations[name]
    return True


def _change_few(head: Relation, rows: Words, signs: Words) -> tuple[Relation, Change]:
    """A few rows of a head in which each has one derivation or none."""
    net: dict[tuple[int, ...], int] = {}
    for row, sign in zip(map(tuple, rows.tolist()), signs.tolist(), strict=True):
        net[row] = net.get(row, 0) + sign
    inserted = sorted(row for row, sign in net.items() if sign > 0)
    erased = sorted(row for row, sign in net.items() if sign < 0)
    for change, few in ((Relation.erase_row, erased), (Relation.insert_row, inserted)):
        for row in few:
            changed = change(head, row)
            assert changed is not None, "a row has two derivations, or none to lose"
            head = changed
    k = head.arity
    return head, Change(
        np.array(inserted, np.int64).reshape(-1, k), np.array(erased, np.int64).reshape(-1, k)
    )


def _head_rows(head: tuple[tuple[bool, int], ...], output: Words, sign: int) -> tuple[Words, Words]:
    """Rows of a head, and what they count."""
    n = output.shape[1]
    rows = np.empty((n, len(head)), np.int64)
    for c, (is_slot, word) in enumerate(head):
        rows[:, c] = output[word] if is_slot else word
    return rows, np.full(n, sign)


def find_trigger(maintenance: Maintenance, store: Store, name: str, sign: int) -> Trigger | None:
    """The trigger of a predicate, made at its first use; None: its rows go the general way."""
    key = (name, sign)
    trigger = maintenance.triggers.get(key)
    if isinstance(trigger, Trigger) and trigger.fits(store.relations[name]):
        return trigger
    if trigger is NEVER:
        return None
    if not _is_simple(maintenance, store, name):
        maintenance.triggers[key] = NEVER
        return None
    maintenance.prepare(maintenance.readers.get(name, ()), store)
    strategies = _readers(maintenance, store, name)
    if not all(strategy.ready(store) for strategy in strategies):
        return None  # until the first transaction has made their counts
    made = _make(maintenance, store, name, sign, strategies)
    maintenance.triggers[key] = NEVER if made is None else made
    return made


def _readers(maintenance: Maintenance, store: Store, name: str) -> list[DeltaStrategy]:
    strategies = [maintenance.strategy(number, store) for number in maintenance.readers.get(name, ())]
    return [s for s in strategies if type(s) is DeltaStrategy]


def _is_simple(maintenance: Maintenance, store: Store, name: str) -> bool:
    program = maintenance.program
    if name in maintenance.owner or program.predicates[name].arity == 0 or _meets_table(maintenance, name):
        return False
    strategies = _readers(maintenance, store, name)
    if len(strategies) < len(maintenance.readers.get(name, ())):
        return False
    if any(s.by_existence or (s.aggregates and s.plain) for s in strategies):
        return False
    return _reads_apart(maintenance, program, name)


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
                    made = _use(store, strategy, deltas, planned, _is_read(maintenance, strategy.name))
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


def _is_read(maintenance: Maintenance, name: str) -> bool:
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
    targets = [_head(store, deltas.rule, head, join.outputs) for head in heads]
    if any(t is None for t in targets):
        return None
    ends = not is_read and not store.predicates[strategy.name].is_functional
    use = _Use(strategy, planned.variant.sign, tuple(t for t in targets if t is not None), ends=ends)
    return _found(deltas, join, use)


def _group_use(
    store: Store, strategy: DeltaStrategy, deltas: RuleDeltas, planned: Planned, join: Join, is_read: bool
) -> _Found | None:
    group = one_group(store, strategy, join.outputs) or one_kept(store, strategy, join.outputs)
    if group is None:
        return None
    ends = not is_read and _has_one_value(store, strategy.name, group)
    return _found(deltas, join, _Use(strategy, planned.variant.sign, (), group, ends))


def _has_one_value(store: Store, name: str, group: OneGroup | OneKept) -> bool:
    """Whether rows of a head with one key are of one group."""
    declared = store.predicates[name]
    keys = {place for place in group.head[: declared.n_keys] if place[0] == "group"}
    return not declared.is_functional or len(keys) == len(group.groups)


def _found(deltas: RuleDeltas, join: Join, use: _Use) -> _Found:
    plan = deltas.runner.planned(join, list(join.forms), join.outputs, None)
    atoms = tuple((atom.predicate, atom.columns) for atom in plan.compiled.atoms)
    return use, plan.assembled, atoms, plan.compiled.uses_ranks


def _head(
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
    marks: dict[Order, Index] = {}
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
                marks[order] = Index.build(store.arena, [tuple(range(arity))], arity)
            return -1 - list(marks).index(order)
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
    available = np.zeros(first_mark + len(marks), np.int64)
    available[first_mark:] = [index.root for index in marks.values()]
    declared = store.predicates[name]
    width = max([1, *(a.n_columns for _, a, _, _ in found)])
    uses_ranks = any(ranks for _, _, _, ranks in found)
    shape = [
        arity,
        1 if sign == INSERT else 0,
        len(orders),
        len(marks),
        len(found),
        CAPACITY,
        width,
        BUDGET,
    ]
    return Trigger(
        name,
        sign,
        arity,
        declared.n_keys if declared.is_functional else -1,
        orders,
        max(1, len(relation)),
        [use for use, _, _, _ in found],
        [(plain, order, 2 * len(orders) + p) for plain, order, p in others],
        list(marks.values()),
        np.array(shape, np.int64),
        np.array([c for order in orders for c in order], np.int64),
        np.array([w for order, index in marks.items() for w in (index.root, *order)], np.int64),
        available,
        np.array(joins, np.int64) if joins else np.zeros(V, np.int64),
        np.concatenate(words) if words else np.zeros(1, np.int64),
        np.concatenate(initials) if initials else np.zeros(1, np.int64),
        np.concatenate(initials) if initials else np.zeros(1, np.int64),
        np.zeros(max([1, *(len(a.ranges) for _, a, _, _ in found)]), np.int64),
        (lambda: store.dictionary.rank) if uses_ranks else (lambda: NO_WORDS),
        np.zeros(max(1, len(found)) * CAPACITY * width, np.int64),
        np.zeros(len(found) + 1, np.int64),
        np.zeros(arity, np.int64),
        frozenset(maintenance.readers.get(name, ())),
        {s.name: s.way for s in _readers(maintenance, store, name)},
    )


def one_row_change(trigger: Trigger, row: tuple[int, ...]) -> Change:
    rows, none = np.array([row], np.int64), np.empty((0, trigger.arity), np.int64)
    return Change(rows, none) if trigger.sign > 0 else Change(none, rows)
