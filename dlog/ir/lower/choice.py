"""Owns relations with choice domains: what lowering makes of them.

    # .decl tree(v: number, u: number) choice-domain u
    # tree(v, u) :- tree(_, v), edge(v, u).
    tree'candidates(v, u) <- tree(_, v), edge(v, u).     an auxiliary predicate has what the rules derive
    tree(v, u) <- tree'candidates(v, u).                 the relation has those candidates that are chosen

The last rule says where the rows come from, for types and strata.  It is evaluated as a choice: of
candidates with the same key of some domain one is chosen, and every candidate that is left out has a key of a
chosen row.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlog.errors import did_you_mean
from dlog.ir.lower.names import Names, Shape
from dlog.ir.lower.quantify import quantify
from dlog.ir.rules import Atom, Choice, Conj, Domain, Rule, Var
from dlog.language import ast

CANDIDATES = "'candidates"


def derived_name(names: Names, name: str) -> str:
    """The predicate that the rules of a predicate derive."""
    shape = names.shapes[name]
    return name if shape.choice is None else shape.choice.candidates


def declare_choices(names: Names) -> None:
    """Adds the predicates with candidates; reports declarations that cannot be choices."""
    for name, shape in list(names.shapes.items()):
        declaration = shape.declaration
        if declaration is None or not declaration.choices:
            continue
        for word, reason in _REFUSED.items():
            if word in declaration.qualifiers:
                message = f"{name} is {word} and has a choice domain"
                names.diagnostics.error(message, declaration.span, reason)
        candidates = name + CANDIDATES
        shape.choice = Choice(candidates, tuple(_domains(names, declaration)))
        made = Shape(shape.arity, False, shape.span, declaration, auxiliary=True, candidates_of=name)
        names.shapes[candidates] = made


_REFUSED = {
    "inline": "what is chosen must be stored; leave out inline",
    "eqrel": "its rows follow from each other, so none of them can be left out",
}


def _domains(names: Names, declaration: ast.Declaration) -> Iterator[Domain]:
    """The columns of each domain; reports names that are no arguments."""
    known = [parameter.name for parameter in declaration.keys]
    for domain in declaration.choices:
        columns = list[int]()
        for variable in domain.keys:
            if variable.name not in known:
                message = f"{declaration.name} has no argument {variable.name}"
                help = did_you_mean(variable.name, known, f"its arguments are {', '.join(known)}")
                names.diagnostics.error(message, variable.span, help)
            elif (column := known.index(variable.name)) in columns:
                message = f"{variable.name} is twice in one choice domain"
                names.diagnostics.error(message, variable.span, "name each argument once")
            else:
                columns.append(column)
        if columns:
            yield tuple(sorted(columns))


def choice_rules(names: Names, first: int) -> list[Rule]:
    """The rules that say where chosen rows come from, numbered from `first`."""
    found: list[Rule] = []
    for name, shape in names.shapes.items():
        if shape.choice is not None:
            args = tuple(Var(f"x{i}", shape.span) for i in range(shape.arity))
            body = Conj((), (Atom(shape.choice.candidates, args, shape.arity, shape.span),))
            heads = (Atom(name, args, shape.arity, shape.span),)
            found.append(quantify(Rule(first + len(found), heads, body, span=shape.span)))
    return found
