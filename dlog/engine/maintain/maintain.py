"""Owns the path of a transaction through the strata: which are touched, in which order, how each is updated.

Correct output: after `maintain` every derived predicate is what evaluation from scratch gives on the new base
facts.  Only strata that read something that changed are touched, so rules that a transaction does not affect
cost nothing.

1 base facts change.  2 strata in order: changes of what a stratum reads become changes of its predicates.
3 constraints are checked.  Knows no strategy by name: `dlog.engine.maintain.offers` chooses.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dlog.engine.body.replan import alike, most_alike
from dlog.engine.evaluate import column_orders
from dlog.engine.evaluate.column_orders import LARGE, shared_predicates
from dlog.engine.evaluate.evaluate import Evaluation, evaluate_stratum
from dlog.engine.head.conflicts import check_constraints, check_function
from dlog.engine.maintain.accounts import Account, Spent
from dlog.engine.maintain.cones import Cones, evaluate_stale, is_now_fresh, is_stale, mark_stale
from dlog.engine.maintain.explain_offers import explain_offers
from dlog.engine.maintain.measured import Measured
from dlog.engine.maintain.modes import NO_MODES, Modes, explain_mode
from dlog.engine.maintain.offers import Question, all_offers, choose
from dlog.engine.maintain.program_changes import identity, needed_for_memory
from dlog.engine.maintain.strategies import FROM_SCRATCH, requested
from dlog.engine.maintain.strategy import CannotFollow, Cycle, Strategy, recompute
from dlog.engine.state.store import Store
from dlog.heads.lookup import look_up
from dlog.ir.rules import Program, Stratum
from dlog.language import ast
from dlog.planning.stored_primitives import stored_primitives, with_stored_primitives
from dlog.planning.versions import facts_name
from dlog.storage.relation.deferred import DeferredChange

SMALL_CHANGE = 64  # changes of up to this many rows are always maintained, whatever the estimate
# The same without recursion, where a row cannot change everything, if a strategy loses its state: the next
# transaction builds it again.  Over facts of 300 and 3,000 rows, changes of up to 1,000 rows took up to 2.4
# times as long from scratch, and never less than 0.8 times (`benchmarks/strategies.py`).
SMALL_CHANGE_WITH_STATE = 1024
# At this share of the work of evaluating from scratch, that is done instead.  It processes whole
# columns, while deltas look up rows: on group counts it was three times as fast at a change of 10%.
BULK = 0.08


@dataclass
class Maintenance:
    """What a program has between transactions: which strata read what, and the strategies made so far."""

    program: Program
    readers: dict[str, tuple[int, ...]] = field(default_factory=dict)  # predicate -> strata that read it
    owner: dict[str, int] = field(default_factory=dict)  # derived predicate -> its stratum
    cones: Cones = field(default_factory=lambda: Cones({}, {}))
    given: Program | None = None  # without stored primitives
    strategies: dict[int, Strategy] = field(default_factory=dict)
    given_up: dict[int, dict[str, str]] = field(default_factory=dict)  # strategies that failed, and why
    sizes: dict[int, list[int]] = field(default_factory=dict)  # of what strata read and derive, at that time
    spent: dict[int, Spent] = field(default_factory=dict)  # by stratum, in the transactions that touched it
    measured: Measured = field(default_factory=Measured)
    by_caller: str | None = None  # the strategy that the caller requested, which overrides the program's
    requested: str | None = None  # the strategy that the caller or the program requested
    tables: Mapping[str, ast.Directive] = field(default_factory=dict)  # predicates that never change
    triggers: dict[tuple[str, int], Any] = field(
        default_factory=dict
    )  # see `dlog.engine.maintain.triggers.trigger_search`
    shared: frozenset[str] = frozenset()  # predicates whose column orders are a choice
    shared_readers: frozenset[int] = frozenset()  # strata that read them
    prepared: set[int] = field(default_factory=set)  # strata whose plans have their column orders
    stored: tuple[str, ...] = ()  # stored primitives
    remembered: frozenset[str] = frozenset()  # what predicates with memory depend on
    modes: Modes = NO_MODES
    subscribed: frozenset[str] = frozenset()  # predicates that have subscribers
    transactions: int = 0  # so far, counted if there are modes
    due: float = 0  # the number of transactions at which some predicate may have been unread for long
    last_read: dict[str, int] = field(default_factory=dict)  # by predicate: the number of transactions then
    on_read_below: dict[str, list[Stratum]] = field(
        default_factory=dict
    )  # of mode on_read, by what reads them

    @classmethod
    def of(cls, program: Program, by_caller: str | None = None) -> Maintenance:
        """O(program).  Has strata that the program has not: see `dlog.planning.stored_primitives`."""
        stored = stored_primitives(program)
        given, program = program, with_stored_primitives(program)
        readers: dict[str, dict[int, None]] = {}
        owner = {}
        for number, stratum in enumerate(program.strata):
            owner.update(dict.fromkeys(stratum.predicates, number))
            for name in stratum.reads - set(stratum.predicates):
                readers.setdefault(name, {})[number] = None
        found = {name: tuple(numbers) for name, numbers in readers.items()}
        tables = {d.predicate: d for d in program.directives if d.kind == "table"}
        shared = shared_predicates(program)
        shared_readers = frozenset(number for name in shared for number in found.get(name, ()))
        cones = Cones.of(program, found)
        return cls(
            program,
            found,
            owner,
            cones,
            given,
            by_caller=by_caller,
            requested=requested(by_caller, program.pragmas),
            tables=tables,
            shared=shared,
            shared_readers=shared_readers,
            stored=stored,
            remembered=needed_for_memory(program),
            modes=Modes.of(program, found, cones),
        )

    def lacks_primitives(self, store: Store) -> bool:
        """Whether primitives are to be stored that are not: none are before the first transaction."""
        return bool(self.stored) and facts_name(self.stored[-1]) not in store.relations

    @property
    def stores_calls(self) -> bool:
        """Whether values of functors are stored.  They are from the beginning, so that a function is called
        once for each row of arguments; other primitives are before the first transaction."""
        return any("'@" in name for name in self.stored) and not self.modes

    def begin_primitives(self, store: Store) -> Program:
        """The program to evaluate at first, with stored primitives."""
        for name in self.stored:
            store.clear(name)
            store.relations[facts_name(name)] = store.relations[name].snapshot()
        return self.program

    def store_primitives(self, store: Store, evaluation: Evaluation) -> None:
        """Evaluate what `lacks_primitives`.  REQUIRES: `store.relations` is the transaction's own."""
        store.predicates = dict(self.program.predicates)
        for name in self.stored:
            store.clear(name)
            store.relations[facts_name(name)] = store.relations[name].snapshot()
            alone = Stratum((name,), self.program.rules_of(name), False)  # what it reads is complete
            if self.modes and self.is_absorbed(self.owner[name], store):
                mark_stale(store, alone)
                continue
            evaluate_stratum(self.program, alone, store, evaluation)

    def is_idle(self, number: int, store: Store) -> bool:
        """Whether a stratum is not updated, since its predicates have no readers or subscribers now."""
        names = self.program.strata[number].predicates
        if number in self.modes.changes:
            return self.subscribed.isdisjoint(names)
        return number in self.modes.on_read and is_stale(store, names)

    def has_changes_only(self, number: int, store: Store) -> bool:
        """Whether a stratum is updated without its relation."""
        return number in self.modes.changes and is_stale(store, self.program.strata[number].predicates)

    def is_absorbed(self, number: int, store: Store) -> bool:
        """Whether everything that reads an auxiliary stratum is idle, or maintained over its cone.
        O(readers)."""
        tops = self.cones.above.get(number, ())
        return bool(tops) and all(self.is_idle(top, store) or self._is_over_cone(top, store) for top in tops)

    def is_left_out(self, number: int, store: Store) -> bool:
        """Whether a stratum is not updated when what it reads changes."""
        return self.is_idle(number, store) or self.is_absorbed(number, store)

    def _is_over_cone(self, number: int, store: Store) -> bool:
        return not self.is_idle(number, store) and self.strategy(number, store).over_cone

    def absorb(self, number: int, store: Store) -> None:
        """A stratum changes over its cone: from now on nothing updates what only it reads.  O(cone).

        REQUIRES: `store.relations` is the transaction's own.
        """
        for below in self.cones.below.get(number, ()):
            stratum = self.program.strata[below]
            if not is_stale(store, stratum.predicates) and self.is_absorbed(below, store):
                self.strategy(below, store).forget(store)
                mark_stale(store, stratum)

    def refresh_below(self, number: int, cycle: Cycle) -> None:
        """Evaluate what a stratum is going to read and nothing has updated.  O(cone) if there is nothing."""
        for below in self.cones.below.get(number, ()):
            if is_stale(cycle.store, self.program.strata[below].predicates):
                evaluate_stale(cycle, self.program.strata[below])

    def touched(self, name: str, store: Store) -> Collection[int]:
        """The strata that read a predicate, also over their cones.  O(readers)."""
        found = self.readers.get(name, ())
        if self.cones.above.keys().isdisjoint(found):
            return found
        tops = {top for number in found for top in self.cones.above.get(number, ())}
        return {*found, *(top for top in tops if self._is_over_cone(top, store))}

    def updated(self, name: str, store: Store) -> Collection[int]:
        """Those of them that are updated when it changes.  O(readers)."""
        found = self.touched(name, store)
        if not self.modes and self.cones.above.keys().isdisjoint(found):
            return found
        return [number for number in found if not self.is_left_out(number, store)]

    def reads_of(self, number: int, store: Store) -> frozenset[str]:
        """What a stratum reads when it is updated."""
        is_over = number in self.cones.below and self.strategy(number, store).over_cone
        return (self.strategies[number] if is_over else self.program.strata[number]).reads

    def is_stale(self, number: int, store: Store) -> bool:
        """Whether a stratum has something to evaluate before it can be updated.  O(cone)."""
        own = () if number in self.modes.changes else (number,)
        numbers = (*own, *self.cones.below.get(number, ()))
        stale = any(is_stale(store, self.program.strata[n].predicates) for n in numbers)
        return stale and not self.strategy(number, store).over_cone

    @property
    def forced(self) -> bool:
        """Whether strategies are used even where evaluation from scratch seems cheaper."""
        return self.requested is not None

    def strategy(self, number: int, store: Store) -> Strategy:
        if number not in self.strategies:
            self.strategies[number] = self._choose(number, store)
        return self.strategies[number]

    def _choose(self, number: int, store: Store) -> Strategy:
        self.sizes[number] = self._sizes(number, store)
        return choose(self.question(number, store))

    def question(self, number: int, store: Store) -> Question:
        others, stratum = self.strategies.values(), self.program.strata[number]
        given_up = self.given_up.get(number, {})
        below = (n for n in self.cones.below.get(number, ()) if self.cones.above[n] == (number,))
        absorbable = [self.program.strata[n] for n in below]
        return Question(
            self.program,
            stratum,
            store,
            self.requested,
            others,
            given_up,
            self.given,
            absorbable,
            self.measured.factors(number),
            changes_only=number in self.modes.changes,
        )

    def _sizes(self, number: int, store: Store) -> list[int]:
        return [store.rows(name) for name in self._sized(number)]

    def _sized(self, number: int) -> list[str]:
        stratum = self.program.strata[number]
        return sorted(stratum.reads.union(stratum.predicates))

    def most_rows(self, name: str, numbers: Iterable[int]) -> int | None:
        """The rows that a predicate may have before a choice of strata is outgrown, if any.  O(reads)."""
        chosen = [n for n in numbers if n in self.sizes and not self.program.strata[n].recursive]
        chosen = [n for n in chosen if name in self._sized(n)]
        return min((most_alike(self.sizes[n][self._sized(n).index(name)]) for n in chosen), default=None)

    def is_outgrown(self, number: int, store: Store) -> bool:
        """Whether a strategy was chosen for sizes so different that another may be better, or took far longer
        than estimated.  O(reads)."""
        if number not in self.strategies or self.program.strata[number].recursive:
            return False
        return number in self.measured.again or number not in self.sizes or self._has_grown(number, store)

    def _has_grown(self, number: int, store: Store) -> bool:
        return not alike(self._sizes(number, store), self.sizes[number])

    def examine_costs(self, store: Store) -> None:
        """Compare what strata took with what was estimated, where that is due."""
        measured = self.measured
        while measured.due:
            number = measured.due.pop()
            strategy = self.strategies.get(number)
            if strategy is None or strategy.stratum.recursive or self.forced:
                measured.doubted.discard(number)
                continue
            measured.examine(number, strategy, self.question(number, store), self.spent[number])
            if number in measured.again:
                self.triggers.clear()

    def reconsidered(self, number: int, store: Store) -> Strategy:
        """The strategy of a stratum, chosen again if the data has outgrown the last one.  Its state is
        dropped if the new one is not equivalent; the stratum is then evaluated once: O(1) for each row added
        since, because there are 16 times as many, or a 16th.

        REQUIRES: `store.relations` is the transaction's own.
        """
        current = self.strategy(number, store)
        if not self.is_outgrown(number, store):
            return current
        self.measured.again.discard(number)
        if number in self.sizes and self._has_grown(number, store):
            self.measured.slow.pop(number, None)
        chosen = self._choose(number, store)
        return current if chosen.equivalent_to(current) else self._replace(number, store, chosen)

    def another(self, number: int, store: Store, why: str) -> Strategy:
        """Replace a strategy that can no longer maintain its stratum."""
        failed = self.strategies[number]
        self.given_up[number] = {**self.given_up.get(number, {}), failed.way: why}
        return self._replace(number, store, self._choose(number, store))

    def _replace(self, number: int, store: Store, chosen: Strategy) -> Strategy:
        self.strategies[number].forget(store)
        self.strategies = {**self.strategies, number: chosen}
        self.triggers.clear()
        return chosen

    def go_back(self, strategies: dict[int, Strategy]) -> None:
        """Undo the choices of a transaction that is rolled back."""
        if self.strategies is not strategies:
            self.strategies = strategies
            self.sizes.clear()  # so that the next one chooses again
            self.triggers.clear()

    def note(self, number: int, way: str, seconds: float, rows: int) -> None:
        """Record the cost of a stratum in a transaction that changed so many rows that it reads.  O(1)."""
        self.account(number, way).note(seconds, seconds, rows)

    def account(self, number: int, way: str) -> Account:
        """The account of a stratum for one strategy."""
        if number not in self.spent:
            self.spent[number] = Spent(number, self.measured.due)
        return self.spent[number][way]

    def explain(self, number: int, store: Store, all: bool = False) -> list[str]:
        """How a stratum is maintained and why, with the expected and the measured cost.
        `all`: also what every other strategy would cost, or why it refuses.  Runs nothing."""
        is_idle = self.is_idle(number, store)
        mode = list(explain_mode(self.modes, self.program, number, is_idle))
        if is_idle:
            return [*mode, *self._explain_idle(number, store, all)]
        if self.is_absorbed(number, store):
            return [f"absorbed by {', '.join(self._names_above(number))}: evaluated when something reads it"]
        strategy = self.strategy(number, store)
        first, *others = strategy.explain(store)
        lines = [f"{strategy.named} {first}", *(f"  {line}" for line in (*mode, *others))]
        if strategy.way != FROM_SCRATCH:
            if strategy.stratum.recursive and self.requested is not None:
                lines.append(f"  {self.requested} was requested, but it is for rules without recursion")
            if not self.forced and not self.has_changes_only(number, store):
                lines.append(f"  from scratch when more than about {BULK:.0%} of what it reads changes")
        lines += [f"  {line}" for line in self._explain_primitives(strategy, store)]
        lines += [f"  {line}" for line in self.measured.explain(number)]
        if measured := str(self.spent.get(number, "")):
            lines.append(f"  {measured}")
        if all:
            offers = all_offers(self.question(number, store))
            lines += [f"  {line}" for line in explain_offers(offers, strategy.offered_as)]
        return lines

    def _explain_idle(self, number: int, store: Store, all: bool) -> Iterator[str]:
        """How a stratum will be maintained from a subscription or a read on.  Chooses nothing."""
        question = self.question(number, store)
        strategy = choose(question)
        first, *others = strategy.explain(store)
        when = "with a subscriber" if number in self.modes.changes else "while it is stored"
        yield f"  {when}: {strategy.named} {first}"
        yield from (f"    {line}" for line in others)
        if all:
            yield from (f"  {line}" for line in explain_offers(all_offers(question), strategy.offered_as))

    def _names_above(self, number: int) -> Iterator[str]:
        return (name for top in self.cones.above[number] for name in self.program.strata[top].predicates)

    def _explain_primitives(self, strategy: Strategy, store: Store) -> Iterator[str]:
        for name in self.stored:
            if name in strategy.reads:
                (rule,) = self.program.rules_of(name)
                when = ", from the first transaction on" if self.lacks_primitives(store) else ""
                yield f"stores {rule.heads[0]} <- {rule.body}{when}"
                other = self.strategy(self.owner[name], store)
                yield from (f"  {line}" for line in other.explain(store) if other is not strategy)

    def prepare(self, numbers: Iterable[int], store: Store) -> None:
        """Choose column orders for the delta variants of strata that are going to be maintained, once.

        They are planned for that only where there is a choice: see `dlog.engine.evaluate.column_orders`.
        """
        shared = (self.shared_readers & {*numbers}) - self.prepared
        fresh = {number for number in shared if not self.is_idle(number, store)}
        large = {name for name in self.shared if store.rows(name) >= LARGE} if fresh else set()
        if not large:
            return
        self.prepared |= fresh
        strategies = (self.strategy(number, store) for number in sorted(fresh))
        following = [s for s in strategies if not s.reads.isdisjoint(large)]
        for strategy in following:
            for uses in strategy.column_order_uses():
                column_orders.choose(store, uses, large)
        for strategy in following:
            strategy.arrange()

    def _identity(self, number: int) -> object:
        """Equal for strata with the same meaning, down to those that a strategy may absorb."""
        numbers = (number, *self.cones.below.get(number, ()))
        return number in self.modes.changes, *(identity(self.program.strata[n]) for n in numbers)

    def renewed(self, program: Program, store: Store) -> tuple[Maintenance, set[int]]:
        """(Maintenance of a changed program, the strata that are new or have other rules).

        Strata that stay the same keep their strategies, unless the program requests another one; the state of
        the others is dropped from the store.
        """
        later = Maintenance.of(program, self.by_caller)
        later.subscribed, later.transactions = self.subscribed, self.transactions
        later.last_read = self.last_read.copy()
        program = later.program
        remaining = {self._identity(number): number for number in range(len(self.program.strata))}
        new = set()
        for number in range(len(later.program.strata)):
            same = later.requested == self.requested
            before = remaining.pop(later._identity(number), None) if same else None
            if before is None:
                new.add(number)
            elif before in self.strategies:
                later.strategies[number] = self.strategies[before]
                later.given_up[number] = self.given_up.get(before, {})
                if before in self.sizes:
                    later.sizes[number] = self.sizes[before]
                if before in self.spent:
                    later.spent[number] = self.spent[before].moved(number, later.measured.due)
        for number in remaining.values():
            if number in self.strategies:
                self.strategies[number].forget(store)
        return later, new


