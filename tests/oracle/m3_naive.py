"""A naive interpreter of M3: row at a time, dictionaries of exact numbers.  The oracle of the runtime.

It knows the syntax tree and nothing else of dlog.  Floats are fractions, so sums and products are exact and
no order of evaluation matters; what is shown is converted at the end.  Elements of other rings are whatever
Python objects the caller's functions make, as long as they add, multiply and compare with 0.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from dlog.m3.syntax import ast

Row = tuple[Any, ...]
Environment = dict[str, Any]
Assignment = tuple[tuple[str, Any], ...]  # the variables that an expression binds, by name, with their values
Values = dict[Assignment, Any]

INTEGER_TYPES = ("byte", "short", "int", "long")
FLOAT_TYPES = ("float", "double")


class Naive:
    """The state of a program: its maps and tables.  `functions` adds to the external functions."""

    def __init__(
        self,
        program: ast.Program,
        tables: Mapping[str, Iterable[Row]] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ):
        self.program = program
        self.maps: dict[str, dict[Row, Any]] = {m.name: {} for m in program.maps}
        self.keep_zeros = {
            node.name
            for node in program.walk()
            if isinstance(node, ast.MapAccess) and node.initial is not None
        }
        self.functions = {**FUNCTIONS, **(functions or {})}
        self.tables: dict[str, dict[Row, int]] = {}
        for source in program.sources:
            rows = (tables or {}).get(source.name, ())
            if source.kind == ast.TABLE:
                counts = self.tables.setdefault(source.name, {})
                for row in rows:
                    exact = self._row(source, row)
                    counts[exact] = counts.get(exact, 0) + 1
        self.batch_rows: dict[str, dict[Row, int]] = {}

    # Events

    def ready(self) -> None:
        self._run(ast.READY, None, ())

    def insert(self, relation: str, row: Row) -> None:
        self._run(ast.INSERT, relation, row)

    def delete(self, relation: str, row: Row) -> None:
        self._run(ast.DELETE, relation, row)

    def batch(self, relation: str, rows: Iterable[tuple[Row, int]]) -> None:
        """Rows with multiplicities."""
        source = self.program.source(relation)
        assert source is not None
        counts: dict[Row, int] = {}
        for row, count in rows:
            exact = self._row(source, row)
            counts[exact] = counts.get(exact, 0) + count
        self.batch_rows = {relation: {row: count for row, count in counts.items() if count}}
        self._run(ast.BATCH, relation, ())
        self.batch_rows = {}

    # Results

    def query(self, name: str) -> dict[Row, Any]:
        """The rows of a query, in the order of its variables, with the values that are not 0."""
        expression = next(q.expression for q in self.program.queries if q.name == name)
        names = output_variables(expression)
        found: dict[Row, Any] = {}
        for assignment, value in self.evaluate(expression, {}).items():
            by_name = dict(assignment)
            found[tuple(shown(by_name[n]) for n in names)] = shown(value)
        return found

    def map(self, name: str) -> dict[Row, Any]:
        return {
            tuple(map(shown, key)): shown(value)
            for key, value in self.maps[name].items()
            if not is_zero(value)
        }

    # Statements

    def _run(self, event: str, relation: str | None, row: Row) -> None:
        for trigger in self.program.triggers:
            if (trigger.event, trigger.relation) != (event, relation):
                continue
            env: Environment = {}
            if trigger.parameters:
                source = self.program.source(relation or "")
                assert source is not None
                names = [p.name for p in trigger.parameters]
                env = dict(zip(names, self._row(source, row), strict=True))
            for statement in trigger.statements:
                self._statement(statement, env)

    def _statement(self, node: ast.Assign | ast.If, env: Environment) -> None:
        if isinstance(node, ast.If):
            holds = not is_zero(self.scalar(node.condition, env))
            for statement in node.then if holds else node.otherwise:
                self._statement(statement, env)
            return
        target, contents = node.target, self.maps[node.target.name]
        names = [v.name for v in (*target.inputs, *target.keys)]
        bounds = self._with_inputs(target, env)
        added: dict[Row, Any] = {}
        for bound in bounds:
            for assignment, value in self.evaluate(node.expression, bound).items():
                inner = {**bound, **dict(assignment)}
                key = tuple(inner[n] for n in names)
                added[key] = added[key] + value if key in added else value
        initial: dict[Row, Any] = {}
        if node.op == "+=" and target.initial is not None:
            for key in added:
                if key not in contents:
                    inner = {**dict(zip(names, key, strict=True)), **env}
                    initial[key] = self.scalar(target.initial, inner)
        if node.op == ":=":
            for key in [k for k in contents if any(_agrees(k, names, bound) for bound in bounds)]:
                del contents[key]
        contents.update(initial)
        for key, value in added.items():
            contents[key] = contents[key] + value if key in contents else value
            if is_zero(contents[key]) and target.name not in self.keep_zeros:
                del contents[key]

    def _with_inputs(self, target: ast.MapAccess, env: Environment) -> list[Environment]:
        """The bindings once for each combination of input variables in the map that agrees with them."""
        names = [v.name for v in target.inputs]
        if all(name in env for name in names):
            return [env]
        inputs = dict.fromkeys(key[: len(names)] for key in self.maps[target.name])
        return [{**dict(zip(names, key, strict=True)), **env} for key in inputs if _agrees(key, names, env)]

    # Expressions

    def scalar(self, node: ast.Node, env: Environment) -> Any:
        """The one value of an expression that binds nothing; 0 when it has none."""
        found = self.evaluate(node, env)
        assert all(assignment == () for assignment in found), found
        return found.get((), 0)

    def evaluate(self, node: ast.Node, env: Environment) -> Values:
        found = getattr(self, f"_{type(node).__name__}")(node, env)
        return {assignment: value for assignment, value in found.items() if not is_zero(value)}

    def _Constant(self, node: ast.Constant, env: Environment) -> Values:
        return {(): exact(node.value)}

    def _Variable(self, node: ast.Variable, env: Environment) -> Values:
        return {(): env[node.name]}

    def _Product(self, node: ast.Product, env: Environment) -> Values:
        found: Values = {(): 1}
        for factor in node.factors:
            longer: Values = {}
            for assignment, value in found.items():
                for more, other in self.evaluate(factor, {**env, **dict(assignment)}).items():
                    longer[tuple(sorted((*assignment, *more)))] = value * other
            found = longer
        return found

    def _Sum(self, node: ast.Sum, env: Environment) -> Values:
        found: Values = {}
        for term in node.terms:
            for assignment, value in self.evaluate(term, env).items():
                found[assignment] = found[assignment] + value if assignment in found else value
        return found

    def _AggSum(self, node: ast.AggSum, env: Environment) -> Values:
        names = {key.name for key in node.keys}
        found: Values = {}
        for assignment, value in self.evaluate(node.body, env).items():
            kept = tuple(item for item in assignment if item[0] in names)
            found[kept] = found[kept] + value if kept in found else value
        return found

    def _MapAccess(self, node: ast.MapAccess, env: Environment) -> Values:
        contents = self.maps[node.name]
        names = [v.name for v in (*node.inputs, *node.keys)]
        if node.initial is not None and not any(_agrees(key, names, env) for key in contents):
            self._initialise(contents, names, node.initial, env)
        return _rows_of(contents, names, env)

    def _initialise(
        self, contents: dict[Row, Any], names: list[str], initial: ast.Node, env: Environment
    ) -> None:
        if all(name in env for name in names):
            contents[tuple(env[name] for name in names)] = self.scalar(initial, env)
            return
        for assignment, value in self.evaluate(initial, env).items():
            inner = {**env, **dict(assignment)}
            if all(name in inner for name in names):
                contents[tuple(inner[name] for name in names)] = value

    def _Relation(self, node: ast.Relation, env: Environment) -> Values:
        return _rows_of(self.tables[node.name], [v.name for v in node.variables], env)

    def _DeltaRelation(self, node: ast.DeltaRelation, env: Environment) -> Values:
        return _rows_of(self.batch_rows[node.name], [v.name for v in node.variables], env)

    def _Lift(self, node: ast.Lift, env: Environment) -> Values:
        value, name = self.scalar(node.body, env), node.variable.name
        if name in env:
            return {(): int(_comparable(env[name], value)[0] == _comparable(env[name], value)[1])}
        return {((name, value),): 1}

    def _Comparison(self, node: ast.Comparison, env: Environment) -> Values:
        left, right = _comparable(self.scalar(node.left, env), self.scalar(node.right, env))
        return {(): int(COMPARE[node.op](left, right))}

    def _In(self, node: ast.In, env: Environment) -> Values:
        operand = self.scalar(node.operand, env)
        pairs = [_comparable(operand, exact(value.value)) for value in node.values]
        return {(): int(any(left == right for left, right in pairs))}

    def _Exists(self, node: ast.Exists | ast.Domain, env: Environment) -> Values:
        return dict.fromkeys(self.evaluate(node.body, env), 1)

    _Domain = _Exists

    def _Call(self, node: ast.Call, env: Environment) -> Values:
        arguments = [self.scalar(argument, env) for argument in node.arguments]
        if node.function == "lift" or node.type.name not in (*INTEGER_TYPES, *FLOAT_TYPES, "string", "date"):
            return {(): self.functions[node.function](node.parameters, *arguments)}
        value = self.functions[node.function](*arguments)
        if node.type.name in INTEGER_TYPES:
            value = math.trunc(value)
        elif node.type.name in FLOAT_TYPES:
            value = Fraction(value)
        return {(): value}

    def _row(self, source: ast.Source, row: Row) -> Row:
        return tuple(_typed(v, c.type.name) for v, c in zip(row, source.columns, strict=True))


def output_variables(node: ast.Node, bound: frozenset[str] = frozenset()) -> list[str]:
    """The variables that an expression binds, in the order in which they are written."""
    names: list[str] = []
    if isinstance(node, ast.AggSum):
        names = [key.name for key in node.keys]
    elif isinstance(node, ast.MapAccess):
        names = [v.name for v in (*node.inputs, *node.keys)]
    elif isinstance(node, ast.Relation | ast.DeltaRelation):
        names = [v.name for v in node.variables]
    elif isinstance(node, ast.Lift):
        names = [node.variable.name]
    elif isinstance(node, ast.Exists | ast.Domain):
        names = output_variables(node.body, bound)
    elif isinstance(node, ast.Sum):
        names = output_variables(node.terms[0], bound)
    elif isinstance(node, ast.Product):
        for factor in node.factors:
            names += output_variables(factor, bound | set(names))
    return [name for name in dict.fromkeys(names) if name not in bound]


# Values


def is_zero(value: Any) -> bool:
    return not isinstance(value, str | datetime.date) and bool(value == 0)


def exact(value: Any) -> Any:
    return Fraction(value) if isinstance(value, float) else value


def shown(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def _typed(value: Any, type_: str) -> Any:
    return Fraction(value) if type_ in FLOAT_TYPES else value


def _agrees(key: Row, names: list[str], env: Environment) -> bool:
    return all(name not in env or env[name] == value for name, value in zip(names, key, strict=True))


def _rows_of(contents: Mapping[Row, Any], names: list[str], env: Environment) -> Values:
    """The entries that agree with what is bound, and with themselves if a variable occurs twice."""
    found: Values = {}
    for key, value in contents.items():
        new: dict[str, Any] = {}
        if all(env.get(n, new.setdefault(n, v)) == v for n, v in zip(names, key, strict=True)):
            found[tuple(sorted((n, v) for n, v in new.items() if n not in env))] = value
    return found


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """A date and a number are compared as numbers, 19950315."""
    if isinstance(left, datetime.date) != isinstance(right, datetime.date):
        return _as_number(left), _as_number(right)
    return left, right


def _as_number(value: Any) -> Any:
    if isinstance(value, datetime.date):
        return value.year * 10000 + value.month * 100 + value.day
    return value


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _divide(first: Any, second: Any = None) -> Any:
    dividend, divisor = (1, first) if second is None else (first, second)
    return Fraction(dividend) / Fraction(divisor) if divisor != 0 else Fraction(0)


def _date_part(part: str, date: datetime.date) -> int:
    return {"year": date.year, "month": date.month, "day": date.day}[part.lower()]


def _substring(text: str, start: Any, length: Any = None) -> str:
    start = max(int(start), 0)
    return text[start:] if length is None else text[start : start + max(int(length), 0)]


def _angle(*v: Any) -> float:
    lengths = math.hypot(*v[:3]) * math.hypot(*v[3:])
    product = sum(a * b for a, b in zip(v[:3], v[3:], strict=True))
    return math.acos(max(-1.0, min(1.0, product / lengths))) if lengths else 0.0


def _dihedral_angle(*v: Any) -> float:
    """The angle by which the first edge must be turned about the second to lie in the plane of the others:
    in coordinates whose z axis is the second edge.
    """
    a, b, c, d = (v[i : i + 3] for i in range(0, 12, 3))
    z = _minus(c, b)
    size = math.hypot(*z)
    x = _minus(a, b)
    y = tuple(p / size for p in _cross(z, x)) if size else (0.0, 0.0, 0.0)
    end = _minus(d, c)
    along = sum(p * q for p, q in zip(x, end, strict=True)) * size * size
    along -= sum(p * q for p, q in zip(x, z, strict=True)) * sum(p * q for p, q in zip(end, z, strict=True))
    across = sum(p * q for p, q in zip(y, end, strict=True)) * size * size
    return math.atan2(across, along) if size else 0.0


def _minus(a: Any, b: Any) -> tuple[float, ...]:
    return tuple(float(x) - float(y) for x, y in zip(a, b, strict=True))


def _cross(a: Any, b: Any) -> tuple[float, ...]:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "/": _divide,
    "div": _divide,
    "listmax": max,
    "listmin": min,
    "max": max,
    "min": min,
    "abs": abs,
    "sqrt": lambda x: math.sqrt(max(x, 0)),
    "pow": lambda x, y: float(x) ** float(y),
    "cos": lambda x: math.cos(x),
    "sin": lambda x: math.sin(x),
    "tan": lambda x: math.tan(x),
    "vec_length": lambda *v: math.hypot(*v),
    "vec_dot": lambda *v: float(sum(a * b for a, b in zip(v[:3], v[3:], strict=True))),
    "vector_angle": _angle,
    "dihedral_angle": _dihedral_angle,
    "radians": lambda x: math.radians(x),
    "degrees": lambda x: math.degrees(x),
    "cast_int": math.trunc,
    "cast_float": Fraction,
    "date_part": _date_part,
    "year_part": lambda d: d.year,
    "month_part": lambda d: d.month,
    "day_part": lambda d: d.day,
    "substring": _substring,
    # As POSIX has it: line ends are nothing special.
    "regexp_match": lambda pattern, text: int(
        re.search(pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern, text, re.DOTALL) is not None
    ),
}
