"""Owns the search for triggers: which predicates have one, and how it is put together.

A predicate has one if every stratum that reads it has state already and reads it in plain joins only, or has
a short path of its own.  What a trigger does when it is fired: see `trigger`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dlog.engine.maintain.accounts import Account
from dlog.engine.maintain.body_changes import BodyChanges, Planned
from dlog.engine.maintain.heads.sets import counts_name
from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import Strategy
from dlog.engine.maintain.triggers.group_trigger import GroupTrigger, OtherGroups, group_trigger
from dlog.engine.maintain.triggers.kernels import V_SOURCES, V
from dlog.engine.maintain.triggers.terminal_head import CountedHead, JoinedHead, ReportedHead, Target
from dlog.engine.maintain.triggers.trigger import MOST_ROWS, Joins, Trigger, Use
from dlog.engine.state.store import Store
from dlog.heads.group_kernels import GROUP
from dlog.ir.analysis.projection import stored_as
from dlog.ir.rules import Atom, Const, Rule, Var
from dlog.jit import Words
from dlog.lftj.assemble import Assembled
from dlog.lftj.opcodes import CHUNK
from dlog.planning.deltas import ERASE, INSERT, Variant
from dlog.planning.pipeline import Join
from dlog.planning.versions import erased_name, inserted_name, is_change, old_name
from dlog.storage.relation.relation import Order, Relation

NEVER: Any = object()  # in place of a trigger: rows of a predicate always take the general path

# A join, assembled, the atoms it reads as (predicate, columns), and whether it compares strings.
_Found = tuple[Use, Assembled, tuple[tuple[str, tuple[int, ...]], ...], bool]


def find_trigger(maintenance: Maintenance, store: Store, name: str, sign: int) -> Trigger | None:
    """The trigger of a predicate, made at its first use; None: its rows take the general path.

    When a trigger is made, the store's relations become another dict: others may hold the old one."""
    key = (name, sign)
    trigger = maintenance.triggers.get(key)
    if trigger is NEVER:
        return None
    if trigger is not None and trigger.fits(store.relations[name]):
        return trigger
    updated = maintenance.updated(name, store)
    if any(maintenance.is_outgrown(n, store) or maintenance.is_stale(n, store) for n in updated):
        return None  # the general path chooses again, or evaluates
    if not _may_trigger(maintenance, store, name):
        maintenance.triggers[key] = NEVER
        return None
    store.relations = store.relations.copy()  # strategies add what they need; a refusal takes it back
    if _have_own_trigger(maintenance, store, name) or not _is_simple(maintenance, store, name):
        return _other_trigger(maintenance, store, key)
    return _prepared(maintenance, store, key)


def find_derived(
    maintenance: Maintenance, store: Store, first: Trigger, name: str, before: Relation, sign: int
) -> Trigger | None:
    """The same for a predicate that follows from another one, whose trigger was the first."""
    key = (name, 2 * sign)  # one of its own: base facts of the predicate may change, too
    trigger = maintenance.triggers.get(key)
    if trigger is NEVER:
        return None
    if trigger is not None and trigger.fits(before):
        return trigger
    readers = [maintenance.program.strata[number] for number in maintenance.readers.get(name, ())]
    others = {p for stratum in readers for p in stratum.reads - {*stratum.predicates, name}}
    is_met = first.name in others or not first.following.isdisjoint(others)
    if is_met or maintenance.program.predicates[name].is_functional:
        maintenance.triggers[key] = NEVER
        return None
    updated = maintenance.updated(name, store)
    if any(maintenance.is_outgrown(n, store) or maintenance.is_stale(n, store) for n in updated):
        return None
    if not _is_simple(maintenance, store, name) or is_checked(maintenance, name):
        maintenance.triggers[key] = NEVER
        return None
    made = _prepared(maintenance, store, key)
    return made if made is not None and made.fits(before) else None


