"""Shorthands for tests of the front end."""

from __future__ import annotations

import dlog
from dlog.ir.rules import Program, Rule

DECLARED = """
    e(x, y) -> int(x), int(y).
    f(x, y) -> int(x), int(y).
    g(x) -> int(x).
    h[x] = y -> int(x), int(y).
    s(x, y) -> string(x), int(y).
    r(x, y) -> string(x), float(y).
    m(x, y) -> string(x), decimal[10, 2](y).
    n(x, y) -> string(x), unsigned(y).
    t(x, y) -> string(x), date(y).
"""


def check(text: str, declared: str = DECLARED) -> Program:
    """A checked program over the predicates above, its invariants asserted."""
    program = dlog.check(declared + text)
    program.check()
    return program


def rules(text: str) -> list[str]:
    """The rules of a program, as text."""
    return [str(rule) for rule in check(text).rules]


def rule(text: str) -> Rule:
    """The last rule of a program: the user's own, after those of its aggregates."""
    return check(text).rules[-1]


def types(text: str) -> dict[str, str]:
    """The types of the variables of the last rule."""
    return {name: str(type) for name, type in rule(text).types.items()}


def columns(text: str, predicate: str) -> list[str]:
    return [str(column.type) for column in check(text).predicates[predicate].columns]


def messages(text: str, declared: str = DECLARED) -> list[str]:
    """The messages of the errors of a program, in source order; [] when it has none."""
    try:
        dlog.check(declared + text)
    except dlog.DlogErrors as several:
        return [error.message for error in several]
    except dlog.DlogError as error:
        return [error.message]
    return []
