"""Owns what all methods of finding a body's change share: the interface, reusable plans, the bound query.

Correct output of a method: the assignments of a rule's body that no longer hold, with sign -, and those that
are new, with sign +.  Knows nothing of heads, which absorb these (`dlog.engine.maintain.heads`), nor of
strategies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.default_statistics import GrowingStatistics
from dlog.engine.body.readable import TABLE
from dlog.engine.body.replan import alike
from dlog.engine.body.table import Table
from dlog.engine.head.heads import body_outputs
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.ir.rules import Form, Rule
from dlog.lftj.assemble import Assembled, assemble
from dlog.planning.arrange import AtomUse, arrangement
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.deltas import Variant, in_old_version
from dlog.planning.indices import Requirement, choose_orders
from dlog.planning.pipeline import Join, Pipeline, plan_pipeline
from dlog.planning.versions import base_name, is_change, is_old
from dlog.values import INT, Type

_TABLE_ROWS = 16  # the size that plans assume for a table of bindings
NO_TYPES: Mapping[str, Type] = {}


@dataclass(frozen=True)
class Planned:
    variant: Variant
    pipeline: Pipeline

    @property
    def join(self) -> Join | None:
        """The first operation, if it is a join."""
        first = self.pipeline.operations[0]
        return first if isinstance(first, Join) and first.forms else None


class BodyChanges:
    """The change of one rule's body over one store.  A method overrides `signed` and adds its state."""

    variants: Sequence[Planned] = ()  # a trigger may fire these with a changed row
    bag = True  # whether every assignment counts

    def __init__(
        self, store: Store, rule: Rule, outputs: tuple[str, ...] = (), types: Mapping[str, Type] = NO_TYPES
    ):
        """`outputs`: the variables to return, if not those that the rule itself needs; `types`
        has those of variables that a method adds."""
        self.rule = rule
        self.outputs = outputs or body_outputs(rule)
        self.reads = rule.body.predicates()
        self.runner = LastingRunner(store, replace(rule, types={**rule.types, **types}))
        self._bodies: dict[tuple[bool, tuple[str, ...]], Pipeline] = {}

    def begin(self, cycle: Cycle) -> None:
        """Use a cycle's limits and measures.  O(1)."""
        evaluation = cycle.evaluation
        self.runner.watch = evaluation.watch
        self.runner.measures = evaluation.measures
        self.runner.jobs = evaluation.jobs
        self.runner.measure = evaluation.measures.measure(self.rule)

    def signed(self, cycle: Cycle) -> Iterator[tuple[int, Table]]:
        """(sign, assignments), with the columns that the rule needs.  REQUIRES: `begin`, and ready."""
        raise NotImplementedError

    def all_assignments(self, cycle: Cycle, weighted: bool = False) -> tuple[BodyRunner, Table]:
        """Of the body in the new version, with what runs on its tables; a method that has state may build it.
        `weighted`: a row may represent several, with their count."""
        rule, runner = self.rule, body_runner(cycle, self.rule)
        pipeline = plan_pipeline(rule.body.forms, self.outputs, rule.types, self.bag)
        with cycle.evaluation.measures.of(rule):
            return runner, runner.run(pipeline, weighted=weighted)

    def body(self, bound: tuple[str, ...], table: Table | None, old: bool, bag: bool) -> Table:
        """Assignments of the whole body in one version, for the bindings of a table."""
        if (old, bound) not in self._bodies:
            forms: Sequence[Form] = self.rule.body.forms
            if old:
                forms = [in_old_version(f, self.reads) for f in forms]
            pipeline = plan_pipeline(forms, self.outputs, self.rule.types, bag, bound)
            self._bodies[old, bound] = pipeline
        return self.runner.run(self._bodies[old, bound], table)

    # State, for methods that have any

    def ready(self, store: Store) -> bool:
        return True

    def forget(self, store: Store) -> None:
        """Drop the state."""

    def plans_as(self, other: BodyChanges) -> bool:
        """Whether state built now would have the same plan as that of another object of the same method."""
        return True

    def check(self, store: Store, fresh: Store) -> None:
        """Assert that the state agrees with a freshly built one."""

    # Estimates and explanations

    def uses(self) -> Iterator[tuple[AtomUse, ...]]:
        """What each plan that needs column orders reads, plan by plan."""
        yield from ()

    def share(self, cycle: Cycle) -> float:
        """The size of a change as a share of everything the rule reads."""
        return changed_share(cycle, self.reads)

    def explain(self) -> Iterator[str]:
        """How the change is found and its estimated cost, as text."""
        yield from ()


def changed_share(cycle: Cycle, names: frozenset[str] | set[str]) -> float:
    """The changed rows of some predicates, as a share of all their rows."""
    return sum(
        (len(change.inserted) + len(change.erased)) / max(1, cycle.store.rows(name))
        for name in names
        if (change := cycle.changes.get(name)) is not None
    )


def body_runner(cycle: Cycle, rule: Rule) -> BodyRunner:
    """For a rule's whole body in a cycle."""
    evaluation, measures = cycle.evaluation, cycle.evaluation.measures
    return BodyRunner(cycle.store, rule, evaluation.watch, measures, measures.measure(rule), evaluation.jobs)


