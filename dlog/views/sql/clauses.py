"""Owns what is outside the fragment whatever a query is translated to (clauses of SELECT, forms of
expressions, aggregates that are no sums), and ORDER BY.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import expressions as exp

from dlog.errors import SourceError, UnsupportedError
from dlog.views.query import Order
from dlog.views.sql.places import Places

# Clauses of SELECT outside the fragment, by sqlglot's names.
_CLAUSES = {
    "order": ("ORDER BY orders what is shown, and this query is not", "leave it out"),
    "limit": ("LIMIT is not supported", "a result is maintained as a whole"),
    "offset": ("OFFSET is not supported", "a result is maintained as a whole"),
}
_BY_LEVELS = {"having": "HAVING compares aggregates"}
_READ = {"expressions", "from_", "joins", "where", "group", "distinct", "kind", "hint", "operation_modifiers"}
# The supported arguments of each node; if sqlglot has more in one, the query uses something unsupported.
_PARTS: dict[type[exp.Expr], set[str]] = {
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions", "query"},
    exp.Like: {"this", "expression", "negate"},
    exp.Join: {"this", "kind", "side", "method", "on", "using"},
    exp.Table: {"this", "alias", "db", "catalog", "sample"},
    exp.Column: {"this", "table", "db", "catalog"},
    exp.Case: {"this", "ifs", "default"},
    exp.Substring: {"this", "start", "length"},
    exp.Extract: {"this", "expression"},
    exp.Sum: {"this"},
    exp.Avg: {"this"},
    exp.Count: {"this", "expressions", "big_int"},
    exp.Anonymous: {"this", "expressions"},
    exp.Greatest: {"this", "expressions", "ignore_nulls"},
    exp.Least: {"this", "expressions", "ignore_nulls"},
    exp.Binary: {"this", "expression", "typed", "safe"},
}
_NO_SUM = {
    exp.Min: "MIN", exp.Max: "MAX", exp.Median: "MEDIAN", exp.Stddev: "STDDEV", exp.Variance: "VARIANCE",
    exp.StddevPop: "STDDEV_POP", exp.StddevSamp: "STDDEV_SAMP", exp.VariancePop: "VAR_POP",
}  # fmt: skip


def check_clauses(select: exp.Select, places: Places, nested: bool = False, outermost: bool = True) -> None:
    """`nested`: queries in queries and HAVING are allowed."""
    read = _READ | ({"having", "with_"} if nested else set()) | ({"order"} if outermost else set())
    for key, value in select.args.items():
        if key in read or not value:
            continue
        message, help = _CLAUSES.get(key, (f"{key.rstrip('s_').upper()} is not supported", None))
        node = value[0] if isinstance(value, list) else value
        if key in _BY_LEVELS:
            raise places.by_levels(_BY_LEVELS[key], node)
        raise places.outside(message, node if isinstance(node, exp.Expr) else select, help)


def check_parts(select: exp.Expr, places: Places) -> None:
    for node in select.walk():
        known = next((parts for kind, parts in _PARTS.items() if isinstance(node, kind)), None)
        if known is not None and any(value and key not in known for key, value in node.args.items()):
            raise places.outside(f"`{places.text(node)}` is not supported in this form", node)


def no_sum(node: exp.Expr, places: Places, inside: bool = False) -> UnsupportedError:
    """The error for an aggregate that is no sum.  `inside` a query in a query."""
    for kind, name in _NO_SUM.items():
        if isinstance(node, kind):
            help = f"{name} is not a sum of products: write a rule of a .dl program for it"
            if inside and name in ("MIN", "MAX"):
                op = "<=" if name == "MIN" else ">="
                help = f"compare with all rows: x {op} ALL (SELECT ...), or NOT EXISTS a better one"
            return places.outside(f"{name} is not supported", node, help)
    help = "SUM, COUNT, AVG, their sums and quotients, and multiples of them"
    return places.outside(f"`{places.text(node)}` is not supported in SELECT", node, help)


@dataclass(frozen=True)
class Item:
    """An item of SELECT: what the result calls it, as it is written, and its place in the result."""

    name: str
    written: exp.Expr
    place: int


def ordered(select: exp.Select, places: Places, items: list[Item]) -> tuple[Order, ...]:
    """ORDER BY, by items of SELECT: by name, position, or as they are written."""
    clause = select.args.get("order")
    return tuple(_order(node, places, items) for node in clause.expressions) if clause is not None else ()


def _order(node: exp.Ordered, places: Places, items: list[Item]) -> Order:
    key, descending = node.this, bool(node.args.get("desc"))
    if isinstance(key, exp.Literal) and key.name.isdigit():
        if not 1 <= int(key.name) <= len(items):
            raise SourceError(f"SELECT has {len(items)} items", span=places.span(key))
        return Order(items[int(key.name) - 1].place, descending)
    for item in items:
        if _is_called(key, item.name) or item.written.unalias() == key:
            return Order(item.place, descending)
    for item in items:
        other = item.written.unalias()
        if isinstance(key, exp.Column) and isinstance(other, exp.Column) and key.name == other.name:
            return Order(item.place, descending)
    message = f"`{places.text(key)}` is not in the result"
    raise places.outside(message, key, "select it: a result is ordered by its columns")


def _is_called(key: exp.Expr, name: str) -> bool:
    return isinstance(key, exp.Column) and not key.table and key.name.lower() == name.lower()
