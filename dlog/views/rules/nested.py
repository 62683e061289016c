"""Owns what a program derives for a predicate -> the neutral form for levels of maps.

    # n[b] = c <- bids(_, b, v), c = count : {bids(_, b, w), w > v}.   groups b, c: how often each is derived
    # s[b] = t <- agg<<t = sum(v)>> bids(_, b, v), !closed(b).         groups b: the sum, and the count

Relations and all that rules derive are sets.  A row of the result is there if it is derived at least once; a
group of `agg<<>>` if it has an assignment.
"""

from __future__ import annotations

from collections.abc import Collection

from dlog.errors import UnsupportedError
from dlog.ir import rules as ir
from dlog.ir.lower.aggregates import used_by
from dlog.ir.lower.quantify import with_heads
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.values import plus
from dlog.views.nested import NestedQuery, Shown
from dlog.views.rules.body import Body
from dlog.views.rules.cone import Cone, check_sums, group_keys, result
from dlog.views.rules.sources import LEVELS, Describe, source_name


def nested_query(
    program: ir.Program, predicate: str, describe: Describe | None = None, streams: Collection[str] = ()
) -> NestedQuery:
    """What the rules of a predicate derive.  A single rule with aggregates shows all of them, those of its
    other heads too, if levels of maps can maintain them.

    `describe` gives the relation of a base predicate, and decimals are floats, since M3 has no other.
    Without it all are streams, and decimals are integers in units of their last digit.  `streams` are derived
    predicates that are relations, too: what rules say of them is left to others.
    """
    rules = program.rules_of(predicate)
    if len(rules) != 1 or not rules[0].aggregates:
        return _Derived(Cone(program, describe, streams), predicate).query()
    (rule,) = rules
    heads = tuple(head for head in rule.heads if head.predicate == predicate)
    if len(heads) > 1:
        return _Derived(Cone(program, describe, streams), predicate).query()
    own = with_heads(rule, heads, used_by(heads, rule.aggregates))
    try:
        return _Aggregated(Cone(program, describe, streams), predicate, rule).query()
    except UnsupportedError:
        if own == rule:
            raise
        return _Aggregated(Cone(program, describe, streams), predicate, own).query()


class _Result:
    """What both kinds of results have in common."""

    def __init__(self, cone: Cone, predicate: str):
        self.cone, self.predicate = cone, predicate
        self.rules = cone.program.rules_of(predicate)
        if not self.rules:  # a relation with a subsumption and facts
            cone.check_stratum(predicate, cone.program.predicates[predicate].span)
        self.span = self.rules[0].span
        self.results: dict[str, Node] = {}

    def _query(self, columns: tuple[Shown, ...], groups: tuple[str, ...], present: str) -> NestedQuery:
        name = source_name(self.predicate)
        sources = tuple(self.cone.sources.values())
        if len({source.name.upper() for source in sources}) < len(sources):
            raise UnsupportedError("two predicates have one name in M3", span=self.span)
        return NestedQuery(sources, self.results, columns, groups, present, name=name, span=self.span)


class _Aggregated(_Result):
    """Of one rule with aggregates: a result for each, by groups."""

    def __init__(self, cone: Cone, predicate: str, rule: ir.Rule):
        super().__init__(cone, predicate)
        self.rule = rule
        cone.check_stratum(predicate, rule.span)

    def query(self) -> NestedQuery:
        rule, names = self.rule, self.cone.names
        wanted = {group.name: names.fresh(group.name) for group in rule.groups}
        results = {a.result.name: names.fresh(a.result.name) for a in rule.aggregates}
        body = Body(self.cone, rule, wanted=wanted).read(rule.body)
        keys = group_keys(rule, body)
        for aggregate in rule.aggregates:
            self._check(aggregate)
            self.results[results[aggregate.result.name]] = result(rule, aggregate, body, list(keys.values()))
        present = self._present(body.total(keys.values()))
        columns = [Shown(group.name, ast.Variable(keys[group.name])) for group in rule.groups]
        for aggregate in rule.aggregates:
            divisor = ast.Variable(present) if aggregate.function.is_quotient else None
            name = aggregate.result.name
            columns.append(Shown(name, ast.Variable(results[name]), divisor))
        return self._query(tuple(columns), tuple(keys.values()), present)

    def _check(self, aggregate: ir.Aggregate) -> None:
        check_sums(aggregate, self.rule, means=True)
        argument = aggregate.argument
        is_decimal = isinstance(argument, ir.Var) and self.rule.types[argument.name].is_decimal
        if aggregate.function.is_quotient and is_decimal and self.cone.scaled:
            span = aggregate.span or self.rule.span
            raise UnsupportedError(f"{LEVELS} do not compute means of decimals", span=span)

    def _present(self, count: Node) -> str:
        """The result that counts assignments."""
        found = next((name for name, node in self.results.items() if node == count), None)
        if found is None:
            found = self.cone.names.fresh("count")
            self.results[found] = count
        return found


class _Derived(_Result):
    """Of any rules: how often each row is derived."""

    def query(self) -> NestedQuery:
        names, columns = self.cone.names, self.cone.columns(self.predicate)
        shown = self._shown(columns)
        groups = tuple(map(names.fresh, shown))
        heads = self.cone.by_head(self.predicate, groups, self.span)
        count = names.fresh("count")
        self.results[count] = plus([rows.node for rows in heads])
        listed = [Shown(name, ast.Variable(group)) for name, group in zip(shown, groups, strict=True)]
        holds = Shown("holds", ast.Exists(ast.Variable(count)))
        return self._query(tuple(listed or [holds]), groups, count)

    def _shown(self, columns: tuple[ir.Column, ...]) -> list[str]:
        """The names of columns: those of the first head's variables, where they have names."""
        head = next(h for h in self.rules[0].heads if h.predicate == self.predicate)
        found: list[str] = []
        for argument, column in zip(head.args, columns, strict=True):
            is_named = isinstance(argument, ir.Var) and not argument.name.startswith("_")
            name = argument.name if is_named else column.name  # type: ignore[union-attr]
            found.append(name if name not in found else f"{name}_{len(found) + 1}")
        return found