@dataclass
class _Plan:
    compiled: CompiledJoin
    assembled: Assembled
    sizes: tuple[int, ...]


class LastingRunner(BodyRunner):
    """A body runner for plans that are reused from transaction to transaction."""

    def __init__(self, store: Store, rule: Rule):
        super().__init__(store, rule, Watch(), Measures())
        self.reusable: dict[tuple[int, bool, tuple[str, ...]], _Plan] = {}

    def arrange(self) -> None:
        """Drop the plans that would read other column orders now; they are rebuilt when they next run."""
        self.reusable = {key: plan for key, plan in self.reusable.items() if self._is_arranged(plan.compiled)}

    def _is_arranged(self, compiled: CompiledJoin) -> bool:
        view = Standing(self.store, None)
        uses = [use for use in compiled.atoms if use.predicate != TABLE]
        return all(arrangement(use, view.known_orders(use.predicate)) == use.columns for use in uses)

    def tested_values(self, pipeline: Pipeline) -> Table | None:
        return None  # deltas are small

    def join(self, join: Join, table: Table | None) -> Table:
        if table is None:
            return self.rows(join, list(join.forms), join.outputs, None)
        return super().join(join, table)

    def planned(  # type: ignore[override]
        self,
        join: Join,
        forms: list[Form],
        outputs: tuple[str, ...],
        table: Table | None,
        count: bool = False,
        post_join: bool = False,
    ) -> _Plan:
        """The plan of a join; rebuilt when a relation has grown or shrunk a lot.  It is never `post_join`: a
        single row is given to the same plans."""
        key = (id(join), count, () if table is None else tuple(table.columns))
        plan = self.reusable.get(key)
        statistics = Standing(self.store, table)
        if plan is not None:
            sizes = tuple(statistics.rows(use.predicate) for use in plan.compiled.atoms)
            if alike(sizes, plan.sizes):
                return plan
        types = {**self.types, "$number": INT}
        compiled = compile_join(
            forms,
            outputs,
            types,
            statistics.column_types,
            GrowingStatistics(statistics),
            self.store.encode,
            bag=join.bag,
            count=count,
        )
        sizes = tuple(statistics.rows(use.predicate) for use in compiled.atoms)
        self.reusable[key] = plan = _Plan(compiled, assemble(compiled.plan), sizes)
        return plan


class Standing:
    """The store as a reusable plan sees it: any index is available, because it will be reused, too.

    An old version has the statistics of the new one.  Changes and tables of bindings are small and have no
    repeated values, so a plan begins with them.
    """

    def __init__(self, store: Store, table: Table | None):
        self.store, self.table = store, table

    def rows(self, name: str) -> int:
        if name == TABLE:
            return _TABLE_ROWS
        return max(1, self.store.rows(name)) if is_change(name) else self.store.rows(_measured(name))

    def distinct(self, name: str, column: int) -> float:
        if name == TABLE or is_change(name):
            return max(1.0, self.rows(name))
        return self.store.distinct(_measured(name), column)

    def partners(self, name: str, column: int) -> float:
        if name == TABLE or is_change(name):
            return 1.0
        return self.store.partners(_measured(name), column)

    def orders(self, name: str) -> list[tuple[int, ...]]:
        return []

    def known_orders(self, name: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        stored = name != TABLE and not is_change(name)
        return self.store.known_orders(_measured(name), foreseen) if stored else ()

    def column_types(self, name: str) -> list[Type]:
        if name == TABLE:
            assert self.table is not None
            return [INT] * len(self.table.columns)
        return list(self.store.column_types(name))


def _measured(name: str) -> str:
    return base_name(name) if is_old(name) else name


def assignments(store: Store, rule: Rule, bag: bool = True) -> float:
    """An estimate of the number of assignments of a rule's body; without `bag`, of those that a join finds
    which stops at the first match where only existence matters."""
    pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, bag)
    first = pipeline.operations[0]
    if not isinstance(first, Join) or not first.forms:
        return 0.0
    view = Standing(store, None)
    compiled = compile_join(
        first.forms, first.outputs, rule.types, view.column_types, view, store.encode, bag=bag
    )
    return compiled.key_order.sizes[-1] if compiled.key_order.sizes else 1.0


def missing_orders(store: Store, uses: Iterable[AtomUse]) -> tuple[int, float]:
    """How many of the column orders that some plans read are missing, and their bytes."""
    needed: dict[str, set[Requirement]] = {}
    for use in uses:
        if not is_change(use.predicate) and use.columns:
            together = use.together or tuple(frozenset({c}) for c in use.columns)
            needed.setdefault(base_name(use.predicate), set()).add(together)
    count, size = 0, 0.0
    for name, requirements in needed.items():
        arity, existing = len(store.column_types(name)), list(store.orders(name))
        chosen = choose_orders(arity, sorted(requirements, key=str), existing)
        new = len(chosen.orders) - len(existing)
        count += new
        size += 8.0 * new * arity * store.rows(name)
    return count, size
