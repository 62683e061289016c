"""Owns the change of one rule's body found by its delta variants, which are planned once and run often.

Correct output: see `dlog.planning.deltas`.  The column orders that the plans need are added to the relations
once and are part of all their later versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlog.engine.body.bodies import concatenate, sortable
from dlog.engine.body.table import Table, distinct_rows
from dlog.engine.maintain.body_changes import BodyChanges, Planned
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.maintain.variants import compiled_variant, explain_variants, plan_variants
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule
from dlog.planning.arrange import AtomUse
from dlog.planning.deltas import ERASE, INSERT, Variant


class RuleDeltas(BodyChanges):
    """The variants of one rule over one store."""

    def __init__(
        self,
        store: Store,
        rule: Rule,
        variants: Sequence[Variant],
        bag: bool,
        outputs: tuple[str, ...] = (),
    ):
        """`bag`: every assignment is counted, so that signed sums are exact."""
        super().__init__(store, rule, outputs, {n: t for v in variants for n, t in v.types.items()})
        self.bag = bag
        self.variants = plan_variants(variants, self.outputs, bag)

    def signed(self, cycle: Cycle) -> Iterator[tuple[int, Table]]:
        """Of each variant or group of variants."""
        groups: dict[int, list[Table]] = {}
        for planned in self._active(cycle):
            table = self.runner.run(planned.pipeline)
            self.runner.measure.rows += table.n
            if planned.variant.group < 0:
                yield planned.variant.sign, table
            else:
                groups.setdefault(planned.variant.group, []).append(table.only(planned.pipeline.outputs))
        for group, tables in groups.items():
            yield (INSERT if group % 2 else ERASE), _once(tables, self.variants[0].variant.outer)

    def _active(self, cycle: Cycle) -> Iterator[Planned]:
        """The variants whose change is not empty."""
        return (planned for planned in self.variants if _given(planned.variant, cycle))

    def uses(self) -> Iterator[tuple[AtomUse, ...]]:
        """What the plan of each variant that begins with a join reads; plans are made one at a time."""
        for planned in self.variants:
            if planned.join is not None:
                yield compiled_variant(self.runner, planned.join).atoms

    def share(self, cycle: Cycle) -> float:
        """The work that a change causes, as a share of what is read; an estimate."""
        share = 0.0
        for planned in self._active(cycle):
            share += _given(planned.variant, cycle) / max(1, cycle.store.rows(planned.variant.changed))
        return share

    def explain(self) -> Iterator[str]:
        return explain_variants(self.runner, self.variants)


def _given(variant: Variant, cycle: Cycle) -> int:
    """How many rows a variant begins with: under a negation those of the other sign."""
    change = cycle.changes.get(variant.changed)
    if change is None:
        return 0
    return len(change.inserted if variant.change.predicate.startswith("+") else change.erased)


def _once(tables: list[Table], outer: tuple[str, ...]) -> Table:
    """Each assignment of the outer variables once.  O(n log n)."""
    names = tuple(tables[0].columns)
    merged = {v: concatenate([t.columns[v] for t in tables]) for v in names}
    total = Table(sum(t.n for t in tables), merged)
    return total.take(distinct_rows([sortable(merged[v]) for v in outer], total.n))
