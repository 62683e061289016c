"""Owns the short path of a recursive stratum: a few rows of a base predicate in one call of a kernel.

There is one where every rule is one join inside the kernel, no rule reads the recursion twice, no values
combine, and rows of one sign only gain derivations or only lose them.  What the kernel does is what `keep`
does round by round.  A transaction that turns out to need more work is undone, and takes the general path;
so do some after it, twice as many after each failure in a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.body.replan import is_alike
from dlog.engine.maintain.stages.expansion import Expansion, Plans
from dlog.engine.state.store import Store
from dlog.heads.stages import expand_kernels as kernels
from dlog.heads.stages import layout as k
from dlog.heads.stages.table import CHUNK
from dlog.jit import DISABLED, Words
from dlog.planning.deltas import INSERT
from dlog.planning.versions import base_name, erased_name, inserted_name, is_old, old_name
from dlog.storage.index.batch import Change
from dlog.storage.layout import N_ROWS
from dlog.storage.relation.relation import Order, Relation

if TYPE_CHECKING:
    from dlog.engine.maintain.stages.keep import StageStrategy

MOST_ROWS = 64  # of a transaction
MOST_FACTS = 4 * CHUNK  # that it touches
BUDGET = 1 << 14  # derivations and join operations: about 200 us
MOST_PAUSE = 31  # transactions, after attempts that were too much work
_follow = np.errstate(all="ignore")(kernels.follow) if DISABLED else kernels.follow

# A relation that plans read: its name, whether in the old version, its order; where plans have its root;
# whether its size is looked at, which is so for one of each name.
_Read = tuple[str, bool, Order, list[int], bool]


def short_path(strategy: StageStrategy, store: Store, name: str, sign: int) -> ShortPath | None:
    """The short path of inserted (1) or erased (-1) rows of a predicate, if any.  REQUIRES: ready."""
    given = (inserted_name if sign == INSERT else erased_name)(name)
    found = [
        (vs[0], e) for vs, e in strategy.changed_bodies(frozenset([name])) if vs[0].change.predicate == given
    ]
    bodies = [e for _, e in found if isinstance(e, Expansion) and e.in_kernel]
    kinds = strategy.kinds
    if len(bodies) < len(found) or len({variant.sign for variant, _ in found}) > 1 or not found:
        return None
    if strategy.reads_itself or strategy.stratum.combine or not all(kind.columns for kind in kinds):
        return None
    if not all(e.in_kernel for _, e in (*strategy.through, *strategy.bound)):
        return None
    if any(store.predicates[p].is_functional for p in strategy.names):
        return None
    return ShortPath(strategy, store, name, bodies, found[0][0].sign == INSERT)


class ShortPath:
    """Of one stratum, for rows of one predicate that are inserted, or erased."""

    def __init__(
        self, strategy: StageStrategy, store: Store, name: str, changing: Sequence[Expansion], gains: bool
    ):
        self.strategy, self.name = strategy, name
        through, bound = [e for _, e in strategy.through], [e for _, e in strategy.bound]
        self.plans = Plans(strategy.recursion, [*changing, *through, *bound])
        self.job = np.zeros(kernels.JOB, np.int64)
        self.job[kernels.CHANGING], self.job[kernels.THROUGH] = len(changing), len(changing) + len(through)
        self.job[kernels.ALL_PLANS] = len(self.plans.expansions)
        self.job[kernels.PREDICATES], self.job[kernels.CAPACITY] = len(strategy.names), CHUNK
        self.job[kernels.LIMIT] = self.job[kernels.SLICE] = BUDGET
        self.job_words, self.mode = self.job.data, k.BOUND if gains else k.LOWER_LOSE
        columns = max(len(e.outputs) for e in self.plans.expansions)
        widest = max(kind.columns for kind in strategy.kinds)
        room = max((1 + columns) * CHUNK, 2 * len(strategy.names) + widest * MOST_FACTS)
        self.out = np.zeros(room, np.int64)
        self.job[kernels.ROOM] = room
        self.reads = self._prepare(store)
        self.words, self.plan_words = self.plans.words, self.plans.words.data
        self.ready = range(kernels.P_READY, kernels.PLAN * len(self.plans.expansions), kernels.PLAN)
        self.sizes: dict[str, int] = {}
        self.outgrown = False
        self.pause = self.waiting = 0  # transactions without an attempt: after the next failure, and now

    def _prepare(self, store: Store) -> list[_Read]:
        """Make sure there are plans and the indices that they read."""
        relations = store.relations
        store.relations = {**relations, old_name(self.name): relations[self.name]}
        try:
            self.plans.prepare()
            for expansion in self.plans.expansions:
                expansion.current_roots()
        finally:
            store.relations = relations
        found: dict[tuple[str, Order], list[int]] = {}
        for number, expansion in enumerate(self.plans.expansions):
            at = int(self.plans.words[number * kernels.PLAN + kernels.P_ROOTS])
            for atom, read in enumerate(expansion.orders):
                found.setdefault(read, []).append(at + atom)
        names = [base_name(n) if is_old(n) else n for n, _ in found]
        return [
            (name, is_old(n), order, at, name not in names[:number])
            for number, (name, ((n, order), at)) in enumerate(zip(names, found.items(), strict=True))
        ]

    def follow(
        self, store: Store, before: Relation, rows: Sequence[Sequence[int]] | Words
    ) -> dict[str, tuple[Relation, Change]] | None:
        """(New version, net change) of the stratum's predicates that changed; None: there is too much work,
        and the stratum has not changed.  `before` is the old version of the predicate, the store has the new
        one.
        """
        strategy, table, job = self.strategy, self.strategy.recursion.table, self.job_words
        if len(rows) > MOST_ROWS:
            return None
        if self.waiting:
            self.waiting -= 1
            return None
        if not self._bring_roots(store.relations, before):
            return None
        strategy.side.begin(store, strategy.stamp)
        table.grow()
        facts = np.asarray(rows, np.int64).reshape(-1)
        job[kernels.LAST_FACT], job[kernels.MODE] = len(rows), self.mode
        job[kernels.ROWS] = job[kernels.RUNNING] = 0
        answer = _follow(
            store.arena.A, self.plans.ranks, self.words, self.job, facts,
            table.table, table.records, table.head, self.out,
        )  # fmt: skip
        if answer != kernels.FINISHED:
            table.undo()
            self.pause = self.waiting = min(2 * self.pause + 1, MOST_PAUSE)
            return None
        self.pause = 0
        changes = self._changes(store.relations)
        strategy.side.end(store, strategy.stamp)
        return changes

    @property
    def operations(self) -> int:
        """Of the last transaction."""
        return self.strategy.recursion.table.work

    def _bring_roots(self, relations: Mapping[str, Relation], before: Relation) -> bool:
        """Put the roots of all indices into the plans; False: one is missing, or a relation has grown or
        shrunk so much that another plan may be better."""
        words, plans, sizes = before.arena.words, self.plan_words, self.sizes
        for name, old, order, places, is_sized in self.reads:
            root = (before if old else relations[name]).root_of(order)
            rows = 0 if root is None else words[root + N_ROWS]
            if root is None or (is_sized and not is_alike(rows, sizes.setdefault(name, rows))):
                self.outgrown = True
                return False
            for place in places:
                plans[place] = root
        for place in self.ready:
            plans[place] = 0
        return True

    def _changes(self, relations: Mapping[str, Relation]) -> dict[str, tuple[Relation, Change]]:
        """From what the kernel has written."""
        names = self.strategy.names
        counts = self.out[: 2 * len(names)].tolist()
        found, start = {}, len(counts)
        for number, name in enumerate(names):
            n_new, n_gone = counts[2 * number : 2 * number + 2]
            relation = relations[name]
            end = start + (n_new + n_gone) * relation.arity
            if start < end:
                found[name] = relation.apply_rows(self.out[start:end].reshape(-1, relation.arity), n_new)
            start = end
        return found
