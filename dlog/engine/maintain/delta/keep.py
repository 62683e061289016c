"""Owns the delta strategy: a stratum without recursion, kept up to date by the delta variants of its rules.

A head is kept in one of two ways, the same whatever its rules are:

    counts      each row's number of derivations, over all rules and its base facts.  A projection-free rule
                alone has one derivation for each row, so nothing is stored
    existence   no counts: a row that may have lost its last derivation is looked for once more, up to the
                first match.  For heads whose counts would be far larger than the head itself

An aggregation rule gives each group's row one derivation (`dlog.engine.maintain.delta.aggregate_deltas`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from dlog.engine.body.table import Table
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.head.conflicts import check_function
from dlog.engine.head.heads import apart, body_outputs, head_rows, is_stored, stored_as
from dlog.engine.maintain.delta.aggregate_deltas import AggregateDeltas, Kept, Signed, Sums, aggregate_deltas
from dlog.engine.maintain.delta.rule_deltas import RuleDeltas, Standing, body_runner
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.store import Store
from dlog.heads.counts import apply_counts, check_counts, count_rows, net_rows, no_counts
from dlog.heads.lookup import contained, look_up
from dlog.ir.rules import Atom, Const, Program, Rule, Stratum, Var
from dlog.jit import Words
from dlog.planning.arrange import AtomUse
from dlog.planning.compile import compile_join
from dlog.planning.deltas import ERASE, INSERT, cover_variants, outer_variables, rule_variants
from dlog.planning.pipeline import Join, plan_pipeline
from dlog.planning.versions import facts_name, old_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

FAR_LARGER = 8  # counts are not kept when there are so many times more derivations than rows


def counts_name(predicate: str) -> str:
    """The support counts of a predicate, from 2 on."""
    return f"#{predicate}"


class DeltaStrategy:
    """REQUIRES: the stratum is not recursive, hence has one predicate."""

    way = "delta"
    reads_changes = True

    def __init__(self, program: Program, stratum: Stratum, store: Store, reasons: Sequence[str] = ()):
        """`reasons` tell why each rule is kept as it is."""
        (self.name,) = stratum.predicates
        self.reasons = tuple(reasons)
        self.ways = [DeltaStrategy.way] * len(stratum.rules)
        self.program = program
        self.stratum = stratum
        self.store = store
        self.reads = stratum.reads
        self.by_existence = self._prefers_existence()
        self.plain: list[RuleDeltas] = []
        self.aggregates: list[AggregateDeltas] = []
        for number, rule in enumerate(stratum.rules):
            if rule.aggregates:
                self.aggregates.append(aggregate_deltas(store, program, rule, f"%{self.name}/{number}"))
            else:
                find = cover_variants if self.by_existence else rule_variants
                variants = find(rule, self.reads)
                self.plain.append(RuleDeltas(store, rule, variants, bag=not self.by_existence))

    # What is kept, and why

    def _prefers_existence(self) -> bool:
        """Whether counts would be far larger than the head.  Reads statistics only.

        Counts that are there stay: nobody would keep them, and whoever comes later would take them for true.
        """
        rules = self.stratum.rules
        if counts_name(self.name) in self.store.relations:
            return False
        if any(r.aggregates or not is_stored(self.store, r, h) for r in rules for h in self._heads(r)):
            return False
        rows = self.store.rows(self.name)
        if not rows:  # few derivations to count, or nothing is evaluated yet
            return False
        projecting = [r for r in rules if not is_projection_free(self.store, r, self._heads(r)[0])]
        return any(assignments(self.store, r) > FAR_LARGER * rows for r in projecting)

    def _heads(self, rule: Rule) -> list[Atom]:
        return [h for h in rule.heads if h.predicate == self.name]

    def counts_are_one(self, store: Store) -> bool:
        """Whether no row can have two derivations: then no counts are needed to begin with."""
        return self._derives_once and not len(store.relations[facts_name(self.name)])

    def _had_facts(self, store: Store) -> bool:
        """Whether there were base facts before the transaction: a rule may derive them, too."""
        before = store.relations.get(old_name(facts_name(self.name)))
        return before is not None and len(before) > 0

    @cached_property
    def _derives_once(self) -> bool:
        """Whether the rules alone derive no row twice."""
        (first, *others) = self.stratum.rules
        heads = self._heads(first)
        if others or len(heads) != 1:
            return False
        if first.aggregates:
            return _holds_groups(self.store, first, heads[0])
        return is_projection_free(self.store, first, heads[0])

    @property
    def has_only_groups(self) -> bool:
        """Whether the stratum is nothing but groups of which something is kept."""
        return not self.plain and all(isinstance(a, Sums | Kept) for a in self.aggregates)

    def ready(self, store: Store) -> bool:
        if not all(a.ready(store) for a in self.aggregates):
            return False
        if self.by_existence or counts_name(self.name) in store.relations:
            return True
        if self.counts_are_one(store) and not self._had_facts(store):
            store.relations[counts_name(self.name)] = no_counts(store.arena, self._arity)
            return True
        return False

    def does_as(self, other: object) -> bool:
        return type(other) is type(self) and other.ways == self.ways  # counts that are there stay

    def forget(self, store: Store) -> None:
        store.relations.pop(counts_name(self.name), None)
        for aggregate in self.aggregates:
            aggregate.forget(store)

    @property
    def _arity(self) -> int:
        return self.store.predicates[self.name].arity

    # From scratch

    def rebuild(self, cycle: Cycle) -> None:
        """All derivations of all rules: distinct rows and their counts."""
        relations, arena = cycle.store.relations, cycle.store.arena
        rows, weights = self.derivations(cycle)
        if not self.by_existence:
            if self.counts_are_one(cycle.store):
                counts = no_counts(arena, self._arity)
            else:
                rows, counts = count_rows(arena, rows, self._arity, weights)
            relations[counts_name(self.name)] = counts
        later = Relation.build(arena, rows, self._arity, relations[self.name].orders)
        cycle.evaluation.watch.derived(len(later))
        cycle.publish_difference(self.name, later)
        if cycle.program.predicates[self.name].is_functional:
            check_function(cycle.program, cycle.store, self.name)

    def derivations(self, cycle: Cycle) -> tuple[Words, Words | None]:
        """(Rows of all derivations in the new version, for how many each stands; None: for one).

        Makes the state of aggregation rules.
        """
        parts: list[tuple[Words, Words | None]] = [
            (cycle.store.relations[facts_name(self.name)].rows(), None)
        ]
        for deltas in self.plain:
            parts += self._all_rows(deltas, cycle)
        for aggregate in self.aggregates:
            parts += [(rows, None) for rows in aggregate.rebuild(cycle, self._heads(aggregate.rule))]
        parts = [part for part in parts if len(part[0])] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        rows = np.concatenate([rows for rows, _ in parts])
        if all(weights is None for _, weights in parts):
            return rows, None
        ones = [np.ones(len(rows), np.int64) if weights is None else weights for rows, weights in parts]
        return rows, np.concatenate(ones)

    def _all_rows(self, deltas: RuleDeltas, cycle: Cycle) -> list[tuple[Words, Words | None]]:
        evaluation = cycle.evaluation
        evaluation.watch.doing = f"evaluating {self.name}"
        rule = deltas.rule
        runner = body_runner(cycle, rule)
        pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, not self.by_existence)
        with evaluation.measures.of(rule):
            table = runner.run(pipeline, weighted=not self.by_existence)
        table, weights = apart(table)
        return [(head_rows(cycle.store, head, table, rule), weights) for head in self._heads(rule)]

    # From changes

    def apply(self, cycle: Cycle) -> None:
        if self.by_existence:
            later, change = self._apply_existence(cycle)
        else:
            later, change = self._apply_counts(cycle)
        cycle.evaluation.watch.derived(len(change.inserted))
        cycle.publish(self.name, later, change)
        self.check_new_rows(cycle, change.inserted)

    def _apply_counts(self, cycle: Cycle) -> tuple[Relation, Change]:
        relations = cycle.store.relations
        parts = list(self._signed(cycle))
        head, counts = relations[self.name], relations[counts_name(self.name)]
        if not any(len(rows) for rows, _ in parts):
            return head, Change(*(np.empty((0, self._arity), np.int64),) * 2)
        rows, signs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if self.name not in cycle.facts and self.counts_are_one(cycle.store) and not len(counts):
            return self._apply_set(head, rows, signs)
        later, relations[counts_name(self.name)], change = apply_counts(head, counts, rows, signs)
        return later, change

    def _apply_set(self, head: Relation, rows: Words, signs: Words) -> tuple[Relation, Change]:
        """Without counts: a row has one derivation or none, so each change of it is one of the head."""
        rows, signs = net_rows(rows, signs)
        assert (abs(signs) == 1).all(), "a row has two derivations"
        return head.apply(inserts=rows[signs > 0], erases=rows[signs < 0])

    def _signed(self, cycle: Cycle) -> Iterator[Signed]:
        """Derivations that rules and base facts add (1) or take away (-1)."""
        facts = cycle.facts.get(self.name)
        if facts is not None:
            yield _signs(facts.erased, ERASE)
            yield _signs(facts.inserted, INSERT)
        for deltas in self.plain:
            deltas.begin(cycle)
            with cycle.evaluation.measures.of(deltas.rule):
                for sign, table in deltas.signed(cycle):
                    for head in self._heads(deltas.rule):
                        yield _signs(head_rows(cycle.store, head, table, deltas.rule), sign)
        for aggregate in self.aggregates:
            with cycle.evaluation.measures.of(aggregate.rule):
                yield from aggregate.signed(cycle, self._heads(aggregate.rule))

    def _apply_existence(self, cycle: Cycle) -> tuple[Relation, Change]:
        """ERASE before INSERT: what was derived before and is no more, then what is derived now."""
        relations = cycle.store.relations
        lost, gained = [np.empty((0, self._arity), np.int64)], [np.empty((0, self._arity), np.int64)]
        for rows, signs in self._signed(cycle):
            if len(rows):
                (gained if signs[0] > 0 else lost).append(rows)
        new, _ = net_rows(np.concatenate(gained), np.ones(sum(map(len, gained)), np.int64))
        doubtful, _ = net_rows(np.concatenate(lost), np.ones(sum(map(len, lost)), np.int64))
        doubtful = doubtful[~_among(doubtful, new)]
        kept = contained(relations[facts_name(self.name)], doubtful)
        for deltas in self.plain:
            for head in self._heads(deltas.rule):
                if not kept.all():
                    kept[~kept] = self._derivable(deltas, head, doubtful[~kept])
        return relations[self.name].apply(inserts=new, erases=doubtful[~kept])

    def _derivable(self, deltas: RuleDeltas, head: Atom, rows: Words) -> np.ndarray:
        """Which rows a rule derives in the new version."""
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
        found = deltas.body(tuple(columns), wanted, False, False)
        match[match] = _among(rows[match], head_rows(self.store, head, found, deltas.rule))
        return match

    def check_new_rows(self, cycle: Cycle, rows: Words) -> None:
        """Raises when a new row's key has another value, too."""
        predicate = cycle.program.predicates[self.name]
        if predicate.is_functional and len(rows):
            keys = np.ascontiguousarray(rows[:, : predicate.n_keys])
            if (look_up(cycle.store.relations[self.name], keys)[0] > 1).any():
                check_function(cycle.program, cycle.store, self.name)

    # Column orders

    def uses(self) -> Iterator[tuple[AtomUse, ...]]:
        """What each plan of a variant reads, one plan after the other."""
        for deltas in self._deltas():
            yield from deltas.uses()

    def arrange(self) -> None:
        """Column orders have been chosen: plans are to read these."""
        for deltas in self._deltas():
            deltas.runner.arrange()

    def _deltas(self) -> list[RuleDeltas]:
        return [*self.plain, *(a.deltas for a in self.aggregates)]

    # Looking inside

    def estimate(self, cycle: Cycle) -> float:
        """Work of `apply` against that of `rebuild`, if every row of a relation costs the same."""
        return sum(deltas.share(cycle) for deltas in self._deltas())

    def explain(self, store: Store) -> list[str]:
        if self.by_existence:
            how = "a row that may be lost is looked for again, as counts would be far larger"
        elif facts_name(self.name) in store.relations and self.counts_are_one(store):
            how = "each row has one derivation, which is not counted"
        else:
            how = "the number of derivations of each row is kept"
        lines = [*self._reasons(), how, *(a.explain() for a in self.aggregates)]
        for deltas in self._deltas():
            lines += [line for line in deltas.explain() if line not in lines or line.startswith(" ")]
        return lines

    def _reasons(self) -> Iterator[str]:
        """The way of each rule and why; one line where that is the same for all."""
        found = [f"{way}, because {why}" for way, why in zip(self.ways, self.reasons, strict=False)]
        if len(set(found)) <= 1:
            yield found[0] if found else self.way
            return
        yield f"{self.way}, rule by rule"
        for rule, text in zip(self.stratum.rules, found, strict=True):
            yield f"line {rule.span.line}: {text}" if rule.span else text

    def check(self, store: Store) -> None:
        """Counts and sums against those of all derivations, made anew."""
        kept = store.relations
        if not self.ready(store):
            return
        again = store.under(store.predicates)
        again.relations = dict(kept)
        cycle = Cycle(self.program, again, Evaluation())
        derivations, weights = self.derivations(cycle)
        rows, counts = count_rows(store.arena, derivations, self._arity, weights)
        assert np.array_equal(kept[self.name].rows(), rows), f"{self.name} is not what its rules derive"
        if not self.by_existence:
            check_counts(kept[self.name], kept[counts_name(self.name)])
            assert np.array_equal(kept[counts_name(self.name)].rows(), counts.rows()), (
                f"counts of {self.name}"
            )
        self.check_state(store, again)

    def check_state(self, store: Store, fresh: Store) -> None:
        """What else is kept, against what was made anew."""
        for aggregate in self.aggregates:
            aggregate.check(store)
            for state in aggregate.states:
                same = np.array_equal(store.relations[state].rows(), fresh.relations[state].rows())
                assert same, f"sums of {self.name}"


