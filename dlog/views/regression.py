"""Owns cofactors over joins, and the linear regression that they give.  Knows nothing of how views are
maintained.

The cofactor of variables x1 .. xn over a join is (number of rows, sums of the xi, sums of all xi * xj): one
element of a ring, so that one view tree maintains all n * n sums together.  The least squares of
one variable from the others need nothing else, so that a model over a join follows its relations without
computing the join.

>>> import numpy as np
>>> from dlog.views.run.maintained import Maintained
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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.errors import DlogError
from dlog.ir.lower.cofactors import ONE, cofactor_of
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.views.orders.orders import find_order
from dlog.views.query import Aggregate, Query, Term, variables_of
from dlog.views.tree.tree import VariableOrder

if TYPE_CHECKING:
    from dlog.views.run.maintained import Maintained

RING = "RingCofactor"
DEFINITION = ast.TypeDefinition(RING, "ring_cofactor.hpp", ("dynamic_min", "static", "dynamic_sum"))


def cofactor_query(
    query: Query, variables: Sequence[str], order: VariableOrder | None = None, name: str = "cofactor"
) -> Query:
    """The query with the cofactor of variables as its aggregate.

    Variables are numbered as the order has them, depth first, so that those of a view are consecutive, as
    F-IVM's ring requires.
    """
    unknown = [v for v in variables if v not in query.variables]
    if unknown:
        raise DlogError(f"{unknown[0]} is not in any relation", span=query.span)
    return _lifted(query, [ast.Variable(v) for v in variables], order, name)


def ring_of_sums(query: Query, order: VariableOrder | None = None) -> Query:
    """A query whose aggregates are the entries of a cofactor, as those of a rule are, with the cofactor as
    one element of the ring.  Others, and those of a sum of values of several relations, stay unchanged.
    """
    cofactor = cofactor_of(a.name for a in query.aggregates)
    if cofactor is None:
        return query
    sums = {a.name.split("'")[2]: a for a in query.aggregates if a.name.split("'")[1] == ONE}
    if any(len(sums[name].terms) > 1 for name in cofactor.variables):
        return query
    values = [ast.product(list(sums[name].terms[0].factors)) for name in cofactor.variables]
    return _lifted(query, values, order, cofactor.result)


def _lifted(query: Query, values: Sequence[ast.Node], order: VariableOrder | None, name: str) -> Query:
    return lifted_values(query, values, order, name)[0]


def lifted_values(
    query: Query, values: Sequence[ast.Node], order: VariableOrder | None, name: str
) -> tuple[Query, list[ast.Node]]:
    """The query with the cofactor of some values as its aggregate, and the values as they are numbered."""
    bare = replace(query, aggregates=(Aggregate(name, (Term(),)),))
    places = {v: i for i, v in enumerate((order or find_order(bare)).variables)}
    ordered = sorted(values, key=lambda value: max((places[v] for v in variables_of(value)), default=-1))
    factors = tuple(_lift(number, (value,)) for number, value in enumerate(ordered))
    types = (*(t for t in query.types if t.name != RING), DEFINITION)
    return replace(query, aggregates=(Aggregate(name, (Term(factors),)),), types=types), ordered


def lift(number: int, *variables: str) -> ast.Call:
    """`[lift<number>: RingCofactor<number, double, n>](variables)`"""
    return _lift(number, tuple(map(ast.Variable, variables)))


def _lift(number: int, values: tuple[ast.Node, ...]) -> ast.Call:
    type_ = TypeRef(RING, (number, TypeRef("double"), len(values)))
    return ast.Call("lift", type_, values, (number,))


def merged_lifts(factors: list[ast.Node]) -> list[ast.Node]:
    """Lifts of consecutive variables as one lift: an element is made at once instead of multiplied.

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
    def of(cls, maintained: Maintained) -> Cofactor:
        """Of a query without free variables."""
        assert isinstance(maintained.query, Query)
        lifts = [f for f in maintained.query.factors if isinstance(f, ast.Call) and f.type.name == RING]
        names = tuple(f.arguments[0].name for f in lifts)  # type: ignore[attr-defined]
        element = maintained.result()[0][0].as_py()
        if element is None:
            n = len(names)
            return cls(names, 0.0, np.zeros(n), np.zeros((n, n)))
        return cls(names, element["1"], np.array(element["2"]), np.array(element["3"]))

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[Any, ...]], group: Sequence[Any] = ()) -> Cofactor:
        """Of the entries that `agg<<m = cofactor(..)>>` gives: group, row, column, value."""
        found = {tuple(row[-3:-1]): float(row[-1]) for row in rows if row[:-3] == tuple(group)}
        names = tuple(dict.fromkeys(row for row, _ in found if row != ONE))
        products = np.array([[found[a, b] for b in names] for a in names]).reshape(len(names), len(names))
        sums = np.array([found[ONE, name] for name in names])
        return cls(names, found.get((ONE, ONE), 0.0), sums, products)


@dataclass(frozen=True)
class Model:
    """label = intercept + sum of slope * variable; `error` is the mean of squared differences."""

    label: str
    intercept: float
    slopes: Mapping[str, float]
    error: float


def regression(db: Any, predicate: str, label: str, group: Sequence[Any] = (), ridge: float = 0.0) -> Model:
    """A least-squares fit of one variable on the others, by a cofactor that a database maintains: a predicate
    whose rule is `predicate[group] = m <- agg<<m = cofactor(..)>> ..`.  Computed from the current state.

    >>> import dlog
    >>> facts = "point(1, 3). point(2, 5). point(3, 6). -point(3, 6). +point(3, 7). "
    >>> db = dlog.Database(source=facts + "line[] = m <- agg<<m = cofactor(x, y)>> point(x, y).")
    >>> model = regression(db, "line", "y")
    >>> round(model.intercept, 6), round(model.slopes["x"], 6)
    (1.0, 2.0)
    """
    result = db[predicate]
    if [c.type.name for c in result.columns[-3:-1]] != ["string", "string"]:
        help = "its rule ends in m, as in model[r] = m <- agg<<m = cofactor(x, y)>> ..."
        raise DlogError(f"{predicate} is not a cofactor", help=help)
    if isinstance(group, str) or not isinstance(group, Sequence):
        raise DlogError(f"a group is a list of values: [{group!r}], not {group!r}")
    if len(group) != len(result.columns) - 3:
        raise DlogError(f"{predicate} has groups of {len(result.columns) - 3} values, not {len(group)}")
    rows = result.rows()
    if not any(row[:-3] == tuple(group) for row in rows):
        raise DlogError(f"{predicate} has no rows to fit" + (f" for {tuple(group)}" if group else ""))
    try:
        return fit(Cofactor.of_rows(rows, group), label, ridge)
    except KeyError as error:
        raise DlogError(f"{predicate} is not a cofactor: it has no entry {error}") from None


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
