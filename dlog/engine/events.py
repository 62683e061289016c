"""Owns the evaluation of delta rules: from what a transaction asks for to all that it does.

Correct output: `+`, `-` and `^` that the transaction asks for, a later one instead of an earlier one for the
same row, are the first events.  Delta rules derive events from events and from the state before the
transaction, until nothing new follows.  `^f[x] = y` is `+f[x] = y`, and `-f[x] = z` for another value z.  A
row that is both inserted and erased, or two values for one key, is an error.  Events of pulse predicates
change nothing.  Ordinary rules follow afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from dlog.engine.commit.result import Result
from dlog.engine.evaluate.evaluate import Evaluation, evaluate_stratum
from dlog.engine.evaluated import start_relations
from dlog.engine.maintain.facts import as_array, last_of_key, last_words, rows_with_keys
from dlog.engine.state.store import Store
from dlog.errors import ConstraintError
from dlog.heads.lookup import contained
from dlog.ir.events import Events, event_name
from dlog.ir.rules import Program
from dlog.planning.versions import facts_name
from dlog.storage.relation.relation import Relation

Statement = tuple[str, str, Any]  # "+", "-" or "^", a predicate, codes


@dataclass
class Asked:
    """The events of one predicate that a transaction asks for, each row once."""

    inserted: np.ndarray
    erased: np.ndarray
    replaced: np.ndarray  # those of the inserted rows that come from `^`


def asked(relation: Relation, ops: Sequence[tuple[str, Any]], n_keys: int) -> Asked:
    """What statements on one predicate ask for, in order.  O(m log n)."""
    arity = relation.arity
    said: list[tuple[str, np.ndarray]] = []
    upserts = [np.empty((0, arity), np.int64)]
    for is_upsert, run in groupby(ops, lambda item: item[0] == "^"):
        rows = [(op, as_array(codes, arity)) for op, codes in run]
        if not is_upsert:
            said += rows
            continue
        new = last_of_key(np.concatenate([codes for _, codes in rows]), n_keys)
        earlier = last_words([("+", new[:0]), *said])[0]
        same_key = rows_with_keys(Relation.build(relation.arena, earlier, arity), new, n_keys)
        said += [("-", rows_with_keys(relation, new, n_keys)), ("-", same_key), ("+", new)]
        upserts.append(new)
    inserted, erased = last_words([("+", upserts[0]), *said])
    replaced = np.concatenate(upserts)
    if len(replaced):
        replaced = inserted[contained(Relation.build(relation.arena, replaced, arity), inserted)]
    return Asked(inserted, erased, replaced)


def concerns(events: Events, statements: Sequence[Statement]) -> bool:
    """Whether a transaction has anything to do besides its own changes.  O(statements)."""
    if events.always:
        return True
    waited = {name for _, name in events.read}
    return any(name in waited for _, name, _ in statements)


def all_changes(
    events: Events,
    statements: Sequence[Statement],
    before: Mapping[str, Relation],
    bases: Mapping[str, Relation],
    store: Store,
    evaluation: Evaluation,
) -> list[Statement]:
    """The statements of a transaction with what delta rules add.

    `before` has every predicate that the rules name, in the state before the transaction; `bases` has the
    base facts of those with events, and of all that the statements change.
    """
    program = events.program
    by_name: dict[str, list[tuple[str, Any]]] = {}
    for op, name, codes in statements:
        by_name.setdefault(name, []).append((op, codes))
    relations = dict(before)
    for name in events.named:
        n_keys = _n_keys(program, name)
        found = asked(bases[name], by_name.get(name, ()), n_keys)
        for sign, rows in (("+", found.inserted), ("-", found.erased), ("^", found.replaced)):
            if (event := event_name(sign, name)) in program.predicates:
                relations[event] = Relation.build(store.arena, rows, bases[name].arity)
    happened = _evaluated(program, relations, store, evaluation)
    changes = [statement for statement in statements if statement[1] not in events.named]
    for name in events.named:
        inserted, erased = (happened[event_name(sign, name)] for sign in "+-")
        _check_conflict(name, inserted, erased, program, store)
        changes += [
            (op, name, rows) for op, rows in (("-", erased.rows()), ("+", inserted.rows())) if len(rows)
        ]
    return changes


def _evaluated(
    program: Program, relations: dict[str, Relation], store: Store, evaluation: Evaluation
) -> dict[str, Relation]:
    """REQUIRES: all predicates are there but auxiliary ones, such as those of inline aggregates; those of
    events have what the transaction asks for."""
    derived = program.stratum_of.keys()
    for name in derived - relations.keys():
        arity = program.predicates[name].arity
        relations[name] = Relation.build(store.arena, np.empty((0, arity), np.int64), arity)
    relations |= {facts_name(name): relations[name] for name in derived}
    own = store.under(dict(program.predicates))
    own.relations = start_relations(program, relations, derived)
    for stratum in program.strata:
        evaluate_stratum(program, stratum, own, evaluation)
    return own.relations


def _n_keys(program: Program, name: str) -> int:
    return program.predicates[event_name("+", name)].n_keys


def _check_conflict(name: str, inserted: Relation, erased: Relation, program: Program, store: Store) -> None:
    rows = inserted.rows()
    both = rows[contained(erased, rows)] if len(rows) and len(erased) else rows[:0]
    if len(both):
        predicate = program.predicates[event_name("+", name)]
        (first, *_) = Result(name, predicate.columns, both[:1], store.dictionary).rows()
        shown = predicate.show(first).removeprefix("event +")
        message = f"delta rules both insert and erase {shown}"
        raise ConstraintError(message, help="let the conditions of the rules exclude each other")
