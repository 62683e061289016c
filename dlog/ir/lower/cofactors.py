"""Owns `agg<<m = cofactor(a, b)>>`: the rule that it abbreviates, and how its parts are named.

The cofactor of variables is the number of assignments, the sums of the variables and the sums of their
products: a symmetric matrix over 1 and the variables.  There are no records, so the matrix is stored by its
entries: in a head, m represents the names of a row and a column, and the entry.

    # model[r] = m <- agg<<m = cofactor(a, b)>> sale(r, a, b).         is, with each entry on both sides,
    # model[r, "1", "1"] = m'1'1, model[r, "1", "a"] = m'1'a, .. model[r, "a", "b"] = m'a'b, ..
    #     <- agg<<m'1'1 = sum(m'1), m'1'a = sum(m'a), .. m'a'b = sum(m'a * m'b), ..>>
    #        sale(r, a, b), m'1 = 1, m'a = a * 1, m'b = b * 1.

The products with 1 convert integers to decimals or floats if another variable is one: all entries
have one type.  Knows no types.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dlog.aggregates.sum import SUM
from dlog.errors import Diagnostics
from dlog.ir.lower.scope import variables
from dlog.language import ast
from dlog.language.source import Span
from dlog.language.vocabulary import COFACTOR

ONE = "1"  # the name of the row and the column of sums


def with_entries(program: ast.Program, diagnostics: Diagnostics) -> tuple[ast.Program, list[ast.Rule]]:
    """The program with every cofactor replaced by its sums, and the rules in it that were reported:
    these have one entry, so that their predicates are known.
    """
    statements: list[ast.Node] = []
    wrong: list[ast.Rule] = []
    for statement in program.statements:
        if isinstance(statement, ast.Rule) and any(a.op == COFACTOR for a in statement.aggregations):
            before = len(diagnostics.errors)
            statement = _expanded(statement, diagnostics)
            if len(diagnostics.errors) > before:
                wrong.append(statement)
        statements.append(statement)
    return replace(program, statements=tuple(statements)), wrong


@dataclass(frozen=True)
class Cofactor:
    """The cofactor of a rule: the aggregate's result as it was written, and its variables."""

    result: str
    variables: tuple[str, ...]


def cofactor_of(results: Iterable[str]) -> Cofactor | None:
    """What the results of a rule's aggregates are the entries of; None when some are not.

    >>> cofactor_of(["m'1'1", "m'1'x", "m'x'x"]), cofactor_of(["n"])
    (Cofactor(result='m', variables=('x',)), None)
    """
    parts = [name.split("'") for name in results]
    if any(len(part) != 3 for part in parts) or len({part[0] for part in parts}) != 1:
        return None
    names = tuple(dict.fromkeys(column for _, row, column in parts if row == ONE and column != ONE))
    return Cofactor(parts[0][0], names)


# One rule


def _expanded(rule: ast.Rule, diagnostics: Diagnostics) -> ast.Rule:
    before = len(diagnostics.errors)
    for aggregation in (a for a in rule.aggregations if a.op == COFACTOR):
        _check(rule, aggregation, diagnostics)
        if len(diagnostics.errors) > before:
            heads = tuple(h for head in rule.heads for h in _heads(head, aggregation.result, [(ONE, ONE)]))
            return replace(rule, heads=heads)
        rule = _with_sums(rule, aggregation)
    return rule


def _check(rule: ast.Rule, aggregation: ast.Aggregation, diagnostics: Diagnostics) -> None:
    """Reports the first thing that is wrong with a cofactor."""
    result, span = aggregation.result, aggregation.span
    other = next((a for a in aggregation.args if not isinstance(a, ast.Variable)), None)
    names = [a.name for a in aggregation.args if isinstance(a, ast.Variable)]
    if not aggregation.args:
        diagnostics.error("cofactor takes variables", span, f"write {result} = cofactor(x, y)")
    elif other is not None:
        help = (
            "its entries are found by the names of variables: compute the value in the body, as in y = a + b"
        )
        diagnostics.error("cofactor takes variables", other.span, help)
    elif len(set(names)) < len(names):
        twice = next(a for i, a in enumerate(aggregation.args) if names[i] in names[:i])
        diagnostics.error("cofactor takes each variable once", twice.span, "its square is already included")
    elif rule.body is not None and result in variables(rule.body):
        message = f"{result} is the result of cofactor, but the body uses it too"
        diagnostics.error(message, span, "give the result a different name")
    elif sum(a.result == result for a in rule.aggregations) > 1:
        diagnostics.error(
            f"{result} is the result of two aggregates", span, "give each result a different name"
        )
    else:
        _check_heads(rule, result, span, diagnostics)


