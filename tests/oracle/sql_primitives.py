"""Owns the primitives that SQL can say, as templates over the expressions of their arguments.

Where a primitive is undefined its template is NULL.  Adding 0 to floats makes -0.0 the one zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlog.values import Type


class Inexpressible(Exception):
    """SQL has no words for this."""


def sql_relation(name: str, inputs: Sequence[str]) -> str:
    """A condition."""
    return _fill(_RELATIONS, name, inputs)


def sql_function(name: str, type: Type, inputs: Sequence[str]) -> str:
    """An expression of this type."""
    if type.is_decimal and name not in _EXACT_DECIMALS:
        raise Inexpressible(f"{name} of decimals")
    return _fill(_FLOAT_FUNCTIONS if type.name == "float" else _FUNCTIONS, name, inputs)


def _fill(table: dict[str, str], name: str, inputs: Sequence[str]) -> str:
    if name not in table:
        raise Inexpressible(name)
    return table[name].format(*inputs)


_RELATIONS = {
    "ne": "{0} <> {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "contains": "contains({1}, {0})",
    "starts_with": "starts_with({1}, {0})",
    "ends_with": "ends_with({1}, {0})",
}
_FUNCTIONS = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} // nullif({1}, 0))",
    "mod": "({0} % nullif({1}, 0))",
    "neg": "(-{0})",
    "abs": "abs({0})",
    "min": "least({0}, {1})",
    "max": "greatest({0}, {1})",
    "band": "({0} & {1})",
    "bor": "({0} | {1})",
    "bxor": "xor({0}, {1})",
    "cat": "({0} || {1})",
    "strlen": "length({0})",
    "substr": "CASE WHEN {1} < 0 OR {1} > length({0}) THEN '' "
    "WHEN {2} < 0 THEN substr({0}, {1} + 1) ELSE substr({0}, {1} + 1, {2}) END",
    "lower": "lower({0})",
    "upper": "upper({0})",
    "replace": "replace({0}, {1}, {2})",
    "year": "year({0})",
    "month": "month({0})",
    "day": "day({0})",
    "hour": "hour({0})",
    "minute": "minute({0})",
    "second": "second({0})",
}
_FLOAT_FUNCTIONS = {
    "add": "(0.0::DOUBLE + ({0} + {1}))",
    "sub": "(0.0::DOUBLE + ({0} - {1}))",
    "mul": "(0.0::DOUBLE + ({0} * {1}))",
    "div": "(0.0::DOUBLE + ({0} / nullif({1}, 0.0::DOUBLE)))",
    "neg": "(0.0::DOUBLE - {0})",
    "abs": "abs({0})",
    "min": "least({0}, {1})",
    "max": "greatest({0}, {1})",
    "floor": "(0.0::DOUBLE + floor({0}))",
    "ceil": "(0.0::DOUBLE + ceil({0}))",
    "to_float": "CAST({0} AS DOUBLE)",
}
_EXACT_DECIMALS = ("add", "sub", "mul", "neg", "abs", "min", "max")
