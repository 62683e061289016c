"""Owns a head as a set of rows: which of them a change of derivations adds or removes.

    counts      each row's number of derivations, over all rules and its base facts.  Where no row can have
                two, nothing is stored
    existence   no counts: a row that may have lost its last derivation is searched for again, up to the
                first match (maintenance paper, 2.2.1).  For heads with far more derivations than rows, and
                where the search is a few lookups whatever the data is

Knows nothing of how derivations are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from dlog.engine.head.conflicts import check_function
from dlog.engine.head.heads import is_stored
from dlog.engine.maintain.body_changes import assignments
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.store import Store
from dlog.heads.counts import apply_counts, check_counts, count_rows, net_rows, no_counts
from dlog.heads.lookup import contained, look_up
from dlog.ir.analysis.projection import hidden_keys, shown_variables
from dlog.ir.rules import Atom, Primitive, Rule, Stratum, Var
from dlog.jit import Words
from dlog.planning.versions import facts_name, old_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

FAR_LARGER = 8  # counts are not stored when there are this many times more derivations than rows
Derivable = Callable[[Words], np.ndarray]  # which rows of a head the rules derive in the new version

Signed = tuple[Words, Words]  # rows of a head, and how many derivations each gains or loses


def counts_name(predicate: str) -> str:
    """The support counts of a predicate, from 2 on."""
    return f"#{predicate}"


class SetHead:
    """REQUIRES: the stratum is not recursive, hence has one predicate."""

    is_stored = True

    def __init__(self, store: Store, stratum: Stratum, looks_up: bool = False):
        """`looks_up`: existence is preferred wherever it is decided by a few lookups."""
        (self.name,) = stratum.predicates
        self.store, self.rules, self.looks_up = store, stratum.rules, looks_up
        self.counts = counts_name(self.name)
        self.by_existence = self._prefers_existence()

    def atoms(self, rule: Rule) -> list[Atom]:
        """The heads of a rule that derive the predicate."""
        return [h for h in rule.heads if h.predicate == self.name]

    def _prefers_existence(self) -> bool:
        """Whether enumerating derivations would cost far more than finding one.  Uses statistics only."""
        pairs = [(rule, head) for rule in self.rules for head in self.atoms(rule)]
        if any(r.aggregates or not is_stored(self.store, r, h) for r, h in pairs):
            return False
        projecting = [r for r, h in pairs if len(_atoms(r)) > 1 and not is_projection_free(self.store, r, h)]
        if projecting and self.looks_up and all(is_looked_up(self.store, r, h) for r, h in pairs):
            return True
        return any(self._has_far_more(rule) for rule in projecting)

    def _has_far_more(self, rule: Rule) -> bool:
        """Whether a rule has far more derivations than the head has rows, and a changed row is part of many.

        The plan that stops at first matches shows how many rows a head will have that is not evaluated yet.
        """
        rows = self.store.rows(self.name) or assignments(self.store, rule, bag=False)
        least = min(self.store.rows(atom.predicate) for atom in _atoms(rule))
        return assignments(self.store, rule) > FAR_LARGER * max(rows, least)

    def counts_are_one(self, store: Store) -> bool:
        """Whether no row can have two derivations: then no counts are needed."""
        return self.derives_once and not len(store.relations[facts_name(self.name)])

    @cached_property
    def derives_once(self) -> bool:
        """Whether the rules alone derive no row twice."""
        (first, *others) = self.rules
        heads = self.atoms(first)
        if others or len(heads) != 1:
            return False
        if first.aggregates:
            return {v.name for v in first.groups} <= _shown(self.store, first, heads[0])
        return is_projection_free(self.store, first, heads[0])

    @property
    def _arity(self) -> int:
        return len(self.store.column_types(self.name))

    # State

    def ready(self, store: Store) -> bool:
        if self.by_existence or self.counts in store.relations:
            return True
        if self.counts_are_one(store) and not self._had_facts(store):
            store.relations[self.counts] = no_counts(store.arena, self._arity)
            return True
        return False

    def _had_facts(self, store: Store) -> bool:
        """Whether there were base facts before the transaction: rules may derive them, too."""
        before = store.relations.get(old_name(facts_name(self.name)))
        return before is not None and len(before) > 0

    def forget(self, store: Store) -> None:
        store.relations.pop(self.counts, None)

    # From scratch and from changes

    def rebuild(self, cycle: Cycle, rows: Words, weights: Words | None) -> None:
        """Publish the head from the rows of all derivations, and how many each represents (None: one)."""
        store = cycle.store
        if not self.by_existence:
            if self.counts_are_one(store):
                counts = no_counts(store.arena, self._arity)
            else:
                rows, counts = count_rows(store.arena, rows, self._arity, weights)
            store.relations[self.counts] = counts
        later = Relation.build(store.arena, rows, self._arity, store.relations[self.name].orders)
        cycle.evaluation.watch.derived(len(later))
        cycle.publish_difference(self.name, later)
        if cycle.program.predicates[self.name].is_functional:
            check_function(cycle.program, store, self.name)

    def apply(self, cycle: Cycle, signed: Iterable[Signed], derivable: Derivable) -> None:
        """Publish the head after derivations were added (1) or removed (-1)."""
        if self.by_existence:
            later, change = self.changed_rows(cycle.store.relations, signed, derivable)
        else:
            later, change = self._apply_counts(cycle, list(signed))
        cycle.evaluation.watch.derived(len(change.inserted))
        cycle.publish(self.name, later, change)
        check_new_rows(cycle, self.name, change.inserted)

    def _apply_counts(self, cycle: Cycle, parts: Sequence[Signed]) -> tuple[Relation, Change]:
        relations = cycle.store.relations
        head, counts = relations[self.name], relations[self.counts]
        if not any(len(rows) for rows, _ in parts):
            return head, Change(*(np.empty((0, self._arity), np.int64),) * 2)
        rows, signs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if self.name not in cycle.facts and self.counts_are_one(cycle.store) and not len(counts):
            return self._apply_set(head, rows, signs)
        later, relations[self.counts], change = apply_counts(head, counts, rows, signs)
        return later, change

    def _apply_set(self, head: Relation, rows: Words, signs: Words) -> tuple[Relation, Change]:
        """Without counts: a row has one derivation or none, so each change of it is one of the head."""
        rows, signs = net_rows(rows, signs)
        assert (abs(signs) == 1).all(), "a row has two derivations"
        return head.apply(inserts=rows[signs > 0], erases=rows[signs < 0])

    def changed_rows(
        self, relations: dict[str, Relation], signed: Iterable[Signed], derivable: Derivable
    ) -> tuple[Relation, Change]:
        """Without counts, the head after rows lost and gained derivations, the signs of each part equal.

        ERASE before INSERT: rows that are no longer derived, then rows that are derived now.  Counts that an
        earlier strategy has left are dropped, since they are not maintained.
        """
        relations.pop(self.counts, None)
        lost, gained = [np.empty((0, self._arity), np.int64)], [np.empty((0, self._arity), np.int64)]
        for rows, signs in signed:
            if len(rows):
                (gained if signs[0] > 0 else lost).append(rows)
        new, _ = net_rows(np.concatenate(gained), np.ones(sum(map(len, gained)), np.int64))
        doubtful, _ = net_rows(np.concatenate(lost), np.ones(sum(map(len, lost)), np.int64))
        doubtful = doubtful[~among(doubtful, new)]
        stays = contained(relations[facts_name(self.name)], doubtful)
        stays[~stays] = derivable(doubtful[~stays])
        return relations[self.name].apply(inserts=new, erases=doubtful[~stays])

    # Inspection

    def explain(self, store: Store) -> str:
        if self.by_existence:
            return "a row that may be lost is searched for again, up to the first match, so none are counted"
        if facts_name(self.name) in store.relations and self.counts_are_one(store):
            return "each row has one derivation, so none are counted"
        return "the number of derivations of each row is stored"

    def check(self, store: Store, derivations: Words, weights: Words | None) -> None:
        """Compare rows and counts with those of all derivations."""
        head = store.relations[self.name]
        rows, counts = count_rows(store.arena, derivations, self._arity, weights)
        assert np.array_equal(head.rows(), rows), f"{self.name} is not what its rules derive"
        if not self.by_existence:
            stored = store.relations[self.counts]
            check_counts(head, stored)
            assert np.array_equal(stored.rows(), counts.rows()), f"counts of {self.name}"


def check_new_rows(cycle: Cycle, name: str, rows: Words) -> None:
    """Raises when a new row's key also has another value.  REQUIRES: the rows are published."""
    predicate = cycle.program.predicates[name]
    if predicate.is_functional and len(rows):
        keys = np.ascontiguousarray(rows[:, : predicate.n_keys])
        if (look_up(cycle.store.relations[name], keys)[0] > 1).any():
            check_function(cycle.program, cycle.store, name)


