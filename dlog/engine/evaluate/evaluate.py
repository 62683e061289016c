"""Owns evaluation from scratch: strata in order, semi-naive recursion inside a stratum.

Correct output: after `evaluate`, every derived predicate holds exactly what its rules and its base facts
derive.  A recursive stratum runs in rounds: in each, every recursive rule is evaluated once for each of its
recursive atoms, that atom reading only what the round before added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.pushed_filters import pushed_filters
from dlog.engine.body.shared_subjoin_choice import Body, SharedSubjoinChoice
from dlog.engine.evaluate.choosing import Choosing
from dlog.engine.evaluate.column_orders import choose_for_program, forget
from dlog.engine.evaluate.combine import combine_candidates
from dlog.engine.evaluate.driven import driven, place
from dlog.engine.evaluate.fixpoint import Surroundings, run_fixpoint
from dlog.engine.evaluate.growth import Growth
from dlog.engine.evaluate.numbering import number_rows
from dlog.engine.evaluate.side_by_side import run_all
from dlog.engine.head.conflicts import check_constraints, check_function
from dlog.engine.head.heads import (
    aggregate_rule,
    body_outputs,
    copied_rows,
    head_rows,
    only_counts,
    takes_weights,
)
from dlog.engine.head.sequences import Sequence
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures, RuleMeasure
from dlog.engine.state.store import Store
from dlog.heads.classes import class_change
from dlog.ir.functors import used_functors
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Program, Rule, Stratum
from dlog.planning.options import NEVER
from dlog.planning.pipeline import Join, Pipeline, plan_pipeline
from dlog.planning.versions import delta_name, is_change
from dlog.storage.relation.relation import Relation


@dataclass
class Evaluation:
    """What one evaluation needs besides the store."""

    watch: Watch = field(default_factory=Watch)
    measures: Measures = field(default_factory=Measures)
    progress: Callable[[str, int, int], None] = lambda what, done, total: None
    limits: dict[str, int] = field(default_factory=dict)  # `.limitsize`: predicate -> rows
    jobs: int = 1  # cores to use
    rounds: bool = False  # recursion in rounds even where rows could drive it
    row_sets: str | None = None  # forces the kind of set that detects new rows


def evaluate(program: Program, store: Store, evaluation: Evaluation) -> None:
    """REQUIRES: relations hold the base facts only.  Raises violations of functions or constraints."""
    for name, predicate in program.predicates.items():
        if predicate.is_functional and name not in program.stratum_of:
            check_function(program, store, name)
    choose_for_program(program, store, program_bodies(program))
    store.subjoin_choice = SharedSubjoinChoice(store, partial(shared_bodies, program, store))
    run = lambda stratum, own: evaluate_stratum(program, stratum, store, own)  # noqa: E731
    try:
        run_all(program, store, evaluation, run)
    finally:
        evaluation.watch.beat = lambda: None
        store.shared_subjoins.clear()
        store.subjoin_choice = None
        forget(store)
    evaluation.progress("", len(program.strata), len(program.strata))
    check_constraints(program, store)


def program_bodies(program: Program) -> Iterator[tuple[Rule, tuple[Form, ...]]]:
    """Every body that an evaluation plans: outside recursions, and the variants of recursive rules."""
    for stratum in program.strata:
        names = set(stratum.predicates)
        for own in stratum.rules:
            rule = as_plain(own) if own.heads[0].predicate in stratum.combine else own
            forms = without(rule.body.forms, names)
            if forms is not None:
                yield rule, forms
            if _mentions(rule.body, names):
                yield from ((rule, variant) for variant in delta_variants(rule, names))
        for rule in stratum.subsumptions:
            yield from ((rule, variant) for variant in delta_variants(rule, {rule.heads[0].predicate}))


def shared_bodies(program: Program, store: Store) -> Iterator[Body]:
    """The bodies that could share sub-joins: of rules that are not recursive."""
    for rule, forms in program_bodies(program):
        body = _body(rule, forms, store)
        if body is not None:
            yield body


def _body(rule: Rule, forms: tuple[Form, ...], store: Store) -> Body | None:
    """The body of a rule, if it begins with a join of several atoms that reads nothing that is only new, and
    that tests do not make smaller first."""
    bag, options = bool(rule.aggregates), store.options
    pipeline = plan_pipeline(forms, body_outputs(rule), rule.types, bag)
    operations = pipeline.operations
    first = operations[0]
    if not isinstance(first, Join) or sum(isinstance(f, Atom) for f in first.forms) < 2:
        return None
    if any(is_change(f.predicate) for f in first.forms if isinstance(f, Atom)):
        return None
    if pushed_filters(pipeline, store):
        return None
    count = bag and only_counts(rule) and len(operations) == 1
    if bag and not (count or takes_weights(rule)):
        options = replace(options, sub_joins=NEVER)
    return Body(first.forms, () if count else first.outputs, bag, count, options)


def evaluate_stratum(program: Program, stratum: Stratum, store: Store, evaluation: Evaluation) -> None:
    store.inclusions = program.inclusions
    if program.functors:
        store.dictionary.functions.bind(program.functors, used_functors(stratum.rules))
    if stratum.sequence is not None:
        _number(stratum, store, evaluation)
    elif stratum.subsumptions:
        _SubsumingStratum(program, stratum, store, evaluation).run()
    elif stratum.combine:
        _CombiningStratum(program, stratum, store, evaluation).run()
    elif stratum.totals:
        from dlog.engine.evaluate.totals import TotalStratum  # which is a kind of stratum itself

        TotalStratum(program, stratum, store, evaluation).run()
    elif classes := program.classes_in(stratum):
        _EquivalenceStratum(program, stratum, store, evaluation, classes).run()
    elif names := program.remembered_in(stratum):
        _run_with_memory(program, stratum, store, evaluation, names)
    else:
        PlainStratum(program, stratum, store, evaluation).run()
    check_functions(program, stratum, store)


def _run_with_memory(
    program: Program, stratum: Stratum, store: Store, evaluation: Evaluation, names: tuple[str, ...]
) -> None:
    """Predicates whose rows are chosen, or one that gives numbers: that is never recursive."""
    numbering = program.predicates[names[0]].numbering
    if numbering is None:
        _ChoosingStratum(program, stratum, store, evaluation, names).run()
    else:
        number_rows(store, names[0], numbering)
        evaluation.watch.derived(store.rows(names[0]))


def _number(stratum: Stratum, store: Store, evaluation: Evaluation) -> None:
    """A sequence: all rows of its predicate, numbered group by group."""
    sequence = Sequence.of(stratum)
    facts = sequence.all_facts(store.relations[sequence.rows], store.dictionary)
    evaluation.watch.derived(len(facts))
    store.relations[sequence.head].apply_in_place(inserts=facts)


def check_functions(program: Program, stratum: Stratum, store: Store) -> None:
    """Raises if a key of a function that a stratum derives has two values."""
    for name in stratum.predicates:
        if program.predicates[name].is_functional and name not in stratum.combine:
            check_function(program, store, name)


@dataclass
class Task:
    """A rule, or one delta variant of it, ready to run."""

    rule: Rule
    forms: tuple[Form, ...]
    pipeline: Pipeline
    runner: BodyRunner
    measure: RuleMeasure


class PlainStratum:
    """Sets: what is derived once stays derived."""

    def __init__(self, program: Program, stratum: Stratum, store: Store, evaluation: Evaluation):
        self.program = program
        self.stratum = stratum
        self.store = store
        self.evaluation = evaluation
        self.watch = evaluation.watch
        self.growing: dict[str, Growth] = {}

    def run(self) -> None:
        names = set(self.stratum.predicates)
        exits = [(r, without(r.body.forms, names)) for r in self.stratum.rules]
        base = [self.task(rule, forms) for rule, forms in exits if forms is not None]
        self.round(base)
        if not self.stratum.recursive:
            return
        recursive = [
            self.task(r, forms)
            for r in self.stratum.rules
            if _mentions(r.body, names)
            for forms in delta_variants(r, names)
        ]
        if self.driven(recursive):
            return
        self.growing = {name: self.growth(name, recursive) for name in names}
        self.rounds(recursive, {name: self.store.relations[name].rows() for name in names})
        for name in names:
            self.growing[name].finish()
            self.store.relations.pop(delta_name(name), None)

    def rounds(self, recursive: list[Task], added: dict[str, np.ndarray]) -> None:
        """Runs recursive rules until nothing is new."""
        while any(len(rows) for rows in added.values()) and not self.limited():
            self.set_deltas(added)
            added = self.round(recursive)

    def driven(self, tasks: list[Task]) -> bool:
        """Evaluates the recursion row by row, if all its rules allow that; returns whether they did."""
        limited = any(name in self.evaluation.limits for name in self.stratum.predicates)
        items = [driven(self.store, t.rule, t.forms, t.measure) for t in tasks]
        if limited or self.evaluation.rounds or any(item is None for item in items):
            return False
        ready = [item for item in items if item is not None]
        run_fixpoint(
            self.store,
            self.stratum.predicates,
            ready,
            Surroundings(
                self.watch, self.evaluation.measures, self.evaluation.row_sets, self.evaluation.jobs
            ),
            self.stratum.combine,
        )
        return True

    def growth(self, name: str, tasks: list[Task]) -> Growth:
        """The set of a recursive predicate while it grows."""
        read = any(_reads_forms(task.forms, name) for task in tasks)
        return Growth(self.store.relations[name], read)

    def limited(self) -> bool:
        """`.limitsize`: a relation that has reached its size ends the recursion."""
        limits = self.evaluation.limits
        return any(name in limits and len(g) >= limits[name] for name, g in self.growing.items())

    def task(self, rule: Rule, forms: tuple[Form, ...]) -> Task:
        bag = bool(rule.aggregates)
        pipeline = plan_pipeline(forms, body_outputs(rule), rule.types, bag)
        measure = self.evaluation.measures.measure(rule)
        runner = BodyRunner(
            self.store, rule, self.watch, self.evaluation.measures, measure, self.evaluation.jobs
        )
        return Task(rule, forms, pipeline, runner, measure)

    def set_deltas(self, added: dict[str, np.ndarray]) -> None:
        """What the last round added, as relations that the delta variants read."""
        for name, rows in added.items():
            delta = delta_name(name)
            arity = self.program.predicates[name].arity
            orders = self.store.read_orders.get(delta, ())
            self.store.relations[delta] = Relation.build(self.store.arena, rows, arity, orders)

    def round(self, tasks: list[Task]) -> dict[str, np.ndarray]:
        """Runs tasks on the state before the round, then adds what they derived.  Returns what was new."""
        derived: dict[str, list[np.ndarray]] = {name: [] for name in self.stratum.predicates}
        for task in tasks:
            for head, rows in self.derive(task):
                growing = self.growing.get(head.predicate)
                derived[head.predicate].append(rows if growing is None else growing.unseen(rows))
        return {name: self.add(name, parts) for name, parts in derived.items()}

    def derive(self, task: Task) -> Iterator[tuple[Atom, np.ndarray]]:
        rule = task.rule
        self.watch.doing = f"evaluating the rule at {place(rule)}"
        with self.evaluation.measures.of(rule):
            found = [copied_rows(self.store, head, task.forms, rule) for head in rule.heads]
            copied = [rows for rows in found if rows is not None]
            if task.measure.trace is None and len(copied) == len(found):
                task.measure.rows += len(copied[0])
                yield from zip(rule.heads, copied, strict=True)
                return
            if rule.aggregates:
                table = aggregate_rule(task.runner, rule, task.pipeline)
            else:
                table = task.runner.run(task.pipeline)
            task.measure.rows += table.n
            for head in rule.heads:
                yield head, head_rows(self.store, head, table, rule)

    def add(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        """Stores derived rows; returns those that were new, sorted."""
        parts = [p for p in parts if len(p)]
        arity = self.program.predicates[name].arity
        if not parts:
            return np.empty((0, arity), np.int64)
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        growing = self.growing.get(name)
        if growing is None:
            new = self.store.relations[name].apply_in_place(inserts=rows).inserted
        else:
            new = growing.add(rows)
        self.watch.pending(0)
        self.watch.derived(len(new))
        return new


class _CombiningStratum(PlainStratum):
    """Recursive min or max: a key's value is replaced whenever a better one is derived."""

    def driven(self, tasks: list[Task]) -> bool:
        forms = [task.forms for task in tasks]
        return combines_by_row(self.store, self.stratum, forms) and super().driven(tasks)

    def growth(self, name: str, tasks: list[Task]) -> Growth:
        return Growth(self.store.relations[name], read=True, packed=name not in self.stratum.combine)

    def add(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        op = self.stratum.combine.get(name)
        if op is None:
            return super().add(name, parts)
        parts = [p for p in parts if len(p)]
        if not parts:
            return np.empty((0, self.program.predicates[name].arity), np.int64)
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        better, worse = combine_candidates(self.store, name, rows, op)
        change = self.store.relations[name].apply_in_place(inserts=better, erases=worse)
        self.watch.pending(0)
        self.watch.derived(len(better) - len(worse))
        return change.inserted

    def derive(self, task: Task) -> Iterator[tuple[Atom, np.ndarray]]:
        """An aggregation rule's body gives candidates: the aggregate is taken over all rules of the head."""
        rule = task.rule
        if not rule.aggregates or rule.heads[0].predicate not in self.stratum.combine:
            yield from super().derive(task)
            return
        self.watch.doing = f"evaluating the rule at {place(rule)}"
        with self.evaluation.measures.of(rule):
            table = task.runner.run(task.pipeline)
            task.measure.rows += table.n
            plain = as_plain(rule)
            for head in plain.heads:
                yield head, head_rows(self.store, head, table, plain)

    def task(self, rule: Rule, forms: tuple[Form, ...]) -> Task:
        combined = rule.heads[0].predicate in self.stratum.combine
        return super().task(as_plain(rule) if rule.aggregates and combined else rule, forms)

    def run(self) -> None:
        for name, op in self.stratum.combine.items():  # base facts are candidates too
            rows = self.store.relations[name].rows()
            if len(rows):
                self.store.clear(name)
                better, _ = combine_candidates(self.store, name, rows, op)
                self.store.relations[name].apply_in_place(inserts=better)
        super().run()


class _SubsumingStratum(PlainStratum):
    """In each round rows that another row subsumes are removed, so that nothing more is derived from them."""

    def __init__(self, program: Program, stratum: Stratum, store: Store, evaluation: Evaluation):
        super().__init__(program, stratum, store, evaluation)
        self.base: dict[str, np.ndarray] = {}  # base facts that no round has compared yet
        self.comparisons: dict[str, list[Task]] = {}
        for rule in stratum.subsumptions:
            (head,) = rule.heads
            tasks = [self.task(rule, forms) for forms in delta_variants(rule, {head.predicate})]
            self.comparisons.setdefault(head.predicate, []).extend(tasks)

    def run(self) -> None:
        for name in self.comparisons:
            self.base[name] = self.store.relations[name].rows()
            self.store.clear(name)
        super().run()
        for name in self.comparisons:
            self.store.relations.pop(delta_name(name), None)

    def driven(self, tasks: list[Task]) -> bool:
        return False

    def growth(self, name: str, tasks: list[Task]) -> Growth:
        if name not in self.comparisons:
            return super().growth(name, tasks)
        return Growth(self.store.relations[name], read=True, packed=False)

    def add(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        if name not in self.comparisons:
            return super().add(name, parts)
        base = self.base.pop(name, None)
        parts = [p for p in (base, *parts) if p is not None and len(p)]
        if not parts:
            return np.empty((0, self.program.predicates[name].arity), np.int64)
        relation = self.store.relations[name]
        self.set_deltas({name: relation.apply_in_place(inserts=np.concatenate(parts)).inserted})
        subsumed = np.concatenate([rows for task in self.comparisons[name] for _, rows in self.derive(task)])
        new = self.store.relations[delta_name(name)]
        before = len(new)
        gone = relation.apply_in_place(erases=subsumed).erased
        new.apply_in_place(erases=gone)
        self.watch.pending(0)
        self.watch.derived(before - len(gone))
        return new.rows()


class _EquivalenceStratum(PlainStratum):
    """Rules derive pairs, which classes absorb after each round (`dlog.ir.lower.equivalence`).

    What is new for the next round are the rows of members that got another representative: those of the
    smaller of two classes that join, so a member is new O(log members) times.  Of a recursion only the pairs
    that joined two classes are stored.
    """

    def __init__(
        self,
        program: Program,
        stratum: Stratum,
        store: Store,
        evaluation: Evaluation,
        classes: dict[str, str],
    ):
        rules = tuple(r for r in stratum.rules if r.heads[0].predicate not in classes)
        super().__init__(program, replace(stratum, rules=rules), store, evaluation)
        self.classes_of = {relation: name for name, relation in classes.items()}
        self.moved: dict[str, np.ndarray] = {}  # by predicate with classes: what the round has added

    def run(self) -> None:
        for relation in self.classes_of:
            self.absorb(relation, self.store.relations[relation].rows())
        super().run()

    def driven(self, tasks: list[Task]) -> bool:
        return False

    def growth(self, name: str, tasks: list[Task]) -> Growth:
        known = name in self.classes_of or name in self.classes_of.values()
        return (
            Growth(self.store.relations[name], True, packed=False) if known else super().growth(name, tasks)
        )

    def round(self, tasks: list[Task]) -> dict[str, np.ndarray]:
        self.moved.clear()
        return super().round(tasks) | self.moved

    def add(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        if name in self.classes_of and parts:
            parts = [self.absorb(name, np.concatenate(parts))]
        return super().add(name, parts)

    def absorb(self, relation: str, pairs: np.ndarray) -> np.ndarray:
        """Update the classes of an equivalence relation; returns the pairs that they needed."""
        name = self.classes_of[relation]
        classes = self.store.relations[name]
        change, needed = class_change(classes, self.store.relations[relation], pairs, pairs[:0])
        self.moved[name] = classes.apply_in_place(inserts=change.inserted, erases=change.erased).inserted
        self.watch.derived(len(change.inserted) - len(change.erased))
        return pairs[needed]


class _ChoosingStratum(PlainStratum):
    """Rules derive candidates, of which some are chosen after each round (`dlog.ir.lower.choice`)."""

    def __init__(
        self,
        program: Program,
        stratum: Stratum,
        store: Store,
        evaluation: Evaluation,
        names: tuple[str, ...],
    ):
        rules = tuple(r for r in stratum.rules if r.heads[0].predicate not in names)
        super().__init__(program, replace(stratum, rules=rules), store, evaluation)
        choices = ((name, program.predicates[name].choice) for name in names)
        self.choices = {name: Choosing(store, name, choice) for name, choice in choices if choice is not None}

    def run(self) -> None:
        for choice in self.choices.values():
            choice.take(choice.facts)
        if not self.stratum.recursive:
            for choice in self.choices.values():
                choice.take(self.store.relations[choice.choice.candidates].rows())
                self.opened(choice)
        super().run()

    def driven(self, tasks: list[Task]) -> bool:
        return False

    def growth(self, name: str, tasks: list[Task]) -> Growth:
        candidates = {choice.choice.candidates for choice in self.choices.values()}
        known = name in self.choices or name in candidates
        return (
            Growth(self.store.relations[name], True, packed=False) if known else super().growth(name, tasks)
        )

    def round(self, tasks: list[Task]) -> dict[str, np.ndarray]:
        added = super().round(tasks)
        for name, choice in self.choices.items():
            if choice.choice.candidates in added:
                added[name] = choice.take(added[choice.choice.candidates])
                self.watch.derived(len(added[name]))
        return added

    def rounds(self, recursive: list[Task], added: dict[str, np.ndarray]) -> None:
        super().rounds(recursive, added)
        nothing = {name: rows[:0] for name, rows in added.items()}
        super().rounds(recursive, nothing | {name: self.opened(c) for name, c in self.choices.items()})

    def opened(self, choice: Choosing) -> np.ndarray:
        new = choice.open()
        self.watch.derived(len(new))
        return new


def combines_by_row(store: Store, stratum: Stratum, variants: Iterable[tuple[Form, ...]]) -> bool:
    """Whether the best rows of a stratum can drive its variants: all predicates combine numbers by key, and
    bodies read none of them besides the driver."""
    names = set(stratum.predicates)
    numbers = all(store.column_types(name)[-1].ordered_codes for name in names)
    keyed = all(store.predicates[name].arity > 1 for name in names)
    linear = not any(_reads_forms(forms, name) for forms in variants for name in names)
    return names == set(stratum.combine) and numbers and keyed and linear


def as_plain(rule: Rule) -> Rule:
    """`F[x] = m <- agg<<m = min(e)>> body` as the candidates `F[x] = e <- body`."""
    if not rule.aggregates:
        return rule
    item = rule.aggregates[0]
    assert item.argument is not None
    argument = item.argument
    heads = tuple(replace(h, args=(*h.args[:-1], argument)) for h in rule.heads)
    return replace(rule, heads=heads, aggregates=())


def _reads_forms(forms: tuple[Form, ...], name: str) -> bool:
    return _mentions(Conj((), forms), {name})


def delta_variants(rule: Rule, names: set[str]) -> Iterator[tuple[Form, ...]]:
    """For each positive use of a recursive predicate, the body with that atom reading only what is new.

    A use inside a disjunction picks its branch: only derivations through that atom are needed.
    """
    yield from _variants(rule.body.forms, names)


def _variants(forms: tuple[Form, ...], names: set[str]) -> Iterator[tuple[Form, ...]]:
    for index, form in enumerate(forms):
        before, after = forms[:index], forms[index + 1 :]
        if isinstance(form, Atom) and form.predicate in names:
            yield (*before, replace(form, predicate=delta_name(form.predicate)), *after)
        elif isinstance(form, Disjunction):
            for branch in form.branches:
                for variant in _variants(branch.forms, names):
                    yield (*before, *variant, *after)
        else:
            assert not isinstance(form, Negation) or not _mentions(form.body, names)


def without(forms: tuple[Form, ...], names: set[str]) -> tuple[Form, ...] | None:
    """The derivations of a body that need no recursive predicate: its disjunctions with only the branches
    that do without.  None if there are none.
    """
    kept: list[Form] = []
    for form in forms:
        if isinstance(form, Atom) and form.predicate in names:
            return None
        if isinstance(form, Disjunction) and _mentions(Conj((), (form,)), names):
            parts = [(branch, without(branch.forms, names)) for branch in form.branches]
            branches = tuple(replace(branch, forms=part) for branch, part in parts if part is not None)
            if not branches:
                return None
            form = replace(form, branches=branches)
        kept.append(form)
    return tuple(kept)


def _mentions(conj: Conj, names: set[str]) -> bool:
    return not names.isdisjoint(conj.predicates())