def maintain(
    maintenance: Maintenance, cycle: Cycle, renewed: Collection[int] = (), done: Collection[int] = ()
) -> None:
    """Bring all derived predicates to the new version.  `renewed` strata are evaluated from scratch,
    those that are `done` have published their changes.

    REQUIRES: base changes are published.  Raises what evaluation from scratch would raise.
    """
    check_base_functions(cycle)
    touched = _touched(maintenance, cycle.store, cycle.changes)
    waiting = sorted({*renewed, *touched, *_owners(maintenance, cycle.facts)})
    done = set(done)
    maintenance.prepare(set(waiting) - done, cycle.store)
    while waiting:
        number = heapq.heappop(waiting)
        if number in done:
            continue
        done.add(number)
        stratum = maintenance.program.strata[number]
        if maintenance.is_idle(number, cycle.store):
            continue
        if maintenance.is_absorbed(number, cycle.store):
            for top in maintenance.cones.above[number]:
                maintenance.absorb(top, cycle.store)
            continue
        clock = maintenance.measured.clock
        started, operations = clock(), cycle.operations_of(stratum)
        rows = _follow_stratum(maintenance, number, cycle, number in renewed)
        maintenance.note(number, cycle.ways[stratum.predicates[0]], clock() - started, rows)
        cycle.costs[stratum.predicates[0]] = cycle.operations_of(stratum) - operations
        changed = [n for n in stratum.predicates if n in cycle.changes or n in cycle.refreshed]
        touched = _touched(maintenance, cycle.store, changed)
        maintenance.prepare(touched - done, cycle.store)
        for reader in touched:
            heapq.heappush(waiting, reader)
    if renewed or not cycle.program.violations.isdisjoint(cycle.changes):
        check_constraints(cycle.program, cycle.store)


