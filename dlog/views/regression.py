"""Owns cofactors over joins, and the linear regression that they give.  Knows nothing of how views are kept.

The cofactor of variables x1 .. xn over a join is (number of rows, sums of the xi, sums of all xi * xj): one
element of a ring, so that one view tree keeps all n * n sums together.  It is all that the least squares of
one variable from the others need, so that a model over a join follows its relations without the join ever
being made.

>>> import numpy as np
>>> from dlog.views.maintained import Maintained
>>> from dlog.views.query import Atom
>>> columns = lambda *names: tuple(ast.Column(name, ast.TypeRef("int")) for name in names)
>>> sources = (ast.Source("stream", "R", columns("k", "x")), ast.Source("stream", "S", columns("k", "y")))
>>> query = cofactor_query(Query(sources, (Atom("R", ("k", "x")), Atom("S", ("k", "y"))), ()), ["x", "y"])
>>> kept = Maintained(query)
>>> kept.apply("R", [(1, 1), (2, 2), (3, 3)])
>>> kept.apply("S", [(1, 3), (2, 5), (3, 7)])
>>> model = fit(Cofactor.of(kept), "y")
>>> round(model.intercept, 6), {name: round(value, 6) for name, value in model.slopes.items()}
(1.0, {'x': 2.0})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dlog.errors import DlogError
from dlog.m3 import ast
from dlog.m3.ast import TypeRef
from dlog.views.orders import find_order
from dlog.views.query import Aggregate, Query, Term
from dlog.views.tree import VariableOrder

if TYPE_CHECKING:
    from dlog.views.maintained import Maintained

RING = "RingCofactor"
DEFINITION = ast.TypeDefinition(RING, "ring_cofactor.hpp", ("dynamic_min", "static", "dynamic_sum"))


def cofactor_query(
    query: Query, variables: Sequence[str], order: VariableOrder | None = None, name: str = "cofactor"
) -> Query:
    """The query with the cofactor of variables as its aggregate.

    Variables are numbered as the order has them, depth first, so that those of a view follow one another, as
    F-IVM's ring wants it.
    """
    unknown = [v for v in variables if v not in query.variables]
    if unknown:
        raise DlogError(f"{unknown[0]} is in no relation", span=query.span)
    bare = replace(query, aggregates=(Aggregate(name, (Term(),)),))
    wanted = set(variables)
    ordered = [v for v in (order or find_order(bare)).variables if v in wanted]
    factors = tuple(lift(number, variable) for number, variable in enumerate(ordered))
    types = (*(t for t in query.types if t.name != RING), DEFINITION)
    return replace(query, aggregates=(Aggregate(name, (Term(factors),)),), types=types)


def lift(number: int, *variables: str) -> ast.Call:
    """`[lift<number>: RingCofactor<number, double, n>](variables)`"""
    type_ = TypeRef(RING, (number, TypeRef("double"), len(variables)))
    return ast.Call("lift", type_, tuple(map(ast.Variable, variables)), (number,))


def merged_lifts(factors: list[ast.Node]) -> list[ast.Node]:
    """Lifts of variables that follow one another as one lift: an element is made at once and not multiplied.

    >>> [len(call.arguments) for call in merged_lifts([lift(1, "b"), lift(0, "a"), lift(3, "d")])]
    [2, 1]
    """
    calls = [f for f in factors if isinstance(f, ast.Call) and f.function == "lift" and f.type.name == RING]
    others = [f for f in factors if f not in calls]
    if len({call.parameters for call in calls}) < len(calls):
        return factors  # a variable twice: they multiply
    merged: list[ast.Call] = []
    for call in sorted(calls, key=lambda call: call.parameters):
        last = merged[-1] if merged else None
        if last is not None and last.parameters[0] + len(last.arguments) == call.parameters[0]:
            arguments = (*last.arguments, *call.arguments)
            type_ = TypeRef(RING, (last.parameters[0], TypeRef("double"), len(arguments)))
            merged[-1] = replace(last, type=type_, arguments=arguments)
        else:
            merged.append(call)
    return [*others, *merged]


@dataclass(frozen=True)
class Cofactor:
    """Number of rows, sums, and sums of products (a square) of named variables."""

    names: tuple[str, ...]
    count: float
    sums: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, kept: Maintained) -> Cofactor:
        """Of a query without free variables."""
        lifts = [f for f in kept.query.factors if isinstance(f, ast.Call) and f.type.name == RING]
        names = tuple(f.arguments[0].name for f in lifts)  # type: ignore[attr-defined]
        element = kept.result()[0][0].as_py()
        if element is None:
            n = len(names)
            return cls(names, 0.0, np.zeros(n), np.zeros((n, n)))
        return cls(names, element["1"], np.array(element["2"]), np.array(element["3"]))


@dataclass(frozen=True)
class Model:
    """label = intercept + sum of slope * variable; `error` is the mean of squared differences."""

    label: str
    intercept: float
    slopes: Mapping[str, float]
    error: float


def fit(cofactor: Cofactor, label: str, ridge: float = 0.0) -> Model:
    """Least squares of one variable from the others; `ridge` is added to their squares.  O(n^3), whatever the
    number of rows.
    """
    if label not in cofactor.names:
        raise DlogError(f"{label} is not among {', '.join(cofactor.names)}")
    if cofactor.count <= 0:
        raise DlogError("there are no rows to fit")
    at = cofactor.names.index(label)
    others = [i for i in range(len(cofactor.names)) if i != at]
    square = np.zeros((len(others) + 1, len(others) + 1))
    square[0, 0] = cofactor.count
    square[0, 1:] = square[1:, 0] = cofactor.sums[others]
    square[1:, 1:] = cofactor.products[np.ix_(others, others)] + ridge * np.eye(len(others))
    right = np.concatenate([[cofactor.sums[at]], cofactor.products[others, at]])
    weights = np.linalg.lstsq(square, right, rcond=None)[0]
    plain = square[1:, 1:] - ridge * np.eye(len(others))
    square[1:, 1:] = plain
    rest = cofactor.products[at, at] - 2 * weights @ right + weights @ square @ weights
    names = (cofactor.names[i] for i in others)
    slopes = dict(zip(names, map(float, weights[1:]), strict=True))
    return Model(label, float(weights[0]), slopes, float(max(rest, 0.0) / cofactor.count))
