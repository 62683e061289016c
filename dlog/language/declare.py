"""Owns `left -> right.`: which part of it declares types and which part is a constraint.

On the right of `->` the built-in type names declare types; everything else is a constraint.  A statement with
both becomes a declaration and a constraint.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from dlog.errors import Diagnostics
from dlog.language import ast
from dlog.language.source import Span
from dlog.values import BUILTIN_TYPES

# Names of the same type in both syntaxes, under the name that `format` prints.
CANONICAL_TYPE = {name: type.name for name, type in BUILTIN_TYPES.items()}
# LogiQL's names of types on the right of `->`, where `.type` may give them another meaning elsewhere.
_LOGIQL = {"uint": "unsigned", "boolean": "bool"}
DECLARING = BUILTIN_TYPES.keys() | _LOGIQL.keys()
_USUAL_WIDTH = {"int": 64, "unsigned": 64, "float": 64, "decimal": 64}


# Qualifiers of which a declaration has at most one: how rows are stored, and hints that say the opposite.
_ONE_OF = (
    {"brie", "btree", "btree_delete", "eqrel"},
    {"inline", "no_inline"},
    {"magic", "no_magic"},
)


def excluding_qualifiers(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of qualifiers, in the order of the text, that cannot both be given."""
    for index, second in enumerate(words):
        for first in words[:index]:
            if first == second or any({first, second} <= group for group in _ONE_OF):
                yield first, second
                break


def declaration_and_constraint(
    left: ast.Node,
    right: ast.Node | None,
    span: Span,
    diagnostics: Diagnostics,
    types: Container[str] = DECLARING,
) -> list[ast.Node]:
    """The one or two statements that `left -> right.` contains; `right` is None for `p(x) -> .`

    The types that a program declares are known only when all of it has been read.
    """
    items = () if right is None else right.items if isinstance(right, ast.Conjunction) else (right,)
    if (entity := _entity(left, items, span)) is not None:
        return [entity]
    typed = [x for x in items if isinstance(x, ast.Call) and x.name.split("[")[0] in types]
    rest = [x for x in items if not any(x is t for t in typed)]
    declaration = _declaration(left, typed, span) if typed or right is None else None
    if declaration is None and right is None:
        diagnostics.error(
            "nothing follows `->`", span, help="`p(x) -> .` declares a predicate over distinct variables"
        )
        return []
    formula: list[ast.Node] = rest if declaration is not None else [*rest, *typed]
    if declaration is not None:
        _check_types(declaration, typed, diagnostics)
    out: list[ast.Node] = [] if declaration is None else [declaration]
    if formula:
        right_part = formula[0] if len(formula) == 1 else ast.Conjunction(tuple(formula), span=span)
        out.append(ast.Constraint(left, right_part, span=span))
    return out


def _entity(left: ast.Node, items: tuple[ast.Node, ...], span: Span) -> ast.Entity | None:
    """`person(p), person_name(p : n) -> string(n).`"""
    if not isinstance(left, ast.Conjunction) or len(left.items) != 2 or len(items) != 1:
        return None
    entity, mode = left.items
    (right,) = items
    if not all(isinstance(x, ast.Call) and len(x.args) == 1 for x in (entity, mode, right)):
        return None
    assert isinstance(entity, ast.Call) and isinstance(mode, ast.Call) and isinstance(right, ast.Call)
    pair = mode.args[0]
    if not isinstance(pair, ast.Reference) or not isinstance(pair.value, ast.Variable):
        return None
    types = _declared_types([right], {pair.value.name})
    if entity.args != (pair.key,) or not isinstance(pair.key, ast.Variable) or not types:
        return None
    variables = (pair.key.name, pair.value.name)
    return ast.Entity(entity.name, mode.name, variables, types[pair.value.name], span=span)


def _declaration(left: ast.Node, typed: list[ast.Call], span: Span) -> ast.Declaration | None:
    """None if the left side is not one atom over distinct variables, or a type is not of one of them."""
    atom, value = left, None
    if isinstance(left, ast.Comparison) and left.op == "=" and isinstance(left.left, ast.Application):
        atom, value = left.left, left.right
    variables = _variables(atom, value)
    types = _declared_types(typed, {v.name for v in variables or ()})
    if variables is None or types is None:
        return None
    assert isinstance(atom, ast.Call | ast.Application)
    parameters = tuple(ast.Parameter(v.name, types.get(v.name), span=v.span) for v in variables)
    keys, value_parameter = (parameters, None) if value is None else (parameters[:-1], parameters[-1])
    return ast.Declaration(atom.name, keys, value_parameter, span=span)


def _variables(atom: ast.Node, value: ast.Node | None) -> list[ast.Variable] | None:
    """The distinct variables of `p(x, y)` or `f[x] = y`, or None if it does not have that form."""
    if not isinstance(atom, ast.Application if value is not None else ast.Call):
        return None
    nodes: Iterable[ast.Node] = (*atom.args, *(() if value is None else (value,)))
    variables = [x for x in nodes if isinstance(x, ast.Variable)]
    distinct = {v.name for v in variables}
    return variables if len(variables) == len(list(nodes)) == len(distinct) else None


def _declared_types(typed: list[ast.Call], names: set[str]) -> dict[str, ast.TypeRef] | None:
    types: dict[str, ast.TypeRef] = {}
    for call in typed:
        argument = call.args[0] if len(call.args) == 1 else None
        if not isinstance(argument, ast.Variable) or argument.name not in names:
            return None
        name, _, sizes = call.name.partition("[")
        numbers = tuple(int(s) for s in sizes[:-1].split(",") if s) if sizes else ()
        types.setdefault(argument.name, type_of(name, numbers, call.span))
    return types


def type_of(name: str, sizes: tuple[int, ...], span: Span) -> ast.TypeRef:
    """`int[64]` is `int`; other widths are ranges of it: see `dlog.ir.expand.widths`."""
    name = _LOGIQL.get(name) or CANONICAL_TYPE.get(name, name)
    return ast.TypeRef(name, () if sizes == (_USUAL_WIDTH.get(name),) else sizes, span=span)


def _check_types(declaration: ast.Declaration, typed: list[ast.Call], diagnostics: Diagnostics) -> None:
    seen: set[str] = set()
    for call in typed:
        name = call.args[0].name  # type: ignore[attr-defined]
        if name in seen:
            diagnostics.error(f"{name} has two types in the declaration of {declaration.name}", call.span)
        seen.add(name)
