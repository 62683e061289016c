"""Owns a program with its data: how it is loaded and evaluated, and what can be seen inside.

Knows nothing of transactions: see `dlog.engine.database`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dlog.engine.commit.commits import Change, Changes
from dlog.engine.commit.record_uses import codes_in_relations
from dlog.engine.commit.result import Result
from dlog.engine.evaluate.demand import derived_predicates, described, evaluate_goals, rewriting_for
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.engine.loading import apply_deltas, load_facts, load_inputs
from dlog.engine.maintain.chosen import Chosen, chosen_strategies
from dlog.engine.maintain.cones import all_fresh, stale_predicates, without_stale
from dlog.engine.maintain.idle import are_stored, begin_idle, evaluated_at_first, note_read, on_read, read_now
from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.strategies import require_strategy
from dlog.engine.maintain.strategy import net_difference
from dlog.engine.state.closure import canonical_classes
from dlog.engine.state.layers import Layers, in_layers
from dlog.engine.state.limits import Limits, Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.memory import given_by, take_given
from dlog.engine.state.store import Store
from dlog.engine.statements import read_fact, settled, with_modes
from dlog.engine.view import View, interruptible
from dlog.errors import (
    DlogError,
    VerifyError,
)
from dlog.garbage import seldom_collected
from dlog.implementations import Implementations
from dlog.interrupts import uninterrupted
from dlog.ir.check import load_program
from dlog.ir.declared import declaration
from dlog.ir.functors import used_functors
from dlog.ir.goals.narrowed import reads_of
from dlog.ir.rules import Predicate, Program, Stratum
from dlog.jit import Words
from dlog.language import ast
from dlog.language.source import Source, read_source, text_source
from dlog.planning.options import Options
from dlog.planning.versions import facts_name, given_name, is_change, is_memory, is_old
from dlog.storage.relation.relation import Relation

Progress = Callable[[str, str, int, int], None]  # phase, what, done, total


class Shown(NamedTuple):
    """A state that others may see: it never changes."""

    tree: ast.Program
    program: Program
    relations: dict[str, Relation]
    predicates: dict[str, Predicate]
    version: int
    pending: frozenset[str]  # not evaluated yet


class Evaluated(View):
    """The base facts of a program, and what its rules derive from them, completely or as far as requested."""

    @uninterrupted
    @seldom_collected
    def __init__(
        self,
        path: str | Path | None = None,
        *,
        source: str | Source | None = None,
        facts: str | Path = ".",
        limits: Limits | None = None,
        progress: Progress | None = None,
        warn: Callable[[str], None] | None = None,
        jobs: int = 1,
        evaluated: bool = True,
        load: bool = True,
        strategy: str | None = None,
        goals_only: bool = False,
        traced: bool = False,
        materialize: Mapping[str, str] | None = None,
        functions: Mapping[str, Any] | Iterable[Any] | None = None,
    ):
        """From a program file or a text.  `facts` is the folder of its `.input` files.
        Up to `jobs` cores are used.

        `warn` gets warnings about rejected rows and about joins that seem too large; `warnings` has all
        of them.  Without `evaluated` only the base facts exist at first: rules run on request,
        and only as far as the request needs.  With `goals_only` what the program itself asks for is
        evaluated that way.
        `strategy` forces one strategy of maintenance on all rules, whatever a transaction changes; without it
        rules are evaluated from scratch if that is expected to be cheaper.  It never changes an answer.
        `materialize` gives predicates a mode, as `.materialize` does: `{"p": "on_read"}`.
        `functions` has the implementations of functors by name, as in `{"f": f}`, beside those that
        `dlog.function` and `dlog.aggregate` have registered.
        `traced` records every run of every rule in `measures`, for a profile.
        """
        require_strategy(strategy)  # before anything is read
        if path is not None and source is not None:
            raise DlogError("a database has one program: give its path or its source, not both")
        self.measures = Measures()
        self.facts_folder = facts
        self.warnings: list[str] = []
        self._tell = warn
        self._jobs = jobs
        self._traced = traced
        self._progress = progress or (lambda phase, what, done, total: None)
        self._lock = threading.RLock()  # held to change the state, or to read it in place
        if path is not None:
            source = read_source(path)
        tree, program = self._program_of(source if isinstance(source, Source) else text_source(source or ""))
        tree, program = with_modes(tree, program, materialize or {})
        self._maintenance = Maintenance.of(program, strategy)
        store = Store(self._maintenance.program.predicates)
        store.dictionary.functions = Implementations.of(functions)
        if evaluated or goals_only:
            self._bind(store, program)
        super().__init__(settled(tree, program), program, store, limits or Limits(), 0)
        self.store.options = Options.of(program.pragmas)
        watch = Watch(self.limits)
        load_facts(self.program, self.store)
        with interruptible(watch):
            watch.doing = "loading facts"
            if load:
                self._load_inputs(facts)
            apply_deltas(self.program.deltas, self.store)
            take_given(self.program, self.store.relations)
            self._restore()
            for name in derived_predicates(self.program):
                self.store.relations[facts_name(name)] = self.store.relations[name]
            self.store.relations = self._start()
            self.pending = derived_predicates(self.program)
            if goals_only:
                self._evaluate_goals(watch)
            elif evaluated:
                self._evaluate_stored(watch)
        self.store.relations = in_layers(self.store.relations)
        self._show()

    def _program_of(self, source: Source) -> tuple[ast.Program, Program]:
        return load_program(source)

    def _bind(self, store: Store, program: Program) -> None:
        """Raises unless what the program calls is there."""
        store.dictionary.functions.bind(program.functors, used_functors(program.rules))

    def _restore(self) -> None:
        """Base facts from elsewhere, before rules run."""

    def _show(self) -> None:
        """Give snapshots the current state, atomically.  O(1); see `Layers.settle`."""
        store = self.store
        relations = store.relations
        if type(relations) is Layers:
            relations.settle()
        state = (self.tree, self.program, relations, store.predicates, self.version, self.pending)
        self._shown = tuple.__new__(Shown, state)  # half the time of a call by its name

    def held_records(self) -> Iterator[Words]:
        """Of the state in work and of the last one that others see."""
        yield from super().held_records()
        yield from codes_in_relations(self._shown.relations, self._shown.predicates)

    def __repr__(self) -> str:
        names = [name for name, predicate in self.program.predicates.items() if not predicate.auxiliary]
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"<dlog.Database: {shown}>" if names else "<dlog.Database: empty>"

    def _load_inputs(self, facts: str | Path) -> None:
        load_inputs(
            self.program,
            self.store,
            facts,
            self.warn,
            lambda what, done, total: self._progress("load", what, done, total),
        )

    def _evaluate(self, watch: Watch) -> None:
        self._evaluate_program(self.program, watch)

    def _evaluate_stored(self, watch: Watch) -> None:
        """What is stored before the first read."""
        if self._maintenance.stores_calls:
            self._evaluate_program(self._maintenance.begin_primitives(self.store), watch)
            return
        self._evaluate_program(evaluated_at_first(self._maintenance, self.program), watch)
        begin_idle(self._maintenance, self.program, self.store)

    def _evaluate_program(self, program: Program, watch: Watch) -> None:
        evaluate(program, self.store, self._evaluation(self.program, watch))
        self.pending = frozenset()

    def _evaluate_goals(self, watch: Watch) -> None:
        """What the program asks for, and as little else as that needs."""
        rewriting = rewriting_for(self.program, self.store, self.pending)
        computed = evaluate_goals(self.program, rewriting, self.store, self._evaluation(self.program, watch))
        self.store.relations |= computed
        self.pending -= computed.keys()

    @uninterrupted
    def complete(self) -> None:
        """Evaluates what is still pending."""
        if self.pending:
            watch = Watch(self.limits)
            with interruptible(watch):
                self.store.relations = self._start()
                self._evaluate_stored(watch)
            self.store.relations = in_layers(self.store.relations)
            self._show()

    def _evaluation(self, program: Program, watch: Watch) -> Evaluation:
        self.measures = Measures(on_warning=self.warn, traced=self._traced)
        limits = {
            d.predicate: int(p.value)
            for d in program.directives
            if d.kind == "limitsize"
            for p in d.params
            if p.name == "n"
        }
        return Evaluation(
            watch,
            self.measures,
            lambda what, done, total: self._progress("evaluate", what, done, total),
            limits,
            self._jobs,
        )

    def warn(self, text: str) -> None:
        """Stores a warning and passes it on."""
        self.warnings.append(text)
        if self._tell is not None:
            self._tell(text)

    def relation(self, predicate: str) -> Relation:
        with self._lock:
            if self._maintenance.modes.on_read:
                self._read(self.program, predicate)
            return super().relation(predicate)

    def _answer(self, program: Program, node: ast.Query) -> Result:
        if self._maintenance.modes.on_read:
            self._read(program, program.queries[-1].predicate)
        return super()._answer(program, node)

    @uninterrupted
    def _read(self, program: Program, predicate: str) -> None:
        """A reader reads a predicate of a program that has all rules of the database: see `idle.read`."""
        if self.pending:
            return
        maintenance = self._maintenance
        known = maintenance.on_read_below if program is self.program else {}
        strata = known.get(predicate)
        if strata is None:
            names = reads_of(program, predicate) & maintenance.owner.keys()
            strata = known[predicate] = on_read(maintenance, self.program, names)
        note_read(maintenance, strata)
        if not are_stored(strata, self.store):
            self._go_on_with(partial(read_now, maintenance, self.program, self.store, strata))

    def _go_on_with(self, relations: Callable[[Evaluation], dict[str, Relation]]) -> None:
        """The same state, of which more or less is stored."""
        watch = Watch(self.limits)
        measures = self.measures
        try:
            with interruptible(watch):
                found = relations(self._evaluation(self.program, watch))
        finally:
            self.measures = measures
        if found is not self.store.relations:
            self.store.relations = in_layers(found)
            self._show()

    def answer(self, query: ast.Query) -> Result:
        with self._lock:
            return super().answer(query)

    def base(self, predicate: str) -> Result:
        """The base facts of a predicate, without what rules derive."""
        self.require(predicate)
        columns = self.program.predicates[predicate].columns
        with self._lock:
            relation = self.base_relation(predicate)
            assert relation is not None
            return self._result(predicate, columns, relation)

    def base_relation(self, predicate: str) -> Relation | None:
        """The same as a version; None if the predicate is new to the database."""
        name = facts_name(predicate) if predicate in self._maintenance.owner else predicate
        return self.store.relations.get(name)

    def given(self) -> list[tuple[ast.Declaration, Predicate, Result]]:
        """What another database must be given to have the same choices and numbers: predicates to declare,
        with their rows."""
        with self._lock:
            found = given_by(self.program, self.store.relations, self.pending)
            results = [self._result(p.name, p.columns, relation) for p, relation in found]
        return [(declaration(p), p, result) for (p, _), result in zip(found, results, strict=True)]

    def verify(self) -> float:
        """Evaluates everything from scratch; raises VerifyError with the rows that differ, if any do.
        Returns the seconds that the evaluation took, of processor time."""
        with self._lock:
            return self._verify()

    @uninterrupted
    def _verify(self) -> float:
        self.complete()
        store, measures = self.store, self.measures
        maintained = store.relations
        watch = Watch(self.limits)
        try:
            store.relations = self._start() | {
                given_name(name): maintained[name] for name in self.program.remembered
            }
            started = time.process_time()
            with interruptible(watch):
                self._evaluate_program(without_stale(self.program, maintained), watch)
            seconds = time.process_time() - started
            stale = stale_predicates(self.program, maintained)
            derived = {
                s for s in self.program.stratum_of if not (self.program.predicates[s].auxiliary or s in stale)
            }
            derived -= self.program.equivalences.keys()
            found = {
                name: net_difference(maintained[name], store.relations[name]) for name in sorted(derived)
            }
            for relation, name in self.program.equivalences.items():  # others may represent the classes
                versions = (canonical_classes(of[name]) for of in (maintained, store.relations))
                found[relation] = net_difference(*versions)
            plain = {n: replace(p, qualifiers=frozenset()) for n, p in self.program.predicates.items()}
            differences = Changes(lambda: found, plain, store.dictionary)
        finally:
            store.relations, self.measures = maintained, measures
        if differences:
            raise VerifyError(_disagreement(differences))
        return seconds

    def _start(self) -> dict[str, Relation]:
        return start_relations(self.program, self.store.relations, derived_predicates(self.program))

    @uninterrupted
    def draw(self, path: Path, title: str, predicate: str | None = None) -> str | None:
        """Draw what maintains a predicate into a file, or the first predicate that has a picture.

        Returns what the format cannot show; None: there is no picture.
        """
        maintenance = self._maintenance_explained()
        for number, stratum in enumerate(maintenance.program.strata):
            if predicate is None or predicate in stratum.predicates:
                lost = maintenance.strategy(number, self.store).draw(path, title)
                if lost is not None:
                    return lost
        return None

    def explain(self, predicate: str | None = None, all: bool = False) -> str:
        """How rules are evaluated and maintained, as text.  Never runs a rule.

        `all`: with what every strategy would cost, or why it refuses.
        What is not evaluated yet is explained as the program's own outputs and queries will need it.
        """
        from dlog.engine.explain.explain import explain

        if predicate is not None:
            self.require(predicate)
        maintained = partial(self._maintained, self._maintenance_explained(), all)
        rewriting = rewriting_for(self.program, self.store, self.pending)
        if not self.pending or not rewriting.full or predicate in rewriting.left_out:
            return explain(self.program, self.store, predicate, maintained)
        store = self.store.under(dict(rewriting.program.predicates))
        parts = rewriting.restricted.get(predicate, (predicate,)) if predicate else (None,)
        explained = [explain(rewriting.program, store, part, maintained) for part in parts]
        rest = self._maintained_elsewhere(rewriting.program, predicate, maintained)
        return "\n".join([*described(rewriting), *explained, *rest])

    def _maintenance_explained(self) -> Maintenance:
        """What is chosen before the data is there is not kept."""
        known = self._maintenance
        return Maintenance.of(self.program, known.by_caller) if self.pending else known

    def _maintained(self, maintenance: Maintenance, all: bool, stratum: Stratum) -> list[str]:
        """How a stratum follows transactions, in words; nothing of what a rewriting adds."""
        number = maintenance.owner.get(stratum.predicates[0])
        return [] if number is None else maintenance.explain(number, self.store, all)

    def _maintained_elsewhere(
        self, shown: Program, predicate: str | None, maintained: Callable[[Stratum], list[str]]
    ) -> list[str]:
        """The same for strata of which a rewriting has only parts, or nothing: transactions keep all."""
        known = derived_predicates(shown)
        lines = []
        for stratum in self.program.strata:
            names = [n for n in stratum.predicates if not self.program.predicates[n].auxiliary]
            if names and not known.intersection(names) and predicate in (None, *names):
                lines.append(f"  {', '.join(names)}")
                lines += [f"    {line}" for line in maintained(stratum)]
        return ["under transactions, in full:", *lines] if lines else []

    @uninterrupted
    def why(self, fact: str) -> str:
        """One well-founded derivation of a fact, as a tree of text.  Raises if the fact does not hold."""
        from dlog.engine.why import derivation_tree

        with self._all_fresh([read_fact(self, fact)[0]]):
            return derivation_tree(self, fact)

    def stats(self) -> Measures:
        """The measurements of the last evaluation or transaction, rule by rule; `print` shows them as a
        table.

        Empty after a transaction of a few rows that ran no rule by itself: `costs` of its commit has more.
        """
        return self.measures

    @uninterrupted
    def trace_sizes(self) -> dict[str, tuple[str, int, int]]:
        """For each predicate with rules that are maintained by their traces: granularity, intervals and bytes
        of its sensitivity indices.  O(rules)."""
        with self._lock:
            strategies = self._maintenance.strategies.values()
            sizes = {s.stratum.predicates[0]: s.index_size(self.store) for s in strategies}
            return {name: size for name, size in sizes.items() if size is not None}

    @uninterrupted
    def chosen_strategies(self) -> list[Chosen]:
        """Which strategy maintains each predicate, and why: in the order of strata."""
        with self._lock:
            return chosen_strategies(self._maintenance, self.store)

    @uninterrupted
    def check(self) -> None:
        """Assert every invariant of the state.  O(size of the database)."""
        for relation in self.store.relations.values():
            relation.check()
        for name, predicate in self.program.predicates.items():
            assert self.store.relations[name].arity == predicate.arity
        assert not any(is_old(name) or is_change(name) for name in self.store.relations)
        strategies = self._maintenance.strategies.values()
        read = frozenset().union(*(s.stratum.reads.union(s.stratum.predicates) for s in strategies))
        with self._all_fresh(read):
            for strategy in strategies:
                strategy.check(self.store)

    @contextmanager
    def _all_fresh(self, names: Iterable[str]) -> Iterator[None]:
        """With all that these predicates depend on, also what transactions do not update."""
        with self._lock:
            store, relations = self.store, self.store.relations
            try:
                store.relations = all_fresh(self.program, self._maintenance.program, store, names)
                yield
            finally:
                store.relations = relations


def start_relations(
    program: Program, relations: Mapping[str, Relation], derived: Collection[str]
) -> dict[str, Relation]:
    """Relations to evaluate in.  Those that rules add to are separate handles on the base facts; all
    others are the base facts themselves, so that column orders made for them stay.  O(predicates).

    Memory stays: what predicates with memory had is given to them, if it is known under that name."""
    return {
        **{name: relation for name, relation in relations.items() if is_memory(name)},
        **{name: relations[name] for name in program.predicates if name not in derived},
        **{name: relations[facts_name(name)].snapshot() for name in derived},
        **{facts_name(name): relations[facts_name(name)] for name in derived},
    }


def view_of(shown: Shown, view: View) -> View:
    """A state to read in any thread.  `view` provides the store and limits."""
    store = view.store.snapshot_of(shown.relations, shown.predicates)
    made = View(shown.tree, shown.program, store, view.limits, shown.version)
    made.pending = shown.pending
    return made


_SHOWN = 10


def _disagreement(differences: Mapping[str, Change]) -> str:
    """The change that would correct maintenance, a few rows of it."""
    lines = ["maintenance and evaluation from scratch disagree"]
    for name, change in differences.items():
        for what, result in (("missing", change.inserted), ("should not be there", change.erased)):
            lines += [f"  {name}{row}: {what}" for row in result.rows()[:_SHOWN]]
            if len(result) > _SHOWN:
                lines.append(f"  and {len(result) - _SHOWN:,} more of {name}: {what}")
    return "\n".join(lines)
