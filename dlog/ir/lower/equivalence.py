"""Owns equivalence relations, which are declared `eqrel`: what lowering makes of them.

    # .decl same(x: number, y: number) eqrel
    # same(x, y) :- alias(x, y).           the predicate itself has the *pairs* that rules and facts give
    # same'class(x, r)                     an auxiliary predicate: each member with the representative of its
    #                                      class, computed from the pairs by union-find
    # q(y) :- same(1, y).                  becomes q(y) <- same'class(1, r), same'class(y, r).

So what is stored for the closure is one row for each member.  The rule `same'class(x, y) <- same(x, y)` says
where classes come from, for types and strata; nothing evaluates it as a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dlog.ir.lower.names import Names, Shape
from dlog.ir.lower.quantify import quantify
from dlog.ir.rules import Atom, Conj, Operand, Rule, Var
from dlog.language import ast
from dlog.language.source import Span

_CLASS = "'class"


def classes_name(name: str) -> str:
    """The predicate with the classes of an equivalence relation."""
    return name + _CLASS


def relation_of(name: str) -> str:
    """The predicate that a program has: of one with classes, the equivalence relation."""
    return name.removesuffix(_CLASS)


def is_equivalence(names: Names, name: str) -> bool:
    return classes_name(name) in names.shapes


def declare_classes(names: Names) -> None:
    """Adds the predicates with classes; reports declarations that cannot be equivalence relations."""
    for name, shape in list(names.shapes.items()):
        declaration = shape.declaration
        if declaration is None or not shape.is_equivalence:
            continue
        if shape.arity != 2:
            message = f"the equivalence relation {name} has {shape.arity} argument{'s'[: shape.arity != 1]}"
            names.diagnostics.error(message, declaration.span, "it relates two values, so it has two")
        elif _types_differ(declaration):
            message = f"the arguments of the equivalence relation {name} have different types"
            help = "each value is equivalent to itself, so both arguments have the same type"
            names.diagnostics.error(message, declaration.span, help)
        else:
            made = Shape(2, False, shape.span, auxiliary=True, equivalence=name)
            names.shapes[classes_name(name)] = made


def _types_differ(declaration: ast.Declaration) -> bool:
    first, second = (parameter.type for parameter in declaration.keys)
    return first != second


def same_class(
    name: str, args: tuple[Operand, ...], representative: Var, span: Span | None
) -> Iterator[Atom]:
    """What an atom of an equivalence relation says: its arguments have the same representative."""
    for arg in args:
        yield Atom(classes_name(name), (arg, representative), 2, span)


def as_written(atoms: Iterable[Atom]) -> list[Atom]:
    """Atoms with those of classes as the atoms of equivalence relations that a program has.

    # same'class(x, r), same'class(y, r)     becomes     same(x, y)
    """
    found: list[Atom] = []
    open_pairs: dict[tuple[str, str], int] = {}
    for atom in atoms:
        name, key = relation_of(atom.predicate), (atom.predicate, str(atom.args[-1]) if atom.args else "")
        if name == atom.predicate:
            found.append(atom)
        elif key in open_pairs:
            place = open_pairs.pop(key)
            found[place] = replace(found[place], args=(found[place].args[0], atom.args[0]))
        else:
            open_pairs[key] = len(found)
            found.append(replace(atom, predicate=name, args=(atom.args[0], atom.args[0])))
    return found


def class_rules(names: Names) -> list[Rule]:
    """The rules that say where classes come from: the first ones of a program."""
    found: list[Rule] = []
    for name, shape in names.shapes.items():
        if shape.equivalence is not None:
            x, y = Var("x", shape.span), Var("y", shape.span)
            body = Conj((), (Atom(shape.equivalence, (x, y), 2, shape.span),))
            rule = Rule(len(found), (Atom(name, (x, y), 2, shape.span),), body, span=shape.span)
            found.append(quantify(rule))
    return found
