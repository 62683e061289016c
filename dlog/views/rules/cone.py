"""Owns what the atoms of rules stand for: a base predicate is a relation; a derived one, and an inline
aggregate, is what its rules say.

    # busy(b) <- bids(_, b, v), v > 3.     busy(x): EXISTS(AggSum([x], BIDS(id, x, v) * {v > 3}))
    # load[b] = s <- agg<<s = sum(v)>> ..  load[x] = y: EXISTS(AggSum([x], ..)) * (y ^= AggSum([x], .. * v))
    # s = sum v : {bids(_, b, v)}          AggSum([], BIDS(id, c, v) * {c = b} * v): 0 over nothing

Domains of inline aggregates are left out: what restricts them is a factor beside the aggregate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dlog.errors import UnsupportedError
from dlog.ir import rules as ir
from dlog.ir.lower.aggregates import is_domain
from dlog.language.ast import Node
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.multilevel.binding import NONE
from dlog.multilevel.values import plus, sum_over
from dlog.views.names import Names
from dlog.views.rules.body import Body, Known
from dlog.views.rules.sources import LEVELS, Describe, source_name, source_of

MOST_ATOMS = 64  # of a definition
_ROUNDED = "a sum of {type} is rounded in M3, and what is computed from it would differ"


@dataclass(frozen=True)
class Rows:
    """Of one head: a factor that binds the variables of its columns.  `is_set`: 0 or 1, else it counts."""

    node: Node
    is_set: bool
    constants: tuple[ir.Const | None, ...]


class Cone:
    """A program's predicates, as far as they are asked for; `sources` are the base predicates found."""

    def __init__(self, program: ir.Program, describe: Describe | None = None, streams: Collection[str] = ()):
        """Without `describe` all base predicates are streams, and decimals integers in units of their last
        digit.  `streams`: derived predicates whose rows are given, like those of base predicates.
        """
        self.program, self.scaled = program, describe is None
        self.describe, self.streams = describe or self._stream, frozenset(streams)
        self.sources: dict[str, ast.Source] = {}
        self.names = Names(source_name(name).lower() for name in program.predicates)
        self._atoms = 0
        self._facts = {block.predicate for block in program.facts}

    def _stream(self, name: str) -> ast.Source:
        return source_of(self.program.predicates[name], decimals="long", reader=LEVELS)

    # ---- atoms

    def columns(self, predicate: str) -> tuple[ir.Column, ...]:
        return self.program.predicates[predicate].columns

    def rows(self, atom: ir.Atom, variables: tuple[str, ...]) -> Node:
        if atom.predicate in self.program.stratum_of and atom.predicate not in self.streams:
            return self.derived(atom.predicate, variables, atom.span)
        self._atoms += 1
        if self._atoms > MOST_ATOMS:
            message = f"the rules that it depends on have more than {MOST_ATOMS} atoms in total"
            raise UnsupportedError(message, span=atom.span)
        if atom.predicate not in self.sources:
            self.sources[atom.predicate] = self.describe(atom.predicate)
        return ast.Relation(self.sources[atom.predicate].name, tuple(map(ast.Variable, variables)))

    def derived(self, name: str, variables: tuple[str, ...], span: Span | None) -> Node:
        """1 for each row that rules derive."""
        found = list(self.by_head(name, variables, span))
        total = plus(rows.node for rows in found)
        is_set = all(rows.is_set for rows in found) and _are_apart([rows.constants for rows in found])
        return total if is_set else ast.Exists(total)

    def check_stratum(self, name: str, span: Span | None) -> None:
        """Raises if a predicate is more than what its rules derive from others."""
        stratum = self.program.stratum_of[name]
        if stratum.recursive:
            raise UnsupportedError(f"{name} is recursive: {LEVELS} have no recursion", span=span)
        if self.program.remembered_in(stratum):
            shown = name.partition("'")[0]
            message = f"the rows of {shown} depend on those that it had: {LEVELS} have no such memory"
            raise UnsupportedError(message, span=span)
        if stratum.sequence is not None:
            raise UnsupportedError(f"{name} is a sequence: {LEVELS} have none", span=span)
        if stratum.subsumptions:
            raise UnsupportedError(f"{name} has a subsumption: {LEVELS} have none", span=span)

    def by_head(self, name: str, variables: tuple[str, ...], span: Span | None) -> Iterator[Rows]:
        """The rows of a predicate head by head: a row may be there twice."""
        rules = self.program.rules_of(name)
        relation = self.program.predicates[name].equivalence
        if relation is not None:
            raise UnsupportedError(f"{relation} is an equivalence relation: {LEVELS} have none", span=span)
        self.check_stratum(name, span)
        if name in self._facts:
            raise UnsupportedError(f"{name} has facts and rules: {LEVELS} have one or the other", span=span)
        for rule in rules:
            for head in (h for h in rule.heads if h.predicate == name):
                yield self._head(rule, head, variables)

    def _head(self, rule: ir.Rule, head: ir.Atom, variables: tuple[str, ...]) -> Rows:
        columns, results = self.columns(head.predicate), {a.result.name for a in rule.aggregates}
        wanted: dict[str, str] = {}
        for argument, column, name in zip(head.args, columns, variables, strict=True):
            if isinstance(argument, ir.Var) and argument.name not in results:
                digits = rule.types[argument.name].scale if self.scaled else column.type.scale
                if digits == column.type.scale:
                    wanted.setdefault(argument.name, name)
        body = Body(self, rule, wanted=wanted).read(rule.body)
        if rule.aggregates:
            body = self._groups(rule, head, body)
        for argument, column, name in zip(head.args, columns, variables, strict=True):
            body.bind(name, body.values.in_column(argument, column, head.span))
        determined = {a.name for a in head.args if isinstance(a, ir.Var)} | results
        is_set = bool(rule.aggregates) or rule.keys <= determined or body.bound <= set(variables)
        constants = tuple(a if isinstance(a, ir.Const) else None for a in head.args)
        return Rows(body.total(variables), is_set, constants)

    # ---- aggregates

    def _groups(self, rule: ir.Rule, head: ir.Atom, body: Body) -> Body:
        """The groups of a rule, each with its results."""
        keys = group_keys(rule, body)
        groups = Body(self, rule, {name: ast.Variable(key) for name, key in keys.items()})
        groups.bound.update(keys.values())
        groups.factors.append(ast.Exists(body.total(keys.values())))
        for aggregate in rule.aggregates:
            if aggregate.result in head.args:
                self._check_exact(rule, aggregate)
                groups.known[aggregate.result.name] = result(rule, aggregate, body, keys.values())
        return groups

    def inline_aggregate(self, form: ir.Disjunction) -> ir.Atom | None:
        if not form.exclusive or len(form.branches) != 2:
            return None
        present = next(iter(form.branches[0].forms), None)
        if not isinstance(present, ir.Atom):
            return None
        rules = self.program.rules_of(present.predicate)
        is_one = self.program.predicates[present.predicate].auxiliary and len(rules) == 1
        return present if is_one and rules[0].aggregates else None

    def aggregate(self, atom: ir.Atom, groups: tuple[Node, ...]) -> Node:
        (rule,) = self.program.rules_of(atom.predicate)
        (head,), (aggregate,) = rule.heads, rule.aggregates
        known = {a.name: node for a, node in zip(head.keys, groups, strict=True) if isinstance(a, ir.Var)}
        self._check_exact(rule, aggregate)
        body = Body(self, rule, known).read(rule.body)
        holder = Body(self, rule, {aggregate.result.name: result(rule, aggregate, body, NONE)})
        return holder.values.in_column(head.args[-1], self.columns(atom.predicate)[-1], aggregate.span)

    def is_implied(self, atom: ir.Atom, known: Known) -> bool:
        """The domain of an aggregate holds for all groups that are asked for."""
        return is_domain(atom.predicate) and all(isinstance(a, ir.Var) and a.name in known for a in atom.args)

    def _check_exact(self, rule: ir.Rule, aggregate: ir.Aggregate) -> None:
        """A value that is computed with must not be rounded."""
        check_sums(aggregate, rule, means=False)
        type = rule.types[aggregate.result.name]
        if aggregate.function.adds_up and (type.kernel == "float" or (type.is_decimal and not self.scaled)):
            message = _ROUNDED.format(type="decimals" if type.is_decimal else "floats")
            help = "store whole numbers, such as cents"
            raise UnsupportedError(message, span=aggregate.span or rule.span, help=help)