def _prepared(maintenance: Maintenance, store: Store, key: tuple[str, int]) -> Trigger | None:
    name, sign = key[0], INSERT if key[1] > 0 else ERASE
    maintenance.prepare(maintenance.updated(name, store), store)
    strategies, recursive = _readers(maintenance, store, name), _recursive(maintenance, store, name)
    if not all(s.ready(store) for s in strategies) or not all(s.ready(store) for s in recursive):
        return None  # until the first transaction has made their counts
    paths = [strategy.short_path(store, name, sign) for strategy in recursive]
    made = None if None in paths else _make(maintenance, store, key, strategies)
    if made is not None:
        if abs(key[1]) == 1:  # of a base predicate: whatever it derives may be asked for what follows
            made.following = frozenset(_following(maintenance, name))
        made.follow_in([path for path in paths if path is not None])
        # A trigger may be made long after the choice, for more rows.
        made.most = min(made.most, maintenance.most_rows(name, maintenance.updated(name, store)) or made.most)
    maintenance.triggers[key] = NEVER if made is None else made
    return made


def let_go(maintenance: Maintenance) -> None:
    """Before a transaction that takes the general path: triggers hold no versions that it replaces."""
    for trigger in maintenance.triggers.values():
        if trigger is not NEVER:
            trigger.let_go()


def _other_trigger(maintenance: Maintenance, store: Store, key: tuple[str, int]) -> Trigger | None:
    """The trigger of a predicate whose readers have one of their own."""
    name, sign = key
    strategies = [maintenance.strategy(number, store) for number in maintenance.updated(name, store)]
    if any(s.fires_joins for s in strategies):
        maintenance.triggers[key] = NEVER
        return None
    if not all(strategy.ready(store) for strategy in strategies):
        return None
    first, *rest = strategies
    is_for_all = all(first.triggers_with(other) for other in rest)
    made = first.trigger(maintenance, store, name, sign) if is_for_all else None
    if made is not None:
        made.following = frozenset(_following(maintenance, name))
    maintenance.triggers[key] = NEVER if made is None else made
    return made


def _may_trigger(maintenance: Maintenance, store: Store, name: str) -> bool:
    program = maintenance.program
    if name in maintenance.owner or program.predicates[name].arity == 0 or _meets_table(maintenance, name):
        return False
    following = _following(maintenance, name)
    for number in maintenance.updated(name, store):  # no reader may read something else that follows
        if (maintenance.reads_of(number, store) - {*program.strata[number].predicates}) & following:
            return False
    return True


def _readers(maintenance: Maintenance, store: Store, name: str) -> list[RuleStrategy]:
    strategies = [maintenance.strategy(number, store) for number in maintenance.updated(name, store)]
    return [cast(RuleStrategy, s) for s in strategies if s.fires_joins]


def _recursive(maintenance: Maintenance, store: Store, name: str) -> list[Strategy]:
    strategies = [maintenance.strategy(number, store) for number in maintenance.updated(name, store)]
    return [s for s in strategies if s.has_short_path]


def _have_own_trigger(maintenance: Maintenance, store: Store, name: str) -> bool:
    updated = maintenance.updated(name, store)
    return bool(updated) and all(maintenance.strategy(number, store).has_own_trigger for number in updated)


def of_predicate(
    maintenance: Maintenance, store: Store, name: str, sign: int, ways: Mapping[str, str]
) -> dict[str, Any]:
    """What every trigger says of the predicate whose rows it takes, for one that runs no joins."""
    relation, declared = store.relations[name], store.predicates[name]
    return {
        "name": name,
        "sign": sign,
        "arity": declared.arity,
        "functional_keys": declared.n_keys if declared.is_functional else -1,
        "orders": tuple(relation.orders),
        "rows": max(1, len(relation)),
        "uses": [],
        "joins": Joins(()),
        "ranks": None,
        "strata": frozenset(maintenance.updated(name, store)),
        "ways": ways,
        "accounts": accounts(maintenance, store, name),
        "arena": store.arena,
    }


def accounts(maintenance: Maintenance, store: Store, name: str) -> list[Account]:
    """Of the strata that a trigger brings up to date."""
    ways = {n: maintenance.strategy(n, store) for n in maintenance.updated(name, store)}
    return [maintenance.account(n, strategy.way) for n, strategy in ways.items()]


