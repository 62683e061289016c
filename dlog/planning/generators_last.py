"""Owns the moving of `range` from a join to the end of a pipeline, with what only depends on it.

A trace leads back to the variables that a join binds before it first has a choice other than a leap.  So a
range in the middle of a join hides the variables behind it.  What no atom reads can be generated afterwards,
for the few rows that come out of the join.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.ir.primitives import signature_of
from dlog.ir.rules import Form, Primitive, Var
from dlog.planning.pipeline import Compute, Generate, Join, Operation, Pipeline, Test, form_variables


def generators_last(pipeline: Pipeline) -> Pipeline:
    """The pipeline itself, if its first join generates nothing, or atoms read all that it generates."""
    first, *rest = pipeline.operations
    if not isinstance(first, Join):
        return pipeline
    later = _movable(first.forms)
    if not later:
        return pipeline
    forms = tuple(f for f in first.forms if not any(f is g for g in later))
    bound = {v for f in forms for v in form_variables(f)}
    needed = {*first.outputs, *(v for f in later for v in form_variables(f))}
    outputs = (*(v for v in first.outputs if v in bound), *sorted(bound & needed - {*first.outputs}))
    moved = [_operation(form, bound) for form in later]
    return replace(pipeline, operations=(replace(first, forms=forms, outputs=outputs), *moved, *rest))


def _movable(forms: tuple[Form, ...]) -> list[Primitive]:
    """Generators and what depends on them, in an order in which they can run; not what others depend on."""
    moved = [f for f in forms if isinstance(f, Primitive) and _generates(f)]
    made: set[str] = set()
    for generator in moved:
        made |= _made(generator)
    grown = True
    while grown:
        dependent = [f for f in forms if not any(f is g for g in moved) and form_variables(f) & made]
        if not all(isinstance(f, Primitive) for f in dependent):
            return []
        grown = bool(dependent)
        for form in dependent:
            assert isinstance(form, Primitive)
            moved.append(form)
            made |= _made(form)
    return _in_order(moved, {v for f in forms if not any(f is g for g in moved) for v in form_variables(f)})


def _in_order(forms: list[Primitive], bound: set[str]) -> list[Primitive]:
    ordered: list[Primitive] = []
    while len(ordered) < len(forms):
        waiting = [f for f in forms if not any(f is g for g in ordered)]
        ready = next((f for f in waiting if _missing(f, bound) <= int(f.name == "eq")), None)
        if ready is None:
            return []
        ordered.append(ready)
        bound = bound | form_variables(ready)
    return ordered


def _missing(form: Primitive, bound: set[str]) -> int:
    return len({a.name for a in form.inputs if isinstance(a, Var)} - bound)


def _made(form: Primitive) -> set[str]:
    names = form.inputs if form.name == "eq" else (form.output,)
    return {a.name for a in names if isinstance(a, Var)}


def _generates(form: Form) -> bool:
    return isinstance(form, Primitive) and signature_of(form.name, len(form.inputs)).generator


def _operation(form: Primitive, bound: set[str]) -> Operation:
    """How it runs on columns; extends `bound`."""
    missing = _missing(form, bound)
    bound |= form_variables(form)
    if _generates(form):
        return Generate(form)
    return Test(form) if form.output is None and not missing else Compute(form)