def is_projection_free(store: Store, rule: Rule, head: Atom) -> bool:
    """Whether each row of a head has one assignment: the head has all keys of the body, unrounded."""
    return rule.keys & set(outer_variables(rule)) <= _shown(store, rule, head)


def _holds_groups(store: Store, rule: Rule, head: Atom) -> bool:
    """Whether an aggregation rule's head tells its groups apart."""
    return {v.name for v in rule.groups} <= _shown(store, rule, head)


def _shown(store: Store, rule: Rule, head: Atom) -> set[str]:
    """The variables whose values a head's rows have, unrounded."""
    given = zip(head.args, store.column_types(head.predicate), strict=True)
    return {a.name for a, type in given if isinstance(a, Var) and stored_as(rule, a, type)}


def assignments(store: Store, rule: Rule) -> float:
    """About how many assignments a rule's body has."""
    pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, True)
    first = pipeline.operations[0]
    if not isinstance(first, Join) or not first.forms:
        return 0.0
    view = Standing(store, None)
    compiled = compile_join(
        first.forms, first.outputs, rule.types, view.column_types, view, store.encode, bag=True
    )
    return compiled.key_order.sizes[-1] if compiled.key_order.sizes else 1.0


def _signs(rows: Words, sign: int) -> Signed:
    return rows, np.full(len(rows), sign)


def _among(rows: Words, others: Sequence[object] | Words) -> np.ndarray:
    """Which rows are among others.  O((n + m) log)."""
    others = np.asarray(others, np.int64)
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
