"""Rules of one program that are kept in different ways, at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from dlog.engine import trace_choice
from dlog.engine.store import Store
from dlog.engine.trace_choice import DELTA, TRACE, TRACE_EXACT, Choice
from dlog.ir.rules import Rule

MIXED = "mixed"


@contextmanager
def mixed(seed: int) -> Iterator[None]:
    """Each rule kept in a way of its own."""
    kept = trace_choice.choose_way

    def choose(store: Store, rule: Rule, *others: object) -> Choice:
        way = random.Random(f"{seed} {rule}").choice((DELTA, TRACE, TRACE_EXACT))
        return kept(store, rule, way)

    trace_choice.choose_way = choose
    try:
        yield
    finally:
        trace_choice.choose_way = kept
