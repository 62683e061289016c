"""Owns LogiQL's `lang:` settings: which have a meaning here, which cannot be had, and which change nothing.

# lang:derivationType[`p] = "Derived".      becomes      .materialize p on_read
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dlog.errors import Diagnostics, did_you_mean
from dlog.language import ast

DERIVATION = "lang:derivationType"
PULSE = "lang:pulse"
_BASE = ("NotDerived", "Extensional")
_DERIVED = {"Derived": "on_read", "DerivedAndStored": "always"}
# Settings that would change answers, and what to write instead.
REFUSED = {
    "lang:ordered": "number the values: f[i] = x <- seq<<>> p(x).",
    "lang:constructor": "use a record or an algebraic data type: .type T = Name {x: int}",
    "lang:autoNumbered": "give the entity a reference mode, as in p(x), p_id(x : i) -> int(i).",
    "lang:defaultValue": "write a rule for the default: g[x] = 0 <- key(x), !(f[x] = _).",
}


def is_meaningful(node: ast.Property) -> bool:
    """Whether a setting changes anything, also by being refused."""
    return node.name in (DERIVATION, PULSE) or node.name in REFUSED


def pulses(statements: Any) -> dict[str, ast.Property]:
    """The predicates that only transactions have."""
    return {
        name: s for s in statements if isinstance(s, ast.Property) and _is_pulse(s) for name in s.predicates
    }


def _is_pulse(node: ast.Property) -> bool:
    return node.name == PULSE and node.value in (None, ast.Constant("bool", True))


def without_properties(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """O(statements)."""
    if not any(isinstance(s, ast.Property) for s in program.statements):
        return program
    statements: list[ast.Node] = []
    for statement in program.statements:
        if isinstance(statement, ast.Property):
            statements += _meaning(statement, program, diagnostics)
        else:
            statements.append(statement)
    _check_pulses(program, diagnostics)
    return ast.Program(tuple(statements), span=program.span)


def _meaning(node: ast.Property, program: ast.Program, diagnostics: Diagnostics) -> Iterator[ast.Node]:
    if node.name in REFUSED:
        diagnostics.error(f"{node.name} is not supported", node.span, REFUSED[node.name])
    elif node.name == PULSE:
        for name in node.predicates:
            _require(node, name, program, diagnostics)
    elif node.name == DERIVATION:
        yield from _derivation(node, program, diagnostics)


def _derivation(node: ast.Property, program: ast.Program, diagnostics: Diagnostics) -> Iterator[ast.Node]:
    kind = node.value.value if isinstance(node.value, ast.Constant) else None
    known = (*_BASE, *_DERIVED)
    if kind not in known:
        help = did_you_mean(str(kind), known, f"it is one of {', '.join(known)}")
        diagnostics.error(
            f"bad value for {node.name}", node.span if node.value is None else node.value.span, help
        )
        return
    for name in node.predicates:
        derived = any(_derives(s, name) for s in program.statements)
        if kind in _BASE and derived:
            message = f"{name} has rules, but {node.name} says {kind}"
            diagnostics.error(message, node.span, 'remove its rules, or write "DerivedAndStored"')
        elif kind in _DERIVED and not derived:
            message = f"{name} has no rules, but {node.name} says {kind}"
            diagnostics.error(message, node.span, f'add a rule for {name}, or write "Extensional"')
        elif kind in _DERIVED:
            mode = ast.DirectiveParameter("mode", _DERIVED[str(kind)], span=node.span)
            yield ast.Directive("materialize", name, (mode,), span=node.span)


def _derives(statement: ast.Node, name: str) -> bool:
    heads: tuple[ast.Node, ...] = ()
    if isinstance(statement, ast.Rule):
        heads = statement.heads
    elif isinstance(statement, ast.SequenceRule):
        heads = (statement.head,)
    return name in map(_name, heads)


def _name(head: ast.Node) -> str:
    atom = head.left if isinstance(head, ast.Comparison) else head
    return atom.name if isinstance(atom, ast.Call | ast.Application) else ""


def _require(node: ast.Property, name: str, program: ast.Program, diagnostics: Diagnostics) -> None:
    declared = {s.name for s in program.statements if isinstance(s, ast.Declaration)}
    if name not in declared:
        help = did_you_mean(name, declared, f"declare it, as in {name}(x) -> int(x).")
        diagnostics.error(f"a pulse predicate must be declared: {name}", node.span, help)


def _check_pulses(program: ast.Program, diagnostics: Diagnostics) -> None:
    """Their rows exist in a transaction only, so only delta rules read them."""
    found = pulses(program.statements)
    for statement in program.statements if found else ():
        if isinstance(statement, ast.Facts | ast.Directive) and statement.predicate in found:
            _refuse_pulse(statement.predicate, statement, diagnostics)
        elif isinstance(statement, ast.Rule | ast.SequenceRule | ast.Constraint | ast.Query):
            for node in statement.walk():
                if isinstance(node, ast.Call | ast.Application) and node.name in found:
                    _refuse_pulse(node.name, node, diagnostics, isinstance(statement, ast.Constraint))


def _refuse_pulse(name: str, node: ast.Node, diagnostics: Diagnostics, constraint: bool = False) -> None:
    help = f"write a delta rule that reads its events, as in +log(x) <- +{name}(x)."
    if constraint:
        help = (
            "its declaration gives its arguments built-in types, such as string(x), and nothing else; "
            "constrain what its delta rules change"
        )
    diagnostics.error(f"{name} is a pulse predicate: it has rows in a transaction only", node.span, help)
