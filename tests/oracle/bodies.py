"""Owns random rule bodies as text: well-typed and safe by the way they are built, literal after literal.

A `Scope` knows the variables that are bound so far.  Each method of `Writer` adds one literal, taking its
arguments from the scope or binding new variables there.  Knows nothing of heads, strata or facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from . import functors
from .domains import VALUES, literal

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy], Any]

NUMERIC = ("int", "float", "decimal")
EXPRESSIONS = {
    "int": (
        *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} % {b}", "-{a}", "abs({a})"),
        *("min({a}, {b})", "max({a}, {b})", "{a} * 2 + {b}", "({a} - {b}) * {b}"),
    ),
    "float": ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "min({a}, {b})", "max({a}, {b})"),
    "decimal": ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "min({a}, {b})", "-{a}"),
    "datetime": ("{a} + ({a} - {b})", "{b} - ({a} - {b}) * 2", "min({a}, {b})", "max({a}, {b})"),
    "timestamp": ("{a} + ({a} - {b})", "{b} - ({a} - {b}) * 2", "min({a}, {b})", "max({a}, {b})"),
    "duration": ("{a} + {b}", "{a} - {b}", "-{a}", "abs({b})", "{a} * 3", "{a} / 7", "{b} * ({a} / {b})"),
    "string": ("cat({a}, {b})", "substr({a}, 0, 1)", "upper({a})", "min({a}, {b})"),
}
# Those that run on whole columns, and generators: (type of the argument, type of a value, term).
FUNCTIONS = (
    *(("string", "string", f"{name}({{a}})") for name in ("upper", "lower", "trim")),
    *(("string", "string", term) for term in ('split({a}, "b")', 'cat({a}, "b")', 'replace({a}, "a", "b")')),
    *(("string", "int", term) for term in ("strlen({a})", "to_number({a})")),
    *(("int", "string", "to_string({a})"), ("date", "int", "day({a})"), ("date", "date", "add_days({a}, 1)")),
    *(("int", "int", term) for term in ("range({a}, 3)", "range(0, {a})", "range({a}, -3, -2)", "{a} + 1")),
    *(("unsigned", "unsigned", "range({a}, 2, 1)"), ("float", "float", "range({a}, 1.5, 0.5)")),
    *(
        ("float", "float", "floor({a})"),
        ("float", "int", "to_number({a})"),
        ("int", "float", "to_float({a})"),
    ),
    *(("decimal", "decimal", term) for term in ("{a} * 2", "{a} / 4", "{a} + 0.25", "abs({a})")),
    *(
        ("datetime", "int", "hour({a})"),
        ("datetime", "date", "to_date({a})"),
        ("bool", "string", "to_string({a})"),
    ),
)
GENERATORS = (
    *(("int", term) for term in ("range(0, 4)", "range(3, -1)", "range(-1, 4, 2)", "range(2, 2)")),
    *(("string", 'split("a,ab,c,a", ",")'), ("unsigned", "range(1, 4)"), ("float", "range(0.0, 2.0, 0.5)")),
)
TESTS = ('contains("a", {a})', "starts_with({b}, {a})", 'match("a.*", {a})', "ends_with({a}, {b})")
PARTIAL = {"int": ("{a} / {b}", "{b} % {a}") * 5, "string": ('split({a}, "a", 1)',) * 4}


@dataclass(frozen=True)
class Features:
    """What a random program may contain.  `types` are those of base columns."""

    types: tuple[str, ...] = ("int",)
    comparisons: bool = False
    arithmetic: bool = False
    negation: bool = False
    negated_conjunctions: bool = False
    disjunctions: bool = False
    inline_aggregates: bool = False
    primitives: bool = False
    functions: bool = False
    aggregates: bool = False
    several_heads: bool = False
    linear_recursion: bool = False
    nonlinear_recursion: bool = False
    mutual_recursion: bool = False
    recursive_min: bool = False
    deltas: bool = False
    witnesses: bool = False
    functors: bool = False
    functor_aggregates: bool = False

    def with_(self, *names: str, **changes: object) -> Features:
        """These features too.

        >>> Features().with_("negation").negation
        True
        """
        return replace(self, **dict.fromkeys(names, True), **changes)  # type: ignore[arg-type]

    def without(self, *names: str) -> Features:
        return replace(self, **dict.fromkeys(names, False))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Predicate:
    name: str
    types: tuple[str, ...]
    functional: bool = False

    def apply(self, args: Sequence[str]) -> str:
        if self.functional:
            return f"{self.name}[{', '.join(args[:-1])}] = {args[-1]}"
        return f"{self.name}({', '.join(args)})"


@dataclass
class Scope:
    """Bound variables, oldest first, with their types.

    `computed` are values that no fact holds: they may grow without end in a recursion, and a decimal among
    them has more digits than a column.  `opaque` are bound by a disjunction or an aggregate: an aggregate
    inside the same body cannot use them.
    """

    types: dict[str, str] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)

    def of(self, *types: str) -> list[str]:
        return [name for name, type in self.types.items() if type in types]

    def stored(self, *types: str) -> list[str]:
        return [name for name in self.of(*types) if name not in self.computed]

    def inner(self) -> Scope:
        return Scope(dict(self.types), set(self.computed), set(self.opaque))

    def transparent(self) -> Scope:
        kept = {name: type for name, type in self.types.items() if name not in self.opaque}
        return Scope(kept, self.computed & kept.keys())


class Writer:
    """Draws the literals of one rule.  `lower` are the predicates that any literal may use."""

    def __init__(self, draw: Draw, features: Features, lower: Sequence[Predicate]):
        self.draw, self.features, self.lower = draw, features, lower
        self.n_variables = 0

    # Choices.  Hypothesis shrinks towards the first.

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def sometimes(self) -> bool:
        return self.number(0, 3) == 3

    def constant(self, type: str) -> str:
        return literal(self.pick(VALUES[type]))

    def fresh(self, scope: Scope, type: str) -> str:
        self.n_variables += 1
        turn, letter = divmod(self.n_variables - 1, 20)
        name = f"{'xyzwvutsrqnmkjhgdcba'[letter]}{turn or ''}"
        scope.types[name] = type
        return name

    # Bodies

    def body(self, scope: Scope, atoms: int = 3, extras: int = 2) -> list[str]:
        """Atoms that bind variables, then other literals over them."""
        literals = [self.joined_atom(scope) for _ in range(self.number(1, atoms))]
        literals += self.extras(scope, extras)
        return self.draw(st.permutations(literals)) if self.sometimes() else literals

    def extras(self, scope: Scope, most: int, depth: int = 0) -> list[str]:
        literals = []
        for _ in range(self.number(0, most)):
            write = self.pick(self.kinds(scope, depth) or [None])
            if write is not None:
                literals.append(write(scope, depth))
        return literals

    def kinds(self, scope: Scope, depth: int) -> list[Callable[[Scope, int], str]]:
        """The literals that can follow: those of the features for which the scope has variables."""
        f = self.features
        table = [
            (f.comparisons and scope.types, self.comparison),
            (f.arithmetic and scope.of(*EXPRESSIONS), self.arithmetic),
            (f.negation, self.negated_atom),
            (f.negated_conjunctions and depth < 2, self.negated_conjunction),
            (f.disjunctions and depth < 2, self.test_disjunction),
            (f.disjunctions and depth < 2, self.binding_disjunction),
            (f.inline_aggregates and depth == 0, self.inline_aggregate),
            (f.witnesses and depth == 0, self.extreme_assignment),
            (f.primitives and self.between(scope), self.function_between),
            (f.primitives and self.given(), self.generated),
            (f.primitives and scope.of("string"), self.test),
            *[(f.functors and self.callable(scope), self.called)] * 4,
        ]
        return [write for allowed, write in table if allowed]

    # Literals

    def atom(self, scope: Scope, predicate: Predicate, must: str = "") -> str:
        """An atom; with `must`, that variable is in one of the columns of its type."""
        before = scope.inner()
        places = [i for i, type in enumerate(predicate.types) if must and type == scope.types[must]]
        place = self.pick(places) if places else None
        args = [
            must if i == place else self.argument(scope, before, type)
            for i, type in enumerate(predicate.types)
        ]
        return predicate.apply(args)

    def joined_atom(self, scope: Scope) -> str:
        """An atom that mostly shares a variable with what is bound."""
        predicate = self.pick(self.lower)
        shared = scope.of(*predicate.types)
        return self.atom(scope, predicate, self.pick(shared) if shared and not self.sometimes() else "")

    def argument(self, scope: Scope, before: Scope, type: str) -> str:
        """A new variable, one bound before this atom, one repeated inside it, a wildcard or a constant."""
        kind = self.pick(("new", "known", "known", "known", "repeated", "wildcard", "constant"))
        names = {"known": before, "repeated": scope}.get(kind, Scope()).of(type)
        if names:
            return self.pick(names)
        if kind == "wildcard":
            return "_"
        return self.constant(type) if kind == "constant" else self.fresh(scope, type)

    def comparison(self, scope: Scope, depth: int = 0) -> str:
        a = self.pick(list(scope.types))
        type = scope.types[a]
        others = [v for v in scope.of(type) if v != a]
        b = self.pick(others) if others and not self.sometimes() else self.constant(type)
        return f"{a} {self.pick(('<', '!=', '<=', '>', '>=', '='))} {b}"

    def arithmetic(self, scope: Scope, depth: int = 0) -> str:
        a = self.pick(scope.of(*EXPRESSIONS))
        type = scope.types[a]
        b = self.constant(type) if self.sometimes() else self.pick(scope.of(type))
        own = functors.EXPRESSIONS.get(type, ()) * 3 if self.features.functors else ()
        expression = self.pick((*EXPRESSIONS[type], *own)).format(a=a, b=b)
        result = self.fresh(scope, type)
        scope.computed.add(result)
        scope.opaque |= {result} if {a, b} & scope.opaque else set()
        return f"{result} = {expression}"

    def expression(self, scope: Scope, a: str) -> str:
        """A term of the type of a variable, often one that may have no value."""
        type = scope.types[a]
        b = self.constant(type) if self.sometimes() else self.pick(scope.of(type))
        own = functors.EXPRESSIONS.get(type, ()) * 3 if self.features.functors else ()
        return self.pick((*PARTIAL.get(type, ()), *EXPRESSIONS[type], *own)).format(a=a, b=b)

    # Primitives that run on whole columns, and generators

    def between(self, scope: Scope) -> list[tuple[str, str, str]]:
        """Functions of what is bound whose values some predicate has."""
        known = {type for predicate in self.lower for type in predicate.types}
        return [f for f in FUNCTIONS if f[1] in known and scope.of(f[0])]

    def function_between(self, scope: Scope, depth: int = 0) -> str:
        """A value is computed and then looked up; both are bound, or joined in any order."""
        given, type, term = self.pick(self.between(scope))
        a = self.pick(scope.of(given))
        result = self.fresh(scope, type)
        source = self.pick([p for p in self.lower if type in p.types])
        literals = [f"{result} = {term.format(a=a)}", self.atom(scope, source, result)]
        scope.opaque |= (scope.types.keys() - {a}) if a in scope.opaque else set()
        return ", ".join(self.draw(st.permutations(literals)))

    def callable(self, scope: Scope) -> list[tuple[str, str, str]]:
        return [f for f in functors.TERMS if scope.of(f[0])]

    def called(self, scope: Scope, depth: int = 0) -> str:
        """The value of a functor, looked up or not."""
        given, type, term = self.pick(self.callable(scope))
        a = self.pick(scope.of(given))
        result = self.fresh(scope, type)
        text = f"{result} = {term.format(a=a)}"
        sources = [p for p in self.lower if type in p.types]
        scope.opaque |= (scope.types.keys() - {a}) if a in scope.opaque else set()
        if sources and self.sometimes():
            return ", ".join(self.draw(st.permutations([text, self.atom(scope, self.pick(sources), result)])))
        scope.computed.add(result)
        return text

    def given(self) -> list[tuple[str, str]]:
        known = {type for predicate in self.lower for type in predicate.types}
        return [g for g in GENERATORS if g[0] in known]

    def generated(self, scope: Scope, depth: int = 0) -> str:
        """Values of a generator, mostly looked up."""
        type, term = self.pick(self.given())
        result = self.fresh(scope, type)
        if self.sometimes():
            scope.computed.add(result)
            return f"{result} = {term}"
        source = self.pick([p for p in self.lower if type in p.types])
        return f"{result} = {term}, {self.atom(scope, source, result)}"

    def test(self, scope: Scope, depth: int = 0) -> str:
        names = scope.of("string")
        return self.pick(TESTS).format(a=self.pick(names), b=self.pick(names))

    def negated_atom(self, scope: Scope, depth: int = 0) -> str:
        predicate = self.pick(self.lower)
        args = []
        for type in predicate.types:
            known = [] if self.sometimes() else scope.of(type)
            args.append(self.pick(known or ["_", self.constant(type)]))
        return f"!{predicate.apply(args)}"

    def negated_conjunction(self, scope: Scope, depth: int = 0) -> str:
        return f"!({', '.join(self.conjunction(scope.inner(), depth + 1))})"

    def conjunction(self, scope: Scope, depth: int) -> list[str]:
        """A body inside another one: its new variables are its own."""
        return [self.joined_atom(scope), *self.extras(scope, 2, depth)]

    def test_disjunction(self, scope: Scope, depth: int = 0) -> str:
        branches = [", ".join(self.conjunction(scope.inner(), depth + 1)) for _ in range(self.number(2, 3))]
        return f"({' ; '.join(branches)})"

    def binding_disjunction(self, scope: Scope, depth: int = 0) -> str:
        """Every branch binds the same new variable."""
        type = self.pick(self.pick(self.lower).types)
        shared = self.fresh(Scope(), type)
        branches = []
        for _ in range(2):
            inner = scope.inner()
            inner.types[shared] = type
            source = self.pick([p for p in self.lower if type in p.types])
            first = self.atom(inner, source, must=shared)
            branches.append(", ".join([first, *self.extras(inner, 1, depth + 1)]))
        scope.types[shared] = type
        scope.opaque.add(shared)
        return f"({' ; '.join(branches)})"

    def inline_aggregate(self, scope: Scope, depth: int = 0) -> str:
        inner = scope.transparent()
        outer = set(inner.types)
        text = ", ".join(self.conjunction(inner, depth + 1))
        own = [name for name in inner.types if name not in outer]
        op, argument, type = self.aggregation(inner, own)
        result = self.fresh(scope, type)
        scope.computed.add(result)
        scope.opaque.add(result)
        return f"{result} = {op}{argument and ' '}{argument} : {{ {text} }}"

    def extreme_assignment(self, scope: Scope, depth: int = 0) -> str:
        """The least or greatest value, and a witness: it is used outside, but in no other aggregate."""
        inner = scope.transparent()
        outer = set(inner.types)
        text = ", ".join(self.conjunction(inner, depth + 1))
        own = [name for name in inner.types if name not in outer]
        argument = self.pick(own or list(inner.types)) if inner.types else self.constant("int")
        result = self.fresh(scope, inner.types.get(argument, "int"))
        scope.computed.add(result)
        scope.opaque.add(result)
        for name in {self.pick(own)} if own else ():
            scope.types[name] = inner.types[name]
            scope.computed |= {name} & inner.computed
            scope.opaque.add(name)
        return f"{result} = {self.pick(('min', 'max'))} {argument} : {{ {text} }}"

    def aggregation(self, scope: Scope, candidates: Sequence[str]) -> tuple[str, str, str]:
        """An aggregate over one of these variables: its name, its argument, the type of its result."""
        numeric = [v for v in candidates if scope.types[v] in NUMERIC]
        texts = [v for v in candidates if scope.types[v] == "string"]
        summed = [v for v in candidates if scope.types[v] in (*NUMERIC, "duration")]
        ops = ["count"] + (["sum", "mean"] if summed else []) + (["deviation"] if numeric else [])
        ops += ["min", "max", "count_distinct"] if candidates else []
        own = [a for a in functors.AGGREGATES if a[1] in {scope.types[v] for v in candidates}]
        if self.features.functor_aggregates and own and not self.sometimes():
            op, type, result = self.pick(own)
            return op, self.pick([v for v in candidates if scope.types[v] == type]), result
        op = self.pick(ops + (["concat"] if texts and self.features.aggregates else []))
        if op == "count":
            return op, "", "int"
        if op in ("sum", "mean", "deviation"):
            argument = self.pick(numeric if op == "deviation" else summed)
        else:
            argument = self.pick(texts if op == "concat" else list(candidates))
        if op == "deviation":
            op = self.pick(["variance", "stddev", "variance_pop", "stddev_pop"])
            return op, argument, "float"
        type = scope.types[argument]
        mean = "duration" if type == "duration" else "float"
        return op, argument, {"mean": mean, "count_distinct": "int"}.get(op, type)
