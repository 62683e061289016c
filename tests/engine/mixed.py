"""Rules of one program that are maintained by different strategies, at random."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dlog.engine.maintain import maintain
from dlog.engine.maintain.trace import offer
from dlog.engine.maintain.trace.offer import DELTA, TRACE, TRACE_EXACT, Choice
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule

MIXED = "mixed"


@contextmanager
def mixed(seed: int, restless: bool = False) -> Iterator[None]:
    """Each rule kept in its own way; `restless`: in another one every now and then."""
    kept, chance, times = offer.choose_way, random.Random(seed), itertools.count()

    def choose(store: Store, rule: Rule, *others: object) -> Choice:
        drawn = random.Random(f"{seed} {rule} {next(times) if restless else 0}")
        return kept(store, rule, drawn.choice((DELTA, TRACE, TRACE_EXACT)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offer, "choose_way", choose)
        if restless:
            patch.setattr(maintain, "alike", lambda *sizes: chance.random() < 0.6)
        yield
