"""Owns the measurements of running variants: time, rows and new rows of their rules, marks of a profile, and
warnings of cross products.  Changes nothing that a fixpoint computes.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.evaluate.variants import Variants
from dlog.engine.state.measure import Measures
from dlog.jit import Words
from dlog.lftj import drive_layout as d
from dlog.lftj import opcodes as o
from dlog.planning.versions import base_name


class VariantMeasures:
    """Of the variants of one thread; `announced` are rules whose cross products have been reported."""

    def __init__(self, variants: Variants, measures: Measures):
        n = len(variants.members)
        self.variants, self.measures = variants, measures
        self.announced: set[int] = set()
        self.seconds = 0.0  # not yet added to any rule
        self.traced = any(v.item.measure.trace is not None for v in variants.members)
        self._worked: Words = np.zeros(n, np.int64)
        self._credited: list[Words] = [np.zeros(n, np.int64)] * len(variants.number)

    def credit(self, q: int, new: int) -> None:
        """Attribute the new rows of a queue to the variants that derived rows since, by their shares."""
        rows = self._credited[q].copy()
        records, number = self.variants.records(), self.variants.number
        for at, (record, variant) in enumerate(zip(records, self.variants.members, strict=True)):
            if any(number[head.predicate] == q for head in variant.item.rule.heads):
                rows[at] = record[d.V_ROWS]
        since, self._credited[q] = rows - self._credited[q], rows
        shares = new * since // max(1, int(since.sum()))
        shares[int(since.argmax())] += new - shares.sum()
        for record, share in zip(records, shares.tolist(), strict=True):
            record[d.V_NEW] += share

    def after_slice(self, seconds: float) -> None:
        self.seconds += seconds
        if self.traced:
            self.share()
            self.mark()
        self.announce()

    def announce(self) -> None:
        """Warn of cross products as soon as the rows that have driven their rules make them large."""
        records, store = self.variants.records(), self.variants.store
        for record, variant in zip(records, self.variants.members, strict=True):
            parts, item = variant.plan.compiled.cross_products, variant.item
            if not parts or item.rule.id in self.announced:
                continue
            sizes = {base_name(item.driver.predicate): int(record[d.V_FED])}
            rows = lambda name, sizes=sizes: max(store.rows(name), sizes.get(name, 0))  # noqa: E731
            if self.measures.warn_cross_product(item.rule, parts, rows):
                self.announced.add(item.rule.id)

    def share(self) -> None:
        """Distribute the time so far to the rules, by the rows that went in and out: they are not timed one
        by one.
        """
        work = np.array([int(at[d.V_FED] + at[d.V_ROWS]) for at in self.variants.records()])
        parts = (work - self._worked) / max(1, int((work - self._worked).sum()))
        for variant, part in zip(self.variants.members, parts.tolist(), strict=True):
            variant.item.measure.seconds += self.seconds * part
        self.seconds, self._worked = 0.0, work

    def mark(self) -> None:
        """Record in a profile, if one is made, how far each rule is after a slice."""
        members = self.variants.members
        for measure in {id(v.item.measure): v.item.measure for v in members}.values():
            if measure.trace is not None:
                own = [
                    [*record[[d.V_ROWS, d.V_NEW]].tolist(), *v.state[[o.SEEKS, o.NEXTS]].tolist()]
                    for record, v in zip(self.variants.records(), members, strict=True)
                    if v.item.measure is measure
                ]
                measure.mark(*(sum(parts) for parts in zip(*own, strict=True)))

    def finish(self) -> None:
        """Add what was done to the rules' measures."""
        self.share()
        for record, variant in zip(self.variants.records(), self.variants.members, strict=True):
            measure = variant.item.measure
            variant.count()
            measure.rows += int(record[d.V_ROWS])
            measure.new_rows += int(record[d.V_NEW])
            measure.iterations += int(record[d.V_ROUNDS])
