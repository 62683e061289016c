"""Owns the detection of atoms in a join that nothing connects."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dlog.ir.rules import Atom, Const, Disjunction, Form, Negation, Primitive, Var
from dlog.planning.pipeline import form_variables


def cross_products(forms: Iterable[Form], rows: Callable[[str], float]) -> tuple[tuple[str, ...], ...]:
    """Groups of atoms that no value connects: a cross product if there are several.

    A value connects atoms if they share it, or if it is computed from one for another.  `rows` gives the size
    of a predicate: one row crosses nothing, nor does the value of a function for keys that are constants.
    """
    forms = list(forms)
    groups: list[tuple[set[str], list[str]]] = []
    ties = _ties(forms)
    numbers = {id(form) for form in ties}
    for form in (*forms, *ties):
        variables = form_variables(form)
        if not variables or isinstance(form, Negation):
            continue
        if isinstance(form, Primitive) and id(form) not in numbers:
            continue
        if isinstance(form, Atom) and (rows(form.predicate) <= 1 or _is_one_row(form)):
            continue
        names = [form.predicate] if isinstance(form, Atom) else []
        joined = [g for g in groups if g[0] & variables]
        groups = [g for g in groups if not g[0] & variables]
        groups.append((variables.union(*(g[0] for g in joined)), [n for g in joined for n in g[1]] + names))
    parts = tuple(tuple(names) for _, names in groups if names)
    return parts if len(parts) > 1 else ()


def _is_one_row(atom: Atom) -> bool:
    return atom.is_functional and all(isinstance(key, Const) for key in atom.keys)


def _ties(forms: list[Form]) -> list[Primitive]:
    """Primitives that lead from one atom's variables to another's: equalities, and what computes a key.
    O(forms)."""
    wanted = [v for f in forms if isinstance(f, Atom | Disjunction) for v in form_variables(f)]
    primitives = [f for f in forms if isinstance(f, Primitive)]
    found = {id(f) for f in primitives if f.name == "eq"}
    wanted += [v for f in primitives if f.name == "eq" for v in form_variables(f)]
    giving: dict[str, list[Primitive]] = {}
    for form in primitives:
        if form.name != "eq" and isinstance(form.output, Var):
            giving.setdefault(form.output.name, []).append(form)
    for name in wanted:  # which grows
        new = giving.pop(name, [])
        found |= {id(f) for f in new}
        wanted += [v for f in new for v in form_variables(f)]
    return [f for f in primitives if id(f) in found]
