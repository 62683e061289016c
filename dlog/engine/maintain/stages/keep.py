"""Owns the maintenance of recursive strata under insertion and deletion, recursive min and max included.

Correct output: the stratum's predicates hold exactly what evaluation from scratch gives, and what is
published is the net difference.  The state is a stage and a support count for every fact
(`dlog.heads.stages.table`).

One transaction, F being the facts of the recursion before it:

1 change   Derivations that hold now and did not, or vice versa, because of the strata below, over F:
           the counts of their heads change.  A head that does not exist is noted.
2 deaths   Round by round, facts without a derivation from lower stages die, and derivations through them are
           lost.  A fact that still has one stays, and nothing propagates from there.
3 births   Facts that died or were noted are searched for (the bound query): if one still has a derivation, it
           is born at the stage after its body's, and derivations through it are gained.  In order of stages.
4 outcome  The difference from F.

Where values combine, a better value for a key makes the fact with the old one die as well (in 1, or from 3
back to 2), and pending facts are born in the order of their values.

Every derivation is found once in each step: in a body with several changed facts, at the first of
them.  Cost: the derivations of facts that change, or change their stage.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from dlog.engine.evaluate.evaluate import Evaluation, check_functions, evaluate_stratum
from dlog.engine.head.conflicts import check_new_values
from dlog.engine.head.heads import fits
from dlog.engine.maintain.stages.counted import evaluate_counted, is_countable
from dlog.engine.maintain.stages.expansion import Body, Expansion, GroupExpansion, Recursion
from dlog.engine.maintain.stages.explain import explain_stages
from dlog.engine.maintain.stages.recursive_bodies import base_facts_body, bodies, kind_of
from dlog.engine.maintain.stages.rounds import Rounds
from dlog.engine.maintain.stages.short_path import ShortPath, short_path
from dlog.engine.maintain.strategies import FROM_SCRATCH
from dlog.engine.maintain.strategy import Cycle, Strategy, start_from_facts
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from dlog.heads.stages import layout as k
from dlog.heads.stages.table import NO_IDS, StageTable
from dlog.ir.analysis.projection import outer_variables
from dlog.ir.rules import Program, Stratum
from dlog.jit import Words
from dlog.planning.deltas import INSERT, Variant, rule_variants
from dlog.planning.versions import facts_name, inserted_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation, in_order

# One fact without columns: what an expansion without a given needs.
NOTHING: Words = np.empty((1, 0), np.int64)
_LEAST_WORK = 1 << 16  # with less work, never give up
_SHARE = 1  # of the work of building the state: a transaction with more gives up, and the state is rebuilt
_LOOPS = 100  # from births back to deaths; values that improve themselves would loop forever


class TooMuchWork(Exception):
    """Evaluation from scratch is cheaper."""


class _Beside(SideState):
    """The table of a recursion; rebuilding creates another one."""

    def __init__(self, recursion: Recursion):
        self.recursion = recursion

    def settle(self) -> None:
        self.recursion.table.keep()

    def undo(self) -> None:
        self.recursion.table.undo()

    def memory(self) -> int:
        return int(self.recursion.table.table.nbytes + self.recursion.table.records.nbytes)


class StageStrategy(Strategy):
    """Maintains one recursive stratum.  REQUIRES: not `unsupported`.

    There are values without a derivation from lower stages: F[a] = 5 and F[b] = 3 from each other, by
    F[b] = F[a] - 2 and F[a] = max(F[b], 5), after greater values that led there.  The strategy is then never
    ready, and `rebuild` evaluates.

    The table of stages is not in the store: see `dlog.engine.state.side_state`.
    """

    way = "stages"
    has_short_path = True

    def __init__(self, program: Program, stratum: Stratum, store: Store):
        self.program = program
        self.stratum = stratum
        self.names = stratum.predicates
        self.stamp = f"stages {self.names[0]}"
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.kinds = [kind_of(program, stratum, name) for name in self.names]
        self.bodies = [body for body in bodies(stratum) if all(fits(store, atom) for atom in body.facts)]
        self.bodies += [base_facts_body(program, name) for name in self.names]
        self.recursion = Recursion(store, Evaluation(), StageTable(self.kinds), self.numbers)
        self.reads_itself = any(len(body.facts) > 2 for body in self.bodies)
        self.reads = frozenset(a.predicate for b in self.bodies for a, _ in b.rule.body.atoms()) - {
            *self.names
        }
        self.side = _Beside(self.recursion)
        self.total_work = 0  # of evaluation from scratch, when the state was built
        self.limit = 0
        self.is_grounded = True  # as far as known, every value has a derivation from lower stages
        self._expand_bodies()

    def _expand_bodies(self) -> None:
        """All expansions except those of changes below, which are made at the first such change."""
        shared = self.recursion
        self.through: list[tuple[int, Expansion]] = []  # (predicate, derivations through its facts)
        self.bound: list[tuple[int, Expansion]] = []  # (predicate, derivations of its facts)
        self.start: list[Expansion] = []  # derivations from nothing
        self.changing: dict[frozenset[str], list[tuple[list[Variant], Expansion | GroupExpansion]]] = {}
        for body in self.bodies:
            number = self.numbers[body.head.predicate]
            identity = self.kinds[number].identity
            self.bound.append((number, Expansion(shared, body, body.head, body.forms, columns=identity)))
            for place, atom in enumerate(body.facts[1:]):
                rest = [f for f in body.forms if f is not atom]
                through = Expansion(shared, body, atom, rest, place)
                self.through.append((self.numbers[atom.predicate], through))
            if len(body.facts) == 1:
                self.start.append(Expansion(shared, body, None, body.forms))
        self.rounds = Rounds(shared, self.through)

    # The interface of strategies

    def ready(self, store: Store) -> bool:
        return self.side.is_known(store, self.stamp)

    def rebuild(self, cycle: Cycle) -> None:
        self.side.restart()
        counted = not self.stratum.combine and not cycle.evaluation.rounds
        if counted and is_countable(self.recursion, [e for _, e in self.through]):
            self._count(cycle)
            self.side.end(cycle.store, self.stamp)
            return
        self._evaluate(cycle)
        self._bind(cycle)
        try:
            if self.is_grounded:
                with self._measured(cycle):
                    self.build()
        except TooMuchWork:
            self.is_grounded = False
        if not self.is_grounded:
            return
        self.side.end(cycle.store, self.stamp)

    def apply(self, cycle: Cycle) -> None:
        store = cycle.store
        self._bind(cycle)
        self.side.begin(store, self.stamp)
        old = {name: store.relations[name] for name in self.names}
        for name in self.names:
            store.relations[name] = old[name].snapshot()
        self.shown = False
        self.limit = max(_LEAST_WORK, self.total_work // _SHARE)
        try:
            with self._measured(cycle):
                self._change(cycle)
                self._settle()
        except TooMuchWork:
            self._give_up(cycle, old)
            return
        self._publish(cycle, old)
        self.side.end(store, self.stamp)

    def short_path(self, store: Store, name: str, sign: int) -> ShortPath | None:
        return short_path(self, store, name, sign)

    def side_states(self) -> Iterator[SideState]:
        yield self.side

    def forget(self, store: Store) -> None:
        self.side.forget(store, self.stamp)

    def estimate(self, cycle: Cycle) -> float:
        """Assumes that derivations are spread evenly over the facts below."""
        return sum(
            (len(change.inserted) + len(change.erased)) / max(1, cycle.store.rows(name))
            for name, change in self._changes(cycle).items()
        )

    def explain(self, store: Store) -> list[str]:
        return explain_stages(self.stratum, self.reads | {*self.names}, store)

    def check(self, store: Store) -> None:
        """Assert that the table has the facts of the relations, each with a count."""
        table = self.recursion.table
        if not self.side.is_current(store, self.stamp):
            return
        table.keep()
        for name, number in self.numbers.items():
            found = table.stages(number)
            assert np.array_equal(found[:, :-2], store.relations[name].rows()), (
                f"stages of other facts: {name}"
            )
            assert (found[:, -2:] > 0).all(), f"a fact of {name} without stage or support"

    # From scratch

    def build(self) -> None:
        """Stages and counts of all facts.  REQUIRES: the relations hold what the rules derive."""
        store, shared = self.recursion.store, self.recursion
        shared.table = StageTable(self.kinds)
        full = {name: store.relations[name] for name in self.names}
        facts = sum(map(len, full.values()))
        shared.table.reserve(facts, touched=True)
        if self.stratum.combine:  # facts whose values are not final must be visible
            for name in self.names:
                store.relations[name] = Relation(store.arena, full[name].arity, full[name].orders)
        self.shows = bool(self.stratum.combine)
        self.limit = 1 << 62
        self.step = self.round = 0
        self._refresh()
        try:
            for expansion in self.start:
                expansion.run(NOTHING, NO_IDS, k.BOUND, 0)
            self._births()
            self._settle()
        finally:
            store.relations.update(full)
            self._refresh()
        self.total_work = shared.table.work
        shared.table.keep()
        assert len(shared.table) == facts, f"{len(shared.table)} facts with stages, {facts} without"

    def _count(self, cycle: Cycle) -> None:
        """The stratum in the new version with stages and counts, and its difference from the old one."""
        store, shared = cycle.store, self.recursion
        old = {name: store.relations[name] for name in self.names}
        self._bind(cycle)
        shared.table.clear(sum(map(len, old.values())))
        try:
            self.total_work = evaluate_counted(shared, self.bodies, self.start)
            check_functions(self.program, self.stratum, store)
        except BaseException:
            store.relations.update(old)
            raise
        self._publish_new(cycle, old)
        self._refresh()

    def _evaluate(self, cycle: Cycle) -> None:
        """The stratum in the new version, and its difference from the old one."""
        store = cycle.store
        old = {name: store.relations[name] for name in self.names}
        start_from_facts(cycle, self.stratum)
        evaluate_stratum(self.program, self.stratum, store, cycle.evaluation)
        self._publish_new(cycle, old)

    def _publish_new(self, cycle: Cycle, old: Mapping[str, Relation]) -> None:
        """Publish the relations of the store as new versions."""
        store = cycle.store
        for name in self.names:
            new, store.relations[name] = store.relations[name], old[name]
            cycle.publish_difference(name, new)

    def _give_up(self, cycle: Cycle, old: Mapping[str, Relation]) -> None:
        """Evaluate from scratch; the state is built when the next small change comes."""
        cycle.ways[self.names[0]] = FROM_SCRATCH
        cycle.store.relations.update(old)
        self.recursion.table.undo()
        self.forget(cycle.store)
        self._evaluate(cycle)

    @contextmanager
    def _measured(self, cycle: Cycle) -> Iterator[None]:
        """Charge rules for their expansions and their share of the time.  O(expansions that ran).

        Searches for base facts and in the table of stages belong to no rule."""
        started, attached = time.perf_counter(), self.recursion.attached
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            found = [measured for plans in attached for measured in plans.measure()]
            attached.clear()
            total = max(1, sum(seeks + nexts for _, seeks, nexts in found))
            for rule, seeks, nexts in found:
                if rule.id < 0:
                    cycle.operations += seeks + nexts
                elif seeks + nexts:
                    measure = cycle.evaluation.measures.measure(rule)
                    measure.iterations = max(1, measure.iterations)
                    measure.seeks += seeks
                    measure.nexts += nexts
                    measure.seconds += seconds * (seeks + nexts) / total
            cycle.operations += self.recursion.table.derivations

    # 1 change

    def _bind(self, cycle: Cycle) -> None:
        self.program = cycle.program
        self.recursion.store, self.recursion.evaluation = cycle.store, cycle.evaluation
        self.recursion.attached.clear()
        self.shows = self.reads_itself
        self.step = self.round = 0
        self._refresh()

    def _refresh(self) -> None:
        self.recursion.generation += 1

    def _changes(self, cycle: Cycle) -> dict[str, Change]:
        """The changes of the predicates that the bodies read."""
        changes = {**cycle.changes, **{facts_name(n): c for n, c in cycle.facts.items()}}
        return {name: change for name, change in changes.items() if name in self.reads}

    def _change(self, cycle: Cycle) -> None:
        """If no derivation is lost and no value improves, no fact dies.  What a change derives is then
        born without a bound query: all its derivations from existing facts are among these."""
        changes = self._changes(cycle)
        given = [
            (variants[0].sign, expansion, [_rows(changes[v.changed], v) for v in variants])
            for variants, expansion in self.changed_bodies(frozenset(changes))
        ]
        given = [item for item in given if any(map(len, item[2]))]
        falls = self.stratum.combine or any(sign != INSERT for sign, _, _ in given)
        for wanted, mode in ((INSERT, k.LOWER_GAIN if falls else k.BOUND), (-INSERT, k.LOWER_LOSE)):
            for sign, expansion, rows in given:
                if sign == wanted:
                    if isinstance(expansion, GroupExpansion):
                        expansion.run(rows, mode, 0)
                    else:
                        expansion.run(rows[0], NO_IDS, mode, 0)
                    self._look()

    def changed_bodies(
        self, changed: frozenset[str]
    ) -> list[tuple[list[Variant], Expansion | GroupExpansion]]:
        """The variants of all bodies that read one of the changed predicates, as expansions."""
        if changed not in self.changing:
            found: list[tuple[list[Variant], Expansion | GroupExpansion]] = []
            for body in self.bodies:
                groups: dict[int, list[Variant]] = {}
                for number, variant in enumerate(rule_variants(body.rule, changed)):
                    groups.setdefault(-number - 1 if variant.group < 0 else variant.group, []).append(variant)
                found += [(group, self._expansion(body, group)) for group in groups.values()]
            self.changing[changed] = found
        return self.changing[changed]

    def _expansion(self, body: Body, variants: list[Variant]) -> Expansion | GroupExpansion:
        grouped = variants[0].group >= 0
        parts = [
            Expansion(self.recursion, body, v.change, v.forms[1:], types=v.types, repeats=grouped)
            for v in variants
        ]
        return GroupExpansion(parts, outer_variables(body.rule)) if grouped else parts[0]

    # 2 deaths, 3 births

    def _settle(self) -> None:
        """Process facts that have lost support or may have been derived, until there are none of either."""
        table = self.recursion.table
        asked = [table.questions()]
        for _ in range(_LOOPS):
            asked += self._deaths()
            self._ask(np.concatenate(asked))
            self._births()
            if not table.has_fallen:
                return
            self._show(None)
            asked = []
        raise TooMuchWork

    def _deaths(self) -> Iterator[Words]:
        """Remove all facts without a derivation from lower stages; yields their records."""
        table = self.recursion.table
        if self.rounds.possible and table.has_fallen:
            batch, self.round = self.rounds.deaths(self.round, self.limit, self._look)
            yield batch
        while table.has_fallen:
            self.round += 1
            batch = table.fall(self.round)
            self._expand(self.through, batch, k.LOSE, self.round)
            yield batch

    def _ask(self, batch: Words) -> None:
        """The bound query: derivations of facts that do not exist."""
        self._expand(self.bound, batch, k.BOUND, self.step)

    def _births(self) -> None:
        """Add all pending facts, and what is derived from them."""
        table = self.recursion.table
        if self.rounds.possible and not self.shows:
            self.step = self.rounds.births(self.step, self.limit, self._look)
            return
        self.step += 1
        while len(batch := table.births(self.step)):
            if self.shows:
                self._show(batch)
            self._expand(self.through, batch, k.GAIN, self.step)
            self.step += 1

    def _expand(self, expansions: list[tuple[int, Expansion]], batch: Words, mode: int, step: int) -> None:
        if not len(batch):
            return
        facts: dict[int, tuple[Words, Words]] = {}
        for number, expansion in expansions:
            if number not in facts:
                facts[number] = self.recursion.table.facts(batch, number)
            expansion.run(*facts[number], mode, step)
        self._look()

    def _look(self) -> None:
        self.recursion.evaluation.watch.check()
        if self.recursion.table.work > self.limit:
            raise TooMuchWork

    # 4 outcome

    def _show(self, batch: Words | None) -> list[Change]:
        """Copy a batch, or everything, from the table to the relations; returns the changes, sorted."""
        shown = []
        for name, number in self.numbers.items():
            change = self.recursion.table.changes(number, batch, shown=True)
            if change:
                change = self.recursion.store.relations[name].apply_in_place(change.inserted, change.erased)
                self._refresh()
                self.shown = True
            shown.append(change)
        return shown

    def _publish(self, cycle: Cycle, old: Mapping[str, Relation]) -> None:
        store, table, earlier = cycle.store, self.recursion.table, self.shown
        last = self._show(None)
        for name, number in self.numbers.items():
            change = Change(*map(in_order, table.changes(number))) if earlier else last[number]
            if not change:  # the same rows, and column orders that were added meanwhile
                continue
            new, store.relations[name] = store.relations[name], old[name]
            cycle.publish(name, new, change)
            cycle.evaluation.watch.derived(len(change.inserted) - len(change.erased))
            if self.program.predicates[name].is_functional and name not in self.stratum.combine:
                check_new_values(self.program, store, name, change.inserted)


def _rows(change: Change, variant: Variant) -> Words:
    """The rows that a variant's first atom reads: under a negation those of the other sign."""
    return change.inserted if variant.change.predicate == inserted_name(variant.changed) else change.erased
