"""Owns triggers: what inserting or erasing rows of a predicate causes, ready to be fired.

Firing is one kernel call for one row or several: it changes all indices and runs all delta joins.
`trigger_search` knows which predicates have triggers, `small_transaction` what happens to the rows that joins
return.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dlog.engine.body.replan import REPLAN, is_alike
from dlog.engine.commit.oracle_report import ReportsOnRequest, no_reports
from dlog.engine.maintain.accounts import Account
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import ShortPath
from dlog.engine.maintain.triggers import kernels as k
from dlog.engine.maintain.triggers.group_trigger import GroupTrigger, OtherGroups
from dlog.engine.maintain.triggers.terminal_head import CountedHead, JoinedHead, ReportedHead
from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.lftj.opcodes import NEXTS, SEEKS
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.deltas import INSERT
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index
from dlog.storage.layout import N_ROWS
from dlog.storage.relation.relation import Order, Relation

Rows = Sequence[tuple[int, ...]] | Words  # of codes

MOST_ROWS = 1024  # of a transaction
CAPACITY = 256  # rows of a join that the short path takes
CAPACITY_OF_SOME = 1 << 13  # the same for several rows at once
BUDGET = 1 << 14  # operations of a join: about 100 us
BUDGET_OF_SOME = 1 << 17  # the same for several rows at once
NO_WORD = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Use:
    """A join of a trigger and where its rows go."""

    strategy: RuleStrategy
    sign: int
    # For each column of a head: whether it is a slot, and its column or its code.
    heads: tuple[tuple[tuple[bool, int], ...], ...]
    group: GroupTrigger | OtherGroups | None = None  # of an aggregation
    ends: bool = False  # whether the heads are read by no rule and cannot give a key two values
    # If an assignment may come several times, also from other joins of the sign, and counts once: the columns
    # of a join's output that say which one it is.
    repeats: tuple[int, ...] = ()


class Output(NamedTuple):
    """The rows that a join gave: column c of row i is words[c * stride + i]."""

    use: Use
    words: Words
    stride: int
    n: int

    def column(self, c: int) -> Words:
        return self.words[c * self.stride : c * self.stride + self.n]


class Joins(NamedTuple):
    """The joins of a trigger as the kernel has them."""

    others: Sequence[tuple[str, Order, int]]  # predicate, order, place among the available roots
    mark_orders: Sequence[Order] = ()
    table: Words = NO_WORD
    words: Words = NO_WORD
    initial: Words = NO_WORD
    most_atoms: int = 1
    width: int = 1  # columns of an output


class Room:
    """What a kernel reads and writes for transactions up to a size."""

    def __init__(self, n_orders: int, shape: Words, available: Words, rows: Words):
        self.shape, self.available, self.rows = shape, available, rows
        # Views, which are written and read one word at a time in a third of the time that arrays take.
        self.places, self.row_words = available.data, rows.data
        self.new_roots = self.places[n_orders : 2 * n_orders]  # what a firing makes of the predicate's own


class JoinRoom(Room):
    """Of `kernels.fire`, for up to so many rows."""

    def __init__(self, trigger: Trigger, arena: Arena, rows: int):
        arity, joins, n_joins, n_orders = trigger.arity, trigger.joins, len(trigger.uses), len(trigger.orders)
        self.marks = [_mark(arena, arity, rows) for _ in joins.mark_orders]
        marks = [(m.root, *order) for m, order in zip(self.marks, joins.mark_orders, strict=True)]
        self.capacity, budget = (CAPACITY, BUDGET) if rows == 1 else (CAPACITY_OF_SOME, BUDGET_OF_SOME)
        self.layout = layout = np.zeros(k.L, np.int64)
        op = k.GIVEN if trigger.is_given else 1 if trigger.sign == INSERT else 0
        layout[: k.ORDERS] = (
            *(arity, op, n_orders, len(marks), n_joins, self.capacity, joins.width, budget),
        )
        layout[k.KEYS] = keys = trigger.functional_keys if op == 1 else -1
        layout[k.NATURAL] = trigger.orders.index(tuple(range(arity))) if keys >= 0 else 0
        for name, part in (
            (k.ORDERS, trigger.order_words),
            (k.MARKS, np.array(marks, np.int64).reshape(-1)),
            (k.JOINS, joins.table),
            (k.WORDS, joins.words),
            (k.INITIAL, joins.initial),
        ):
            self.layout[name] = len(self.layout)
            self.layout = np.concatenate([self.layout, part])
        written = {
            k.AVAILABLE: 2 * n_orders + len(joins.others) + len(marks),
            k.ROWS: rows * arity,
            k.NET: rows * arity,
            k.COUNTS: n_joins + 2,
            k.STATES: len(joins.initial),
            k.ROOTS: joins.most_atoms,
            k.OUT: max(1, n_joins) * self.capacity * joins.width,
        }
        starts = np.cumsum([0, *written.values()]).tolist()
        self.layout[list(written)] = starts[:-1]
        self.written = np.zeros(starts[-1], np.int64)
        available, given, net, counts, self.states, _, self.out = (
            self.written[start:end] for start, end in itertools.pairwise(starts)
        )
        self.states[: len(joins.initial)] = joins.initial
        available[len(available) - len(marks) :] = [mark.root for mark in self.marks]
        self.net, self.counts, self.tallies = net, counts, counts.data
        super().__init__(n_orders, self.layout, available, given)


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
    joins: Joins
    ranks: Callable[[], Words] | None  # of strings, where joins compare these
    strata: frozenset[int]
    ways: Mapping[str, str]  # of the strata, by their first predicates: see `Cycle.ways`
    accounts: Sequence[Account]  # of the strata: what they took
    arena: InitVar[Arena]
    room: InitVar[Room | None] = None
    most_rows: int = MOST_ROWS  # of one firing
    is_given: bool = False  # firing finds the predicate changed, as what is derived is
    one: Any = field(init=False)  # a JoinRoom, or what a trigger of another kind has
    some: JoinRoom | None = None  # for several rows, made when they first come
    seen: dict[str, Relation] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # of the other predicates when plans were made
    outgrown: bool = False  # the plans are for other sizes of these
    # What all joins lead to, if no rule reads it.
    ended: JoinedHead | CountedHead | ReportedHead | None = None
    partner: Trigger | None = None  # of the other sign, once it is known to lead to the same groups
    recursions: Sequence[ShortPath] = ()  # recursive strata that read the predicate
    following: frozenset[str] = frozenset()  # all that may follow from the predicate
    used: JoinRoom = field(init=False)  # by the last firing
    alone: GroupTrigger | None = field(init=False)  # what the only join leads to, if no rule reads its head
    reads_others: bool = field(init=False)  # roots besides those of the predicate
    keeps_state: ClassVar[bool] = (
        False  # firing changes the state of strategies: see `put_state` and `oracle_reports`
    )
    has_reports: ClassVar[bool] = False  # firing may make `oracle_reports`
    checks_keys: ClassVar[bool] = True  # firing refuses rows that give a key two values

    def __post_init__(self, arena: Arena, room: Room | None) -> None:
        ends = [use.group for use in self.uses if use.ends]
        self.alone = ends[0] if len(self.uses) == 1 and ends and isinstance(ends[0], GroupTrigger) else None
        self.reads_others = self.keeps_state or bool(self.joins.others)
        self.least, self.most = -(-self.rows // REPLAN), self.rows * REPLAN
        self.order_words = np.array([c for order in self.orders for c in order], np.int64)
        self.one = room or JoinRoom(self, arena, 1)
        self.used = self.one
        self.places, self.row_words = self.one.places, self.one.row_words
        self.kernel: Callable[..., int] = k.fire

    def follow_in(self, recursions: Sequence[ShortPath]) -> None:
        """These strata read the predicate, too."""
        self.recursions = recursions
        strategies = [path.strategy for path in recursions]
        self.ways = {**self.ways, **{s.stratum.predicates[0]: s.way for s in strategies}}

    def fits(self, relation: Relation) -> bool:
        return not self.outgrown and self.least <= relation.rows_in(self.orders) <= self.most

    def bring_roots(self, relations: Mapping[str, Relation], committed: Mapping[str, Relation]) -> bool:
        """Look up the indices of other predicates again where these have new versions; False: one has no such
        index, or has grown or shrunk so much that another plan may be better.  `committed` are the relations
        that the transaction found."""
        for name, order, place in self.joins.others:
            relation = relations[name]
            if self.seen.get(name) is not relation:
                root = relation.root_of(order)
                if root is None:
                    return False
                rows = relation.arena.words[root + N_ROWS]
                if not is_alike(rows, self.sizes.setdefault(name, rows)):
                    self.outgrown = True
                    return False
                self.places[place] = root
        for name, _, _ in self.joins.others:
            self.seen[name] = relations[name]
        return True

    def let_go(self) -> None:
        """Hold no version any more: others are going to take their place."""
        self.seen.clear()

    def fire(self, arena: Arena, relation: Relation, rows: Rows) -> int:
        """See `kernels.fire`."""
        relation.put_roots(self.places)
        n, kernel, room = len(rows), self.kernel, self.one
        if n == 1:
            words = self.row_words
            for place, code in enumerate(rows[0]):
                words[place] = code
        elif n > self.most_rows:
            return k.TOO_LARGE
        else:
            room = self._room_with(arena, rows)
        self.used = room
        with arena.lock:
            arena.hand_over()
            ranks = NO_WORDS if self.ranks is None else self.ranks()
            found: int = kernel(arena.A, room.layout, room.written, ranks, n)
        if kernel is k.fire:  # from now on its machine code, without the 0.2 us of finding it
            self.kernel = getattr(kernel, "target", kernel)
        return found

    def fire_changed(self, arena: Arena, before: Relation, after: Relation, rows: Words) -> int:
        """The same for a predicate that has changed already: only the joins run."""
        after.put_roots(self.places)
        self.places[len(self.orders) : 2 * len(self.orders)] = self.places[: len(self.orders)]
        return self.fire(arena, before, rows)

    def _room_with(self, arena: Arena, rows: Rows) -> JoinRoom:
        """Room with several rows in it."""
        room = self.some = self.some or JoinRoom(self, arena, MOST_ROWS)
        kept = len(room.available) - len(room.marks)
        room.available[:kept] = self.one.available[:kept]
        room.rows[: len(rows) * self.arity] = np.asarray(rows, np.int64).reshape(-1)
        return room

    def put_state(self, relations: dict[str, Relation]) -> None:
        """What else the last firing changed, besides the predicate: what strategies keep.  Called once, so
        that a trigger holds no version."""

    def changed_heads(self, store: Store, found: int) -> Mapping[str, Change] | None:
        """The changes of heads that end here, which are carried out; None: they are to be found by `outputs`.
        REQUIRES: the last firing gave so many rows, and some."""
        if self.ended is None:
            return None
        room = self.used
        return self.ended.follow(store.relations, found, room.out, room.counts, room.capacity)

    def own_heads(self) -> dict[str, tuple[Relation, Change]]:
        """New version and net change of heads that the last firing has changed, which other rules read.
        Asked once."""
        return {}

    def oracle_reports(self) -> ReportsOnRequest:
        """Where the last firing re-examined a rule that is maintained by its trace."""
        return no_reports

    @property
    def operations(self) -> int:
        """Of the last firing."""
        return self.used.tallies[len(self.uses)]

    def costs_by_name(self) -> Mapping[str, int]:
        costs = self.costs()
        return dict.fromkeys(self.ways, costs) if isinstance(costs, int) else costs

    def costs(self) -> Mapping[str, int] | int:
        """Operations of the last firing by the names of `ways`, or of the only one.  O(joins)."""
        if len(self.ways) == 1:
            return self.operations
        costs, states = dict.fromkeys(self.ways, 0), self.used.states
        for use, start in zip(self.uses, self.joins.table[k.V_STATE :: k.V].tolist(), strict=False):
            costs[use.strategy.name] += int(states[start + SEEKS] + states[start + NEXTS])
        return costs

    def changed(self) -> Words:
        """The rows that the last firing, of several rows, has changed."""
        n = self.used.tallies[len(self.uses) + 1] * self.arity
        return self.used.net[:n].reshape(-1, self.arity).copy()

    def version(self, relation: Relation) -> Relation:
        """The new version of the predicate: takes over the roots that the last firing made."""
        return relation.of_roots(self.used.new_roots.tolist())

    def outputs(self) -> list[Output]:
        """Joins that gave rows.  REQUIRES: some did."""
        room, uses, counts = self.used, self.uses, self.used.tallies
        if len(uses) == 1:
            return [Output(uses[0], room.out, room.capacity, counts[0])]
        size = room.capacity * self.joins.width
        return [
            Output(use, room.out[j * size : (j + 1) * size], room.capacity, counts[j])
            for j, use in enumerate(self.uses)
            if counts[j]
        ]


def _mark(arena: Arena, k: int, rows: int) -> Index:
    """A flat index with room for so many rows, whatever they are."""
    return Index.build(arena, np.repeat(np.arange(rows).reshape(-1, 1), k, axis=1), k)
