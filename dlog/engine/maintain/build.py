"""Owns building the state of all strategies at once, dropping it, and its size, expected and real.

Without it the first transaction that touches a rule builds the state of its strategy.
"""

from __future__ import annotations

from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.offers import Offer, answer_of
from dlog.engine.maintain.strategies import REGISTRY
from dlog.engine.maintain.strategy import CannotFollow, Cycle
from dlog.engine.state.layers import in_layers
from dlog.engine.state.store import Store
from dlog.planning.versions import facts_name, is_memory, stale_name
from dlog.storage.relation.relation import Relation


def build_states(maintenance: Maintenance, cycle: Cycle) -> None:
    """Build what is not there, of all strata that are updated.  Changes no predicate.

    REQUIRES: `cycle.store.relations` is the cycle's own, with what is stored evaluated.
    """
    store = cycle.store
    if maintenance.lacks_primitives(store):
        maintenance.store_primitives(store, cycle.evaluation)
    maintenance.prepare(range(len(maintenance.program.strata)), store)
    for number in range(len(maintenance.program.strata)):
        if not maintenance.is_left_out(number, store):
            _build(maintenance, number, cycle)
    assert not cycle.changes, "state is built from rows that are complete"


def _build(maintenance: Maintenance, number: int, cycle: Cycle) -> None:
    strategy = maintenance.strategy(number, cycle.store)
    if strategy.ready(cycle.store):
        return
    if not strategy.over_cone:
        maintenance.refresh_below(number, cycle)
    if maintenance.has_changes_only(number, cycle.store):
        cycle.open(strategy.reads)
        strategy.begin_changes(cycle)
        return
    try:
        strategy.rebuild(cycle)
    except CannotFollow as error:
        maintenance.refresh_below(number, cycle)
        maintenance.another(number, cycle.store, str(error)).rebuild(cycle)


def without_states(maintenance: Maintenance, relations: dict[str, Relation]) -> dict[str, Relation]:
    """The relations without what strategies store beside predicates, which is only for those that made it.

    Strategies that are chosen anew may be others, in which counts have another meaning, or which leave those
    of others as they are: later ones would take them for their own.  O(relations).
    """
    names = maintenance.program.predicates
    kept = {name for p in names for name in (p, facts_name(p), stale_name(p))}
    return in_layers({n: relation for n, relation in relations.items() if n in kept or is_memory(n)})


def expected_memory(maintenance: Maintenance, store: Store) -> float:
    """Bytes of the state of all strategies, as their offers estimate it.  O(offers)."""
    total = 0.0
    for number in range(len(maintenance.program.strata)):
        if maintenance.is_left_out(number, store):
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
