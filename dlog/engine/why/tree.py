"""Owns the derivation of a fact, node by node.  A fact that is used several times is one node.

Nodes are made from a worklist, never by recursion: a chain of a million edges has a derivation as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlog.engine.body.table import Table
from dlog.engine.head.sequences import Sequence
from dlog.engine.state.limits import Watch
from dlog.engine.state.store import storable
from dlog.engine.view import View, interruptible
from dlog.engine.why.alternatives import Alternative, Bodies
from dlog.engine.why.equivalence import connecting_pairs, refuse_recursive
from dlog.engine.why.founded import Founded, Instance, Key, is_base
from dlog.engine.why.rounds import Rounds
from dlog.ir.rules import Atom, Form, Predicate, Rule, Stratum, Var
from dlog.storage.values import decode_value
from dlog.values import Type

SHOWN = 10  # assignments of an aggregate


@dataclass(eq=False)
class Condition:
    """A negation or a primitive that holds under the binding of the node it belongs to."""

    form: Form


@dataclass(eq=False)
class Assignment:
    """One assignment that an aggregate ranges over, and its premises, form by form."""

    binding: dict[str, Any]
    forms: tuple[Form, ...]
    parts: list[Premise] = field(default_factory=list)


@dataclass(eq=False)
class Derivation:
    """A fact and why it holds: `by` is "fact", "rule", "aggregate", "equivalence" or "number".

    By number: its only part is the assignment that has the number.
    By equivalence: `parts` are pairs that connect its two members.  By a rule: `forms` are the body's,
    `parts` the premise for each of them, under `binding`.  By an aggregate: the first `assignments` of
    `total`.  `replaced`: a value of a recursive aggregate that held for a while, and has been replaced by a
    better one since, or a row that another row subsumes.
    """

    predicate: Predicate
    row: tuple[Any, ...]
    by: str = "fact"
    rule: Rule | None = None
    binding: dict[str, Any] = field(default_factory=dict)
    forms: tuple[Form, ...] = ()
    parts: list[Premise] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    total: int = 0
    replaced: bool = False
    view: View | None = field(default=None, repr=False)

    def children(self) -> list[Derivation]:
        """Its premises."""
        parts = [*self.parts, *(p for a in self.assignments for p in a.parts)]
        return [p for p in parts if isinstance(p, Derivation)]


Premise = Derivation | Condition


def derive(view: View, name: str, row: tuple[int, ...]) -> Derivation:
    """A derivation of a fact.  REQUIRES: it holds."""
    watch = Watch(view.limits)
    with interruptible(watch):
        return _Tree(view, watch).build((name, row))


class _Tree:
    def __init__(self, view: View, watch: Watch):
        self.view = view
        self.bodies = Bodies(view.store, watch)
        self.nodes: dict[Key, Derivation] = {}
        self.pending: list[Key] = []
        self.founded: dict[str, Founded] = {}
        self.rounds: dict[str, Rounds] = {}
        self.watch = watch
        self.strata: dict[str, Stratum] = {p: s for s in view.program.strata for p in s.predicates}

    def build(self, key: Key) -> Derivation:
        root = self.node(key)
        while self.pending:
            self.support(self.pending.pop())
        return root

    def node(self, key: Key) -> Derivation:
        relation = self.view.program.predicates[key[0]].equivalence
        if relation is not None:  # a member and its representative are equivalent
            key = (relation, key[1])
        known = self.nodes.get(key)
        if known is None:
            predicate = self.view.program.predicates[key[0]]
            pairs = zip(key[1], predicate.columns, strict=True)
            row = tuple(self.value(code, c.type) for code, c in pairs)
            replaced = not self.is_equivalence(key) and not self.view.store.relations[key[0]].contains(key[1])
            known = self.nodes[key] = Derivation(predicate, row, replaced=replaced, view=self.view)
            self.pending.append(key)
        return known

    def is_equivalence(self, key: Key) -> bool:
        """Whether a fact follows from pairs, and is none."""
        name, row = key
        is_known = name in self.view.program.equivalences
        return is_known and not self.view.store.relations[name].contains(row)

    def support(self, key: Key) -> None:
        """Finds the premises of a node."""
        node, (name, row) = self.nodes[key], key
        if self.is_equivalence(key):
            node.by = "equivalence"
            pairs = connecting_pairs(self.view.store, self.view.program, name, *row)
            node.parts = [self.node((name, pair)) for pair in pairs]
            return
        if name not in self.strata or is_base(self.bodies.store, name, row):
            return
        if node.predicate.numbering is not None:
            node.by = "number"
            row = row[: -node.predicate.numbering.count]
            node.parts = [self.node((node.predicate.numbering.assignments, row))]
            return
        if self.strata[name].sequence is not None:
            node.by, node.rule = "sequence", self.strata[name].sequence
            sequence = Sequence.of(self.strata[name])
            source = sequence.row_of(
                self.view.store.relations[sequence.rows], row, self.view.store.dictionary
            )
            node.parts = [self.node((sequence.rows, source))]
            return
        refuse_recursive(self.view.program, self.strata[name])
        if self.strata[name].totals:
            self.support_by_rounds(node, key)
            return
        founded = self.founded_in(name)
        if not founded.prove(key):
            raise AssertionError(f"{name}{node.row} holds and has no derivation")
        support = founded.of(key)
        if isinstance(support, Instance):
            self.by_rule(node, support.alternative, support.table, support.index)
        else:
            assert support is not None
            node.by, node.rule = "aggregate", support[0]
            self.aggregate(node, support[1], np.array(row, np.int64), self.bodies)

    def support_by_rounds(self, node: Derivation, key: Key) -> None:
        """The same in a stratum with recursive sums or counts."""
        name, row = key
        stratum = self.strata[name]
        first = stratum.predicates[0]
        if first not in self.rounds:
            self.rounds[first] = Rounds(self.view.program, stratum, self.view.store, self.watch)
        rounds = self.rounds[first]
        bodies, aggregation = rounds.before(name, row), rounds.aggregation(name)
        if aggregation is None:
            way, table = rounds.instance(bodies, name, row)
            self.by_rule(node, way, table, 0)
        else:
            node.by, node.rule = "aggregate", aggregation[0]
            self.aggregate(node, aggregation[1], np.array(row, np.int64), bodies)

    def by_rule(self, node: Derivation, way: Alternative, table: Table, index: int) -> None:
        node.by, node.rule, node.forms = "rule", way.rule, way.forms
        node.binding = self.binding(way.rule, table, index)
        node.parts = self.parts(way, table, index)

    def founded_in(self, name: str) -> Founded:
        """One search for each stratum, so that proofs of several of its facts are consistent."""
        stratum = self.strata[name]
        first = stratum.predicates[0]
        if first not in self.founded:
            self.founded[first] = Founded(self.bodies, stratum)
        return self.founded[first]

    def parts(self, way: Alternative, table: Table, index: int) -> list[Premise]:
        one = table.take(np.array([index]))
        return [
            self.node((f.predicate, tuple(self.bodies.atom_rows(way, f, one)[0].tolist())))
            if isinstance(f, Atom)
            else Condition(f)
            for f in way.forms
        ]

    def aggregate(self, node: Derivation, head: Atom, row: np.ndarray, bodies: Bodies) -> None:
        """The assignments of a group in some state; for min and max those that attain it."""
        assert node.rule is not None
        table = bodies.assignments(node.rule, head, row)
        node.total = table.n
        for index in self.shown(node, table):
            one = table.take(np.array([index]))
            way, found = bodies.extension(node.rule, head, one)
            assignment = Assignment(self.binding(way.rule, found, 0), way.forms)
            assignment.parts = self.parts(way, found, 0)
            node.assignments.append(assignment)

    def shown(self, node: Derivation, table: Table) -> list[int]:
        rule = node.rule
        assert rule is not None
        item = rule.aggregates[0]
        if len(rule.aggregates) == 1 and item.function.direction and isinstance(item.argument, Var):
            values = [self.binding(rule, table, i)[item.argument.name] for i in range(min(table.n, 1000))]
            if values and table.n <= 1000:
                best = min(values) if item.function.direction > 0 else max(values)
                return [values.index(best)]
        return list(range(min(table.n, SHOWN)))

    # Values

    def binding(self, rule: Rule, table: Table, index: int) -> dict[str, Any]:
        return {
            name: self.value(values[index], rule.types[name])
            if isinstance(values, np.ndarray)
            else values[index].as_py()
            for name, values in sorted(table.columns.items())
            if name in rule.types
        }

    def value(self, code: int, type: Type) -> Any:
        stored = storable(type)
        return decode_value(code, stored, self.view.store.dictionary)
