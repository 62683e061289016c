"""Owns variables that occur once in their rule: a misspelt name joins nothing.

It is worth a warning.  In a negated atom of a rule with `:-` it is an error, as in Soufflé; a negation in a
rule with `<-` has variables of its own.  `_`, and names that begin with it, say that it is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dlog.language import ast


def lonely(rule: ast.Rule | ast.DeltaRule) -> list[ast.Variable]:
    """The variables that occur once, in the order of the text.  O(nodes)."""
    variables = [node for node in rule.walk() if isinstance(node, ast.Variable)]
    times = Counter(variable.name for variable in variables)
    return [v for v in variables if times[v.name] == 1 and not v.name.lstrip("?").startswith("_")]


def ungrounded_in_negations(rule: ast.Rule) -> list[ast.Variable]:
    """Those of them that are arguments of a negated atom, in a rule with `:-`."""
    if not _is_souffle(rule):
        return []
    asked = {id(a) for n in rule.walk() if isinstance(n, ast.Negation) for a in _arguments(n.body)}
    return [variable for variable in lonely(rule) if id(variable) in asked] if asked else []


def _is_souffle(rule: ast.Rule) -> bool:
    """Whether the arrow is `:-`."""
    if rule.body is None or not rule.heads or rule.span is None:
        return False
    last, start = rule.heads[-1].span, rule.span.start
    return rule.span.text()[last.end - start : rule.body.span.start - start].strip(" \t\n(").startswith(":-")


def _arguments(body: ast.Node) -> Iterator[ast.Node]:
    """What an atom has as arguments, with the value of `f[x] = v`, and the fields of records in them."""
    if isinstance(body, ast.Comparison) and isinstance(body.left, ast.Application):
        yield from (*_arguments(body.left), body.right)
    elif isinstance(body, ast.Call | ast.Application):
        yield from (inner for argument in body.args for inner in _fields(argument))


def _fields(term: ast.Node) -> Iterator[ast.Node]:
    yield term
    if isinstance(term, ast.Record | ast.Branch):
        yield from (inner for field in term.args for inner in _fields(field))