def _is_simple(maintenance: Maintenance, store: Store, name: str) -> bool:
    strategies = _readers(maintenance, store, name)
    recursive = _recursive(maintenance, store, name)
    if len(strategies) + len(recursive) < len(maintenance.updated(name, store)):
        return False
    return not any(s.aggregates and s.plain for s in strategies)


def _meets_table(maintenance: Maintenance, name: str) -> bool:
    """Whether a predicate is said never to change, or one that may follow from it."""
    return any(table == name or table in maintenance.owner for table in maintenance.tables)


def _make(
    maintenance: Maintenance, store: Store, key: tuple[str, int], strategies: list[RuleStrategy]
) -> Trigger | None:
    (name, sign), found = key, list[_Found]()
    changed, most_rows = (inserted_name if sign > 0 else erased_name)(name), MOST_ROWS
    for strategy in strategies:
        for deltas in (*strategy.plain, *(a.deltas for a in strategy.aggregates)):
            variants = [planned for planned in deltas.variants if planned.variant.change.predicate == changed]
            repeated = _repeated_signs(strategy, [planned.variant for planned in variants])
            if repeated is None:
                return None
            for planned in variants:
                made = _use(store, strategy, deltas, planned, is_read(maintenance, strategy.name), repeated)
                if made is None:
                    return None
                if planned.variant.group >= 0 and not made[0].repeats:
                    most_rows = 1
                found.append(made)
    trigger = _assembled(maintenance, store, key, found)
    trigger.most_rows = most_rows
    return trigger


def _repeated_signs(strategy: RuleStrategy, variants: Sequence[Variant]) -> set[int] | None:
    """The signs with which the variants of a change may give an assignment several times, which counts once;
    None: it cannot be seen in what joins give how much it counts."""
    found = {variant.sign for variant in variants if not variant.once_per_row}
    if found and not strategy.aggregates and not strategy.derives_once:
        return None
    for sign in found:
        if len({variant.group for variant in variants if variant.sign == sign}) > 1:
            return None
    return found


def _following(maintenance: Maintenance, name: str) -> set[str]:
    """All predicates that may follow from one."""
    following: set[str] = set()
    waiting = [name]
    while waiting:
        for number in maintenance.readers.get(waiting.pop(), ()):
            for head in maintenance.program.strata[number].predicates:
                if head not in following:
                    following.add(head)
                    waiting.append(head)
    return following


def is_read(maintenance: Maintenance, name: str) -> bool:
    """Whether anything follows from a predicate: other rules, or an error.  Queries that are evaluated
    whenever they are read are none."""
    queries = maintenance.modes.queries
    return not queries.issuperset(maintenance.readers.get(name, ())) or is_checked(maintenance, name)


def is_checked(maintenance: Maintenance, name: str) -> bool:
    """Whether rows of a predicate are an error."""
    return name in maintenance.program.violations


def takes_short_path(store: Store, strategy: RuleStrategy, name: str) -> bool:
    """Whether rows of a predicate that a strategy reads need no more than joins and simple heads.  Runs and
    plans nothing."""
    if strategy.aggregates and strategy.plain:
        return False
    return all(
        _is_short(store, strategy, deltas, change(name))
        for deltas in strategy.bodies
        for change in (inserted_name, erased_name)
    )


def groups_take_one_call(store: Store, strategy: RuleStrategy) -> bool:
    """Whether a kernel call changes the groups of an aggregation, or there are none."""
    for deltas in strategy.bodies if strategy.aggregates else ():
        for planned in deltas.variants[:1]:
            group = group_trigger(store, strategy, planned.pipeline.outputs)
            if isinstance(group, OtherGroups) and not group.defers_texts:
                return False
    return True


def _is_short(store: Store, strategy: RuleStrategy, deltas: BodyChanges, change: str) -> bool:
    variants = [planned for planned in deltas.variants if planned.variant.change.predicate == change]
    repeated = _repeated_signs(strategy, [planned.variant for planned in variants])
    if repeated is None:
        return False
    return all(_target(store, strategy, deltas, planned, True, repeated) is not None for planned in variants)


