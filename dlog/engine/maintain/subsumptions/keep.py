"""Owns the strategy of subsumption, for a predicate that does not depend on itself.

    # p(x, a) <- e(x, a).        p(x, a) <= p(x, b) :- b < a.        is maintained as
    # all p(x, a) <- e(x, a).                                        with the base facts of p
    # subsumed p(x, a) <- all p(x, a), all p(x, b), b < a, a != b.
    # p  =  all p  -  subsumed p

Correct output: the rows of p are its base facts and what its rules derive, without those that another of
these rows subsumes.  A row that is subsumed itself still subsumes others, so the order of comparisons
does not matter, and clauses need not be an order: rows that subsume each other are all removed.

The first two are maintained rule by rule; what is left changes only in rows that one of them gained or lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import Cycle, Strategy
from dlog.engine.state.store import Store
from dlog.heads.lookup import contained
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Predicate, Program, Rule, Stratum
from dlog.jit import Words
from dlog.planning.versions import everything_name, facts_name, old_name, subsumed_name
from dlog.storage.relation.relation import Relation

# Makes what maintains one of the auxiliary predicates, rule by rule.
Inner = Callable[[Program, Stratum], RuleStrategy]


class SubsumptionStrategy(Strategy):
    way = "subsumptions"
    reads_changes = True

    def __init__(self, program: Program, stratum: Stratum, inner: Inner):
        """REQUIRES: the stratum has subsumptions and is not recursive, hence has one predicate."""
        (self.name,) = stratum.predicates
        self.stratum, self.reads = stratum, stratum.reads - {self.name}
        self.all, self.subsumed = everything_name(self.name), subsumed_name(self.name)
        self.program = replace(program, predicates=self._predicates(program))
        rules = [_renamed(r, {}, {self.name: self.all}) for r in stratum.rules]
        self.derived = (
            inner(self.program, _stratum(self.all, rules)) if rules else None
        )  # else only base facts
        bodies, heads = {self.name: self.all}, {self.name: self.subsumed}
        rules = [_renamed(rule, bodies, heads) for rule in stratum.subsumptions]
        self.comparisons = inner(self.program, _stratum(self.subsumed, rules))

    def _predicates(self, program: Program) -> dict[str, Predicate]:
        own = program.predicates[self.name]
        made = {name: replace(own, name=name, auxiliary=True) for name in (self.all, self.subsumed)}
        return {**program.predicates, **made}

    # State

    def ready(self, store: Store) -> bool:
        if not {self.all, self.subsumed} <= store.relations.keys():
            return False
        parts = [part for part in (self.derived, self.comparisons) if part is not None]
        with self._facts(store.relations):
            return all(part.ready(store) for part in parts)

    def forget(self, store: Store) -> None:
        for part in (self.derived, self.comparisons):
            if part is not None:
                part.forget(store)
        store.relations.pop(self.all, None)
        store.relations.pop(self.subsumed, None)

    @contextmanager
    def _facts(self, relations: dict[str, Relation]) -> Iterator[None]:
        """Base facts for the two auxiliary predicates: those of the predicate, and none."""
        facts, none = facts_name(self.name), Relation(relations[self.name].arena, relations[self.name].arity)
        lent = {facts_name(self.all): relations[facts], facts_name(self.subsumed): none}
        if old_name(facts) in relations:
            lent[old_name(facts_name(self.all))] = relations[old_name(facts)]
        relations.update(lent)
        try:
            yield
        finally:
            for name in lent:
                del relations[name]

    # From scratch and from changes

    def rebuild(self, cycle: Cycle) -> None:
        relations = cycle.store.relations
        empty = Relation(relations[self.name].arena, relations[self.name].arity)
        relations[self.all], relations[self.subsumed] = empty, empty.snapshot()
        with self._inner(cycle) as inner:
            if self.derived is None:
                self._follow_facts(inner, relations[facts_name(self.name)].rows(), _none(empty))
            else:
                self.derived.rebuild(inner)
            self.comparisons.rebuild(inner)
            later, _ = relations[self.all].apply(erases=relations[self.subsumed].rows())
        cycle.publish_difference(self.name, later)

    def apply(self, cycle: Cycle) -> None:
        relations = cycle.store.relations
        before = relations[self.name]
        with self._inner(cycle) as inner:
            if self.derived is not None:
                self.derived.apply(inner)
            elif self.name in cycle.facts:
                change = cycle.facts[self.name]
                self._follow_facts(inner, change.inserted, change.erased)
            inner.open((self.all,))
            self.comparisons.apply(inner)
            rows = self._changed(inner)
            stays = contained(relations[self.all], rows)
            stays[stays] = ~contained(relations[self.subsumed], rows[stays])
        later, change = before.apply(inserts=rows[stays], erases=rows[~stays])
        cycle.publish(self.name, later, change)

    def _changed(self, cycle: Cycle) -> Words:
        """The rows that one of the auxiliary predicates gained or lost, each once."""
        changes = [cycle.changes[name] for name in (self.all, self.subsumed) if name in cycle.changes]
        rows = [part for change in changes for part in (change.inserted, change.erased)]
        arity = self.program.predicates[self.name].arity
        return np.unique(np.concatenate([np.empty((0, arity), np.int64), *rows]), axis=0)

    def _follow_facts(self, cycle: Cycle, inserts: Words, erases: Words) -> None:
        """Publish all rows, of a predicate without rules."""
        cycle.publish(self.all, *cycle.store.relations[self.all].apply(inserts=inserts, erases=erases))

    @contextmanager
    def _inner(self, cycle: Cycle) -> Iterator[Cycle]:
        """The same transaction for the auxiliary predicates, whose changes nothing else sees."""
        inner = replace(cycle, program=self.program, changes=dict(cycle.changes), facts=dict(cycle.facts))
        if self.name in cycle.facts:
            inner.facts[self.all] = cycle.facts[self.name]
        with self._facts(cycle.store.relations):
            yield inner
            for name in (self.all, self.subsumed):
                if name in inner.changes:
                    inner.carry_orders(name)
        cycle.operations = inner.operations

    # Inspection

    def estimate(self, cycle: Cycle) -> float:
        rows = sum(len(c.inserted) + len(c.erased) for n, c in cycle.changes.items() if n in self.reads)
        rows += sum(len(part) for part in cycle.facts.get(self.name, ()))
        return rows / max(1, sum(map(cycle.store.rows, self.reads)) + cycle.store.rows(self.all))

    def explain(self, store: Store) -> list[str]:
        text = (
            f"{self.way}, because a row is compared when it comes or goes, or when what clauses read changes"
        )
        return [text, "the rows that are subsumed are stored, too, since they come back"]

    def check(self, store: Store) -> None:
        if not self.ready(store):
            return
        relations = store.relations
        with self._facts(relations):
            if self.derived is not None:
                self.derived.check(store)
            else:
                assert np.array_equal(relations[self.all].rows(), relations[facts_name(self.name)].rows())
            self.comparisons.check(store)
        left = relations[self.all].rows()
        left = left[~contained(relations[self.subsumed], left)]
        assert np.array_equal(relations[self.name].rows(), left), f"{self.name} has other rows than are left"


def _stratum(name: str, rules: list[Rule]) -> Stratum:
    return Stratum((name,), tuple(rules), False)


def _none(relation: Relation) -> Words:
    return np.empty((0, relation.arity), np.int64)


def _renamed(rule: Rule, bodies: dict[str, str], heads: dict[str, str]) -> Rule:
    """A rule over other predicates: those of its body, and of its heads."""
    named = (replace(head, predicate=heads[head.predicate]) for head in rule.heads if head.predicate in heads)
    return replace(rule, heads=tuple(named), body=_conj(rule.body, bodies), removes=False)


def _conj(conj: Conj, names: dict[str, str]) -> Conj:
    return replace(conj, forms=tuple(_form(form, names) for form in conj.forms)) if names else conj


def _form(form: Form, names: dict[str, str]) -> Form:
    match form:
        case Atom():
            return replace(form, predicate=names.get(form.predicate, form.predicate))
        case Negation():
            return replace(form, body=_conj(form.body, names))
        case Disjunction():
            return replace(form, branches=tuple(_conj(branch, names) for branch in form.branches))
    return form
