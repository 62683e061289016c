"""Owns which strategy maintains each stratum and why, as data: `explain` has the same as text."""

from __future__ import annotations

from dataclasses import dataclass

from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.offers import Refusal, answer_of
from dlog.engine.maintain.strategies import REGISTRY
from dlog.engine.state.store import Store


@dataclass(frozen=True)
class Chosen:
    """The strategy of one stratum."""

    predicates: tuple[str, ...]
    recursive: bool
    strategy: str
    reason: str
    refusal: str = ""  # why it is not the one that the user requested


def chosen_strategies(maintenance: Maintenance, store: Store) -> list[Chosen]:
    """Of all strata but those that others absorb, in order; it chooses where there was no need to yet."""
    numbers = range(len(maintenance.program.strata))
    return [_chosen(maintenance, n, store) for n in numbers if not maintenance.is_left_out(n, store)]


def _chosen(maintenance: Maintenance, number: int, store: Store) -> Chosen:
    strategy, stratum = maintenance.strategy(number, store), maintenance.program.strata[number]
    name = strategy.offered_as or strategy.way
    reason = strategy.explain(store)[0].partition(", because ")[2]
    refusal = ""
    if maintenance.requested not in (None, name):
        question = maintenance.question(number, store)
        entry = next(e for e in REGISTRY if e.name == maintenance.requested)
        answer = answer_of(entry, question)
        refusal = answer.reason if isinstance(answer, Refusal) else reason
    return Chosen(stratum.predicates, stratum.recursive, name, reason, refusal)
