"""Random syntax trees of M3 that a dialect can say, whether or not they make sense."""

from __future__ import annotations

import datetime
import functools

from hypothesis import strategies as st

from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, TypeRef

_TYPES = {
    A5: ["int", "float", "string", "date"],
    ast.DBTOASTER: ["byte", "short", "int", "long", "float", "double", "char", "string", "date"],
}
_finite = st.floats(allow_nan=False, allow_infinity=False)


@functools.cache
def programs(dialect: str) -> st.SearchStrategy[ast.Program]:
    return _Trees(dialect).program()


def _tuples(items: st.SearchStrategy, most: int = 3, least: int = 0) -> st.SearchStrategy:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


class _Trees:
    def __init__(self, dialect: str):
        self.dialect, self.in_a5 = dialect, dialect == A5
        names = ["x", "y", "x1", "_z", "long_name_of_a_variable"]
        names += ["A", "a-b", "X-1"] if self.in_a5 else ["date", "line", "map", "int"]
        self.names = st.sampled_from(names)
        self.upper = st.sampled_from(["R", "S_1", "ORDERS"] + ([] if self.in_a5 else ["r", "Orders"]))
        self.mixed = st.sampled_from(["M", "Q_m1", "m", "View_Of_Something_Long"])
        plain = st.sampled_from(_TYPES[dialect]).map(TypeRef)
        self.key_types = plain
        self.types = plain if self.in_a5 else plain | self.custom_types(plain)
        self.variables = st.builds(ast.Variable, self.names, (st.none() | plain) if self.in_a5 else st.none())
        self.vars = _tuples(self.variables)

    def custom_types(self, plain: st.SearchStrategy) -> st.SearchStrategy:
        parameter = st.integers(0, 99) | plain | _tuples(st.integers(0, 9) | plain, least=1)
        return st.builds(TypeRef, st.sampled_from(["Ring", "RingCofactor"]), _tuples(parameter, 3))

    @functools.cache  # noqa: B019
    def constants(self) -> st.SearchStrategy:
        texts = st.text("abc XY12-*;{'\"" if not self.in_a5 else 'abc XY12-*;{"', max_size=5)
        texts = texts.filter(lambda t: not ("'" in t and '"' in t))
        dates = st.dates(datetime.date(1000, 1, 1))
        choices = [
            st.builds(ast.Constant, st.just("string"), texts),
            st.builds(ast.Constant, st.just("date"), dates),
        ]
        if self.in_a5:
            choices += [
                st.builds(
                    ast.Constant, st.just("int"), st.integers(-(2**62), 2**62 - 1) | st.integers(-3, 3)
                ),
                st.builds(ast.Constant, st.just("float"), _finite),
            ]
        else:
            choices += [
                st.builds(
                    ast.Constant, st.just("int"), st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)
                ),
                st.builds(ast.Constant, st.just("long"), st.integers(-(2**63), 2**63 - 1)),
                st.builds(ast.Constant, st.sampled_from(["double", "float"]), _finite),
            ]
        return st.one_of(choices)

    @functools.cache  # noqa: B019
    def values(self) -> st.SearchStrategy:
        """What a5 takes within comparisons and functions."""

        def more(inner: st.SearchStrategy) -> st.SearchStrategy:
            several = st.lists(inner, min_size=2, max_size=3)
            return several.map(ast.product) | several.map(ast.total) | self.calls(inner)

        return st.recursive(self.constants() | self.variables, more, max_leaves=4)

    def calls(self, inner: st.SearchStrategy) -> st.SearchStrategy:
        parameters = st.just(()) if self.in_a5 else _tuples(st.integers(0, 9), 2)
        named = st.builds(
            ast.Call, st.sampled_from(["f", "lift", "Max2"]), self.types, _tuples(inner), parameters
        )
        return named | st.builds(ast.Call, st.just("/"), self.types, _tuples(inner, 2))

    @functools.cache  # noqa: B019
    def expressions(self) -> st.SearchStrategy:
        leaves = self.constants() | self.variables | st.builds(ast.Relation, self.upper, self.vars)
        leaves |= st.builds(ast.MapAccess, self.mixed, st.none() | self.types, self.inputs(), self.vars)
        if not self.in_a5:
            leaves |= st.builds(ast.DeltaRelation, self.upper, self.vars)

        def more(inner: st.SearchStrategy) -> st.SearchStrategy:
            scalar = self.values() if self.in_a5 else inner
            several = st.lists(inner, min_size=2, max_size=4)
            options = [
                several.map(ast.product),
                several.map(ast.total),
                st.builds(ast.AggSum, self.vars, inner),
                st.builds(ast.Lift, self.variables, inner),
                st.builds(ast.Comparison, st.sampled_from(ast.COMPARISONS), scalar, scalar),
                st.builds(ast.In, scalar, _tuples(self.constants())),
                st.builds(ast.Exists, inner),
                st.builds(ast.Domain, inner),
                self.calls(scalar),
            ]
            if self.in_a5:
                keyed = st.builds(ast.MapAccess, self.mixed, self.types, self.vars, self.vars, inner)
                options.append(keyed)
            return st.one_of(options)

        return st.recursive(leaves, more, max_leaves=12)

    @functools.cache  # noqa: B019
    def inputs(self) -> st.SearchStrategy:
        return self.vars if self.in_a5 else st.just(())

    def columns(self, most: int = 3) -> st.SearchStrategy:
        columns = st.lists(
            st.builds(ast.Column, self.names, self.key_types), max_size=most, unique_by=lambda c: c.name
        )
        return columns.map(tuple)

    @functools.cache  # noqa: B019
    def statements(self) -> st.SearchStrategy:
        target = st.builds(
            ast.MapAccess, self.mixed, st.none() | self.types, self.inputs(), self.vars,
            st.none() | self.expressions(),
        )  # fmt: skip
        assign = st.builds(ast.Assign, target, st.sampled_from(["+=", ":="]), self.expressions())
        if self.in_a5:
            return assign
        condition = st.builds(
            ast.Comparison, st.sampled_from(ast.COMPARISONS), self.expressions(), self.expressions()
        )
        return st.recursive(
            assign,
            lambda inner: st.builds(ast.If, condition, _tuples(inner), _tuples(inner, 2)),
            max_leaves=3,
        )

    @functools.cache  # noqa: B019
    def triggers(self) -> st.SearchStrategy:
        body = _tuples(self.statements())
        distinct = st.lists(self.variables, max_size=3, unique_by=lambda v: v.name).map(tuple)
        row = st.builds(ast.Trigger, st.sampled_from([ast.INSERT, ast.DELETE]), self.upper, distinct, body)
        ready = st.builds(ast.Trigger, st.just(ast.READY), st.none(), st.just(()), body)
        batch = st.builds(ast.Trigger, st.just(ast.BATCH), self.upper, st.just(()), body)
        return row | ready if self.in_a5 else row | ready | batch

    @functools.cache  # noqa: B019
    def sources(self) -> st.SearchStrategy:
        kind = st.sampled_from([ast.STREAM, ast.TABLE])
        options = _tuples(
            st.tuples(st.sampled_from(["delimiter", "deletions"]), st.sampled_from(["|", ",", "true"])), 2
        )
        filed = st.builds(
            ast.Source, kind, self.upper, self.columns(), st.just("a b/r.csv"), st.just("csv"), options
        )
        return filed | st.builds(ast.Source, kind, self.upper, self.columns())

    @functools.cache  # noqa: B019
    def maps(self) -> st.SearchStrategy:
        none = st.none()
        keys = self.columns().flatmap(
            lambda c: st.integers(0, len(c) if self.in_a5 else 0).map(lambda n: (c[:n], c[n:]))
        )
        types = self.types if self.in_a5 else none | self.types
        definitions = self.expressions() if self.in_a5 else none | self.expressions()
        parts = st.tuples(self.mixed, types, keys, definitions)
        return parts.map(lambda p: ast.MapDeclaration(p[0], p[1], p[2][0], p[2][1], p[3]))

    def program(self) -> st.SearchStrategy[ast.Program]:
        schema = _tuples(st.sampled_from(["static", "dynamic_sum", "dynamic_min"]))
        definition = st.builds(
            ast.TypeDefinition, st.sampled_from(["Ring", "RingCofactor"]), st.just("ring.hpp"), schema
        )
        return st.builds(
            ast.Program,
            st.just(self.dialect),
            st.just(()) if self.in_a5 else _tuples(definition, 2),
            _tuples(self.sources(), 2),
            _tuples(self.maps(), 2),
            _tuples(st.builds(ast.Query, self.mixed, self.expressions()), 2),
            _tuples(self.triggers(), 2),
        )