def is_projection_free(store: Store, rule: Rule, head: Atom) -> bool:
    """Whether each row of a head has one assignment: the head contains all keys of the body, unrounded."""
    return not hidden_keys(rule, head, store.column_types(head.predicate))


def is_looked_up(store: Store, rule: Rule, head: Atom) -> bool:
    """Whether one lookup for each atom decides if a row of a head is derived, whatever the data is: no two
    atoms share a variable that the head does not have, so the first match of each is enough."""
    shown, unshown = _shown(store, rule, head), list[str]()
    for form in rule.body.forms:
        if not isinstance(form, Atom | Primitive):
            return False
        operands = form.args if isinstance(form, Atom) else (*form.inputs, form.output)
        names = [operand.name for operand in operands if isinstance(operand, Var)]
        if isinstance(form, Primitive) and not shown.issuperset(names):
            return False
        unshown += [name for name in names if name not in shown]
    return len(unshown) == len(set(unshown))


def _atoms(rule: Rule) -> list[Atom]:
    """The atoms that are joined, without those inside other forms."""
    return [form for form in rule.body.forms if isinstance(form, Atom)]


def _shown(store: Store, rule: Rule, head: Atom) -> set[str]:
    """The variables whose values are in a head's rows, unrounded."""
    return shown_variables(rule, head, store.column_types(head.predicate))


def among(rows: Words, others: Words) -> np.ndarray:
    """Which rows are among others.  O((n + m) log)."""
    if rows.shape[1]:
        others = others.reshape(-1, rows.shape[1])
    if not len(rows) or not len(others):
        return np.zeros(len(rows), bool)
    if not rows.shape[1]:
        return np.ones(len(rows), bool)
    both = np.concatenate([others, rows])
    order = np.lexsort(both.T[::-1])
    group = np.empty(len(both), np.int64)
    sorted_rows = both[order]
    fresh = np.ones(len(both), bool)
    fresh[1:] = (sorted_rows[1:] != sorted_rows[:-1]).any(axis=1)
    group[order] = np.cumsum(fresh)
    return np.isin(group[len(others) :], group[: len(others)])
