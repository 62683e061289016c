"""Owns node -> one line of canonical text.  Knows nothing of comments, blank lines or line breaks.

Canonical is the LogiQL style: `<-`, `R(x) -> int(x).`, `F[x] = y`.  Parsing the output gives the same
node, so parentheses appear exactly where the grammar needs them, and around negated comparisons, where
a reader needs them.  All functions are O(size of the node).

REQUIRES everywhere: the node is one that `parse` can return (so no conjunction directly inside
a conjunction, no minus in front of a plain number).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dlog.language import ast
from dlog.language.build import PRECEDENCE, PREFIX_PRECEDENCE
from dlog.language.fact_text import literal_places
from dlog.language.vocabulary import AGGREGATES, KEYWORDS
from dlog.values import BUILTIN_TYPES
from dlog.values.quoting import quoted

# Numbers that are not in base ten: 0x1F, 0b101u, 10.0.0.1.
OTHER_NUMBER = re.compile(r"(?:-\s*)?(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|\d+(?:\.\d+){3})u?")
_ATOMIC = 12  # binds tighter than any operator


def format_node(node: ast.Node) -> str:
    """One line of text: a statement with its end, or a formula or term.

    >>> from dlog.language.parse import parse
    >>> format_node(parse("a(x):-b(x,y),!(y<-1;c(y)).").statements[0])
    'a(x) <- b(x, y), !(y < -1 ; c(y)).'
    """
    printer = _STATEMENTS.get(type(node))
    return printer(node) if printer else formula(node)


# Formulas.  Functions here call each other at most three deep for one level of a tree, and process lists
# with `map`, which needs no frame: at `parse.MAX_DEPTH` that stays well within Python's limit.


def formula(node: ast.Node) -> str:
    """A body: what may follow `<-` or be between braces."""
    if isinstance(node, ast.Disjunction):
        return " ; ".join(map(conjunction, node.items))
    return conjunction(node) if isinstance(node, ast.Conjunction) else literal(node)


def conjunction(node: ast.Node) -> str:
    """One side of a disjunction, without parentheses around its own commas."""
    return ", ".join(map(literal, node.items)) if isinstance(node, ast.Conjunction) else literal(node)


def literal(node: ast.Node) -> str:
    """One item of a conjunction."""
    if isinstance(node, ast.Conjunction | ast.Disjunction):
        return f"({formula(node)})"
    if isinstance(node, ast.Comparison):
        left = _guarded(node.left) if node.op == "=" else term(node.left)
        return f"{left} {node.op} {term(node.right)}"
    if isinstance(node, ast.Delta):
        return delta(node)
    if isinstance(node, ast.Negation):
        inner = literal(node.body)
        return f"!({inner})" if _reads_as_two(node.body) else f"!{inner}"
    return _guarded(node)


def _guarded(node: ast.Node) -> str:
    """A term.  In the body of a delta rule `-p(x)` is an event, and so is `-f[x] = y`, but not `-(p(x))`."""
    if (
        isinstance(node, ast.Unary)
        and node.op == "-"
        and isinstance(node.operand, ast.Call | ast.Application)
    ):
        return f"-({term(node.operand)})"
    return term(node)


def _reads_as_two(body: ast.Node) -> bool:
    """`!x < y` is the negation of a comparison, but looks like the comparison of a negation."""
    if not isinstance(body, ast.Comparison):
        return False
    return body.op != "=" or not isinstance(body.left, ast.Application)


# Terms


def term(node: ast.Node, floor: int = 0, guarded: bool | None = None) -> str:
    """A term that must bind at least as tightly as `floor`: an argument, an operand, a side of a comparison.

    `guarded`: in `max(x, y) - count : {...}` the lexer would take `max` for the aggregate of that colon, so
    wherever a colon may follow on the same level, names of aggregates are in parentheses.  None for a whole
    term, which determines this itself.
    """
    if guarded is None:
        guarded = _has_aggregate(node)
    if isinstance(node, ast.Binary):
        strength = PRECEDENCE[node.op]
        to_right = node.op == "^"
        left = term(node.left, strength + to_right, guarded)
        text = f"{left} {node.op} {term(node.right, strength + (not to_right), guarded)}"
        return f"({text})" if strength < floor else text
    if isinstance(node, ast.Unary):
        # Any operator below is parenthesised: `-(2 ^ 2)` and `-(-x)` need no knowledge of precedence.
        text = f"{node.op}{'' if node.op == '-' else ' '}{term(node.operand, _ATOMIC, guarded)}"
        return f"({text})" if floor > PREFIX_PRECEDENCE else text
    if isinstance(node, ast.InlineAggregate):
        target = "" if node.target is None else f"{term(node.target, 0, True)} "
        return f"{node.op} {target}: {{ {formula(node.body)} }}"
    if isinstance(node, ast.Call):
        text = f"{_spaced(node.name)}({', '.join(map(term, node.args))})"
        return f"({text})" if guarded and node.name in AGGREGATES else text
    if isinstance(node, ast.UserCall):
        text = f"@{node.name}({', '.join(map(term, node.args))})"
        return f"({text})" if guarded else text
    if isinstance(node, ast.Application):
        text = f"{node.name}[{', '.join(map(term, node.args))}]"
        return f"({text})" if guarded and node.name in AGGREGATES else text
    if isinstance(node, ast.Reference):
        return f"{term(node.key)} : {term(node.value)}"
    if isinstance(node, ast.Record):
        return f"[{', '.join(map(term, node.args))}]"
    if isinstance(node, ast.Branch):
        return f"${node.name}({', '.join(map(term, node.args))})" if node.args else f"${node.name}"
    if isinstance(node, ast.Cast):
        return f"as({term(node.term)}, {type_reference(node.type)})"
    if isinstance(node, ast.Comparison | ast.Negation | ast.Conjunction | ast.Disjunction):
        return f"({formula(node)})"
    return _leaf(node, floor, guarded)


def _leaf(node: ast.Node, floor: int, guarded: bool) -> str:
    if isinstance(node, ast.Variable):
        return f"({node.name})" if guarded and node.name in AGGREGATES else node.name
    if isinstance(node, ast.Wildcard):
        return "_"
    assert isinstance(node, ast.Constant), f"not part of a program: {node!r}"
    text = constant(node.kind, node.value, node.span.text() if node.span is not None else "")
    is_negative = node.kind in ("int", "float") and text.startswith("-")
    return f"({text})" if is_negative and floor > PREFIX_PRECEDENCE else text


def _has_aggregate(node: ast.Node) -> bool:
    """Whether a colon of an inline aggregate is on the level of this term, outside any brackets."""
    if isinstance(node, ast.Binary):
        return _has_aggregate(node.left) or _has_aggregate(node.right)
    if isinstance(node, ast.Unary):
        return _has_aggregate(node.operand)
    return isinstance(node, ast.InlineAggregate)


def constant(kind: str, value: int | str | bool, written: str = "") -> str:
    """A value as `Constant` and `Facts` hold it.  A number that was written in another base, or as an IPv4
    address, is printed as it was written."""
    written = written.strip("() \n")
    if kind in ("int", "unsigned") and OTHER_NUMBER.fullmatch(written):
        return "".join(written.split())
    if kind == "string":
        return quoted(str(value))
    if kind == "bool":
        return "true" if value else "false"
    return f"{value}u" if kind == "unsigned" else str(value)


def type_reference(node: ast.TypeRef) -> str:
    """As `.decl`, `.type` and `as` write it: `decimal(10, 2)`."""
    return f"{node.name}({', '.join(map(str, node.params))})" if node.params else node.name


def _spaced(name: str) -> str:
    """`decimal[10,2]`, the name of a type with its sizes, as it is written elsewhere."""
    return name.replace(",", ", ")


# Statements


def head(rule: ast.Rule) -> str:
    return at_start(", ".join(heads(rule)), rule.heads[0])


def heads(rule: ast.Rule) -> list[str]:
    if len(rule.heads) == 1:
        return [formula(rule.heads[0])]
    return [literal(node) for node in rule.heads]


def at_start(text: str, first: ast.Node) -> str:
    """A sign at the start of a statement would mark a delta, so a formula that begins with one is wrapped."""
    if not text.startswith("-"):
        return text
    while isinstance(first, ast.Conjunction | ast.Disjunction):
        first = first.items[0]
    return f"({literal(first)}){text[len(literal(first)) :]}"


def aggregations(rule: ast.Rule | ast.DeltaRule | ast.Query) -> str:
    """`agg<<n = count()>> ` with the space after it, or nothing."""
    if not rule.aggregations:
        return ""
    items = ", ".join(f"{a.result} = {a.op}({', '.join(map(term, a.args))})" for a in rule.aggregations)
    return f"agg<<{items}>> "


def _rule(rule: ast.Rule) -> str:
    if rule.body is None:
        return f"{head(rule)}."
    return f"{head(rule)} <- {aggregations(rule)}{formula(rule.body)}."


def _query(node: ast.Query) -> str:
    start = "?-" if node.head is None else f"{literal(node.head)} <-"
    return f"{start} {aggregations(node)}{formula(node.body)}."


def _delta_rule(node: ast.DeltaRule) -> str:
    heads = ", ".join(map(delta, node.heads))
    return f"{heads} <- {aggregations(node)}{formula(node.body)}."


def _sequence_rule(node: ast.SequenceRule) -> str:
    return f"{formula(node.head)} <- {sequence(node)} {formula(node.body)}."


def sequence(node: ast.SequenceRule) -> str:
    """`seq<<i = (x, y)>>`"""
    order = ", ".join(map(term, node.order))
    order = f"({order})" if len(node.order) > 1 else order
    return f"seq<<{node.index} = {order}>>" if node.index is not None else "seq<<>>"


def _property(node: ast.Property) -> str:
    names = ", ".join(f"`{name}" for name in node.predicates)
    if node.value is None:
        return f"{node.name}({names})."
    return f"{node.name}[{names}] = {term(node.value)}."


def _entity(node: ast.Entity) -> str:
    key, value = node.variables
    sizes = f"[{', '.join(map(str, node.type.params))}]" if node.type.params else ""
    return f"{node.name}({key}), {node.reference}({key} : {value}) -> {node.type.name}{sizes}({value})."


def constraint_left(node: ast.Constraint) -> str:
    first = node.left
    return at_start(formula(first), first)


def _constraint(node: ast.Constraint) -> str:
    return f"{constraint_left(node)} -> {formula(node.right)}."


def delta(node: ast.Delta) -> str:
    return node.op + literal(node.atom)


def fact(facts: ast.Facts, row: tuple[tuple[str, int | str | bool], ...], written: str = "") -> str:
    """A fact; `written` is its text in the source, where that matters."""
    places = literal_places(written)
    texts = [written[a:b] for a, b in places] if len(places) == len(row) else [""] * len(row)
    values = [constant(kind, value, text) for (kind, value), text in zip(row, texts, strict=True)]
    if facts.functional:
        return f"{facts.predicate}[{', '.join(values[:-1])}] = {values[-1]}."
    return f"{facts.predicate}({', '.join(values)})."


def declaration_types(node: ast.Declaration) -> list[str]:
    """The right side of a LogiQL declaration: `decimal[10, 2](x)` for each argument with a type."""
    out = []
    for parameter in (*node.keys, *([node.value] if node.value else [])):
        if parameter.type is not None:
            sizes = f"[{', '.join(map(str, parameter.type.params))}]" if parameter.type.params else ""
            out.append(f"{parameter.type.name}{sizes}({parameter.name})")
    return out


def declaration_left(node: ast.Declaration) -> str:
    names = ", ".join(p.name for p in node.keys)
    return f"{node.name}[{names}] = {node.value.name}" if node.value else f"{node.name}({names})"


def is_logiql(node: ast.Declaration) -> bool:
    """Whether `R(x) -> int(x).` can express it: built-in types, no qualifiers, names that can be variables.

    Functional predicates have no other form.
    """
    names = [p.name for p in node.keys]
    return node.value is not None or (
        not node.qualifiers
        and not node.choices
        and all(p.type is None or p.type.name in BUILTIN_TYPES for p in node.keys)
        and len(set(names)) == len(names)
        and not KEYWORDS.intersection([*names, node.name])
    )


def declaration_parameters(node: ast.Declaration) -> list[str]:
    """`x: T` for each argument; REQUIRES: every argument has a type, as `.decl` requires."""
    return [f"{p.name}: {type_reference(p.type)}" for p in node.keys if p.type is not None]


def _declaration(node: ast.Declaration) -> str:
    if is_logiql(node):
        return f"{declaration_left(node)} -> {', '.join(declaration_types(node))}."
    return f".decl {node.name}({', '.join(declaration_parameters(node))}){declaration_qualifiers(node)}"


def declaration_qualifiers(node: ast.Declaration) -> str:
    """What follows the parameters."""
    domains = [[variable.name for variable in domain.keys] for domain in node.choices]
    texts = [names[0] if len(names) == 1 else f"({', '.join(names)})" for names in domains]
    choice = [f"choice-domain {', '.join(texts)}"] if texts else []
    return "".join(f" {word}" for word in (*node.qualifiers, *choice))


def _type_declaration(node: ast.TypeDeclaration) -> str:
    if node.branches:
        return f".type {node.name} = {' | '.join(map(_branch_type, node.branches))}"
    sign = "<:" if node.kind == "subtype" else "="
    return f".type {node.name} {sign} {' | '.join(type_reference(base) for base in node.bases)}"


def _functor(node: ast.FunctorDeclaration) -> str:
    parameters = (f"{p.name}: " * bool(p.name) + type_reference(p.type) for p in node.parameters if p.type)
    words = "".join(f" {word}" for word in node.words)
    return f".functor {node.name}({', '.join(parameters)}): {type_reference(node.result)}{words}"


def _branch_type(node: ast.BranchType) -> str:
    fields = ", ".join(f"{f.name}: {type_reference(f.type)}" for f in node.fields if f.type is not None)
    if not node.name:
        return f"[{fields}]"
    return f"{node.name} {{{fields}}}"


def directive_parameters(node: ast.Directive) -> str:
    """`(IO=csv, filename="a.csv")`, or nothing; ` on_read` for `.materialize`."""
    if node.kind == "materialize":
        return "".join(f" {parameter.value}" for parameter in node.params)
    return f"({', '.join(map(_parameter, node.params))})" if node.params else ""


def _pragma(node: ast.Pragma) -> str:
    value = "" if node.value is None else f" {quoted(node.value)}"
    return f".pragma {quoted(node.key)}{value}"


def _parameter(node: ast.DirectiveParameter) -> str:
    if isinstance(node.value, bool):
        value = "true" if node.value else "false"
    elif isinstance(node.value, int):
        value = str(node.value)
    else:
        is_word = node.name == "IO" and node.value.isidentifier() and node.value.isascii()
        value = node.value if is_word and node.value not in ("true", "false") else quoted(node.value)
    return f"{node.name}={value}"


def component(node: ast.ComponentRef) -> str:
    return node.name + (f"<{', '.join(node.args)}>" if node.args else "")


def _bases(node: ast.ComponentStart) -> str:
    return f" : {', '.join(map(component, node.bases))}" if node.bases else ""


_STATEMENTS: dict[type[ast.Node], Callable[[Any], str]] = {
    ast.Rule: _rule,
    ast.Constraint: _constraint,
    ast.Query: _query,
    ast.DeltaRule: _delta_rule,
    ast.SequenceRule: _sequence_rule,
    ast.Property: _property,
    ast.Entity: _entity,
    ast.Block: lambda node: "\n".join([*map(format_node, (node.start, *node.statements)), "}"]),
    ast.BlockStart: lambda node: f"block(`{node.name}) {{",
    ast.DeltaStatement: lambda node: f"{', '.join(map(delta, node.deltas))}.",
    ast.Delta: delta,
    ast.Facts: lambda node: " ".join(fact(node, row) for row in node.rows),
    ast.Declaration: _declaration,
    ast.TypeDeclaration: _type_declaration,
    ast.FunctorDeclaration: _functor,
    ast.BranchType: _branch_type,
    ast.Directive: lambda node: f".{node.kind} {node.predicate}{directive_parameters(node)}",
    ast.Include: lambda node: f".include {quoted(node.path)}",
    ast.Pragma: _pragma,
    ast.Plan: lambda node: f".plan {node.text}",
    ast.Component: lambda node: "\n".join([*map(format_node, (node.start, *node.statements)), "}"]),
    ast.ComponentStart: lambda node: f".comp {component(node.component)}{_bases(node)} {{",
    ast.ComponentEnd: lambda node: "}",
    ast.Init: lambda node: f".init {node.name} = {component(node.component)}",
    ast.Override: lambda node: f".override {node.predicate}",
    ast.TypeRef: type_reference,
    ast.Aggregation: lambda node: f"{node.result} = {node.op}({', '.join(map(term, node.args))})",
    ast.Parameter: lambda node: node.name + (f": {type_reference(node.type)}" if node.type else ""),
    ast.Program: lambda node: " ".join(map(format_node, node.statements)),
}  # fmt: skip
