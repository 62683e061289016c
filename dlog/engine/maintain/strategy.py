"""Owns the interface between a transaction and the strategy that maintains one stratum's predicates.

Knows no strategy by name.  A strategy may have its own state: relations under its own names in the
store, which are versioned and committed with the data, and cost an abort nothing; or arrays
beside the store, see `dlog.engine.state.side_state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dlog.engine.commit.oracle_report import OracleReport
from dlog.engine.evaluate.evaluate import Evaluation, evaluate_stratum
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from dlog.ir.rules import Program, Stratum
from dlog.planning.arrange import AtomUse
from dlog.planning.versions import erased_name, facts_name, given_name, inserted_name, old_name
from dlog.storage.diff.delta import difference
from dlog.storage.index.batch import Change
from dlog.storage.relation.deferred import may_differ
from dlog.storage.relation.relation import Relation, in_order

# State that strata may share, before (None: there was none) and after: the first one changes it.
Followed = dict[str, tuple[Relation | None, Relation]]


@dataclass
class Cycle:
    """One transaction passing through the strata.

    `store.relations` is the transaction's own dict: nothing in it is visible outside before the commit, and
    an abort drops it.  For a predicate p in it:

        p              the new version, once the stratum of p is done; until then the old one
        old_name(p)    the old version: of every predicate that changed, and of those that were opened
        inserted_name  p(new) - p(old)       } of predicates that changed and were opened; the engine
        erased_name    p(old) - p(new)       } opens all that a stratum reads before `apply`
        facts_name(p)  the base facts of a derived predicate, new version

    `changes` has the net change of every predicate that changed so far; `refreshed` has stale ones that were
    evaluated, whatever changed in them (see `dlog.engine.maintain.cones`); `facts` has that of the base
    facts of derived predicates, for their strata to absorb.  `ways` tells how each touched stratum was
    updated: the `way` of its strategy, or FROM_SCRATCH; keyed by its first predicate.  `costs` has the
    operations of each.
    """

    program: Program
    store: Store
    evaluation: Evaluation
    changes: dict[str, Change] = field(default_factory=dict)
    refreshed: set[str] = field(default_factory=set)
    facts: dict[str, Change] = field(default_factory=dict)
    ways: dict[str, str] = field(default_factory=dict)
    oracle_reports: list[OracleReport] = field(default_factory=list)  # where traced rules were re-examined
    operations: int = 0  # of strategies, in addition to those of `evaluation.measures`
    costs: dict[str, int] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)  # names of relations that end with the cycle
    followed: Followed = field(default_factory=dict)

    def operations_of(self, stratum: Stratum) -> int:
        """Operations so far: those of a stratum's rules, and those not counted by rule.  O(rules)."""
        measured = self.evaluation.measures.rules
        return self.operations + sum(measured[r.id].operations for r in stratum.rules if r.id in measured)

    def publish(self, name: str, relation: Relation, change: Change) -> None:
        """Publish a predicate's new version.  `change` is the net difference, sorted.

        REQUIRES: once for each predicate; relations[name] is still the old version, and stays as it is.
        """
        if not may_differ(change):
            return
        assert name not in self.changes
        relations = self.store.relations
        self._keep(old_name(name), relations[name])
        relations[name] = relation
        self.changes[name] = change

    def publish_change(self, name: str, change: Change) -> None:
        """The same of a predicate whose relation is not stored."""
        if change:
            assert name not in self.changes
            self.changes[name] = change

    def publish_difference(self, name: str, relation: Relation) -> None:
        """The same for a version that was rebuilt.  O(rows), or O(change) if the two share pages."""
        self.publish(name, relation, net_difference(self.store.relations[name], relation))

    def open(self, names: Iterable[str], changes: bool = True) -> None:
        """Make all versions of these predicates, and their changes, readable as relations.
        O(names + changes).
        """
        relations = self.store.relations
        for name in names:
            change = self.changes.get(name)
            if change is None:
                self._keep(old_name(name), relations[name])
            elif changes and inserted_name(name) not in relations:
                for version, rows in zip((inserted_name(name), erased_name(name)), change, strict=True):
                    self._keep(version, self._relation(version, rows))

    def keep_old(self, name: str, relation: Relation) -> None:
        """The old version of a relation that changes without being published."""
        self._keep(old_name(name), relation)

    def _keep(self, name: str, relation: Relation) -> None:
        """Keep a relation until the end of the cycle."""
        self.store.relations[name] = relation
        self.versions.add(name)

    def _relation(self, name: str, rows: np.ndarray) -> Relation:
        return Relation.build(self.store.arena, rows, rows.shape[1], self.store.read_orders.get(name, ()))

    def close(self) -> None:
        """The end of a cycle that is committed: only new versions stay.

        A column order that a plan added to an old version is added to the new one, too, so that it is not
        made again in every transaction.
        """
        for name in self.changes:
            self.carry_orders(name)
        self.drop_versions()

    def carry_orders(self, name: str) -> None:
        """Add the column orders of the old version of a predicate that plans have read to the new one."""
        before, after = self.store.relations.get(old_name(name)), self.store.relations[name]
        for order in self.store.read_orders.get(old_name(name), ()):
            if before is not None and order in before.orders:
                after.add_order(order)

    def drop_versions(self) -> None:
        """Only new versions stay.  O(versions)."""
        for name in self.versions:
            del self.store.relations[name]


class CannotFollow(Exception):
    """A strategy can no longer maintain its stratum, for the given reason: another one replaces it."""