def group_keys(rule: ir.Rule, body: Body) -> dict[str, str]:
    """The variable of M3 of each group; what is computed gets one."""
    keys: dict[str, str] = {}
    for group in rule.groups:
        known = body.typed(group.name)
        is_row = isinstance(known, ast.Variable) and known.name in body.bound
        name = known.name if is_row else body.wanted.get(group.name) or body.fresh(group.name)  # type: ignore[attr-defined]
        if name in keys.values():
            name = body.fresh(group.name)
        body.bind(name, known)
        keys[group.name] = name
    return keys


def result(rule: ir.Rule, aggregate: ir.Aggregate, body: Body, keys: Iterable[str]) -> Node:
    """An aggregate over the assignments of a body: a sum; 0 over nothing."""
    kept = frozenset(keys)
    if aggregate.argument is None:
        return body.total(kept)
    if aggregate.function.is_distinct:
        return _distinct(body, body.values.operand(aggregate.argument), kept)
    digits = body.values.digits(aggregate.argument if aggregate.function.is_quotient else aggregate.result)
    return body.total(kept, body.values.with_digits(aggregate.argument, digits, aggregate.span))


def _distinct(body: Body, value: Node, kept: frozenset[str]) -> Node:
    """How many values there are, by the variables that are kept."""
    is_row = isinstance(value, ast.Variable) and value.name in body.bound
    name = value.name if is_row else body.fresh("_")  # type: ignore[attr-defined]
    lifted = [] if is_row else [ast.Lift(ast.Variable(name), value)]
    return sum_over(ast.Exists(body.total({*kept, name}, *lifted)), kept)


def check_sums(aggregate: ir.Aggregate, rule: ir.Rule, means: bool) -> None:
    """Raises if an aggregate is not made of sums and counts, and, if `means`, of means."""
    function = aggregate.function
    if function.in_ring or function.is_distinct or (means and function.is_quotient):
        return
    known = "sums, counts and means" if means else "sums and counts"
    message = f"{LEVELS} maintain {known}, not {aggregate.function}"
    raise UnsupportedError(message, span=aggregate.span or rule.span)


def _are_apart(heads: Sequence[tuple[ir.Const | None, ...]]) -> bool:
    """Whether no two heads derive the same row: in some column each has another constant."""
    if len(heads) < 2:
        return True
    for column in zip(*heads, strict=True):
        values = [c.value for c in column if c is not None and c.type is not None and c.type.literal_is_value]
        if len(set(values)) == len(heads):
            return True
    return False
