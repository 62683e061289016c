"""Owns when strata become idle and when they are maintained again, between transactions.

Each function gives the relations that a database goes on with: the same state, of which more or less is
stored.  A caller that fails in between keeps the old ones.  See `dlog.engine.maintain.modes`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.maintain import modes
from dlog.engine.maintain.cones import is_stale, mark_stale, stale_predicates, with_fresh
from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.state.store import Store
from dlog.ir.goals.narrowed import read_by
from dlog.ir.rules import Program, Stratum
from dlog.planning.versions import facts_name
from dlog.storage.relation.relation import Relation

Relations = dict[str, Relation]


def evaluated_at_first(maintenance: Maintenance, given: Program) -> Program:
    """The program without the rules of predicates that have not been read yet."""
    at_first = maintenance.modes.at_first
    strata = tuple(stratum for stratum in given.strata if at_first.isdisjoint(stratum.predicates))
    return replace(given, strata=strata) if len(strata) < len(given.strata) else given


def begin_idle(maintenance: Maintenance, given: Program, store: Store) -> None:
    """Mark what was not evaluated."""
    for stratum in given.strata:
        if not maintenance.modes.at_first.isdisjoint(stratum.predicates):
            mark_stale(store, stratum)


def read(
    maintenance: Maintenance, given: Program, store: Store, names: Iterable[str], evaluation: Evaluation
) -> Relations:
    """These predicates are being read: those of mode on_read are evaluated, and maintained from now on.

    `given` is the program without stored primitives, with the same predicates otherwise.
    """
    strata = on_read(maintenance, given, names)
    note_read(maintenance, strata)
    return read_now(maintenance, given, store, strata, evaluation)


def note_read(maintenance: Maintenance, strata: Iterable[Stratum]) -> None:
    for stratum in strata:
        for name in stratum.predicates:
            maintenance.last_read[name] = maintenance.transactions
    maintenance.due = min(maintenance.due, maintenance.transactions + modes.UNREAD + 1)


def are_stored(strata: Iterable[Stratum], store: Store) -> bool:
    """Whether nothing needs to be evaluated before these are read."""
    return not any(is_stale(store, stratum.predicates) for stratum in strata)


def read_now(
    maintenance: Maintenance, given: Program, store: Store, strata: Iterable[Stratum], evaluation: Evaluation
) -> Relations:
    """REQUIRES: the strata are in order, and all of mode on_read that is read and what that depends on."""
    relations = with_fresh(given, strata, store, evaluation)
    if relations is not store.relations:
        maintenance.triggers.clear()
    return relations


def on_read(maintenance: Maintenance, given: Program, names: Iterable[str]) -> list[Stratum]:
    """The strata of mode on_read that these predicates are or depend on, with what these depend on in turn:
    in order.  O(program)."""
    wanted, below, found = set(names), set[str](), list[Stratum]()
    for stratum in reversed(given.strata):
        if wanted.isdisjoint(stratum.predicates):
            continue
        wanted |= stratum.reads
        number = maintenance.owner[stratum.predicates[0]]
        if number in maintenance.modes.on_read or not below.isdisjoint(stratum.predicates):
            below |= stratum.reads
            found.append(stratum)
    return found[::-1]


def attend(
    maintenance: Maintenance,
    given: Program,
    store: Store,
    subscribed: frozenset[str],
    evaluation: Evaluation,
) -> Relations:
    """The relations before the next transaction, for these subscriptions.

    Needed when these are others, or from transaction `maintenance.due` on.
    """
    store = _with(store, without_rows_of_changes(maintenance, store))
    if maintenance.subscribed != subscribed:
        store = _with(store, _subscribe(maintenance, given, store, subscribed, evaluation))
    return _without_unread(maintenance, store)


def _subscribe(
    maintenance: Maintenance, given: Program, store: Store, subscribed: frozenset[str], evaluation: Evaluation
) -> Relations:
    added, removed = subscribed - maintenance.subscribed, maintenance.subscribed - subscribed
    relations = read(maintenance, given, store, sorted(added & maintenance.owner.keys()), evaluation)
    added_strata = {maintenance.owner[name] for name in added & maintenance.owner.keys()}
    for number in sorted(added_strata & maintenance.modes.changes):
        store = _with(store, relations)
        relations = with_fresh(maintenance.program, _below(maintenance, number, store), store, evaluation)
    maintenance.subscribed = subscribed
    maintenance.triggers.clear()
    gone = {maintenance.owner[name] for name in removed & maintenance.owner.keys()}
    return without(maintenance, _with(store, relations), sorted(gone & maintenance.modes.changes))


def _below(maintenance: Maintenance, number: int, store: Store) -> Iterator[Stratum]:
    """The auxiliary strata that a stratum reads.  Primitives that are not stored yet come later."""
    for below in maintenance.cones.below.get(number, ()):
        stratum = maintenance.program.strata[below]
        if all(facts_name(name) in store.relations for name in stratum.predicates):
            yield stratum


def _without_unread(maintenance: Maintenance, store: Store) -> Relations:
    """Readers before what they read: this one may be unread, too, then."""
    now, unread = maintenance.transactions, list[int]()
    maintenance.due = float("inf")
    for number in sorted(maintenance.modes.on_read, reverse=True):
        names = maintenance.program.strata[number].predicates
        if is_stale(store, names) or not maintenance.subscribed.isdisjoint(names):
            continue
        age = now - max(maintenance.last_read.setdefault(name, now) for name in names)
        above = modes.tops(names, number, maintenance.readers, maintenance.cones)
        if age > modes.UNREAD and all(n in unread or maintenance.is_idle(n, store) for n in above):
            unread.append(number)
        else:
            maintenance.due = min(maintenance.due, max(now + 1, now - age + modes.UNREAD + 1))
    return without(maintenance, store, unread)


def without(maintenance: Maintenance, store: Store, numbers: Iterable[int]) -> Relations:
    """The relations without the rows of strata that are idle from now on, and without what only they read.

    REQUIRES: readers come before what they read.
    """
    numbers = list(numbers)
    if not numbers:
        return store.relations
    store = _with(store, store.relations.copy())
    for number in numbers:
        _remove(maintenance, store, number)
        for below in reversed(maintenance.cones.below.get(number, ())):
            if maintenance.is_absorbed(below, store):
                _remove(maintenance, store, below)
    maintenance.triggers.clear()
    return store.relations


def _remove(maintenance: Maintenance, store: Store, number: int) -> None:
    stratum = maintenance.program.strata[number]
    if number in maintenance.strategies:
        maintenance.strategies[number].forget(store)
        maintenance.strategies = {n: s for n, s in maintenance.strategies.items() if n != number}
    mark_stale(store, stratum)
    for name in stratum.predicates:
        if name in store.relations:
            store.relations[name] = Relation(store.arena, store.relations[name].arity)


def stored_again(
    later: Maintenance, renewed: Collection[int], before: Program, store: Store, evaluation: Evaluation
) -> Relations:
    """The relations before a change of the program, with those that are stored after it, or compared with it.

    `before` is the program until then, `renewed` are the strata of the later one that it has not.
    """
    idle, names = later.modes.changes | later.modes.on_read, set[str]()
    for name in stale_predicates(before, store.relations):
        number = later.owner.get(name)
        if number is None or before.predicates[name].auxiliary:
            continue
        if number not in idle or (number in renewed and name in later.subscribed):
            names.add(name)
    needed = {id(stratum) for name in names for stratum in read_by(before, name)}
    return with_fresh(before, [s for s in before.strata if id(s) in needed], store, evaluation)


def begin_new(later: Maintenance, renewed: Collection[int], before: Program, store: Store) -> None:
    """Mark the strata that a change of the program adds, unless they have subscribers."""
    for number in sorted((later.modes.changes | later.modes.on_read) & set(renewed)):
        stratum = later.program.strata[number]
        if (before.predicates.keys() | later.subscribed).isdisjoint(stratum.predicates):
            mark_stale(store, stratum)


def without_rows_of_changes(maintenance: Maintenance, store: Store) -> Relations:
    """The relations without rows of predicates of mode changes, which a program change may have left."""
    strata = maintenance.program.strata
    found = (n for n in maintenance.modes.changes if not is_stale(store, strata[n].predicates))
    return without(maintenance, store, sorted(found, reverse=True))


def _with(store: Store, relations: Relations) -> Store:
    other = store.under(store.predicates)
    other.relations = relations
    return other
