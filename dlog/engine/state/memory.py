"""Owns the memory of a database: state that is neither base facts nor follows from them.

Chosen rows and the numbers of assignments depend on those that there were before.  In a live database they
are predicates like others; beside them there is the counter of `autoinc()`.  Where everything is evaluated
again, and in files, they have names of their own: see `given_name`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dlog.ir.lower.given import name_of_given
from dlog.ir.rules import Column, Predicate, Program
from dlog.planning.versions import COUNTER, given_name
from dlog.storage.relation.relation import Relation
from dlog.values import INT

Given = tuple[Predicate, Relation]


def memory(
    program: Program, relations: Mapping[str, Relation], pending: Collection[str] = ()
) -> dict[str, Relation]:
    """The memory of a state, under the names it has in files.  O(predicates with memory).

    Predicates that are still to be evaluated have only what they were given."""
    if not program.remembered:
        return {}
    found = memory_in(program, relations)
    evaluated = {given_name(name): relations[name] for name in program.remembered if name not in pending}
    return found | evaluated


def take_given(program: Program, relations: dict[str, Relation]) -> None:
    """Moves what a program gives (`dlog.ir.lower.given`) to where evaluation finds it."""
    for name, predicate in program.predicates.items():
        if predicate.given_to is not None:
            stored = COUNTER if predicate.given_to == COUNTER else given_name(predicate.given_to)
            relation = relations[name]
            relations[name] = Relation(relation.arena, relation.arity)
            if relation:
                relations[stored] = relation


def given_by(program: Program, relations: Mapping[str, Relation], pending: Collection[str]) -> list[Given]:
    """The memory of a state, as predicates that give it to another database."""
    found, remembered = list[Given](), memory(program, relations, pending)
    for name in (*program.remembered, COUNTER):
        relation = remembered.get(COUNTER if name == COUNTER else given_name(name))
        if relation:
            columns = (Column("n", INT),) if name == COUNTER else program.predicates[name].columns
            found.append((Predicate(name_of_given(name), columns, len(columns)), relation))
    return found


def memory_in(program: Program, relations: Mapping[str, Relation]) -> dict[str, Relation]:
    """What relations have under these names, as far as a program has predicates for it."""
    found = {}
    for name in program.remembered:
        relation = relations.get(given_name(name))
        if relation is not None and relation.arity == program.predicates[name].arity:
            found[given_name(name)] = relation
    if COUNTER in relations:
        found[COUNTER] = relations[COUNTER]
    return found
