"""Rules of one program that are kept in different ways, at random."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dlog.engine import maintain, trace_choice
from dlog.engine.store import Store
from dlog.engine.trace_choice import DELTA, TRACE, TRACE_EXACT, Choice
from dlog.ir.rules import Rule

MIXED = "mixed"


@contextmanager
def mixed(seed: int, restless: bool = False) -> Iterator[None]:
    """Each rule kept in a way of its own; `restless`: in another one every now and then."""
    kept, chance, times = trace_choice.choose_way, random.Random(seed), itertools.count()

    def choose(store: Store, rule: Rule, *others: object) -> Choice:
        drawn = random.Random(f"{seed} {rule} {next(times) if restless else 0}")
        return kept(store, rule, drawn.choice((DELTA, TRACE, TRACE_EXACT)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_choice, "choose_way", choose)
        if restless:
            patch.setattr(maintain, "alike", lambda *sizes: chance.random() < 0.6)
        yield
