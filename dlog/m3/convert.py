"""Owns dialect -> dialect: the same program with the other's types, names and parentheses.

Correct output: a program of the other dialect that does the same to the same streams.  Constructs without an
equivalent (batches, `if`, user types in a5; input variables in dbtoaster) are errors with their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dlog.errors import Diagnostics
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, TypeRef
from dlog.m3.syntax.dialect_support import VALUES_ONLY, check_dialect_support
from dlog.m3.syntax.dialects import RANGES, is_reserved, require_dialect
from dlog.m3.syntax.rewrite import N, rewritten
from dlog.m3.types.typecheck import check

# a5's integers have 63 bits, so only long holds them; its floats are doubles.
_TYPES = {
    A5: {
        "byte": "int", "short": "int", "int": "int", "long": "int", "float": "float", "double": "float",
        "char": "string", "string": "string", "date": "date",
    },
    ast.DBTOASTER: {"int": "long", "float": "double", "string": "string", "date": "date"},
}  # fmt: skip


def convert(program: ast.Program, dialect: str) -> ast.Program:
    """The program in another dialect.  Raises an error for all constructs that it lacks.  O(nodes).

    >>> from dlog.m3.syntax.parse import parse
    >>> from dlog.m3.syntax.print import print_program
    >>> text = "CREATE STREAM R(A int); DECLARE MAP Q(int)[][] := 0; ON + R(A) { Q[][] += A * 2 + 1; }"
    >>> print(print_program(convert(parse(text), "dbtoaster")).splitlines()[-2])
      Q(long)[][] += a * (2 + 1);
    """
    require_dialect(dialect)
    if program.dialect == dialect:
        return program
    converted = _Converter(program.dialect, dialect).program(check(program))
    diagnostics = Diagnostics()
    check_dialect_support(converted, diagnostics)
    diagnostics.raise_if_any()
    check(converted)
    return converted


class _Converter:
    def __init__(self, origin: str, dialect: str):
        self.origin, self.dialect = origin, dialect
        self.to_a5 = dialect == A5
        self.relations: dict[str, str] = {}
        self.columns: dict[str, tuple[str, ...]] = {}
        self.maps: dict[str, str] = {}

    def program(self, program: ast.Program) -> ast.Program:
        self.relations = self._names([s.name for s in program.sources], {}, str.upper if self.to_a5 else str)
        self.maps = self._names([m.name for m in program.maps], {}, str)
        sources = tuple(map(self._source, program.sources))
        queries = self._names([q.name for q in program.queries], {}, str)
        return replace(
            program,
            dialect=self.dialect,
            sources=sources,
            maps=tuple(map(self._map, program.maps)),
            queries=tuple(replace(self._scope(q), name=queries[q.name]) for q in program.queries),
            triggers=tuple(map(self._trigger, program.triggers)),
        )

    def _source(self, source: ast.Source) -> ast.Source:
        renamed = self._scope(source)
        self.columns[source.name] = tuple(c.name for c in renamed.columns)
        return replace(renamed, name=self.relations[source.name])

    def _map(self, declared: ast.MapDeclaration) -> ast.MapDeclaration:
        result = replace(self._scope(declared), name=self.maps[declared.name])
        if result.definition is None:
            return replace(result, definition=ast.Constant("int", 0, span=declared.span))
        return result

    def _trigger(self, trigger: ast.Trigger) -> ast.Trigger:
        """Parameters get the names of the columns, which dbtoaster requires."""
        fixed: dict[str, str] = {}
        if not self.to_a5 and trigger.relation is not None:
            names = self.columns.get(trigger.relation, ())
            fixed = {p.name: name for p, name in zip(trigger.parameters, names, strict=False)}
        result = self._scope(trigger, fixed)
        relation = self.relations.get(trigger.relation, trigger.relation) if trigger.relation else None
        return replace(result, relation=relation)

    # Names

    def _names(
        self, names: Iterable[str], fixed: dict[str, str], form: Callable[[str], str]
    ) -> dict[str, str]:
        """A new name for each, no two equal, none reserved."""
        renamed, used = dict(fixed), set(fixed.values())
        for name in names:
            if name in renamed:
                continue
            new = form(name if self.to_a5 else name.replace("-", "_"))
            while new in used or is_reserved(new, self.dialect):
                new += "_"
            renamed[name] = new
            used.add(new)
        return renamed

    def _scope(self, node: N, fixed: dict[str, str] | None = None) -> N:
        """A node and all below it, in which each variable name means one thing."""
        names = [n.name for n in node.walk() if isinstance(n, ast.Variable | ast.Column)]
        renamed = self._names(names, fixed or {}, str if self.to_a5 else str.lower)
        taken = set(renamed.values())

        def fresh() -> str:
            name = f"value{len(taken)}"
            taken.add(name)
            return name

        return rewritten(node, lambda n: self._node(n, renamed, fresh))

    # Nodes

    def _node(self, node: ast.Node, renamed: dict[str, str], fresh: Callable[[], str]) -> ast.Node:
        if isinstance(node, TypeRef):
            return replace(node, name=_TYPES[self.dialect].get(node.name, node.name))
        if isinstance(node, ast.Variable):
            return replace(node, name=renamed[node.name], type=node.type if self.to_a5 else None)
        if isinstance(node, ast.Column):
            return replace(node, name=renamed[node.name])
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.MapAccess):
            return replace(node, name=self.maps[node.name])
        if isinstance(node, ast.Relation | ast.DeltaRelation):
            return replace(node, name=self.relations[node.name])
        if isinstance(node, ast.Product):
            return replace(ast.product(node.factors), span=node.span)
        if self.to_a5 and isinstance(node, ast.Comparison | ast.In | ast.Call):
            return self._with_values(node, fresh)
        return node

    def _constant(self, node: ast.Constant) -> ast.Constant:
        type_ = _TYPES[self.dialect].get(node.type, node.type)
        if type_ == "long" and isinstance(node.value, int):
            low, high = RANGES[self.dialect]["int"]
            type_ = "int" if low <= node.value <= high else "long"
        return replace(node, type=type_)

    def _with_values(self, node: ast.Node, fresh: Callable[[], str]) -> ast.Node:
        """a5 compares values only: `{AggSum(..) < x}` is `AggSum([], (v:int ^= AggSum(..)) * {v:int <
        x})`.
        """
        lifts: list[ast.Node] = []

        def value(operand: ast.Node) -> ast.Node:
            if not any(isinstance(inner, VALUES_ONLY) for inner in operand.walk()):
                return operand
            variable = ast.Variable(fresh(), _type_in_a5(operand), span=operand.span)
            lifts.append(ast.Lift(variable, operand, span=operand.span))
            return variable

        if isinstance(node, ast.Comparison):
            node = replace(node, left=value(node.left), right=value(node.right))
        elif isinstance(node, ast.In):
            node = replace(node, operand=value(node.operand))
        elif isinstance(node, ast.Call):
            node = replace(node, arguments=tuple(map(value, node.arguments)))
        if not lifts:
            return node
        return ast.AggSum((), ast.Product((*lifts, node), span=node.span), span=node.span)


def _type_in_a5(node: ast.Node) -> TypeRef:
    """The type of a checked expression: a float if anything that is added or multiplied is one."""
    if isinstance(node, ast.Product | ast.Sum):
        parts = node.factors if isinstance(node, ast.Product) else node.terms
        found = [_type_in_a5(part) for part in parts]
        return next((t for t in found if t.name == "float"), found[0])
    if isinstance(node, ast.AggSum):
        return _type_in_a5(node.body)
    if isinstance(node, ast.Constant):
        return TypeRef(node.type)
    if isinstance(node, ast.Variable | ast.MapAccess | ast.Call) and node.type is not None:
        return TypeRef(node.type.name, node.type.params)
    return TypeRef("int")  # relations count, conditions are 0 or 1
