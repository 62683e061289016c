"""Owns simplification: which laws are applied in which order, until none changes anything.

`LAWS` has every law of the calculus by name.  A law is a function of a node and the variables that are bound
outside it; the node that it returns means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel import factor, lifts, nesting, values
from dlog.multilevel.binding import NONE, Names
from dlog.multilevel.values import with_children

Law = Callable[[Node, Names], Node]

LAWS: dict[str, Law] = {
    "fold": values.fold,
    "advance": lifts.advance,
    "propagate": lifts.propagate,
    "unify": lifts.unify,
    "equalities": lifts.equalities,
    "locate": lifts.locate,
    "tests": lifts.tests,
    "binary": nesting.binary,
    "pull_exists": nesting.pull_exists,
    "assume": nesting.assume,
    "split": nesting.split,
    "merge": nesting.merge,
    "pull": nesting.pull,
    "independent": nesting.independent,
    "cancel": values.cancel,
    "erase": nesting.erase,
    "lifted": lifts.lifted,
    "inline": lifts.inline,
    "factorise": factor.factorise,
    "gather": factor.gather,
}

# One round.  Those that only some callers use are not among them: `lifted` undoes `inline`, `erase` undoes
# `pull`, `factorise` undoes `split`.
ROUND = (
    "fold", "advance", "propagate", "unify", "equalities", "locate", "tests", "binary", "pull_exists",
    "assume", "split", "merge", "pull", "cancel", "fold",
)  # fmt: skip
VALUES = (ast.Variable, ast.Constant)
FINISH = (*ROUND, "independent", "inline")
REWRITES = 10_000


class TooManyRewrites(Exception):
    """The budget is spent."""


Settled = dict[tuple[int, Names], Node]  # by the identity of a node, which is kept so that no other gets it


@dataclass
class Budget:
    """How many more times a law may change something; and, of each law, the nodes in which it changes
    nothing: a statement is simplified again and again while it is written.
    """

    left: int = REWRITES
    settled: dict[Law, Settled] = field(default_factory=dict)

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyRewrites


def everywhere(node: Node, scope: Names, law: Law, budget: Budget | None = None) -> Node:
    """A law applied to each node once, from the leaves up; none changes a variable or a constant."""
    budget = budget or Budget()
    settled = budget.settled.setdefault(law, {})

    def visit(inner: Node, bound: Names) -> Node:
        key = (id(inner), bound)
        if isinstance(inner, VALUES) or key in settled:
            return inner
        below = with_children(inner, bound, visit)
        changed = law(below, bound)
        if changed is not below and changed != below:
            budget.spend()
        elif below is inner or below == inner:
            settled[key] = inner
            return inner
        return changed

    return visit(node, scope)


def simplify(
    node: Node, scope: Names = NONE, budget: Budget | None = None, laws: Iterable[str] = ROUND
) -> Node:
    """The expression after as many rounds as change it.  It ends: a form that was there before is the last.

    >>> from dlog.multilevel.notation import read, text
    >>> text(simplify(read("AggSum([], (a ^= x) * (b ^= y) * S(c, d) * {b < c} * a * d)"), frozenset("xy")))
    'x * AggSum([], S(c, d) * {y < c} * d)'
    """
    budget = budget or Budget()
    names = tuple(laws)
    history = {node}
    while True:
        for name in names:
            node = everywhere(node, scope, LAWS[name], budget)
        if node in history:
            return node
        history.add(node)
