"""Owns `_given.NAME`: rows with which a program gives a predicate its memory, as `dlog dump` writes it.

    _given.tree(1, 2).             a row of tree, which has a choice domain, that is chosen first
    _given.id.numbers1(3, 0).      a row of id'numbers1: assignment 3 has the number 0
    _given.autoinc(1).             the next number

Such a predicate is declared like others, and has facts or files, but no rules.  A candidate that is given is
chosen before others; what is no candidate has no effect.
"""

from __future__ import annotations

from dlog.errors import Diagnostics
from dlog.ir.lower.lowered import Lowered
from dlog.ir.rules import COUNTER, Predicate
from dlog.language.vocabulary import AUTOINC
from dlog.values import INT

PREFIX = "_given."


def name_of_given(name: str) -> str:
    """The predicate that gives one its memory.

    >>> name_of_given("tree"), name_of_given("a.id'numbers1"), name_of_given(COUNTER)
    ('_given.tree', '_given.a.id.numbers1', '_given.autoinc')
    """
    return PREFIX + (AUTOINC if name == COUNTER else name.replace("'", "."))


def mark_given(lowered: Lowered) -> None:
    """Finds them among the predicates of a program."""
    shapes = lowered.names.shapes
    if not any(name.startswith(PREFIX) for name in shapes):
        return
    known = {n: s for n, s in shapes.items() if s.choice is not None or s.numbering is not None}
    derived = {head.predicate for rule in lowered.rules for head in rule.heads}
    for name in (*known, COUNTER):
        shape = shapes.get(name_of_given(name))
        if shape is not None and name_of_given(name) not in derived:
            shape.given_to, shape.auxiliary = name, True


def check_given(predicates: dict[str, Predicate], diagnostics: Diagnostics) -> None:
    """Reports those that do not have the columns of what they are given to."""
    for predicate in predicates.values():
        if predicate.given_to is None:
            continue
        types = [column.type for column in predicate.columns]
        target = predicates.get(predicate.given_to)
        expected = [INT] if target is None else [column.type for column in target.columns]
        if types != expected:
            columns = ", ".join(str(type) for type in expected)
            message = f"{predicate.name} does not have the columns of what it is given to"
            diagnostics.error(message, predicate.span, f"declare it with the types {columns}")
