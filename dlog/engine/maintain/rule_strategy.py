"""Owns strategies that maintain a stratum without recursion rule by rule.

There are two independent parts: how the change of a rule's body is found, by a method for each rule
(`dlog.engine.maintain.body_changes`), and how the head absorbs it (`dlog.engine.maintain.heads`).  A
strategy's folder has the method; the heads are the same for all methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from dlog.engine.body.table import Table
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.head.heads import apart, head_rows
from dlog.engine.maintain.body_changes import BodyChanges
from dlog.engine.maintain.heads.changes import ChangesHead
from dlog.engine.maintain.heads.groups import GroupHead, PartitionedAggregate, group_head
from dlog.engine.maintain.heads.sets import SetHead, Signed, among
from dlog.engine.maintain.heads.text_heads import follow_later, has_texts
from dlog.engine.maintain.strategy import Cycle, Strategy
from dlog.engine.state.store import Store
from dlog.ir.rules import Atom, Const, Program, Rule, Stratum
from dlog.jit import Words
from dlog.planning.arrange import AtomUse
from dlog.planning.deltas import ERASE, INSERT
from dlog.planning.versions import facts_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

# (store, rule, prefix of the names of its state, variables to return, whether all assignments are counted)
Method = Callable[[Store, Rule, str, tuple[str, ...], bool], BodyChanges]


@dataclass(frozen=True)
class RuleChoice:
    """How the change of a rule's body is found, and why."""

    way: str  # the name of the method to a user
    reason: str
    method: Method