def _follow_stratum(maintenance: Maintenance, number: int, cycle: Cycle, renewed: bool) -> int:
    """Returns how many rows had changed in what it reads."""
    strategy = maintenance.reconsidered(number, cycle.store)
    rows = _changed_rows(strategy, cycle)
    if maintenance.has_changes_only(number, cycle.store):
        if not strategy.ready(cycle.store):
            cycle.open(strategy.reads)
            strategy.begin_changes(cycle)
        _apply(strategy, cycle)
        return rows
    bulk = renewed or (not maintenance.forced and _is_bulk(strategy, cycle))
    try:
        _follow(maintenance, number, strategy, cycle, bulk)
    except CannotFollow as error:
        _follow(maintenance, number, maintenance.another(number, cycle.store, str(error)), cycle, bulk)
    return rows


def _follow(
    maintenance: Maintenance, number: int, strategy: Strategy, cycle: Cycle, from_scratch: bool
) -> None:
    stratum = maintenance.program.strata[number]
    cycle.ways[stratum.predicates[0]] = FROM_SCRATCH
    if strategy.over_cone and not from_scratch:
        maintenance.absorb(number, cycle.store)
    elif _evaluate_stale(maintenance, number, cycle):
        from_scratch = True
    if from_scratch:
        strategy.forget(cycle.store)
        recompute(stratum, cycle)
    elif strategy.ready(cycle.store):
        _apply(strategy, cycle)
    else:
        strategy.rebuild(cycle)


