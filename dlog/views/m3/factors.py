"""Owns the M3 program that maintains the factors of a relation (`dlog.views.orders.factors`): the relational
ring of F-IVM in its factorised form, whose payloads are the values of one variable.

For each atom the rows are counted by the columns that others need, VIEW_R; for each variable X below another
one its values are counted, AGG_VIEW_X[dep(X)].  The change of an atom goes up its path as in a view tree, but
only what appears (1) or disappears (-1): a second row with the same keys, a second value of X, changes
nothing further up.  So no number is greater than the number of rows that are stored, however many rows the
result has.

    ON BATCH UPDATE OF R, along each path:  1 DELTA_EXISTS of the leaf  2 the change of F@X is that, where all
    other children of X exist  3 the values of X are counted, and DELTA_EXISTS of the count goes up to 2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import BATCH, DBTOASTER, STREAM
from dlog.m3.syntax.print import print_program
from dlog.m3.types.typecheck import check
from dlog.views.m3.appearing import Appearing, appearing
from dlog.views.m3.program import lower_names, substituted
from dlog.views.orders.factors import Factorisation, Leaf
from dlog.views.tree.payloads import COUNT
from dlog.views.tree.tree import OrderNode


@dataclass(frozen=True)
class Changes:
    """The maps with what changed: for a relation, (variable, map) in the order in which they apply."""

    maps: dict[str, tuple[tuple[str, str], ...]]


def factor_name(variable: str) -> str:
    return f"FACTOR_{variable}"


def factor_program(found: Factorisation, stored: bool = False) -> tuple[ast.Program, Changes]:
    """The program, and where it leaves the changes of factors; `stored`: it has the factors, too, as maps.

    O(atoms * variables).
    """
    writer = _Writer(found, stored)
    program = writer.program()
    return check(program), Changes(writer.changes)


def factor_text(found: Factorisation) -> str:
    """The program as text, with the factors as queries."""
    return print_program(factor_program(found, stored=True)[0])


class _Writer:
    def __init__(self, found: Factorisation, stored: bool):
        self.found, self.query, self.stored = found, found.query, stored
        self.names = lower_names(self.query.variables)
        self.free = set(self.query.free)
        self.parents = found.order.parents
        self.declared: dict[str, ast.MapDeclaration] = {}
        self.changes: dict[str, tuple[tuple[str, str], ...]] = {}

    def program(self) -> ast.Program:
        used = [s for s in self.query.sources if self.query.atoms_of(s.name)]
        triggers = tuple(self._trigger(source) for source in used)
        factors = {factor_name(n.variable): n for n in self.found.listed} if self.stored else {}
        queries = tuple(ast.Query(name, self._factor(node, name)) for name, node in factors.items())
        return ast.Program(
            DBTOASTER, (), tuple(map(self._source, used)), tuple(self.declared.values()), queries, triggers
        )

    def _source(self, source: ast.Source) -> ast.Source:
        """Tables change like streams: they may be loaded in parts."""
        names = lower_names([c.name for c in source.columns]).values()
        columns = (replace(c, name=name) for c, name in zip(source.columns, names, strict=True))
        return replace(source, kind=STREAM, columns=tuple(columns))

    def _trigger(self, source: ast.Source) -> ast.Trigger:
        statements: list[ast.Assign] = []
        noted: list[tuple[str, str]] = []
        for atom in self.query.atoms_of(source.name):
            statements += self._path(self.found.leaves[atom.name], noted)
        self.changes[source.name] = tuple(noted)
        return ast.Trigger(BATCH, source.name, (), tuple(statements))

    def _path(self, leaf: Leaf, noted: list[tuple[str, str]]) -> Iterator[ast.Assign]:
        atom = leaf.atom
        rows: list[ast.Node] = [ast.DeltaRelation(atom.relation, self._variables(atom.variables))]
        rows += [substituted(condition, self.names) for condition in leaf.conditions]
        change = self._counted(self._leaf(leaf), leaf.keys, rows)
        yield from (*change.before, *change.after)
        below: str = atom.name
        for node in self.found.path(leaf):
            target = self._factor(node, f"DELTA_{factor_name(node.variable)}_OF_{atom.name}")
            self._declare(target, (*node.depends, node.variable))
            yield ast.Assign(target, ":=", _sum(target.keys, [*change.change, *self._others(node, below)]))
            if node.variable in self.free:
                noted.append((node.variable, target.name))
                if self.stored:
                    whole = self._factor(node, factor_name(node.variable))
                    self._declare(whole, (*node.depends, node.variable))
                    yield ast.Assign(whole, "+=", target)
            if self.parents[node.variable] is None and node.variable in self.free:
                return
            change = self._counted(self._values(node), node.depends, [target])
            yield from (*change.before, *change.after)
            below = node.variable

    def _counted(self, counts: ast.MapAccess, keys: tuple[str, ...], rows: list[ast.Node]) -> Appearing:
        columns = tuple(ast.Column(self.names[k], self.query.type_of(k)) for k in keys)
        found = appearing(counts, columns, rows, counted=False, single=False)
        self._declare(counts, keys)
        self.declared |= {m.name: m for m in found.maps}
        return found

    def _others(self, node: OrderNode, below: str) -> list[ast.Node]:
        """What must exist beside the child that changes."""
        atoms = (self._leaf(self.found.leaves[name]) for name in node.atoms if name != below)
        children = (self._values(child) for child in node.children if child.variable != below)
        return [ast.Exists(access) for access in (*atoms, *children)]

    def _leaf(self, leaf: Leaf) -> ast.MapAccess:
        return ast.MapAccess(f"VIEW_{leaf.atom.name}", COUNT, (), self._variables(leaf.keys))

    def _values(self, node: OrderNode) -> ast.MapAccess:
        return ast.MapAccess(f"AGG_VIEW_{node.variable}", COUNT, (), self._variables(node.depends))

    def _factor(self, node: OrderNode, name: str) -> ast.MapAccess:
        return ast.MapAccess(name, COUNT, (), self._variables((*node.depends, node.variable)))

    def _variables(self, names: tuple[str, ...]) -> tuple[ast.Variable, ...]:
        return tuple(ast.Variable(self.names[name]) for name in names)

    def _declare(self, access: ast.MapAccess, keys: tuple[str, ...]) -> None:
        columns = tuple(ast.Column(self.names[k], self.query.type_of(k)) for k in keys)
        zero = ast.Constant("int", 0)
        self.declared.setdefault(access.name, ast.MapDeclaration(access.name, COUNT, (), columns, zero))


def _sum(keys: tuple[ast.Variable, ...], parts: list[ast.Node]) -> ast.Node:
    return ast.AggSum(keys, ast.product(parts))
