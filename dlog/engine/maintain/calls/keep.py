"""Owns the strategy of stored calls: values follow the arguments that come and go.

Its only state are the values, which are a predicate of the store.  Correct output: the predicate has one row
for each row of arguments, with what the functor returned when these arguments came; none where that was
None.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table
from dlog.engine.head.heads import head_rows
from dlog.engine.maintain.strategy import Cycle, Strategy, recompute
from dlog.engine.state.store import Store
from dlog.heads.lookup import look_up
from dlog.ir.rules import Stratum, Var
from dlog.jit import Words
from dlog.planning.stored_calls import stored_call


class CallStrategy(Strategy):
    way = "calls"

    def __init__(self, store: Store, stratum: Stratum):
        self.store, self.stratum, self.reads = store, stratum, stratum.reads
        (self.name,) = stratum.predicates
        (self.rule,) = stratum.rules
        found = stored_call(self.rule)
        assert found is not None
        self.arguments, self.call = found

    def ready(self, store: Store) -> bool:
        return True

    def loses_state(self, store: Store) -> bool:
        return False

    def rebuild(self, cycle: Cycle) -> None:
        recompute(self.stratum, cycle)

    def apply(self, cycle: Cycle) -> None:
        change = cycle.changes.get(self.arguments.predicate) if self.arguments is not None else None
        if change is None:
            return
        values = cycle.store.relations[self.name]
        found, result = look_up(values, change.erased)
        erased = np.column_stack([change.erased, result])[found > 0]
        later, net = values.apply(inserts=self._called(cycle, change.inserted), erases=erased)
        cycle.operations += len(change.inserted) + len(change.erased)
        cycle.publish(self.name, later, net)

    def _called(self, cycle: Cycle, rows: Words) -> Words:
        """Rows of arguments with their values."""
        assert self.arguments is not None
        if not len(rows):
            return np.empty((0, rows.shape[1] + 1), np.int64)
        names = [a.name for a in self.arguments.args if isinstance(a, Var)]
        columns = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)}
        evaluation = cycle.evaluation
        with evaluation.measures.of(self.rule) as measure:
            runner = BodyRunner(cycle.store, self.rule, evaluation.watch, evaluation.measures, measure)
            table = runner.compute(self.call, Table(len(rows), columns))
        (head,) = self.rule.heads
        return head_rows(cycle.store, head, table, self.rule)

    def estimate(self, cycle: Cycle) -> float:
        return 0.0  # evaluation from scratch would call the function again for all arguments

    def explain(self, store: Store) -> list[str]:
        function = store.dictionary.functions.find(self.call.name[1:]) if store.dictionary.functions else None
        how = "has no implementation here" if function is None else f"is {function}"
        return [
            f"{self.way}, because a functor is called once for each row of arguments",
            f"{self.call.name} {how}",
        ]

    def check(self, store: Store) -> None:
        """Each row of arguments has at most one value, and others have none."""
        rows = store.relations[self.name].rows()
        if self.arguments is None or not len(rows):
            return
        arguments = store.relations[self.arguments.predicate]
        found, _ = look_up(arguments, np.ascontiguousarray(rows[:, :-1]))
        assert (found == 1).all(), f"{self.name} has values of arguments that are gone"
        found, _ = look_up(store.relations[self.name], arguments.rows())
        assert (found <= 1).all(), f"{self.name} has two values of the same arguments"
