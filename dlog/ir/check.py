"""Owns the way from a syntax tree to a checked program: lower, type, make safe, stratify."""

from __future__ import annotations

from dlog.errors import Diagnostics
from dlog.ir import widening
from dlog.ir.directives import check_directives
from dlog.ir.facts import check_functions, check_literals
from dlog.ir.lower import lower
from dlog.ir.lowered import Lowered
from dlog.ir.retype import typed_rule
from dlog.ir.rules import Predicate, Program, Rule
from dlog.ir.safety import make_safe
from dlog.ir.stratify import stratify
from dlog.ir.typecheck import TypeChecker
from dlog.language import ast


def check_program(program: ast.Program) -> Program:
    """REQUIRES: includes are expanded.  Raises all errors together.

    Lowering leaves out what it reported, so the later phases find only errors that are independent of it.
    """
    diagnostics = Diagnostics()
    lowered = lower(program, diagnostics)
    check_directives(lowered, diagnostics)
    predicates, typed = typecheck(lowered, diagnostics)
    fitting = check_literals(lowered, predicates, diagnostics)
    rules = [make_safe(rule, diagnostics) for rule in typed]
    strata = stratify(predicates, rules, diagnostics)
    if fitting:
        combined = {name for stratum in strata for name in stratum.combine}
        check_functions(lowered, predicates, combined, diagnostics)
    diagnostics.raise_if_any()
    return Program(
        predicates,
        tuple(rules),
        strata,
        tuple(lowered.facts),
        tuple(lowered.deltas),
        tuple(lowered.constraints),
        tuple(lowered.queries),
        tuple(lowered.directives),
        tuple(lowered.pragmas),
        program,
    )


def typecheck(lowered: Lowered, diagnostics: Diagnostics) -> tuple[dict[str, Predicate], list[Rule]]:
    """Types for all predicates and rules; reports conflicts, and literals of rules that do not fit."""
    complete = not diagnostics.errors  # otherwise statements are missing that might have told a type
    checker = TypeChecker(lowered, diagnostics)
    checker.collect()
    widening.settle(checker)
    if complete and not diagnostics.errors:
        checker.check_inputs()
    rules = [typed_rule(checker, rule) for rule in lowered.rules]
    return {name: checker.predicate(name, shape) for name, shape in checker.shapes.items()}, rules
