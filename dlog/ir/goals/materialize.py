"""Owns which derived predicates are stored: the modes of `.materialize`, and where they are possible.

    always     the relation is stored and follows every transaction; what a predicate without a mode has
    changes    subscribers get the change of each transaction; the relation is not stored
    on_read    nothing is computed before the predicate is read

Knows nothing of how a mode is carried out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dlog.errors import Diagnostics
from dlog.ir.analysis.projection import hidden_keys
from dlog.ir.goals.goals import checked
from dlog.ir.rules import Atom, Program, Stratum
from dlog.language import ast

ALWAYS, CHANGES, ON_READ = MODES = ("always", "changes", "on_read")
DIRECTIVE = "materialize"
_NUMBERED = re.compile(r"_\d+")
_ON_READ_HELP = "write .materialize {} on_read, which stores it while it is being read, or always"


def modes(program: Program) -> Mapping[str, str]:
    """The mode of each predicate that has another one than `always`.  O(directives)."""
    return {name: mode for name, (mode, _) in _said(program).items() if mode != ALWAYS}


def _said(program: Program) -> dict[str, tuple[str, ast.Directive]]:
    """By predicate; the last directive counts."""
    found = [d for d in program.directives if d.kind == DIRECTIVE]
    return {d.predicate: (str(d.params[0].value), d) for d in found}


def check_modes(program: Program, diagnostics: Diagnostics) -> None:
    """Report modes that are not possible.  O(program) if there are modes, else O(directives)."""
    said = {name: one for name, one in _said(program).items() if one[0] != ALWAYS}
    if not said:
        return
    based = set(program.directed("input"))
    based |= {block.predicate for block in program.facts} | {delta.predicate for delta in program.deltas}
    may_conflict = checked(program, ())
    unstored = {name for name, (mode, _) in said.items() if mode == CHANGES}
    for name, (mode, directive) in said.items():
        for message, help in _reasons(program, name, mode, name in based, may_conflict.get(name)):
            diagnostics.error(f"{name} must be stored: {message}", directive.span, help)
            unstored.discard(name)
    _check_readers(program, unstored, diagnostics)


def _reasons(
    program: Program, name: str, mode: str, has_facts: bool, conflict: str | None
) -> Iterator[tuple[str, str]]:
    """Why a predicate cannot have its mode, and what to do about it: the first reason."""
    without = f"remove the mode, or write .materialize {name} always"
    limited = [kind for kind in ("limitsize", "table") if name in program.directed(kind)]
    if name not in program.stratum_of:
        yield "it has no rules", without
    elif program.predicates[name].choice is not None:
        yield "which rows are chosen depends on those that were", without
    elif limited:
        yield f"it has a .{limited[0]}", without
    elif conflict is not None and program.predicates[name].is_functional:
        yield f"{conflict}, and only its relation shows whether it does", without
    elif has_facts and mode == CHANGES:
        yield "it has base facts, which rules may derive, too", _ON_READ_HELP.format(name)
    elif has_facts and program.predicates[name].is_functional:
        yield "it has base facts, which may give a key a second value", without
    elif program.stratum_of[name].subsumptions and mode == CHANGES:
        yield "its subsumption compares its rows", _ON_READ_HELP.format(name)
    elif mode == CHANGES:
        yield from _several_derivations(program.stratum_of[name], program, name)


def _several_derivations(stratum: Stratum, program: Program, name: str) -> Iterator[tuple[str, str]]:
    """Why rows may have several derivations, so that the loss of one is no change."""
    heads = [(rule, head) for rule in stratum.rules for head in rule.heads if head.predicate == name]
    (rule, head), help = heads[0], _ON_READ_HELP.format(name)
    types = [column.type for column in program.predicates[name].columns]
    if len(heads) > 1:
        own = "write a predicate for each of them, or "
        yield f"{len(heads)} rules may derive the same row", own + help
    elif rule.numbers:
        yield "it is a sequence, whose rows replace each other", help
    elif rule.aggregates:
        yield "its rule aggregates groups, whose rows replace each other", help
    elif hidden := hidden_keys(rule, head, types):
        what, advice = _hidden_text(hidden)
        yield f"{what}, so several assignments may derive the same row", advice + help


def _hidden_text(hidden: list[str]) -> tuple[str, str]:
    """What a head does not show, and how to show it.  Lowering numbers each `_`: `_1`.

    >>> what, advice = _hidden_text(["_1", "b"])
    >>> what
    'it shows neither b nor what _ matches'
    >>> advice
    'write a variable in place of _, give the head b and this variable, or '
    """
    if not all(map(str.isidentifier, hidden)):
        return "it does not show all that its body joins", ""
    named = [name for name in hidden if not _NUMBERED.fullmatch(name)]
    parts = named + ["what _ matches"] * (len(named) < len(hidden))
    what = f"it shows neither {' nor '.join(parts)}" if len(parts) > 1 else f"it does not show {parts[0]}"
    if len(named) == len(hidden):
        return what, f"give the head {' and '.join(named)}, or "
    single = len(hidden) - len(named) == 1
    written, these = ("a variable", "this variable") if single else ("variables", "these variables")
    return what, f"write {written} in place of _, give the head {' and '.join([*named, these])}, or "


def _check_readers(program: Program, unstored: set[str], diagnostics: Diagnostics) -> None:
    """Report rules and constraints that read a predicate of which there are only changes."""
    asked = query_strata(program)
    for number, stratum in enumerate(program.strata):
        if number in asked or unstored.isdisjoint(stratum.reads):
            continue
        for rule in (*stratum.rules, *stratum.subsumptions):
            own = {rule.heads[0].predicate} if rule.removes else set[str]()  # refused where it has its mode
            atoms = [atom for atom, _ in rule.body.atoms() if atom.predicate in unstored - own]
            for atom in {a.span: a for a in atoms}.values():
                _report_reader(program, stratum, atom, diagnostics)


def _report_reader(program: Program, stratum: Stratum, atom: Atom, diagnostics: Diagnostics) -> None:
    name = atom.predicate
    reader = "constraint" if not program.violations.isdisjoint(stratum.predicates) else "rule"
    message = f"this {reader} reads {name}, which is not stored (.materialize {name} changes)"
    diagnostics.error(message, atom.span, _ON_READ_HELP.format(name))


def query_strata(program: Program) -> frozenset[int]:
    """The strata that only the program's queries need.  O(program)."""
    readers: dict[str, list[int]] = {}
    for number, stratum in enumerate(program.strata):
        for name in stratum.reads - set(stratum.predicates):
            readers.setdefault(name, []).append(number)
    queries, found = {query.predicate for query in program.queries}, set[int]()
    for number in reversed(range(len(program.strata))):
        names = program.strata[number].predicates
        above = {n for name in names for n in readers.get(name, ())}
        parts = [program.predicates[name] for name in names]
        is_auxiliary = all(p.auxiliary and not p.has_memory for p in parts)
        if queries.issuperset(names) or (is_auxiliary and above and above <= found):
            found.add(number)
    return frozenset(found)
