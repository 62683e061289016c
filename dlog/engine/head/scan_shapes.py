"""Owns which aggregation rules share a scan predicate.  Knows nothing of its rows.

Rules share one when they take the min or max of the same value over the same body, whatever their variables
are called, and their groups are levels of detail of each other: each rule's keys are among the next one's.
The scan predicate then has the keys of the finest, those of the coarsest first:

    # A[x] = m <- agg<<m = max(s)>> D[x, y, z] = s.         D_scan(x, y, s, count)
    # B[x, y] = m <- agg<<m = max(s)>> D[x, y, z] = s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass

from dlog.ir.rules import Program, Rule, Var


@dataclass(frozen=True)
class ScanShape:
    """`keys` are the rule's own variables that are the scan predicate's keys; the first `depth` of them are
    its groups.  `name` is that of the relation, the same for all rules that share it."""

    name: str
    keys: tuple[str, ...]
    depth: int
    levels: bool  # whether some rule has fewer groups than there are keys


def scan_shape(program: Program, rule: Rule, argument: Var) -> ScanShape:
    """The scan predicate of a rule for one value.  O(rules)."""
    numbers = _numbers(rule)
    identity = _identity(rule, argument)
    own = _groups(rule, numbers)
    levels = {own}
    if rule.types[argument.name].ordered_codes:  # scans are of single words
        levels |= {
            _groups(other, _numbers(other))
            for other, v in _extremes(program)
            if _identity(other, v) == identity
        }
    chain = _chain(levels, own)
    keys = [
        number
        for low, high in zip((frozenset(), *chain), chain, strict=False)
        for number in sorted(high - low)
    ]
    digest = hashlib.sha256(repr((identity, keys)).encode()).hexdigest()[:16]
    names = {number: name for name, number in numbers.items()}
    return ScanShape(f"%scan {digest}", tuple(names[k] for k in keys), len(own), len(chain) > 1)


def is_shared(program: Program, name: str) -> bool:
    """Whether several rules, or a rule in several strata, have a scan predicate in common.  O(rules^2)."""
    users = 0
    for stratum in program.strata:
        for rule in () if stratum.recursive else stratum.rules:
            values = {v.name: v for v in _values(rule)}
            users += any(scan_shape(program, rule, value).name == name for value in values.values())
    return users > 1


def _extremes(program: Program) -> Iterable[tuple[Rule, Var]]:
    """All rules with a min or max, and of what."""
    for stratum in program.strata:
        for rule in stratum.rules:
            if not stratum.recursive:
                yield from ((rule, value) for value in _values(rule))


def _values(rule: Rule) -> Iterable[Var]:
    """What a rule takes a min or max of."""
    for item in rule.aggregates:
        if item.function.direction and isinstance(item.argument, Var):
            yield item.argument


def _chain(levels: set[frozenset[int]], own: frozenset[int]) -> list[frozenset[int]]:
    """The chain of levels that contains one: each is added, smallest first, to the first chain that fits."""
    chains: list[list[frozenset[int]]] = []
    for level in sorted(levels, key=lambda s: (len(s), sorted(s))):
        fitting = next((c for c in chains if c[-1] < level), None)
        if fitting is None:
            chains.append([level])
        else:
            fitting.append(level)
    return next(c for c in chains if own in c)


def _groups(rule: Rule, numbers: dict[str, int]) -> frozenset[int]:
    return frozenset(numbers[v.name] for v in rule.groups)


def _numbers(rule: Rule) -> dict[str, int]:
    """A number for each variable of a body, in the order of first use."""
    found: dict[str, int] = {}
    for var in rule.body.occurrences():
        found.setdefault(var.name, len(found))
    return found


def _identity(rule: Rule, argument: Var) -> object:
    """Equal for rules whose body and value are the same up to the names of variables."""
    numbers = _numbers(rule)
    types = tuple(str(rule.types[name]) for name in numbers)
    return _form(rule.body.forms, numbers), numbers[argument.name], types


def _form(node: object, numbers: dict[str, int]) -> object:
    if isinstance(node, Var):
        return ("variable", numbers.setdefault(node.name, len(numbers)))
    if isinstance(node, tuple):
        return tuple(_form(part, numbers) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        parts = tuple(_form(getattr(node, f.name), numbers) for f in fields(node) if f.compare)
        return (type(node).__name__, *parts)
    return repr(node)
