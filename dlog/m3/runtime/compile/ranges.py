"""Owns the recognition of ranges: which comparisons are bounds of a key of a map, and which sums over a map
are sums over such a range.

A bound is a comparison with an expression of what is bound: of the key itself, or of a sum of the key, or of
-1 times the key, and something bound.  `with_range_sums` puts each read of a map by range whose key is needed
nowhere else into a sum of its own, after all that it depends on:

    AggSum([b], R(a, b) * M[][b, k] * {k > a} * a)  becomes
    AggSum([b], R(a, b) * a * AggSum([], M[][b, k] * {k > a}))

so that it becomes one instruction.  Products of sums are multiplied out where that leaves no other reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dlog.m3.runtime.compile.analysis import Names, Typing, assignments, has_initial, mentioned, outputs
from dlog.m3.runtime.compile.stores import Store, Stores
from dlog.m3.runtime.compile.values import DATE_KIND, FLOAT_KIND, INT_KIND, kind_of
from dlog.m3.runtime.layout import MOST_KEYS
from dlog.m3.syntax import ast

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_JOINED = (ast.MapAccess, ast.Relation, ast.DeltaRelation)  # whatever is bound of their columns
MOST_TERMS = 16  # of a product of sums that is multiplied out

Orders = dict[tuple[int, ...], int]  # the key that entries are sorted by, behind the keys at some places


@dataclass(frozen=True)
class Bound:
    """{key op other}, or {given + key op other}, or {given - key op other}."""

    op: str
    sign: int
    given: ast.Node | None
    other: ast.Node


@dataclass(frozen=True)
class RangeRead:
    """The entries of a map that agree with what is bound and whose key is within bounds."""

    store: Store
    variables: tuple[ast.Variable, ...]
    places: tuple[int, ...]  # of bound keys
    key: int  # the place of the key that is compared
    bounds: tuple[Bound, ...]  # at most two from each side


@dataclass(frozen=True)
class RangeScan:
    """A range of a key, to be read entry by entry.  `is_between`: the bounds are alike, and what is between
    them is wanted, whichever comes first.
    """

    places: tuple[int, ...]
    key: int
    bounds: tuple[Bound, ...]
    is_between: bool = False


def bound(node: ast.Node, key: str, kind: str, names: Names, typing: Typing) -> Bound | None:
    """A comparison as a bound of a key, if all that it needs else is in `names`."""
    if not isinstance(node, ast.Comparison) or node.op not in FLIPPED:
        return None
    left, right, op = node.left, node.right, node.op
    if key in mentioned(right):
        left, right, op = right, left, FLIPPED[op]
    if key in mentioned(right) or not _is_value(right, names):
        return None
    found = _sum_with(left, key, names)
    if found is None:
        return None
    sign, given = found
    kinds = (kind, kind_of(typing.of(right)))
    if given is None and DATE_KIND in kinds:
        return Bound(op, sign, given, right) if kinds == (DATE_KIND, DATE_KIND) else None
    if not set(kinds) <= {INT_KIND, FLOAT_KIND}:
        return None
    if given is not None and not _is_comparable(kind, kind_of(typing.of(given)), kinds[1]):
        return None
    return Bound(op, sign, given, right)


def _is_comparable(key: str, given: str, other: str) -> bool:
    """Whether kernels compare key + given with something as it would be compared anyway."""
    if not {key, given} <= {INT_KIND, FLOAT_KIND}:
        return False
    return FLOAT_KIND in (key, given) or other == INT_KIND


def _is_value(node: ast.Node, names: Names) -> bool:
    """Whether an expression has one value in each row and reads nothing that must be made first."""
    return not has_initial(node) and not outputs(node, names) and _free(node) <= names


def _free(node: ast.Node) -> Names:
    """The variables of an expression that are not summed out inside it."""
    if isinstance(node, ast.AggSum):
        inner = outputs(node.body, frozenset(k.name for k in node.keys)).keys()
        return _free(node.body) - inner
    found = frozenset[str]()
    if isinstance(node, ast.Variable):
        return frozenset({node.name})
    for part in node.children():
        found |= _free(part)
    return found


def _sum_with(node: ast.Node, key: str, names: Names) -> tuple[int, ast.Node | None] | None:
    """The sign of a key in a sum, and the other term; floats are added in pairs only."""
    sign = _sign(node, key)
    if sign == 1:
        return 1, None
    if not isinstance(node, ast.Sum) or len(node.terms) != 2:
        return None
    for term, other in (node.terms, node.terms[::-1]):
        sign = _sign(term, key)
        if sign and key not in mentioned(other) and _is_value(other, names):
            return sign, other
    return None


def _sign(node: ast.Node, key: str) -> int:
    """1: the key; -1: -1 times the key; else 0."""
    if isinstance(node, ast.Variable):
        return int(node.name == key)
    if isinstance(node, ast.Product) and len(node.factors) == 2:
        for number, other in (node.factors, node.factors[::-1]):
            if isinstance(number, ast.Constant) and number.value == -1 and isinstance(number.value, int):
                return -_sign(other, key) if isinstance(other, ast.Variable) else 0
    return 0


def is_from_below(one: Bound) -> bool:
    """Whether a bound is one that keys are above."""
    return (one.op in (">", ">=")) == (one.sign > 0)


def are_few(bounds: Sequence[Bound]) -> bool:
    """Whether there are at most two bounds from each side."""
    below = sum(b.op == "=" or is_from_below(b) for b in bounds)
    above = sum(b.op == "=" or not is_from_below(b) for b in bounds)
    return max(below, above) <= 2


def variables_of(node: ast.MapAccess) -> tuple[ast.Variable, ...]:
    return (*node.inputs, *node.keys)


def is_ordered(store: Store, variables: tuple[ast.Variable, ...], key: int) -> bool:
    """Whether a map can be read by a range of a key: strings have no lasting order."""
    variable = variables[key]
    once = sum(v.name == variable.name for v in variables) == 1
    kind = store.key_kinds[key]
    same = variable.type is not None and kind_of(variable.type) == kind
    return once and same and kind in (INT_KIND, FLOAT_KIND, DATE_KIND) and len(variables) <= MOST_KEYS


class Ranges:
    """Finds ranges in one program.  `orders` are those of maps that are read by range: what is read without
    a condition uses them, too.
    """

    def __init__(self, stores: Stores):
        self.stores, self.typing = stores, stores.typing
        self.orders: dict[str, Orders] = {}  # by map

    def read(self, factors: tuple[ast.Node, ...], names: Names) -> RangeRead | None:
        """A product that is a read of a map by range and nothing else."""
        accesses = [f for f in factors if isinstance(f, ast.MapAccess)]
        others = [f for f in factors if not isinstance(f, ast.MapAccess)]
        if len(accesses) != 1 or accesses[0].initial is not None:
            return None
        variables, store = variables_of(accesses[0]), self.stores.map(accesses[0].name)
        places = tuple(j for j, v in enumerate(variables) if v.name in names)
        free = [j for j in range(len(variables)) if j not in places]
        if not store.is_summable or not free or len({variables[j].name for j in free}) < len(free):
            return None
        if not others:
            return self._whole(store, accesses[0].name, variables, places, free)
        for key in free:
            if is_ordered(store, variables, key):
                name, kind = variables[key].name, store.key_kinds[key]
                found = [bound(other, name, kind, names, self.typing) for other in others]
                bounds = tuple(b for b in found if b is not None)
                if len(bounds) == len(others) and are_few(bounds):
                    return RangeRead(store, variables, places, key, bounds)
        return None

    def _whole(
        self, store: Store, name: str, variables: tuple[ast.Variable, ...], places: tuple[int, ...],
        free: list[int],
    ) -> RangeRead | None:  # fmt: skip
        """All entries that agree with what is bound: where there is an order for it anyway."""
        key = self.orders.get(name, {}).get(places)
        return RangeRead(store, variables, places, key, ()) if key in free else None

    def scan(
        self,
        store: Store,
        variables: tuple[ast.Variable, ...],
        places: tuple[int, ...],
        conditions: Sequence[ast.Node],
        names: Names,
    ) -> RangeScan | None:
        """The range of a key outside of which one of the conditions is 0."""
        for key in range(len(variables)):
            if key not in places and is_ordered(store, variables, key):
                name, kind = variables[key].name, store.key_kinds[key]
                found: list[Bound] = []
                for condition in conditions:
                    one = bound(condition, name, kind, names, self.typing)
                    if one is not None and are_few([*found, one]):
                        found.append(one)
                if found:
                    return RangeScan(places, key, tuple(found))
                for condition in conditions:
                    both = self._moved(condition, name, kind, names)
                    if both is not None:
                        return RangeScan(places, key, both, True)
        return None

    def _moved(self, node: ast.Node, name: str, kind: str, names: Names) -> tuple[Bound, ...] | None:
        """{k < new} - {k < old}: other than 0 between the two."""
        if not isinstance(node, ast.Sum) or len(node.terms) != 2:
            return None
        terms, numbers = [], []
        for term in node.terms:
            factors = term.factors if isinstance(term, ast.Product) else (term,)
            rest = [f for f in factors if isinstance(f, ast.Comparison)]
            constants = [f.value for f in factors if isinstance(f, ast.Constant) and isinstance(f.value, int)]
            if len(rest) != 1 or len(factors) != len(constants) + 1 or len(constants) > 1:
                return None
            terms.append(bound(rest[0], name, kind, names, self.typing))
            numbers.append(constants[0] if constants else 1)
        one, other = terms
        if one is None or other is None or numbers[0] != -numbers[1]:
            return None
        kinds = {kind_of(self.typing.of(b.other)) for b in (one, other)}
        alike = (one.op, one.sign, one.given) == (other.op, other.sign, other.given) and one.op != "="
        return (one, other) if alike and len(kinds) == 1 else None


@dataclass
class _Isolation:
    """Puts range sums into sums of their own."""

    ranges: Ranges
    orders: dict[str, Orders] = field(default_factory=dict)
    batches: Names = frozenset()  # maps with sums over the batch: few entries, better read one by one

    def statement(self, node: ast.Assign, names: Names) -> ast.Assign:
        if has_initial(node):
            return node
        kept = names | {v.name for v in variables_of(node.target)}
        return replace(node, expression=self.summed(node.expression, names, kept))

    def summed(self, node: ast.Node, names: Names, kept: Names) -> ast.Node:
        """An expression of which only some variables are needed."""
        if isinstance(node, ast.AggSum):
            inner = self.summed(node.body, names, names | (kept & {k.name for k in node.keys}))
            if inner == node.body:
                return node
            terms = inner.terms if isinstance(inner, ast.Sum) else (inner,)
            return ast.total([_aggregated(node, term) for term in terms])
        if isinstance(node, ast.Sum):
            return ast.total([self.summed(term, names, kept) for term in node.terms])
        if isinstance(node, ast.Product):
            return self._product(node, names, kept)
        if isinstance(node, ast.MapAccess):
            return self._isolated((node,), names, kept)[0]
        return self.inside(node, names)

    def inside(self, node: ast.Node, names: Names) -> ast.Node:
        """Whatever is needed of an expression; the sums in it."""
        if isinstance(node, ast.AggSum):
            return self.summed(node, names, names | {k.name for k in node.keys})
        if isinstance(node, ast.Lift):
            return replace(node, body=self.summed(node.body, names, names))
        if isinstance(node, ast.Comparison):
            left, right = (self.summed(side, names, names) for side in (node.left, node.right))
            return replace(node, left=left, right=right)
        if isinstance(node, ast.Product):
            return ast.product(self._factors(node.factors, names))
        if isinstance(node, ast.Sum):
            return ast.total([self.inside(term, names) for term in node.terms])
        if isinstance(node, ast.Exists | ast.Domain):
            return replace(node, body=self.inside(node.body, names))
        return node

    def _factors(self, factors: Iterable[ast.Node], names: Names) -> tuple[ast.Node, ...]:
        found = []
        for factor in factors:
            found.append(self.inside(factor, names))
            names |= outputs(factor, names).keys()
        return tuple(found)

    def _product(self, node: ast.Product, names: Names, kept: Names) -> ast.Node:
        whole = ast.product(self._isolated(self._factors(node.factors, names), names, kept))
        if not any(isinstance(f, ast.Sum) for f in node.factors):
            return whole
        terms = [self._isolated(self._factors(t, names), names, kept) for t in _multiplied_out(node)]
        before = _reads((whole,), names | kept)
        is_better = bool(terms) and all(_reads(term, names | kept) < before for term in terms)
        return ast.total([ast.product(term) for term in terms]) if is_better else whole

    def _isolated(self, factors: tuple[ast.Node, ...], names: Names, kept: Names) -> tuple[ast.Node, ...]:
        """Factors, with range sums as the last ones."""
        accesses = [f for f in factors if isinstance(f, ast.MapAccess)]
        for access in sorted(accesses, key=lambda f: f.name in self.batches):
            if access.initial is None:
                found = self._range_of(access, factors, names, kept)
                if found is not None:
                    rest = tuple(f for f in factors if not any(f is g for g in found))
                    own = ast.AggSum((), ast.product(found), span=access.span)
                    return self._isolated((*rest, own), names, kept)
        return factors

    def _range_of(
        self, access: ast.MapAccess, factors: tuple[ast.Node, ...], names: Names, kept: Names
    ) -> tuple[ast.Node, ...] | None:
        """A read of a map and the comparisons that bound it, if what it binds is needed by nothing else.

        The other factors are read without it, in the order in which they are written, and the comparisons
        after them: each must find the same variables bound as before.
        """
        variables = frozenset(v.name for v in variables_of(access))
        others = [f for f in factors if f is not access]
        comparisons = [f for f in others if isinstance(f, ast.Comparison)]
        elsewhere = kept.union(*(mentioned(f) for f in others if not isinstance(f, ast.Comparison)))
        own = variables - elsewhere - names
        mine = [f for f in comparisons if mentioned(f) & own]
        rest = [f for f in others if not any(f is g for g in mine)]
        needs, known = _needs(factors, names), names
        for factor in rest:
            if not isinstance(factor, _JOINED) and not needs[id(factor)] <= known:
                return None
            known |= outputs(factor, known).keys()
        if not own or not variables - own <= known:
            return None
        if any(mentioned(f) & known - variables != needs[id(f)] - variables for f in mine):
            return None
        read = self.ranges.read((access, *mine), known)
        if read is None:
            return None
        self.orders.setdefault(access.name, {}).setdefault(read.places, read.key)
        return (access, *mine)


def _needs(factors: tuple[ast.Node, ...], names: Names) -> dict[int, Names]:
    """Of each factor, by its identity, the variables that are bound where it is written."""
    found = {}
    for factor in factors:
        found[id(factor)] = mentioned(factor) & names
        names |= outputs(factor, names).keys()
    return found


def _aggregated(node: ast.AggSum, term: ast.Node) -> ast.Node:
    return term if isinstance(term, ast.AggSum) and not term.keys else replace(node, body=term)


def _reads(factors: Iterable[ast.Node], names: Names) -> int:
    """How many maps a product reads entry by entry."""
    found = 0
    for factor in factors:
        if isinstance(factor, ast.Product):
            found += _reads(factor.factors, names)
        elif isinstance(factor, ast.Sum):
            found += max(_reads((term,), names) for term in factor.terms)
        elif isinstance(factor, ast.MapAccess):
            found += any(v.name not in names for v in variables_of(factor))
    return found


def _multiplied_out(node: ast.Node) -> list[tuple[ast.Node, ...]]:
    """The monomials of an expression: sums in products, and products in these; none if they are many."""
    if isinstance(node, ast.Sum):
        parts = [_multiplied_out(term) for term in node.terms]
        return [one for part in parts for one in part] if all(parts) else []
    if not isinstance(node, ast.Product):
        return [(node,)]
    found: list[tuple[ast.Node, ...]] = [()]
    for factor in node.factors:
        found = [(*one, *part) for one in found for part in _multiplied_out(factor)]
        if len(found) > MOST_TERMS:
            return []
    return found


def with_range_sums(program: ast.Program, ranges: Ranges) -> ast.Program:
    """The program with its range sums as sums of their own; the same values.  O(size of the program).

    Twice, since sums over all entries are read in an order that a range needs anyway.
    """
    changed = program
    for _ in range(2):
        isolation = _Isolation(ranges)
        changed = _with_statements(program, isolation)
        ranges.orders = isolation.orders
    return changed


def _with_statements(program: ast.Program, isolation: _Isolation) -> ast.Program:
    def changed(statement: ast.Assign | ast.If, names: Names) -> ast.Assign | ast.If:
        if isinstance(statement, ast.Assign):
            return isolation.statement(statement, names)
        return replace(
            statement,
            then=tuple(changed(s, names) for s in statement.then),
            otherwise=tuple(changed(s, names) for s in statement.otherwise),
        )

    triggers = []
    for trigger in program.triggers:
        names = frozenset(p.name for p in trigger.parameters)
        isolation.batches = frozenset(
            a.target.name
            for a in assignments(trigger.statements)
            if a.op == ":=" and any(isinstance(n, ast.DeltaRelation) for n in a.expression.walk())
        )
        triggers.append(replace(trigger, statements=tuple(changed(s, names) for s in trigger.statements)))
    queries = [
        q if has_initial(q) else replace(q, expression=isolation.inside(q.expression, frozenset()))
        for q in program.queries
    ]
    return replace(program, triggers=tuple(triggers), queries=tuple(queries))
