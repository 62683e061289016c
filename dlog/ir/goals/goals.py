"""Owns what a program is asked for: its goals, what must be computed in full, and by which columns the rest
may be restricted.  Knows nothing of how rules are rewritten (`magic`) or run.

Goals are outputs, printed sizes, queries, violations of constraints, and functions whose rules could give a
key two values: that is an error of the whole program, so the whole of it is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from dlog.ir.lower.quantify import determined
from dlog.ir.rules import Const, Program, Rule, Var

Restriction = frozenset[int]  # the columns of a predicate that are bound: its adornment
_ASKING = {"output": "it is an output", "printsize": "its size is printed"}


@dataclass
class Switches:
    """The settings of `.pragma "magic-transform"`, `"magic-transform-exclude"` and the qualifiers.

    By default only constants, and what follows from them, restrict.  A predicate that is `eager` is
    restricted by whatever its users bind; one that is `never` is computed in full.
    """

    eager: set[str] = field(default_factory=set)
    never: set[str] = field(default_factory=set)
    off: bool = False


def switches(program: Program) -> Switches:
    found = Switches()
    everything = set(program.predicates)
    for pragma in program.pragmas:
        names = {name.strip() for name in (pragma.value or "").split(",")} - {""}
        if pragma.key == "magic-transform":
            found.eager |= everything if "*" in names else names
        elif pragma.key == "magic-transform-exclude":
            found.off |= "*" in names
            found.never |= names
    found.eager |= {name for name, p in program.predicates.items() if "magic" in p.qualifiers}
    found.never |= {name for name, p in program.predicates.items() if "no_magic" in p.qualifiers}
    for name, classes in program.equivalences.items():  # a class may need any pair
        found.never |= {name, classes}
    for stratum in program.strata:  # what is chosen depends on all candidates, and on their order
        if program.remembered_in(stratum):
            found.never |= {*stratum.predicates}
    found.never |= program.sequences  # a number depends on all rows of its group
    found.eager -= found.never
    return found


def asked_for(program: Program, based: Collection[str]) -> dict[str, str]:
    """Every goal of a program, with why it is one.  `based` are the predicates that may hold base facts."""
    classes = program.equivalences
    asking = [d for d in program.directives if d.kind in _ASKING]
    goals = {classes.get(d.predicate, d.predicate): _ASKING[d.kind] for d in asking}
    goals |= {query.predicate: "it is a query" for query in program.queries}
    goals |= {c.violations: "a constraint is checked" for c in program.constraints}
    return goals | checked(program, based)


def checked(program: Program, based: Collection[str]) -> dict[str, str]:
    """Derived functions that could have two values for a key, and other predicates needed in full."""
    goals = {}
    limited = program.directed("limitsize")
    for stratum in program.strata:
        is_limited = any(name in limited for name in stratum.predicates)
        for name in stratum.predicates:
            if is_limited:
                goals[name] = "its size is limited"
            elif program.predicates[name].is_functional and not _is_function(program, name, based):
                goals[name] = "it could have two values for a key"
    return goals


def _is_function(program: Program, name: str, based: Collection[str]) -> bool:
    """Whether the rules show that a key has one value."""
    if name in based:
        return False
    if program.is_combined(name) or name in program.sequences:
        return True
    rules = program.rules_of(name)
    heads = [head for rule in rules for head in rule.heads if head.predicate == name]
    if len(heads) != 1 or not _gives_one_value(rules[0], heads[0].args):
        return False
    columns = program.predicates[name].columns  # keys that are rounded may become equal
    return all(operand_type(rules[0], a) == c.type for a, c in zip(heads[0].keys, columns, strict=False))


def _gives_one_value(rule: Rule, args: tuple[Var | Const, ...]) -> bool:
    """Whether a head's keys determine its value.  An aggregate has one value for each group."""
    keys = {a.name for a in args[:-1] if isinstance(a, Var)}
    if rule.aggregates:
        return {v.name for v in rule.groups} <= keys
    value = args[-1]
    return isinstance(value, Const) or value.name in determined(rule.body, keys)


def restrictable(program: Program, name: str) -> Restriction:
    """The columns by which a predicate's rules can be restricted: where each of its heads has a value that is
    stored unchanged, neither rounded nor the result of an aggregate.
    """
    columns = program.predicates[name].columns
    found = set(range(len(columns)))
    for rule in program.rules_of(name):
        results = {a.result.name for a in rule.aggregates}
        for head in rule.heads:
            if head.predicate == name:
                types = [operand_type(rule, a) for a in head.args]
                found -= {i for i, type in enumerate(types) if type != columns[i].type}
                found -= {i for i, a in enumerate(head.args) if isinstance(a, Var) and a.name in results}
    return frozenset(found - ({len(columns) - 1} if program.is_combined(name) else set()))


def operand_type(rule: Rule, operand: Var | Const) -> object:
    return rule.types[operand.name] if isinstance(operand, Var) else operand.type


def names_of(operands: Iterable[Var | Const]) -> set[str]:
    return {a.name for a in operands if isinstance(a, Var)}
