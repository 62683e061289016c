"""Owns the steps from a syntax tree to a checked program: lower, type, make safe, stratify."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dlog.errors import Diagnostics, DlogError, DlogErrors
from dlog.ir.analysis.plans import check_plans
from dlog.ir.analysis.safety import make_safe
from dlog.ir.analysis.stratify import stratify
from dlog.ir.events import Events, check_events, installed
from dlog.ir.expand.blocks import inside_blocks, without_blocks
from dlog.ir.expand.components import instantiate, without_components
from dlog.ir.expand.entities import entities_of
from dlog.ir.expand.inlining import inline
from dlog.ir.expand.logiql import without_logiql
from dlog.ir.expand.properties import pulses
from dlog.ir.goals.materialize import check_modes
from dlog.ir.lower.directives import check_directives
from dlog.ir.lower.given import check_given
from dlog.ir.lower.lower import lower
from dlog.ir.lower.lowered import Lowered
from dlog.ir.lower.sequences import check_types
from dlog.ir.rules import Predicate, Program, Rule
from dlog.ir.types import record_types, widening
from dlog.ir.types.facts import check_functions, check_literals
from dlog.ir.types.retype import typed_rule
from dlog.ir.types.subtypes import check_subtypes
from dlog.ir.types.typecheck import TypeChecker
from dlog.language import ast
from dlog.language.parse import expand_includes, parse_readable
from dlog.language.source import Source, Span


def load_program(source: Source) -> tuple[ast.Program, Program]:
    """The syntax tree, with all it includes, and the checked program.  Raises all errors together.

    Statements that cannot be read do not prevent checking the others, but then only errors that are
    certain are reported: none that an unreadable statement might explain.
    """
    diagnostics = Diagnostics()
    tree, unread = parse_readable(source, diagnostics)
    if not diagnostics.errors:
        program = check_program(expand_includes(tree))
        return program.source, program
    includes = any(isinstance(statement, ast.Include) for statement in tree.statements)
    if unread is not None and not includes:
        try:
            check_program(tree, complete=False)
        except DlogError as error:
            found = error.errors if isinstance(error, DlogErrors) else [error]
            for other in (e for e in found if not _named(e) & unread):
                diagnostics.add(other)
    diagnostics.raise_if_any()
    raise AssertionError("there was an error")


def _named(error: DlogError) -> set[str]:
    """The text at the position of an error."""
    return set(re.findall(r"[\w?.]+", error.span.text())) if isinstance(error.span, Span) else set()


def check_program(program: ast.Program, complete: bool = True) -> Program:
    """REQUIRES: includes are expanded.  Raises all errors together.

    Lowering leaves out what it reported, so the later phases find only errors that are independent of it.
    Unless the program is `complete`, types that are not known are not an error.
    """
    diagnostics = Diagnostics()
    program = instantiate(program, diagnostics)
    flat = without_logiql(without_components(program), diagnostics)
    inlined = inline(flat, diagnostics)
    lowered = lower(inlined, diagnostics)
    check_directives(lowered, diagnostics)
    check_subtypes(flat, diagnostics)
    predicates, typed = typecheck(lowered, diagnostics, complete)
    check_given(predicates, diagnostics)
    fitting = check_literals(lowered, predicates, diagnostics)
    rules = [make_safe(rule, diagnostics) for rule in typed]
    for rule in rules if not diagnostics.errors else ():
        if rule.numbers:
            check_types(rule, predicates, diagnostics)
    violations = {constraint.violations for constraint in lowered.constraints}
    constraints = [rule for rule in rules if rule.heads[0].predicate in violations]
    strata = stratify(predicates, rules, diagnostics, constraints)
    check_plans(inlined.statements, strata, diagnostics)
    if fitting:
        combined = {name for stratum in strata for name in stratum.combine}
        check_functions(lowered, predicates, combined, diagnostics)
    diagnostics.raise_if_any()
    checked = Program(
        predicates,
        tuple(rule for rule in rules if not rule.removes),
        strata,
        tuple(lowered.facts),
        tuple(lowered.deltas),
        tuple(lowered.constraints),
        tuple(lowered.queries),
        tuple(lowered.directives),
        tuple(lowered.pragmas),
        program,
        functors=lowered.functors.known,
        pulses=frozenset(pulses(inside_blocks(program.statements))),
        sequences=frozenset(rule.heads[0].predicate for rule in rules if rule.numbers),
        references=frozenset(entities_of(without_blocks(program, Diagnostics())).by_reference),
    )
    check_modes(checked, diagnostics)
    diagnostics.raise_if_any()
    checked.events = check_events(checked, installed(program), (), check_program)
    return checked


def events_with(program: Program, once: Sequence[ast.DeltaRule]) -> Events | None:
    """The delta rules of a program and those of one transaction."""
    return check_events(program, installed(program.source), once, check_program) if once else program.events


def typecheck(
    lowered: Lowered, diagnostics: Diagnostics, complete: bool = True
) -> tuple[dict[str, Predicate], list[Rule]]:
    """Types for all predicates and rules; reports conflicts, and literals of rules that do not fit."""
    complete &= not diagnostics.errors  # otherwise a missing statement might have given a type
    checker = TypeChecker(lowered, diagnostics)
    checker.collect()
    record_types.settle(checker)
    widening.settle(checker)
    if complete and not diagnostics.errors:
        record_types.refuse_unknown(checker)
    if complete and not diagnostics.errors:
        checker.check_inputs()
    rules = [typed_rule(checker, rule) for rule in lowered.rules]
    return {name: checker.predicate(name, shape) for name, shape in checker.shapes.items()}, rules
