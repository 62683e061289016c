"""Owns updates that factorise: a change of a relation that is given as a product of smaller relations, as in
δR[a, b] = u[a] ⊗ v[b], goes up its delta path as a product, too.

The change of a view is stored as *factors*, each a map over some of the variables.  A view beside the path, a
lifting function, a variable that is summed out affect only the factors that have their variables: these
are merged, and the others stay unchanged.  So an update of u and v with n rows each costs n, not n * n, as
long as no stored map has the variables of both (3.2.4 with sums pushed into the product).

In M3 the parts of an update are separate streams, R_PART1, R_PART2, ..; the last update of each is a map,
and the trigger of the last one brings their product to the root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dlog.errors import DlogError, UnsupportedError
from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import BATCH, DBTOASTER, STREAM, TypeRef
from dlog.m3.types.typecheck import check
from dlog.views.m3.program import NATIVE, Style, Writer, substituted
from dlog.views.query import Atom, Query, variables_of
from dlog.views.tree.payloads import COUNT, Payload
from dlog.views.tree.tree import View, ViewTree

Parts = Sequence[Sequence[str]]  # the columns of a relation, part by part


def part_name(relation: str, number: int) -> str:
    """The stream of a part, counted from 1."""
    return f"{relation}_PART{number}"


def product_program(
    query: Query, tree: ViewTree, products: Mapping[str, Parts], style: Style = NATIVE
) -> ast.Program:
    """The program of a tree, with streams for the parts of relations whose updates factorise."""
    for relation, parts in products.items():
        _check_parts(query, relation, parts)
    if not style.batch or style.dialect != DBTOASTER:
        raise DlogError("updates that factorise need batch triggers", help="use the dialect dbtoaster")
    writer = _ProductWriter(query, tree, style, products)
    if writer.payloads.elements:
        help = "apply the rows of the product with apply()"
        raise UnsupportedError("updates that factorise need a ring that commutes", span=query.span, help=help)
    return convert(check(writer.program()), style.dialect)


def _check_parts(query: Query, relation: str, parts: Parts) -> None:
    source = query.source(relation)
    if source.kind != STREAM:
        raise DlogError(f"{relation} is a table: it does not change")
    given = [name for part in parts for name in part]
    columns = [column.name for column in source.columns]
    if len(parts) < 2 or not all(parts) or sorted(given) != sorted(columns):
        help = f"each of {', '.join(columns)} belongs to one part, as in [[{columns[0]!r}], ...]"
        raise DlogError(f"these are not the parts of {relation}", help=help)


@dataclass(frozen=True)
class _Factor:
    """A part of a change: a product over some variables of the query, and its type."""

    nodes: tuple[ast.Node, ...]
    variables: tuple[str, ...]
    type: TypeRef


class _ProductWriter(Writer):
    def __init__(self, query: Query, tree: ViewTree, style: Style, products: Mapping[str, Parts]):
        super().__init__(query, tree, style)
        self.products = products

    def program(self) -> ast.Program:
        program = super().program()
        sources, maps, triggers = list(program.sources), list(program.maps), list(program.triggers)
        declared = set(self.deltas)  # changes of indicators are those of updates that come as rows
        for relation, parts in self.products.items():
            source = self.query.source(relation)
            for number, part in enumerate(parts, 1):
                columns = tuple(self._column(source, name) for name in part)
                sources.append(ast.Source(STREAM, part_name(relation, number), columns))
                zero = ast.Constant("int", 0)
                maps.append(ast.MapDeclaration(_map(relation, number), COUNT, (), columns, zero))
                triggers.append(self._part(source, parts, number))
        return replace(
            program,
            sources=tuple(sources),
            maps=(*maps, *(m for name, m in self.deltas.items() if name not in declared)),
            triggers=tuple(triggers),
        )

    def _column(self, source: ast.Source, name: str) -> ast.Column:
        at = [c.name for c in source.columns].index(name)
        return replace(source.columns[at], name=self.columns[source.name][at])

    def _part(self, source: ast.Source, parts: Parts, number: int) -> ast.Trigger:
        """The part is stored; with the last part, the product goes up."""
        stream = part_name(source.name, number)
        keys = tuple(ast.Variable(self._column(source, name).name) for name in parts[number - 1])
        target = ast.MapAccess(_map(source.name, number), COUNT, (), keys)
        statements = [ast.Assign(target, ":=", ast.AggSum(keys, ast.DeltaRelation(stream, keys)))]
        if number == len(parts):
            for atom in self.query.atoms_of(source.name):
                statements += self._whole(atom, self._given(source, atom, parts))
        return ast.Trigger(BATCH, stream, (), tuple(statements))

    def _given(self, source: ast.Source, atom: Atom, parts: Parts) -> list[_Factor]:
        names = [c.name for c in source.columns]
        found = []
        for number, part in enumerate(parts, 1):
            variables = tuple(atom.variables[names.index(name)] for name in part)
            access = ast.MapAccess(_map(source.name, number), COUNT, (), self._variables(variables))
            found.append(_Factor((access,), variables, COUNT))
        return found

    def _whole(self, atom: Atom, given: list[_Factor]) -> list[ast.Assign]:
        """The path of an atom as a product, then those of its indicators as `Writer._paths` has them."""
        indicators = self.tree.indicators(atom.name)
        change = [node for factor in given for node in factor.nodes]
        noted = {leaf.keys: self._appearing(atom, leaf, change) for leaf in indicators}
        statements = [s for one in noted.values() for s in one.before]
        statements += self._ascent(atom, given)
        statements += [s for one in noted.values() for s in one.after]
        for leaf in indicators:
            statements += self._path(leaf.name, list(noted[leaf.keys].change))
        return statements

    def _ascent(self, atom: Atom, given: list[_Factor]) -> list[ast.Assign]:
        """The statements that bring a product to the root."""
        *above, leaf = self.tree.root.path(atom.name)
        statements: list[ast.Assign] = []
        if leaf.materialised:
            statements.append(self._added(leaf, (), given))
        changes: dict[Payload, list[_Factor]] = {(): given}
        child = leaf
        for view in reversed(above):
            found: dict[Payload, list[_Factor]] = {}
            for payload in self._of(view):
                factors = self._joined(view, payload, child, changes)
                name = f"FACTOR_{atom.name}_{self.payloads.name(view, payload)}"
                found[payload] = [
                    self._summed_out(view, factor, f"{name}_{number}", statements)
                    for number, factor in enumerate(factors, 1)
                ]
                if view.materialised:
                    statements.append(self._added(view, payload, found[payload]))
            changes, child = found, view
        return statements

    def _joined(
        self, view: View, payload: Payload, child: View, changes: Mapping[Payload, list[_Factor]]
    ) -> list[_Factor]:
        """The factors of a view's change; those that a function or variable needs together are merged."""
        factors = list(changes[self.payloads.below(child, payload)])
        for other in view.children:
            if other is not child:
                below = self.payloads.below(other, payload)
                access = self._read(other, below)
                factors.append(_Factor((access,), other.keys, self.payloads.type(below)))
        for node in (*view.conditions, *self.payloads.own(view, payload)):
            factors = self._applied(factors, node)
        for variable in view.summed:
            concerned = [f for f in factors if variable in f.variables]
            factors = self._united(factors, concerned) if len(concerned) > 1 else factors
        return factors

    def _applied(self, factors: list[_Factor], node: ast.Node) -> list[_Factor]:
        """With a lifting function or a condition; without variables, on any factor."""
        needed = [next(f for f in factors if v in f.variables) for v in variables_of(node)] or factors[:1]
        first, *others = self._united(factors, list(dict.fromkeys(needed)))
        type_ = self._times(first.type, self.payloads.type_of(node))
        return [replace(first, nodes=(*first.nodes, substituted(node, self.names)), type=type_), *others]

    def _united(self, factors: list[_Factor], some: list[_Factor]) -> list[_Factor]:
        """Some of them merged, which comes first."""
        nodes = tuple(node for factor in some for node in factor.nodes)
        variables = tuple(dict.fromkeys(v for factor in some for v in factor.variables))
        type_ = some[0].type
        for factor in some[1:]:
            type_ = self._times(type_, factor.type)
        rest = [factor for factor in factors if not any(factor is one for one in some)]
        return [_Factor(nodes, variables, type_), *rest]

    def _times(self, left: TypeRef, right: TypeRef) -> TypeRef:
        return self.payloads.types.product(left, right) or right

    def _summed_out(self, view: View, factor: _Factor, name: str, out: list[ast.Assign]) -> _Factor:
        """A factor without the variables that the view sums out, as a map; one that has none, and is a map,
        is unchanged.
        """
        left = tuple(v for v in factor.variables if v not in view.summed)
        if len(factor.nodes) == 1 and left == factor.variables:
            return factor
        keys = self._variables(left)
        columns = tuple(ast.Column(self.names[v], self.query.type_of(v)) for v in left)
        self.deltas[name] = ast.MapDeclaration(name, factor.type, (), columns, ast.Constant("int", 0))
        access = ast.MapAccess(name, factor.type, (), keys)
        out.append(ast.Assign(access, ":=", ast.AggSum(keys, ast.product(list(factor.nodes)))))
        return _Factor((access,), left, factor.type)

    def _added(self, view: View, payload: Payload, factors: Sequence[_Factor]) -> ast.Assign:
        product = ast.product([node for factor in factors for node in factor.nodes])
        summed = ast.AggSum(self._variables(view.keys), product)
        return ast.Assign(self._access(view, payload), "+=", summed)


def _map(relation: str, number: int) -> str:
    return f"{part_name(relation, number)}_NOW"
