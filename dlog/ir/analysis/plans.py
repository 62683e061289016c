"""Owns `.plan`: a hint that changes no result, whose numbers must still be those of the rule before it.

    p(x, z) :- p(x, y), p(y, z).
    .plan 0:(1, 2), 1:(2, 1)      version 0 is of the first recursive atom, version 1 of the second

Each order has every atom of the body once.  As in Soufflé, plans of rules without recursion are not checked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from dlog.errors import Diagnostics
from dlog.ir.rules import Stratum
from dlog.language import ast

_ORDER = re.compile(r"(\d+):\(([\d, ]*)\)")


def check_plans(statements: Sequence[ast.Node], strata: Iterable[Stratum], diagnostics: Diagnostics) -> None:
    """Reports versions and orders that a rule does not have.  REQUIRES: inline predicates are replaced."""
    plans = [(r, p) for r, p in itertools.pairwise(statements) if isinstance(p, ast.Plan)]
    if not plans:
        return
    together = {name: stratum.predicates for stratum in strata for name in stratum.predicates}
    for rule, plan in plans:
        body = list(_conjunction(rule.body)) if isinstance(rule, ast.Rule) else []
        atoms = [item for item in body if isinstance(item, ast.Call)]
        if isinstance(rule, ast.Rule) and len(rule.heads) == 1 and len(atoms) == len(body):
            head = rule.heads[0]
            members = together.get(head.name, ()) if isinstance(head, ast.Call) else ()
            recursive = sum(atom.name in members for atom in atoms)
            if recursive:
                _check(plan, len(atoms), recursive, diagnostics)


def _check(plan: ast.Plan, atoms: int, versions: int, diagnostics: Diagnostics) -> None:
    for version, order in _ORDER.findall(plan.text):
        numbers = [int(number) for number in re.findall(r"\d+", order)]
        if int(version) >= versions:
            help = "versions are numbered from 0, one for each recursive atom of the rule"
            message = f"the rule has no version {version}: it has {versions}"
            diagnostics.error(message, plan.span, help)
        elif sorted(numbers) != list(range(1, atoms + 1)):
            help = f"an order has each of the numbers from 1 to {atoms} once, one for each atom of the body"
            diagnostics.error(f"({order}) is not an order of {atoms} atoms", plan.span, help)


def _conjunction(body: ast.Node | None) -> Iterator[ast.Node]:
    """The conditions of a body that has no disjunction; comparisons and negations are not atoms."""
    items = body.items if isinstance(body, ast.Conjunction) else () if body is None else (body,)
    for item in items:
        if isinstance(item, ast.Conjunction):
            yield from _conjunction(item)
        elif not isinstance(item, ast.Comparison | ast.Negation | ast.Constant):
            yield item