def _apply(strategy: Strategy, cycle: Cycle) -> None:
    cycle.ways[strategy.stratum.predicates[0]] = strategy.way
    cycle.open(strategy.reads, strategy.reads_changes)
    strategy.apply(cycle)


def _evaluate_stale(maintenance: Maintenance, number: int, cycle: Cycle) -> bool:
    """Evaluate what a stratum is going to read.  Whether it cannot be updated by changes: the last version of
    it, or of what it reads, is not what rules derived.
    """
    strata = maintenance.program.strata
    maintenance.refresh_below(number, cycle)
    if is_stale(cycle.store, strata[number].predicates):
        is_now_fresh(cycle, strata[number])
        return True
    return not cycle.refreshed.isdisjoint(strata[number].reads)


def _is_bulk(strategy: Strategy, cycle: Cycle) -> bool:
    """Whether a change is so large that evaluating from scratch should cost less."""
    if strategy.stratum.recursive or not strategy.loses_state(cycle.store):
        small = SMALL_CHANGE
    else:
        small = SMALL_CHANGE_WITH_STATE
    return _changed_rows(strategy, cycle) > small and strategy.estimate(cycle) > BULK


def _changed_rows(strategy: Strategy, cycle: Cycle) -> int:
    """Rows that have changed in what a stratum reads.  O(what it reads)."""
    changes = (cycle.changes[name] for name in strategy.reads if name in cycle.changes)
    return sum(len(change.inserted) + len(change.erased) for change in changes)


def check_base_functions(cycle: Cycle) -> None:
    """Raises when an inserted base fact gives a key a second value."""
    for name, change in cycle.changes.items():
        predicate = cycle.program.predicates[name]
        if isinstance(change, DeferredChange):  # one row for each group
            continue
        if predicate.is_functional and len(change.inserted):
            found, _ = look_up(cycle.store.relations[name], change.inserted[:, : predicate.n_keys])
            if (found > 1).any():
                check_function(cycle.program, cycle.store, name)


def _touched(maintenance: Maintenance, store: Store, names: Iterable[str]) -> set[int]:
    """What reads predicates that changed, also what does so over its cone."""
    return {number for name in names for number in maintenance.touched(name, store)}


def _owners(maintenance: Maintenance, names: Iterable[str]) -> set[int]:
    return {maintenance.owner[name] for name in names}
