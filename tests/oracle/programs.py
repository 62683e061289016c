"""Owns random programs as text: well-typed, safe and stratified by construction, mostly with results.

    @given(programs(ALL))                         # or CONJUNCTIVE.with_("negation"), NONRECURSIVE, ...
    def test_something(text):
        program = dlog.check(text)

A program is base relations with facts, then derived predicates one after the other, each over those before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from hypothesis import strategies as st

import dlog
from dlog.errors import DlogError

from . import functors
from .bodies import EXPRESSIONS, NUMERIC, Draw, Features, Predicate, Scope, Writer
from .domains import DECLARED, VALUES, fact, literal
from .naive import evaluate
from .values import Row

CONJUNCTIVE = Features()
# Types with much to compute are listed twice, so that they are drawn more often.
TYPES = (
    *("int", "string", "float", "decimal") * 2,
    "unsigned",
    "bool",
    "date",
    "datetime",
    "timestamp",
    "duration",
)
NONRECURSIVE = Features(TYPES).with_(
    *("comparisons", "arithmetic", "negation", "negated_conjunctions", "disjunctions"),
    *("inline_aggregates", "functions", "aggregates", "several_heads", "primitives"),
)
RECURSIVE = ("linear_recursion", "nonlinear_recursion", "mutual_recursion", "recursive_min")
ALL = NONRECURSIVE.with_(*RECURSIVE, "deltas")


@st.composite
def programs(draw: Draw, features: Features = ALL, derived: int = 4, facts: int = 10) -> str:
    """Texts with at most this many groups of derived predicates, and facts in a base relation."""
    author = Author(draw, features)
    author.base(facts)
    author.picks(1, derived)
    if features.deltas:
        author.deltas()
    return author.text


class Author:
    """Writes one program, statement by statement."""

    def __init__(self, draw: Draw, features: Features):
        self.draw = draw
        types = st.lists(st.sampled_from(features.types), min_size=1, max_size=2, unique=True)
        self.features = features.with_(types=tuple(draw(types)))  # few types, so that there is much to join
        self.lines: list[str] = list(functors.DECLARED) if features.functors else []
        self.predicates: list[Predicate] = []
        self.base_predicates: list[Predicate] = []
        self.numbers = count(1)

    def __repr__(self) -> str:
        return f"\n{self.text}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    # Base relations

    def base(self, facts: int) -> None:
        """The first relation is a graph; others have one to three columns, or are functions."""
        writer = self.writer()
        kind = writer.pick(self.features.types)
        self.base_relation(Predicate("e1", (kind, kind)), facts)
        for number in range(2, 2 + writer.number(0, 3)):
            functional = self.features.functions and writer.sometimes()
            width = writer.number(2 if functional else 1, 3)
            types = tuple(writer.pick(self.features.types) for _ in range(width))
            self.base_relation(Predicate(f"{'f' if functional else 'e'}{number}", types, functional), facts)

    def base_relation(self, predicate: Predicate, facts: int) -> None:
        columns = [st.sampled_from(VALUES[type]) for type in predicate.types]
        unique = _key if predicate.functional else _row
        rows = self.draw(st.lists(st.tuples(*columns), min_size=3, max_size=facts, unique_by=unique))
        self.declare(predicate)
        self.lines.append(" ".join(f"{fact(predicate.name, r, predicate.functional)}." for r in rows))
        self.predicates.append(predicate)
        self.base_predicates.append(predicate)

    def declare(self, predicate: Predicate) -> None:
        self.lines.append(declaration(predicate))

    def undeclared(self) -> list[str]:
        """Declarations that the program lacks so far."""
        known = set(self.lines)
        return [text for text in map(declaration, self.predicates) if text not in known]

    def declare_all(self) -> None:
        self.lines += self.undeclared()

    def deltas(self) -> None:
        writer = self.writer()
        for _ in range(writer.number(0, 3)):
            predicate = writer.pick(self.base_predicates)
            row = tuple(writer.pick(VALUES[type]) for type in predicate.types)
            op = writer.pick(("^", "-") if predicate.functional else ("+", "-"))
            self.lines.append(f"{op}{fact(predicate.name, row, predicate.functional)}.")

    # Derived predicates

    def picks(self, least: int, most: int) -> None:
        writer = self.writer()
        for _ in range(writer.number(least, most)):
            writer.pick(self.kinds())()

    def picks_with_rows(self, most: int) -> None:
        """As `picks`, rule by rule: a rule that derives nothing is usually replaced by another."""
        writer = self.writer()
        for _ in range(writer.number(1, most)):
            for _ in range(4):
                lines, predicates = list(self.lines), list(self.predicates)
                writer.pick(self.kinds())()
                if self.derives_rows(self.predicates[len(predicates) :]) or writer.number(0, 15) == 15:
                    break
                self.lines, self.predicates = lines, predicates

    def derives_rows(self, predicates: Sequence[Predicate]) -> bool:
        """Whether the program so far gives rows to these, by the naive evaluator."""
        try:
            facts = evaluate(dlog.check(self.text))
        except (DlogError, OverflowError):
            return False
        return bool(predicates) and all(facts[p.name] for p in predicates)

    def kinds(self) -> list[Callable[[], None]]:
        f = self.features
        table = [
            (True, self.relation),
            (f.functions, self.function),
            (f.aggregates, self.aggregation),
            (f.several_heads, self.several_heads),
            (f.linear_recursion, self.linear_recursion),
            (f.nonlinear_recursion, self.nonlinear_recursion),
            (f.mutual_recursion, self.mutual_recursion),
            (f.recursive_min, self.recursive_min),
            (f.linear_recursion and f.arithmetic and "int" in f.types, self.counter),
        ]
        return [write for allowed, write in table if allowed]

    def writer(self, features: Features | None = None) -> Writer:
        return Writer(self.draw, features or self.features, self.predicates)

    def rule(self, heads: str, body: Sequence[str], aggregates: str = "") -> None:
        self.lines.append(f"{heads} <- {aggregates}{', '.join(body)}.")

    def define(self, types: Sequence[str], functional: bool = False) -> Predicate:
        """A new predicate.  A decimal column needs its digits declared; others are inferred now and then."""
        predicate = Predicate(f"p{next(self.numbers)}", tuple(types), functional)
        if "decimal" in types or self.writer().sometimes():
            self.declare(predicate)
        return predicate

    def relation(self) -> None:
        """One or two rules with one head."""
        writer, scope = self.writer(), Scope()
        body = writer.body(scope)
        args = self.head(writer, scope)
        predicate = self.define([type for _, type in args])
        self.rule(predicate.apply([text for text, _ in args]), body)
        if writer.sometimes():
            self.another_rule(predicate)
        self.predicates.append(predicate)

    def another_rule(self, predicate: Predicate) -> None:
        """One more rule of a relation, over what was there before it: no new recursion."""
        before = [p.name for p in self.predicates]
        lower = self.predicates[: before.index(predicate.name)] if predicate.name in before else None
        writer, scope = Writer(self.draw, self.features, lower or self.predicates), Scope()
        body = writer.body(scope)
        self.rule(predicate.apply(self.head_of(writer, scope, predicate.types, stored=bool(lower))), body)

    def head(self, writer: Writer, scope: Scope) -> list[tuple[str, str]]:
        """Head arguments and their types: bound variables, rarely a constant."""
        names = list(scope.types)
        if not names or (writer.sometimes() and writer.sometimes()):
            type = writer.pick(self.features.types)
            return [(writer.constant(type), type)] + [(n, scope.types[n]) for n in names[:1]]
        unique = not writer.sometimes()
        chosen = self.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=unique))
        return [(name, scope.types[name]) for name in chosen]

    def head_of(self, writer: Writer, scope: Scope, types: Sequence[str], stored: bool = False) -> list[str]:
        """Head arguments of given types; with `stored`, only values that some fact holds."""
        args: list[str] = []
        for type in types:
            names = scope.stored(type) if stored else scope.of(type)
            others = [name for name in names if name not in args]
            args.append(writer.pick(others or names) if names else writer.constant(type))
        return args

    def several_heads(self) -> None:
        writer, scope = self.writer(), Scope()
        body = writer.body(scope)
        heads, defined = [], []
        for _ in range(2):
            args = [self.term(writer, scope, *arg) for arg in self.head(writer, scope)]
            predicate = self.define([type for _, type in args])
            heads.append(predicate.apply([text for text, _ in args]))
            defined.append(predicate)
        self.rule(", ".join(heads), body)
        self.predicates += defined

    def term(self, writer: Writer, scope: Scope, text: str, type: str) -> tuple[str, str]:
        """A head argument that may be computed in the head, and may then have no value."""
        if text in scope.types and self.features.arithmetic and type in EXPRESSIONS and writer.sometimes():
            text = writer.expression(scope, text)
        return text, type

    def function(self) -> None:
        """The value is computed from the keys alone, so that no key gets two values."""
        writer, scope = self.writer(), Scope()
        body = writer.body(scope)
        known = scope.stored(*VALUES)
        if not known:
            return
        keys = [writer.pick(known) for _ in range(writer.number(1, 2))]
        inside = Scope({name: scope.types[name] for name in keys})
        if self.features.arithmetic and inside.of(*NUMERIC):
            body.append(writer.arithmetic(inside))
        value = list(inside.types)[-1]
        predicate = self.define([*(scope.types[k] for k in keys), inside.types[value]], functional=True)
        self.rule(predicate.apply([*keys, value]), body)
        self.predicates.append(predicate)

    def aggregation(self) -> None:
        """`agg<<>>` with one or two aggregates, as functions of the group."""
        writer, scope = self.writer(), Scope()
        body = writer.body(scope)
        known = scope.stored(*VALUES)
        groups = sorted({writer.pick(known) for _ in range(writer.number(0, 2))}) if known else []
        candidates = [name for name in scope.types if name not in groups]
        heads, parts = [], []
        for number in range(1, 2 + writer.number(0, 1)):
            op, argument, type = writer.aggregation(scope, candidates)
            predicate = self.define([*(scope.types[g] for g in groups), type], functional=True)
            heads.append(predicate)
            if (
                self.features.arithmetic
                and scope.types.get(argument) in ("int", "float")
                and writer.sometimes()
            ):
                argument = writer.expression(scope, argument)
            parts.append(f"result{number} = {op}({argument})")
        texts = [p.apply([*groups, f"result{number}"]) for number, p in enumerate(heads, 1)]
        self.rule(", ".join(texts), body, f"agg<<{', '.join(parts)}>> ")
        self.predicates += heads

    # Recursion.  Heads take only values that facts hold, so that the fixpoint is finite.

    def linear_recursion(self) -> None:
        self.recursive(1, 1)

    def nonlinear_recursion(self) -> None:
        self.recursive(1, 2)

    def mutual_recursion(self) -> None:
        self.recursive(2, 1)

    def recursive(self, n_predicates: int, n_atoms: int) -> None:
        """Each predicate gets a rule without recursion, and one over the next predicate of the cycle."""
        writer = self.writer()
        cycle = []
        for _ in range(n_predicates):
            types = writer.pick(self.predicates).types[:2]
            cycle.append(self.define(types))
        for index, predicate in enumerate(cycle):
            self.exit_rule(predicate)
            self.recursive_rule(predicate, [cycle[(index + 1) % n_predicates]] * n_atoms)
        self.predicates += cycle

    def exit_rule(self, predicate: Predicate) -> None:
        writer, scope = self.writer(), Scope()
        body = writer.body(scope, atoms=1, extras=1)
        self.rule(predicate.apply(self.head_of(writer, scope, predicate.types, stored=True)), body)

    def recursive_rule(self, head: Predicate, uses: Sequence[Predicate]) -> None:
        writer, scope = self.writer(self.features.without("inline_aggregates")), Scope()
        first = uses[0].apply([writer.fresh(scope, type) for type in uses[0].types])
        body = [first, *(writer.atom(scope, predicate) for predicate in uses[1:])]
        body += [writer.joined_atom(scope) for _ in range(writer.number(0, 2))]
        body += writer.extras(scope, 1)
        self.rule(head.apply(self.head_of(writer, scope, head.types, stored=True)), body)

    def counter(self) -> None:
        """A recursion that makes new values, with a bound."""
        writer, scope = self.writer(), Scope()
        predicate = self.define(["int"])
        body = writer.body(scope, atoms=1, extras=1)
        self.rule(predicate.apply(self.head_of(writer, scope, ["int"])), [*body])
        bound, step = writer.number(1, 9), writer.number(1, 3)
        self.rule(predicate.apply(["n"]), [predicate.apply(["m"]), f"n = m + {step}", f"n < {bound}"])
        self.predicates.append(predicate)

    def recursive_min(self) -> None:
        """Shortest, widest and cheapest paths over a relation with two columns of one type."""
        writer = self.writer()
        road, source, target = writer.pick([(p, *pair) for p in self.predicates for pair in _pairs(p.types)])
        weights = [i for i, t in enumerate(road.types) if i not in (source, target) and t in NUMERIC]
        weight = writer.pick(weights) if weights else None
        type = writer.pick(NUMERIC) if weight is None else road.types[weight]
        args = ["_"] * len(road.types)
        args[source], args[target] = "x", "y"
        if weight is not None:
            args[weight] = "w"
        predicate = self.define([road.types[source], type], functional=True)
        self.starts(writer, predicate, road.apply(args) if weight is not None else "")
        op, step = writer.pick(_STEPS)
        cost = "w" if weight is not None else _SMALL[type]
        guards = [f"w >= {_ZERO[type]}"] if weight is not None else []
        body = [predicate.apply(["x", "a"]), road.apply(args), *guards, f"b = {step.format(w=cost)}"]
        self.rule(predicate.apply(["y", "c"]), body, f"agg<<c = {op}(b)>> ")
        self.predicates.append(predicate)

    def starts(self, writer: Writer, predicate: Predicate, road: str) -> None:
        """Base facts, or a rule that may give several candidates for one key."""
        if road and writer.sometimes():
            self.rule(predicate.apply(["x", "w"]), [road])
            return
        key, type = predicate.types
        keys = self.draw(st.lists(st.sampled_from(VALUES[key]), min_size=1, max_size=2, unique=True))
        for k in keys:
            self.lines.append(f"{predicate.apply([literal(k), _ZERO[type]])}.")


def declaration(predicate: Predicate) -> str:
    """
    >>> declaration(Predicate("f", ("int", "decimal"), functional=True))
    'f[x0] = x1 -> int(x0), decimal[10, 2](x1).'
    """
    names = [f"x{i}" for i in range(len(predicate.types))]
    types = [f"{DECLARED.get(t, t)}({n})" for n, t in zip(names, predicate.types, strict=True)]
    return f"{predicate.apply(names)} -> {', '.join(types)}."


# How a value flows along a road.  A cost is never negative, so that no cycle makes a value better for ever.
_STEPS = (
    ("min", "a + {w}"),
    ("min", "max(a, {w})"),
    ("max", "min(a, {w})"),
    ("max", "a - {w}"),
    ("min", "a"),
)
_ZERO = {"int": "0", "float": "0.0", "decimal": "0.00"}
_SMALL = {"int": "1", "float": "0.1", "decimal": "0.05"}


def _key(row: Row) -> Row:
    return row[:-1]


def _row(row: Row) -> Row:
    return row


def _pairs(types: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of columns of one type."""
    return [(i, j) for i, t in enumerate(types) for j, u in enumerate(types) if i != j and t == u]
