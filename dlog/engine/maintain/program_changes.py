"""Owns what a changed program means for the relations in the store, and which predicates never change."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.engine.maintain.strategy import Cycle
from dlog.errors import DataError, SourceError
from dlog.ir.goals.materialize import CHANGES, modes
from dlog.ir.rules import Program, Stratum
from dlog.language import ast
from dlog.planning.versions import facts_name, stale_name
from dlog.storage.relation.relation import Relation


def change_program(cycle: Cycle, before: Program) -> None:
    """Give every predicate of a changed program its relation, and base facts to those that now have rules.

    REQUIRES: the store has the new program's predicates already.
    """
    relations = cycle.store.relations
    derived_before, derived = before.stratum_of, cycle.program.stratum_of
    for name, predicate in before.predicates.items():
        now = cycle.program.predicates.get(name)
        if now is None or now.arity != predicate.arity:
            cycle.store.forget(name)
            cycle.store.forget(facts_name(name))
            cycle.store.forget(stale_name(name))
    for name, predicate in cycle.program.predicates.items():
        if name not in relations:
            relations[name] = Relation(cycle.store.arena, predicate.arity)
        if name in derived and facts_name(name) not in relations:
            relations[facts_name(name)] = relations[name].snapshot()
        if name in derived_before and name not in derived and facts_name(name) in relations:
            cycle.publish_difference(name, relations.pop(facts_name(name)))


def identity(stratum: Stratum) -> object:
    """Equal for strata with the same meaning."""
    rules = tuple(
        (
            r.removes,
            r.numbers,
            r.heads,
            r.body,
            r.aggregates,
            tuple(sorted((n, str(t)) for n, t in r.types.items())),
        )
        for r in (*stratum.rules, *stratum.subsumptions)
    )
    return stratum.predicates, rules, tuple(sorted({**stratum.totals, **stratum.combine}.items()))


def needed_for_memory(program: Program) -> frozenset[str]:
    """The predicates that predicates with memory depend on, and they themselves.  O(program)."""
    found = set(program.remembered)
    for stratum in reversed(program.strata if found else ()):
        if not found.isdisjoint(stratum.predicates):
            found |= stratum.reads
    return frozenset(found)


def check_tables(tables: Mapping[str, ast.Directive], cycle: Cycle) -> None:
    """Raises when a cycle changes a predicate that is declared never to change.  O(tables)."""
    for name, directive in tables.items():
        if name in cycle.changes or name in cycle.facts:
            help = f"remove `.table {name}` to let transactions change it"
            message = f"{name} is a table: transactions cannot change it"
            raise SourceError(message, span=directive.span, help=help)


def check_facts_of_unstored(cycle: Cycle) -> None:
    """Raises when a cycle changes base facts of a predicate that need not be stored, where only its relation
    would show what follows.  O(modes)."""
    for name in cycle.program.references & cycle.facts.keys():
        message = f"{name} takes no facts: it follows from the entities"
        raise DataError(message, help="insert and erase entities instead")
    for name in cycle.program.sequences & cycle.facts.keys():
        message = f"{name} takes no facts: its rule numbers all of it"
        raise DataError(message, help="insert and erase what it numbers instead")
    for name, mode in modes(cycle.program).items():
        is_functional = cycle.program.predicates[name].is_functional
        if name in cycle.facts and (mode == CHANGES or is_functional):
            message = f"{name} takes no base facts, since its rows are not stored (mode {mode})"
            raise DataError(message, help=f"write .materialize {name} always")
