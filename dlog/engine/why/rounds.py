"""Owns the derivations in a stratum with recursive sums or counts: the fixpoint once more, round by round.

A total may have contributions that depend on the total itself.  What holds first in round r was derived from
the state after round r - 1, so a derivation leads to earlier rounds only.  A total of an earlier round is one
that has been replaced since.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlog.engine.body.table import Table
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.evaluate.totals import TotalStratum
from dlog.engine.state.limits import Watch
from dlog.engine.state.store import Store
from dlog.engine.why.alternatives import FIRST_LIMIT, Alternative, Bodies, aggregations, alternatives
from dlog.ir.rules import Atom, Program, Rule, Stratum
from dlog.planning.versions import facts_name
from dlog.storage.relation.relation import Relation

Row = tuple[int, ...]
State = Mapping[str, Relation]


class Rounds:
    def __init__(self, program: Program, stratum: Stratum, store: Store, watch: Watch):
        """O(the evaluation of the stratum)"""
        self.stratum, self.store, self.watch = stratum, store, watch
        fresh = store.under(dict(store.predicates))
        fresh.relations = dict(store.relations)
        for name in stratum.predicates:
            fresh.relations[name] = store.relations[facts_name(name)].snapshot()
        evaluation = TotalStratum(program, stratum, fresh, Evaluation(watch=watch))
        self.states: list[State] = [self._state(fresh)]
        evaluation.after_round = lambda: self.states.append(self._state(fresh))
        evaluation.run()

    def _state(self, store: Store) -> State:
        return {name: store.relations[name].snapshot() for name in self.stratum.predicates}

    def before(self, name: str, row: Row) -> Bodies:
        """The state from which a row was first derived, to search in.  REQUIRES: it is no base fact."""
        number = next(i for i, state in enumerate(self.states) if state[name].contains(row))
        bodies = Bodies(self.store, self.watch)
        bodies.store.relations.update(self.states[number - 1])
        return bodies

    def aggregation(self, name: str) -> tuple[Rule, Atom] | None:
        """The rule and the head of a total."""
        return next(iter(aggregations(self.stratum, name)), None)

    def instance(self, bodies: Bodies, name: str, row: Row) -> tuple[Alternative, Table]:
        """A derivation of a row by a plain rule, as a table of one binding."""
        goal = np.array([row], np.int64).reshape(1, -1)
        bodies.limit = FIRST_LIMIT
        while True:
            bodies.truncated = False
            for way in alternatives(self.stratum, name):
                which, table = bodies.instances(way, goal)
                if len(which):
                    return way, table.take(np.zeros(1, np.int64))
            assert bodies.truncated, f"{name}{row} was derived in a round and has no derivation"
            bodies.limit *= 16