def _use(
    store: Store,
    strategy: RuleStrategy,
    deltas: BodyChanges,
    planned: Planned,
    is_read: bool,
    repeated: Collection[int],
) -> _Found | None:
    use = _target(store, strategy, deltas, planned, is_read, repeated)
    join, *_ = planned.pipeline.operations
    return None if use is None else _found(deltas, cast(Join, join), use)


def _target(
    store: Store,
    strategy: RuleStrategy,
    deltas: BodyChanges,
    planned: Planned,
    is_read: bool,
    repeated: Collection[int],
) -> Use | None:
    """Where the rows of a variant go; None if it is not simple."""
    operations, variant = planned.pipeline.operations, planned.variant
    if len(operations) != 1 or not isinstance(operations[0], Join):
        return None
    outputs, repeats = operations[0].outputs, tuple[int, ...]()
    if variant.sign in repeated:
        if not variant.outer or not set(variant.outer) <= set(outputs):
            return None
        repeats = tuple(map(outputs.index, variant.outer))
    if strategy.aggregates:
        group = group_trigger(store, strategy, outputs)
        if group is None or (repeats and not isinstance(group, GroupTrigger)):
            return None
        ends = not is_read and has_one_value(store, strategy.name, group)
        return Use(strategy, variant.sign, (), group, ends, repeats)
    heads = [h for h in deltas.rule.heads if h.predicate == strategy.name]
    targets = [plain_head(store, deltas.rule, head, outputs) for head in heads]
    if any(t is None for t in targets):
        return None
    ends = not is_read and not (strategy.head.is_stored and store.predicates[strategy.name].is_functional)
    found = tuple(t for t in targets if t is not None)
    return Use(strategy, variant.sign, found, ends=ends, repeats=repeats)


def has_one_value(store: Store, name: str, group: GroupTrigger | OtherGroups) -> bool:
    """Whether rows of a head with one key are of one group."""
    declared = store.predicates[name]
    keys = {place for place in group.head[: declared.n_keys] if place[0] == GROUP}
    return not declared.is_functional or len(keys) == len(group.groups)


def _found(deltas: BodyChanges, join: Join, use: Use) -> _Found:
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


def _assembled(maintenance: Maintenance, store: Store, key: tuple[str, int], found: list[_Found]) -> Trigger:
    name, sign = key[0], INSERT if key[1] > 0 else ERASE
    for _, _, atoms, _ in found:  # every order that some plan reads
        for predicate, columns in atoms:
            if not is_change(predicate):
                store.index(predicate.removeprefix(old_name("")), columns)
    relation, declared = store.relations[name], store.predicates[name]
    assembly = _Assembly(store, name)
    for _, assembled, atoms, _ in found:
        assembly.add(assembled, atoms)
    uses_ranks = any(ranks for _, _, _, ranks in found)
    uses, joins = [use for use, _, _, _ in found], assembly.joins()
    return Trigger(
        name,
        sign,
        declared.arity,
        declared.n_keys if declared.is_functional else -1,
        assembly.orders,
        max(1, len(relation)),
        uses,
        joins,
        (lambda: store.dictionary.rank) if uses_ranks else None,
        frozenset(maintenance.updated(name, store)),
        {s.name: s.way for s in _readers(maintenance, store, name)},
        accounts(maintenance, store, name),
        store.arena,
        is_given=abs(key[1]) > 1,
        ended=terminal_head(store, uses, joins.width),
    )


def head_alone(uses: Sequence[Use], store: Store, width: int | None = None) -> str | None:
    """The head of joins if it is the only one, has the columns that they give first (or all, if these are
    `width`), no rule reads it and no row of it has two derivations."""
    if not uses or any(use.strategy is not uses[0].strategy or not use.ends for use in uses):
        return None
    strategy = uses[0].strategy
    arity = store.predicates[strategy.name].arity
    whole = tuple((True, place) for place in range(arity))
    is_alone = arity > 0 and width in (None, arity) and all(use.heads == (whole,) for use in uses)
    return strategy.name if is_alone and strategy.counts_are_one(store) else None


