"""Owns a driver for tests of recursion under changes, and the stages and counts of a program by definition.

The driver keeps the recursive strata of a program by `StageStrategy` and evaluates all others from scratch:
the strategy is tested without the database's own transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dlog.engine.commit.result import Result
from dlog.engine.database import Database
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.loading import python_codes
from dlog.engine.maintain.facts import change_facts
from dlog.engine.maintain.maintain import check_base_functions
from dlog.engine.maintain.stages.keep import StageStrategy
from dlog.engine.maintain.stages.offer import unsupported
from dlog.engine.maintain.stages.recursive_bodies import bodies
from dlog.engine.maintain.strategy import Cycle, net_difference, recompute
from dlog.ir.analysis.projection import outer_variables
from dlog.ir.rules import Stratum, Var
from dlog.planning.versions import facts_name, is_change, is_old
from dlog.storage.relation.relation import Relation
from tests.oracle import naive
from tests.oracle.changes import Change
from tests.oracle.values import Row


class Staged:
    def __init__(self, text: str, evaluation: Mapping[str, object] | None = None):
        """`evaluation`: how strata are evaluated, as fields of `Evaluation`."""
        self.evaluation = evaluation or {}
        self.database = Database(source=text)
        self.program, self.store = self.database.program, self.database.store
        self.relations: dict[str, Relation] = self.store.relations
        self.derived = {name for stratum in self.program.strata for name in stratum.predicates}
        self.strategies: list[tuple[Stratum, StageStrategy | None]] = []
        for stratum in self.program.strata:
            kept = stratum.recursive and not unsupported(self.program, stratum, self.store)
            new = StageStrategy(self.program, stratum, self.store) if kept else None
            self.strategies.append((stratum, new))
        self.applied = self.rebuilt = 0
        self.apply([])

    def apply(self, changes: Iterable[Change], *, abort: bool = False) -> dict[str, tuple[int, int]]:
        """One transaction; returns how many rows each predicate gained and lost.  `abort`: nothing stays."""
        self.store.relations = dict(self.relations)
        cycle = Cycle(self.program, self.store, Evaluation(**self.evaluation))  # type: ignore[arg-type]
        statements = [(c.op, c.predicate, python_codes(self.store, c.predicate, [c.row])) for c in changes]
        try:
            change_facts(cycle, statements, self.derived)
            check_base_functions(cycle)
            for stratum, strategy in self.strategies:
                self._follow(cycle, stratum, strategy)
            for name, change in cycle.changes.items():
                before, after = self.relations[name], self.store.relations[name]
                expected = net_difference(before, after)
                assert [r.tolist() for r in change] == [r.tolist() for r in expected], name
            if not abort:
                relations = self.store.relations
                self.relations = {n: r for n, r in relations.items() if not is_old(n) and not is_change(n)}
        finally:
            self.store.relations = self.relations
        return {name: (len(c.inserted), len(c.erased)) for name, c in cycle.changes.items()}

    def _follow(self, cycle: Cycle, stratum: Stratum, strategy: StageStrategy | None) -> None:
        if strategy is None:
            recompute(stratum, cycle)
        elif strategy.ready(self.store):
            strategy.apply(cycle)
            self.applied += 1
        else:
            strategy.rebuild(cycle)
            self.rebuilt += 1

    def rows(self, name: str) -> list[Row]:
        columns = self.program.predicates[name].columns
        return Result(name, columns, self.relations[name].rows(), self.store.dictionary).rows()

    def check(self) -> None:
        """Every relation and every table of stages is sound."""
        for relation in self.relations.values():
            relation.check()
        for _, strategy in self.strategies:
            if strategy is not None and strategy.ready(self.store):
                strategy.check(self.store)


def check_counts(staged: Staged, facts: naive.Facts) -> None:
    """Assert that stages and counts are what they are defined to be.  REQUIRES: integers only."""
    for stratum, strategy in staged.strategies:
        if strategy is None or not strategy.ready(staged.store):
            continue
        strategy.check(staged.store)
        found = {
            (name, tuple(row[:-2])): tuple(row[-2:])
            for name, number in strategy.numbers.items()
            for row in strategy.recursion.table.stages(number).tolist()
        }
        wanted: Counter[tuple[str, Row]] = Counter()
        oracle = naive._Stratum(staged.program, stratum, {}, facts)
        for body in bodies(stratum):
            outer = outer_variables(body.rule)
            environments = naive._Body(body.rule, oracle).solutions(body.rule.body, {})
            for values in {tuple(e[v] for v in outer) for e in environments}:
                e = dict(zip(outer, values, strict=True))
                rows = [
                    (a.predicate, tuple(e[x.name] if isinstance(x, Var) else x.value for x in a.args))
                    for a in body.facts
                ]
                head, *used = rows
                if head in found and all(found[b][0] < found[head][0] for b in used):
                    wanted[head] += 1
        for name in stratum.predicates:
            for row in staged.relations[facts_name(name)].rows().tolist():
                if (name, tuple(row)) in found:
                    wanted[name, tuple(row)] += 1
        for key, (stage, count) in found.items():
            assert count == wanted[key] >= 1, f"{key} at stage {stage}: count {count}, not {wanted[key]}"
