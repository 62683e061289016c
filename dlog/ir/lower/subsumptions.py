"""Owns subsumption clauses -> rules whose heads are the rows to remove.

# p(x, a) <= p(x, b) :- b <= a.      becomes
# p(x, a) <- p(x, a), p(x, b), b <= a, a != b.      with `removes`
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from dlog.errors import Diagnostics
from dlog.ir.expand.inlining import fresh, variables
from dlog.ir.lower.names import Names
from dlog.language import ast
from dlog.language.vocabulary import AUTOINC

_FORM = "write p(x, a) <= p(x, b) :- b < a."


def is_subsumption(node: ast.Rule) -> bool:
    return any(isinstance(head, ast.Comparison) and head.op == "<=" for head in node.heads)


def removing_rule(node: ast.Rule, names: Names) -> ast.Rule | None:
    """The rule that derives the rows to remove; None when the clause was reported."""
    errors = names.diagnostics
    pair = _pair(node, errors)
    if pair is None or not _is_allowed(node, pair, names):
        return None
    less, more = pair
    taken = set(variables(node))
    given: list[ast.Node] = []
    less = replace(less, args=tuple(_named(arg, taken, given) for arg in less.args))
    more = replace(more, args=tuple(_without_wildcard(arg, taken) for arg in more.args))
    pairs = zip(less.args, more.args, strict=False)
    equal = [ast.Comparison("=", a, b, span=node.span) for a, b in pairs if a != b]
    if not equal and len(less.args) == len(more.args):
        message = f"here a row of {less.name} can only subsume itself"
        errors.error(message, node.heads[0].span, "use another variable where the two rows differ")
        return None
    different = ast.Negation(ast.Conjunction(tuple(equal), span=node.span), span=node.span)
    if len(equal) == 1:
        different = replace(equal[0], op="!=")  # type: ignore[assignment]
    assert node.body is not None
    body = ast.Conjunction((less, more, *given, node.body, different), span=node.body.span)
    return ast.Rule((less,), body, span=node.span)


def _pair(node: ast.Rule, errors: Diagnostics) -> tuple[ast.Call, ast.Call] | None:
    """(The row that is removed, the row that subsumes it), if the clause has the form of one."""
    head = node.heads[0]
    if len(node.heads) > 1:
        errors.error(
            "a subsumption has one pair of rows", node.heads[1].span, "write one clause for each pair"
        )
        return None
    assert isinstance(head, ast.Comparison)
    for side in (head.left, head.right):
        if not isinstance(side, ast.Call):
            help = "subsumption is for relations: " if isinstance(side, ast.Application) else ""
            errors.error("each side of a subsumption must be an atom R(x)", side.span, help + _FORM)
            return None
    assert isinstance(head.left, ast.Call) and isinstance(head.right, ast.Call)
    return head.left, head.right


def _is_allowed(node: ast.Rule, pair: tuple[ast.Call, ast.Call], names: Names) -> bool:
    """Reports the first reason why a clause has no meaning."""
    for message, wrong, help in _mistakes(node, pair, names):
        names.diagnostics.error(message, wrong.span, help)
        return False
    return True


def _mistakes(
    node: ast.Rule, pair: tuple[ast.Call, ast.Call], names: Names
) -> Iterator[tuple[str, ast.Node, str]]:
    less, more = pair
    if less.name != more.name:
        message = f"a row of {more.name} cannot subsume a row of {less.name}"
        yield message, more, f"both sides of <= are rows of one predicate; write {less.name}(..) on both"
    if node.body is None:
        yield "a subsumption needs a body, which says when", node.heads[0], _FORM
        return
    if node.aggregations:
        help = "write a rule that computes it, and read its predicate in the body"
        yield "a subsumption cannot aggregate", node.aggregations[0], help
    for inner in itertools.chain(pair, (node.body,)):
        for part in inner.walk():
            if isinstance(part, ast.InlineAggregate):
                help = "write a rule that computes it, and read its predicate in the body"
                yield "a subsumption cannot aggregate", part, help
    for part in node.body.walk():
        if isinstance(part, ast.Call | ast.Application) and part.name == less.name:
            message = f"the body of a subsumption of {less.name} reads {less.name}"
            yield message, part, "compare only the two rows of the head, by what other predicates say of them"
    for part in node.walk():
        if isinstance(part, ast.Call) and part.name == AUTOINC:
            yield "a subsumption gives no numbers", part, "number the rows that are left in a second rule"
    shape = names.shapes.get(less.name)
    if shape is not None and shape.choice is not None:
        help = "leave one of them out; a second predicate can have the other"
        yield f"{less.name} has a choice domain and a subsumption", node.heads[0], help
    if shape is not None and shape.declaration and "inline" in shape.declaration.qualifiers:
        help = "remove inline from its declaration"
        yield f"{less.name} is inline, but its subsumption needs its rows stored", node.heads[0], help


def _named(arg: ast.Node, taken: set[str], given: list[ast.Node]) -> ast.Node:
    """A variable for an argument of the row that is removed; `given` says what it is equal to."""
    if isinstance(arg, ast.Variable):
        return arg
    variable = ast.Variable(fresh("any", taken), span=arg.span)
    if not isinstance(arg, ast.Wildcard):
        given.append(ast.Comparison("=", variable, arg, span=arg.span))
    return variable


def _without_wildcard(arg: ast.Node, taken: set[str]) -> ast.Node:
    return ast.Variable(fresh("any", taken), span=arg.span) if isinstance(arg, ast.Wildcard) else arg
