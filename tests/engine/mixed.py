"""Rules of one program that are maintained by different strategies, at random."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from dlog.engine.maintain import maintain, offers
from dlog.engine.maintain.rule_strategy import RuleChoice
from dlog.engine.maintain.strategies import REGISTRY
from dlog.engine.maintain.strategy import Strategy
from dlog.ir.rules import Rule

MIXED = "mixed"


@contextmanager
def mixed(seed: int, restless: bool = False) -> Iterator[None]:
    """Each stratum, or each of its rules, is kept in a way of its own; `restless`: in another one every now
    and then.
    """
    own, chance, times = offers._choose_method, random.Random(seed), itertools.count()
    methods = [entry.name for entry in REGISTRY if entry.by_rule]
    whole = [entry.name for entry in REGISTRY if entry.selectable and not entry.by_rule]
    choose_strategy = offers.choose

    def choose(question: offers.Question, rule: Rule) -> RuleChoice:
        drawn = random.Random(f"{seed} {rule} {next(times) if restless else 0}")
        return own(replace(question, requested=drawn.choice(methods)), rule)

    def choose_whole(question: offers.Question) -> Strategy:
        drawn = random.Random(f"{seed} {question.stratum.predicates} {next(times) if restless else 0}")
        requested = drawn.choice([*whole, *whole, *methods])
        return choose_strategy(replace(question, requested=requested))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offers, "_choose_method", choose)
        patch.setattr(maintain, "choose", choose_whole)
        if restless:
            patch.setattr(maintain, "alike", lambda *sizes: chance.random() < 0.6)
        yield
