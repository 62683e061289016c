"""Owns the moves that take a sub-join out of a join.  Knows nothing of costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlog.ir.rules import Atom, Const, Form, Negation, Primitive, Var
from dlog.planning.options import NEVER, Options
from dlog.planning.pipeline import form_variables, own_variables
from dlog.planning.sub_joins import WEIGHT, is_sub_join


@dataclass(frozen=True)
class Asked:
    """What a join must give: its outputs, and whether assignments count.

    `joint`: others may share a part of it; then sub-joins are also taken out without forms that need not be
    in them, such as a filter that only this join has.
    """

    outputs: tuple[str, ...]
    bag: bool
    joint: bool = False


@dataclass(frozen=True)
class Move:
    """Forms of a sub-join, its outputs, and the forms that it replaces (none if it reduces)."""

    forms: tuple[Form, ...]
    outputs: tuple[str, ...]
    replaced: tuple[Form, ...]

    @property
    def reduces(self) -> bool:
        return not self.replaced

    @property
    def eliminates(self) -> bool:
        """Whether it drops variables, so that a row may stand for several assignments."""
        return bool(self.replaced) and not _bound(self.forms) <= {*self.outputs}


def moves(forms: Sequence[Form], asked: Asked, options: Options) -> Iterator[Move]:
    """For every variable: eliminate it, reduce by it; for every atom: reduce by it and smaller ones, or
    filter it by these."""
    atoms = [f for f in forms if isinstance(f, Atom)]
    variables = dict.fromkeys(
        v.name for a in atoms for v in a.args if isinstance(v, Var) and not v.name.startswith(WEIGHT)
    )
    for name in variables:
        group = [a for a in atoms if name in variables_of(a)]
        if options.sub_joins != NEVER and name not in asked.outputs:
            yield from _elimination(forms, asked, name, group)
        if options.semijoins != NEVER and len(group) > 1:
            yield from _reduction(forms, asked, group, {name})
    if options.semijoins != NEVER:
        for atom in atoms:
            inner = [a for a in atoms if a is not atom and variables_of(a) < variables_of(atom)]
            gone = {v for a in inner for v in variables_of(a)}
            if inner:
                yield from _reduction(forms, asked, [atom, *inner], gone)
                yield from _filter(forms, asked, [atom, *inner])


def _elimination(forms: Sequence[Form], asked: Asked, name: str, group: list[Atom]) -> Iterator[Move]:
    """All forms that hold a variable become one sub-join, with what else fits into it."""
    scope = {v for a in group for v in variables_of(a)}
    inside: list[Form] = list(group)
    for form in forms:
        if isinstance(form, Atom):
            if form not in group and variables_of(form) <= scope and form_variables(form):
                inside.append(form)
        elif _is_test(form) and _shared(forms, asked, form) <= scope:
            inside.append(form)
        elif name in form_variables(form):
            return
    yield from _taken_out(forms, asked, scope, inside)
    bare = [f for f in inside if name in form_variables(f)]
    if asked.joint and len(bare) < len(inside):
        yield from _taken_out(forms, asked, scope, bare)


def _taken_out(forms: Sequence[Form], asked: Asked, scope: set[str], inside: list[Form]) -> Iterator[Move]:
    rest = [f for f in forms if not any(f is g for g in inside)]
    around = {v for f in rest for v in form_variables(f)} | set(asked.outputs)
    if any(isinstance(f, Atom) for f in rest) and (len(inside) > 1 or asked.bag):
        yield Move(tuple(inside), tuple(sorted(scope & around)), tuple(inside))


def _reduction(forms: Sequence[Form], asked: Asked, group: list[Atom], gone: set[str]) -> Iterator[Move]:
    """What a group of atoms leaves possible for the other atoms that share variables with it."""
    group = [a for a in group if not _is_weighted(a)]
    others = [f for f in forms if isinstance(f, Atom) and not any(f is g for g in group)]
    scope = {v for a in group for v in variables_of(a)}
    shared = scope & {v for a in others for v in variables_of(a)} - gone
    tests = [f for f in forms if _is_test(f) and _shared(forms, asked, f) <= scope]
    if shared and len(group) > 1:
        yield Move((*group, *tests), tuple(sorted(shared)), ())


def _filter(forms: Sequence[Form], asked: Asked, group: list[Atom]) -> Iterator[Move]:
    """An atom and smaller ones that restrict its rows become one: these rows.

    A join that would probe the smaller ones again and again, beside other variables, then probes them once.
    """
    group = [a for a in group if not is_sub_join(a.predicate)]
    scope = _bound(group)
    tests = [f for f in forms if _is_test(f) and _shared(forms, asked, f) <= scope]
    inside = (*group, *tests)
    rest = [f for f in forms if not any(f is g for g in inside)]
    around = {v for f in rest for v in form_variables(f)} | set(asked.outputs)
    if len(group) > 1 and scope <= around and any(isinstance(f, Atom) for f in rest):
        yield Move(inside, tuple(sorted(scope)), inside)


def _bound(forms: Sequence[Form]) -> set[str]:
    """The variables of the atoms among some forms."""
    return {v for f in forms if isinstance(f, Atom) for v in variables_of(f)}


def _shared(forms: Sequence[Form], asked: Asked, form: Form) -> set[str]:
    """The variables of a form that others use too: those that only a negation has do not count."""
    return form_variables(form) - own_variables(form, forms, set(asked.outputs))


def variables_of(atom: Atom) -> set[str]:
    """Its variables except a weight."""
    return {a.name for a in atom.args if isinstance(a, Var) and not a.name.startswith(WEIGHT)}


def _is_weighted(atom: Atom) -> bool:
    return is_sub_join(atom.predicate) and atom.is_functional


def _is_test(form: Form) -> bool:
    """Whether a form only tests what is bound: it may move into a sub-join that binds all its variables."""
    if isinstance(form, Primitive):
        return form.output is None or isinstance(form.output, Const)
    return isinstance(form, Negation)
