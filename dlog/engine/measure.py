"""Owns what is measured while a program runs: per rule its rows, iterations, operations and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dlog.ir.rules import Rule
from dlog.lftj.triejoin import Counters


@dataclass
class RuleMeasure:
    """One rule's share.  `rows` were produced, `new_rows` of them were new to the head."""

    rule: Rule
    rows: int = 0
    new_rows: int = 0
    iterations: int = 0
    seeks: int = 0
    nexts: int = 0
    undefined: int = 0
    seconds: float = 0.0

    def count(self, counters: Counters) -> None:
        self.seeks += counters.seeks
        self.nexts += counters.nexts
        self.undefined += counters.undefined


@dataclass
class Measures:
    """Of one evaluation."""

    rules: dict[int, RuleMeasure] = field(default_factory=dict)
    load_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    on_warning: Callable[[str], None] | None = None
    warned: set[str] = field(default_factory=set)

    @contextmanager
    def of(self, rule: Rule) -> Iterator[RuleMeasure]:
        measure = self.rules.setdefault(rule.id, RuleMeasure(rule))
        measure.iterations += 1
        started = time.perf_counter()
        try:
            yield measure
        finally:
            measure.seconds += time.perf_counter() - started

    def warn(self, text: str) -> None:
        """Tells each warning once."""
        if text not in self.warned:
            self.warned.add(text)
            if self.on_warning is not None:
                self.on_warning(text)
