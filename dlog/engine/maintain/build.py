"""Owns building the state of all strategies at once, and its size, expected and real.

Without it the first transaction that touches a rule builds the state of its strategy.
"""

from __future__ import annotations

from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.offers import Offer, answer_of
from dlog.engine.maintain.strategies import REGISTRY
from dlog.engine.maintain.strategy import CannotFollow, Cycle
from dlog.engine.state.store import Store


def build_states(maintenance: Maintenance, cycle: Cycle) -> None:
    """Build what is not there.  Changes no predicate.

    REQUIRES: `cycle.store.relations` is the cycle's own, with all derived predicates evaluated.
    """
    store = cycle.store
    if maintenance.lacks_primitives(store):
        maintenance.store_primitives(store, cycle.evaluation)
    maintenance.prepare(range(len(maintenance.program.strata)), store)
    for number in range(len(maintenance.program.strata)):
        if maintenance.is_idle(number, store):
            continue
        strategy = maintenance.strategy(number, store)
        if strategy.ready(store):
            continue
        try:
            strategy.rebuild(cycle)
        except CannotFollow as error:
            maintenance.another(number, store, str(error)).rebuild(cycle)
    assert not cycle.changes, "state is built from rows that are complete"


def expected_memory(maintenance: Maintenance, store: Store) -> float:
    """Bytes of the state of all strategies, as their offers estimate it.  O(offers)."""
    total = 0.0
    for number in range(len(maintenance.program.strata)):
        if maintenance.is_idle(number, store):
            continue
        name = maintenance.strategy(number, store).offered_as
        entries = [entry for entry in REGISTRY if entry.name == name]
        answers = [answer_of(entry, maintenance.question(number, store)) for entry in entries]
        total += sum(answer.bytes for answer in answers if isinstance(answer, Offer))
    return total


def memory(maintenance: Maintenance, store: Store) -> int:
    """Bytes of all rows in all column orders, and of the state of strategies.  O(strata)."""
    beside = {id(side): side.memory() for s in maintenance.strategies.values() for side in s.side_states()}
    return 8 * store.arena.usage().used_words + sum(beside.values())