def _check_heads(rule: ast.Rule, result: str, span: Span, diagnostics: Diagnostics) -> None:
    found = False
    for head in rule.heads:
        places = _arguments(head)
        uses = _uses(head, result)
        if len(uses) > 1 or any(use not in places for use in uses):
            message = f"{result} is a cofactor: it must be the only value of a head, and occur once"
            diagnostics.error(
                message, uses[-1].span, "compute with its entries in a second rule, as in model[r, i, j] * 2"
            )
            return
        found |= bool(uses)
    if not found:
        message = f"the result {result} of cofactor is not used in the head"
        diagnostics.error(message, span, f"add a head such as model[...] = {result}")


def _uses(node: ast.Node, result: str) -> list[ast.Node]:
    return [n for n in node.walk() if isinstance(n, ast.Variable) and n.name == result]


def _arguments(head: ast.Node) -> tuple[ast.Node, ...]:
    if isinstance(head, ast.Comparison) and isinstance(head.left, ast.Application):
        return (*head.left.args, head.right)
    return head.args if isinstance(head, ast.Call) else ()


def _with_sums(rule: ast.Rule, aggregation: ast.Aggregation) -> ast.Rule:
    result, span = aggregation.result, aggregation.span
    given = {a.name: a for a in aggregation.args if isinstance(a, ast.Variable)}
    one = ast.Constant("int", 1, span=span)
    columns: list[ast.Node] = [_equation(_column(result, ONE, span), one)]
    for name, variable in given.items():
        value = ast.Binary("*", variable, one, span=variable.span)
        columns.append(_equation(_column(result, name, span), value))
    entries = list(itertools.combinations_with_replacement((ONE, *given), 2))
    columns += [_product(result, *entry, span) for entry in entries if ONE not in entry]  # of the body
    sums = tuple(_sum(result, row, column, span) for row, column in entries)
    heads = tuple(new for head in rule.heads for new in _heads(head, result, entries))
    others = tuple(a for a in rule.aggregations if a is not aggregation)
    assert rule.body is not None
    body = ast.Conjunction((rule.body, *columns), span=rule.body.span)
    return replace(rule, heads=heads, body=body, aggregations=(*others, *sums))


def _sum(result: str, row: str, column: str, span: Span) -> ast.Aggregation:
    value = _column(result, column if row == ONE else f"{row}*{column}", span)
    return ast.Aggregation(_entry(result, row, column), SUM.name, (value,), span=span)


def _product(result: str, row: str, column: str, span: Span) -> ast.Comparison:
    value = ast.Binary("*", _column(result, row, span), _column(result, column, span), span=span)
    return _equation(_column(result, f"{row}*{column}", span), value)


def _heads(head: ast.Node, result: str, entries: Iterable[tuple[str, str]]) -> Iterator[ast.Node]:
    """The head for every entry; an entry off the diagonal is on both sides of it."""
    if not any(_uses(a, result) for a in _arguments(head)):
        yield head
        return
    for row, column in entries:
        name = _entry(result, row, column)
        for place in dict.fromkeys(((row, column), (column, row))):
            yield _head(head, result, place, name)


def _head(head: ast.Node, result: str, place: tuple[str, str], name: str) -> ast.Node:
    names = tuple(ast.Constant("string", text, span=head.span) for text in place)
    if isinstance(head, ast.Call):
        return replace(head, args=tuple(_replaced(head.args, result, names, name)))
    assert isinstance(head, ast.Comparison) and isinstance(head.left, ast.Application)
    left = head.left
    if _uses(head.right, result):
        value = ast.Variable(name, span=head.right.span)
        return replace(head, left=replace(left, args=(*left.args, *names)), right=value)
    return replace(head, left=replace(left, args=tuple(_replaced(left.args, result, names, name))))


def _replaced(
    args: tuple[ast.Node, ...], result: str, names: tuple[ast.Node, ...], name: str
) -> Iterator[ast.Node]:
    for argument in args:
        if _uses(argument, result):
            yield from (*names, ast.Variable(name, span=argument.span))
        else:
            yield argument


# Names


def _entry(result: str, row: str, column: str) -> str:
    return f"{result}'{row}'{column}"


def is_column(name: str) -> bool:
    """Whether a variable is what a cofactor adds up, such as m'a of `m = cofactor(a, b)`."""
    return name.count("'") == 1


def _column(result: str, name: str, span: Span) -> ast.Variable:
    return ast.Variable(f"{result}'{name}", span=span)


def _equation(variable: ast.Variable, value: ast.Node) -> ast.Comparison:
    return ast.Comparison("=", variable, value, span=value.span)
