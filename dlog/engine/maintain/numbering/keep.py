"""Owns the strategy of sequences: a changed row renumbers the rows of its group that are behind it.

It has no state besides the predicates: the rows that are numbered are a predicate of the store, whose index
has them in order and counts them, so the first number that changes is found in O(log n).
"""

from __future__ import annotations

import numpy as np

from dlog.engine.head.sequences import Sequence
from dlog.engine.maintain.strategy import Cycle, Strategy, recompute
from dlog.engine.state.store import Store
from dlog.heads.sequences.sequences import renumbered
from dlog.ir.rules import Stratum
from dlog.planning.versions import old_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation


class SequenceStrategy(Strategy):
    way = "numbering"

    def __init__(self, stratum: Stratum):
        self.stratum, self.reads = stratum, stratum.reads
        self.sequence = Sequence.of(stratum)

    def ready(self, store: Store) -> bool:
        return True

    def loses_state(self, store: Store) -> bool:
        return False

    def rebuild(self, cycle: Cycle) -> None:
        recompute(self.stratum, cycle)

    def apply(self, cycle: Cycle) -> None:
        sequence, relations = self.sequence, cycle.store.relations
        change = cycle.changes.get(sequence.rows)
        if change is None:
            return
        natural = tuple(range(len(sequence.types)))
        before = relations[old_name(sequence.rows)].index(natural)
        after = relations[sequence.rows].add_order(natural)
        dictionary = cycle.store.dictionary
        sorter = None if sequence.by_codes else lambda rows: sequence.order(rows, dictionary)
        gone, come = map(sequence.facts, renumbered(before, after, change, sequence.n_groups, sorter))
        later, net = relations[sequence.head].apply(inserts=come, erases=gone)
        cycle.operations += len(gone) + len(come)
        cycle.publish(sequence.head, later, net)

    def estimate(self, cycle: Cycle) -> float:
        change = cycle.changes.get(self.sequence.rows, Change(_NONE, _NONE))
        return (len(change.inserted) + len(change.erased)) / max(1, cycle.store.rows(self.sequence.rows))

    def explain(self, store: Store) -> list[str]:
        order = "codes" if self.sequence.by_codes else "texts, so a changed group is sorted again"
        return [f"{self.way}, because it is a sequence: a row renumbers those behind it; ordered by {order}"]

    def check(self, store: Store) -> None:
        facts = self.sequence.all_facts(store.relations[self.sequence.rows], store.dictionary)
        anew = Relation.build(store.arena, facts, facts.shape[1])
        assert np.array_equal(anew.rows(), store.relations[self.sequence.head].rows())


_NONE = np.empty((0, 0), np.int64)