class Strategy:
    """Maintains the predicates of one stratum.

    The engine calls `apply` when the strategy is `ready` and its estimate is small, else `rebuild`; or it
    evaluates the stratum from scratch itself, after `forget`.  Both publish every changed predicate of the
    stratum, and raise what evaluation from scratch would raise, or CannotFollow.
    """

    way: str  # its name shown to the user
    offered_as = ""  # its name in the list of strategies, once it is chosen there
    named = "maintained by strategy"  # how an explanation begins
    reads_changes = False  # as relations, which the engine creates before `apply`
    fires_joins = False  # whether a trigger may run its rules as plain joins with the changed row
    over_cone = False  # whether `reads` has what auxiliary predicates are derived from, in their place
    has_short_path = False  # whether it may have its own: see `short_path`
    has_own_trigger = False  # whether `trigger` comes first where all readers are of its kind
    stratum: Stratum
    reads: frozenset[str]

    def ready(self, store: Store) -> bool:
        """Whether the state that `apply` needs exists."""
        raise NotImplementedError

    def loses_state(self, store: Store) -> bool:
        """Whether evaluation from scratch drops state that must be built again before the next `apply`."""
        return True

    def equivalent_to(self, other: Strategy) -> bool:
        """Whether this strategy, which has no state yet, would work like another one of the stratum."""
        return self.way == other.way

    def rebuild(self, cycle: Cycle) -> None:
        """Evaluate the stratum from scratch in the new version, with its state."""
        raise NotImplementedError

    def begin_changes(self, cycle: Cycle) -> None:
        """Make the state for the version before the transaction, for a head whose relation is not stored.
        REQUIRES: the cycle has opened what the stratum reads."""

    def apply(self, cycle: Cycle) -> None:
        """Bring the stratum from the old version to the new one.  REQUIRES: ready."""
        raise NotImplementedError

    def forget(self, store: Store) -> None:
        """Drop the state: the stratum is going to change without it."""

    def estimate(self, cycle: Cycle) -> float:
        """The work of `apply` as a share of the work of evaluating the stratum from scratch; an estimate."""
        raise NotImplementedError

    def column_order_uses(self) -> Iterator[tuple[AtomUse, ...]]:
        """What each plan that will run in transactions reads, plan by plan."""
        yield from ()

    def arrange(self) -> None:
        """Column orders have been chosen: plans must use these."""

    def triggers_with(self, other: Strategy) -> bool:
        """Whether its own trigger brings another reader of the predicate up to date, too."""
        return False

    def trigger(self, maintenance: Any, store: Store, name: str, sign: int) -> Any:
        """Its own trigger for rows of a predicate that it reads, if any: see `trigger_search`."""
        return None

    def short_path(self, store: Store, name: str, sign: int) -> ShortPath | None:
        """Its short path for rows of a predicate, as part of a trigger, if any."""
        return None

    def index_size(self, store: Store) -> tuple[str, int, int] | None:
        """Granularity, intervals and bytes of sensitivity indices, if it has any."""
        return None

    def side_states(self) -> Iterator[SideState]:
        """Its state outside the store, which strata may share."""
        yield from ()

    def explain(self, store: Store) -> list[str]:
        """How the stratum is maintained and why, as text; runs nothing."""
        raise NotImplementedError

    def draw(self, path: Path, title: str) -> str | None:
        """Draw what it maintains into a file.  Returns what the format cannot show; None: there is no such
        picture."""
        return None

    def check(self, store: Store) -> None:
        """Assert that the state agrees with the data.  O(evaluation from scratch)."""


class ShortPath(Protocol):
    """What a strategy that runs no plain joins adds to a trigger, for rows of one predicate and one sign."""

    outgrown: bool  # its plans are for other sizes of what they read

    @property
    def strategy(self) -> Strategy: ...

    @property
    def operations(self) -> int:
        """Of the last transaction."""

    def follow(
        self, store: Store, before: Relation, rows: Sequence[Sequence[int]] | npt.NDArray[np.int64]
    ) -> dict[str, tuple[Relation, Change]] | None:
        """(New version, net change) of the stratum's predicates that changed; None: the transaction must take
        the general path, and the stratum has not changed.  `before` is the old version of the predicate."""


def net_difference(old: Relation, new: Relation) -> Change:
    """INSERT and ERASE between two versions, sorted by the predicate's own column order."""
    order = next((o for o in old.orders if o in new.orders), old.orders[0])  # the natural one, mostly
    change = difference(old.index(order), new.add_order(order))
    if order == tuple(range(old.arity)):
        return change
    natural = np.argsort(order)
    return Change(in_order(change.inserted[:, natural]), in_order(change.erased[:, natural]))


def start_from_facts(cycle: Cycle, stratum: Stratum) -> None:
    """Put fresh handles on the base facts in place of a stratum's predicates, to evaluate it from scratch.
    What has memory is given its rows."""
    relations = cycle.store.relations
    for name in cycle.program.remembered_in(stratum):
        relations[given_name(name)] = relations[name]
    for name in stratum.predicates:
        relations[name] = relations[facts_name(name)].snapshot()


def recompute(stratum: Stratum, cycle: Cycle) -> None:
    """Evaluate a stratum from scratch and publish what differs."""
    relations = cycle.store.relations
    before = {name: relations[name] for name in stratum.predicates}
    start_from_facts(cycle, stratum)
    evaluate_stratum(cycle.program, stratum, cycle.store, cycle.evaluation)
    after = {name: relations[name] for name in stratum.predicates}
    relations.update(before)
    for name, relation in after.items():
        cycle.publish_difference(name, relation)


def evaluated_anew(program: Program, stratum: Stratum, store: Store) -> dict[str, Relation]:
    """The predicates of a stratum from scratch; the store stays as it is."""
    fresh = store.under(store.predicates)
    fresh.relations = dict(store.relations)
    start_from_facts(Cycle(program, fresh, Evaluation()), stratum)
    evaluate_stratum(program, stratum, fresh, Evaluation())
    return {name: fresh.relations[name] for name in stratum.predicates}