def terminal_head(
    store: Store, uses: Sequence[Use], width: int, weights: int = -1
) -> JoinedHead | CountedHead | ReportedHead | None:
    """What all joins lead to, if a kernel can change it by what they give.  `weights`: the column that says
    what a row counts, or -1."""
    name = head_alone(uses, store)
    if name is not None and len({use.sign for use in uses}) == 1 and not any(use.repeats for use in uses):
        if not uses[0].strategy.head.is_stored:
            return ReportedHead(name, store.predicates[name].arity, len(uses), width, uses[0].sign > 0)
        return JoinedHead(name, store.relations[name], len(uses), width, uses[0].sign > 0)
    if not uses or not all(use.ends and len(use.heads) == 1 for use in uses):
        return None
    strategy = uses[0].strategy
    if strategy.by_existence or not strategy.head.is_stored:
        return None
    if any(use.strategy is not strategy for use in uses):
        return None
    head, counts = store.relations[strategy.name], store.relations.get(counts_name(strategy.name))
    if not head.arity or counts is None or counts.orders[0] != tuple(range(counts.arity)):
        return None
    targets = [Target(use.sign, use.heads[0], bool(use.repeats), weights) for use in uses]
    return CountedHead(strategy.name, head, counts, targets, width)


class _Assembly:
    """Joins as they are put together: 1 each is added, 2 the places of marks are known."""

    def __init__(self, store: Store, name: str):
        self.store, self.name = store, name
        self.arity = store.predicates[name].arity
        self.orders = tuple(store.relations[name].orders)
        self.others: dict[tuple[str, Order], int] = {}  # (predicate, order) -> its place behind the own ones
        self.marks: list[Order] = []
        self.table: list[int] = []
        self.sources: list[list[int]] = []  # of each join, by atom; -1, -2, ...: marks
        self.words: list[Words] = []
        self.initials: list[Words] = []
        self.n_ranges, self.width = 1, 1

    def add(self, join: Assembled, atoms: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        initial = len(join.initial) - CHUNK
        state = sum(map(len, self.initials))
        self.sources.append([self._place(predicate, columns) for predicate, columns in atoms])
        self.table += [self._put(join.code), state, initial, self._put(join.levels), 0, len(atoms)]
        self.initials.append(join.initial)
        self.n_ranges = max(self.n_ranges, len(join.ranges))
        self.width = max(self.width, join.n_columns)

    def joins(self) -> Joins:
        own = 2 * len(self.orders)
        first_mark = own + len(self.others)
        for number, places in enumerate(self.sources):
            resolved = [first_mark - 1 - place if place < 0 else place for place in places]
            self.table[number * V + V_SOURCES] = self._put(np.array(resolved, np.int64))
        if not self.sources:
            return Joins(())
        return Joins(
            [(plain, order, own + place) for (plain, order), place in self.others.items()],
            self.marks,
            np.array(self.table, np.int64),
            np.concatenate(self.words),
            np.concatenate(self.initials),
            self.n_ranges,
            self.width,
        )

    def _place(self, predicate: str, columns: tuple[int, ...]) -> int:
        """Of the root that an atom reads, among those that are available."""
        if is_change(predicate):
            order = (*columns, *(c for c in range(self.arity) if c not in columns))
            if order not in self.marks:
                self.marks.append(order)
            return -1 - self.marks.index(order)
        plain = predicate.removeprefix(old_name(""))
        order = next(o for o in self.store.relations[plain].orders if o[: len(columns)] == columns)
        if plain == self.name:
            at = self.orders.index(order)
            return at if predicate != plain else len(self.orders) + at
        return 2 * len(self.orders) + self.others.setdefault((plain, order), len(self.others))

    def _put(self, array: Words) -> int:
        at = sum(map(len, self.words))
        self.words.append(array)
        return at