class RuleStrategy(Strategy):
    """REQUIRES: the stratum is not recursive, hence has one predicate."""

    reads_changes = True

    def __init__(
        self,
        program: Program,
        stratum: Stratum,
        store: Store,
        choices: Sequence[RuleChoice],
        changes_only: bool = False,
    ):
        """`choices` has one for each rule.  `changes_only`: the relation of the head is not stored."""
        (self.name,) = stratum.predicates
        self.program, self.stratum, self.store, self.choices = program, stratum, store, choices
        self.ways = [choice.way for choice in choices]
        self.reads = stratum.reads
        stored = not changes_only
        self.head = SetHead(store, stratum, self.fires_joins) if stored else ChangesHead(store, stratum)
        self.plain: list[BodyChanges] = []
        self.aggregates: list[GroupHead] = []
        for number, (rule, choice) in enumerate(zip(stratum.rules, choices, strict=True)):
            state = f"{self.name}/{number}"
            if rule.aggregates:
                self.aggregates.append(group_head(store, program, rule, state, choice.method))
            else:
                self.plain.append(choice.method(store, rule, state, (), not self.by_existence))
        self.bodies = [*self.plain, *(a.deltas for a in self.aggregates)]
        self._parts: list[BodyChanges | GroupHead] = [*self.bodies, *self.aggregates]  # may have state

    @property
    def by_existence(self) -> bool:
        return self.head.by_existence

    def counts_are_one(self, store: Store) -> bool:
        return self.head.counts_are_one(store)

    @property
    def derives_once(self) -> bool:
        """Whether its rules derive no row twice."""
        return self.head.derives_once

    # State

    def ready(self, store: Store) -> bool:
        return all(part.ready(store) for part in self._parts) and self.head.ready(store)

    def equivalent_to(self, other: Strategy) -> bool:
        if self.way != other.way:
            return False
        known = cast(RuleStrategy, other)
        if self.by_existence != known.by_existence:
            return False
        pairs = zip(self.bodies, known.bodies, strict=True)
        return self.ways == known.ways and all(own.plans_as(body) for own, body in pairs)

    def forget(self, store: Store) -> None:
        for part in (self.head, *self._parts):
            part.forget(store)

    # From scratch

    def rebuild(self, cycle: Cycle) -> None:
        """All derivations of all rules: distinct rows and their counts."""
        for body in self.bodies:
            body.forget(cycle.store)
        self.head.rebuild(cycle, *self.derivations(cycle))

    def derivations(self, cycle: Cycle) -> tuple[Words, Words | None]:
        """(Rows of all derivations in the new version, how many each represents; None: one).

        Builds the state of all rules.
        """
        parts: list[tuple[Words, Words | None]] = [
            (cycle.store.relations[facts_name(self.name)].rows(), None)
        ]
        for body in self.plain:
            parts += self._all_rows(body, cycle)
        for aggregate in self.aggregates:
            parts += [(rows, None) for rows in aggregate.rebuild(cycle, self.head.atoms(aggregate.rule))]
        parts = [part for part in parts if len(part[0])] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        rows = np.concatenate([rows for rows, _ in parts])
        if all(weights is None for _, weights in parts):
            return rows, None
        ones = [np.ones(len(rows), np.int64) if weights is None else weights for rows, weights in parts]
        return rows, np.concatenate(ones)

    def _all_rows(self, body: BodyChanges, cycle: Cycle) -> list[tuple[Words, Words | None]]:
        cycle.evaluation.watch.doing = f"evaluating {self.name}"
        table, weights = apart(body.all_assignments(cycle, weighted=not self.by_existence)[1])
        return [(head_rows(cycle.store, h, table, body.rule), weights) for h in self.head.atoms(body.rule)]

    # From changes

    def apply(self, cycle: Cycle) -> None:
        if self.defers_texts and self.name not in cycle.facts and self.counts_are_one(cycle.store):
            self._apply_later(cycle)
        else:
            self._apply(cycle)

    @cached_property
    def defers_texts(self) -> bool:
        """Whether the head's rows are groups with joined texts, and may be made when something reads them."""
        if self.plain or len(self.aggregates) != 1:
            return False
        (aggregate,) = self.aggregates
        heads = self.head.atoms(aggregate.rule)
        if not isinstance(aggregate, PartitionedAggregate) or len(heads) != 1:
            return False
        return has_texts(self.store, aggregate.rule, aggregate, heads[0])

    def _apply_later(self, cycle: Cycle) -> None:
        (aggregate,) = self.aggregates
        assert isinstance(aggregate, PartitionedAggregate)
        body, rule = aggregate.deltas, aggregate.rule
        body.begin(cycle)
        with cycle.evaluation.measures.of(rule):
            tables = [(sign, table) for sign, table in body.signed(cycle) if table.n]
            if not tables:
                return
            (head,) = self.head.atoms(rule)
            later, change = follow_later(aggregate, cycle.store, cycle.followed, head, tables)
        cycle.evaluation.watch.derived(len(change.source.keys))
        cycle.publish(self.name, later, change)

    def _apply(self, cycle: Cycle) -> None:
        self.head.apply(cycle, self._signed(cycle), self._derivable)

    def changed_rows(self, cycle: Cycle, signed: Iterable[Signed]) -> tuple[Relation, Change]:
        """The head after rows lost and gained derivations, where none are counted.  A part has one sign."""
        for body in self.plain:
            body.begin(cycle)
        return self.head.changed_rows(cycle.store.relations, signed, self._derivable)

    def _signed(self, cycle: Cycle) -> Iterator[Signed]:
        """Derivations that rules and base facts add (1) or remove (-1)."""
        facts = cycle.facts.get(self.name)
        if facts is not None:
            yield _signs(facts.erased, ERASE)
            yield _signs(facts.inserted, INSERT)
        for body in self.plain:
            body.begin(cycle)
            with cycle.evaluation.measures.of(body.rule):
                for sign, table in body.signed(cycle):
                    for head in self.head.atoms(body.rule):
                        yield _signs(head_rows(cycle.store, head, table, body.rule), sign)
        for aggregate in self.aggregates:
            body, heads = aggregate.deltas, self.head.atoms(aggregate.rule)
            body.begin(cycle)
            with cycle.evaluation.measures.of(aggregate.rule):
                yield from aggregate.follow(cycle, heads, body.signed(cycle))

    def _derivable(self, rows: Words) -> np.ndarray:
        """Which rows some rule derives in the new version."""
        found = np.zeros(len(rows), bool)
        for body in self.plain:
            for head in self.head.atoms(body.rule):
                if not found.all():
                    found[~found] = self._derivable_by(body, head, rows[~found])
        return found

    def _derivable_by(self, body: BodyChanges, head: Atom, rows: Words) -> np.ndarray:
        match = np.ones(len(rows), bool)
        columns: dict[str, Words] = {}
        for operand, type, values in zip(head.args, self.store.column_types(self.name), rows.T, strict=True):
            if isinstance(operand, Const):
                match &= values == self.store.encode(operand, type)
            else:
                match &= values == columns.setdefault(operand.name, values)
        wanted = Table(len(rows), columns).filter(match)
        if not wanted.n:
            return match
        found = body.body(tuple(columns), wanted, False, False)
        match[match] = among(rows[match], head_rows(self.store, head, found, body.rule))
        return match

    # Column orders

    def column_order_uses(self) -> Iterator[tuple[AtomUse, ...]]:
        for body in self.bodies:
            yield from body.uses()

    def arrange(self) -> None:
        for body in self.bodies:
            body.runner.arrange()

    # Inspection

    def estimate(self, cycle: Cycle) -> float:
        """If every row of a relation costs the same."""
        return sum(body.share(cycle) for body in self.bodies)

    def explain(self, store: Store) -> list[str]:
        lines = [*self._reasons(), self.head.explain(store), *(a.explain() for a in self.aggregates)]
        for body in self.bodies:
            lines += [line for line in body.explain() if line not in lines or line.startswith(" ")]
        return lines

    def _reasons(self) -> Iterator[str]:
        """The method of each rule and why; one line if that is the same for all."""
        found = [f"{choice.way}, because {choice.reason}" for choice in self.choices]
        if len(set(found)) == 1:
            yield found[0]
            return
        yield f"{self.way}, rule by rule"
        for rule, text in zip(self.stratum.rules, found, strict=True):
            yield f"line {rule.span.line}: {text}" if rule.span else text

    def check(self, store: Store) -> None:
        """Compare counts, sums and the state of methods with what all derivations give."""
        if not self.ready(store):
            return
        fresh = store.under(store.predicates)
        fresh.relations = dict(store.relations)
        self.head.check(store, *self.derivations(Cycle(self.program, fresh, Evaluation())))
        for part in self._parts:
            part.check(store, fresh)


def _signs(rows: Words, sign: int) -> Signed:
    return rows, np.full(len(rows), sign)
