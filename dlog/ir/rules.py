"""Owns rules in the normal form of the maintenance paper (Fig. 1), and the checked program they form.

    conj ::= [exists x ...] form, ...        form ::= atom | primitive | disj | negation
    disj ::= conj ; conj ...                 negation ::= ! conj
    rule ::= forall x ... . head, ... <- [agg<<...>>] conj

Knows nothing of how rules are found in a text or evaluated.  Every variable of a rule has one name and one
type; a variable that occurs in both head and body is universal, any other belongs to the `exists` block of
the smallest conjunction that holds all its uses (if only branches of one disjunction use it, and not all of
them bind it, each of these branches quantifies its own).  Forms are in an order in which they can be
evaluated from left to right.

An aggregate ranges over the distinct assignments of the rule's groups and of the body's outermost `exists`
block: in an aggregation rule every variable outside negations is quantified there, and every branch of a
disjunction gives each of them a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from dlog.aggregates import Aggregate as AggregateFunction
from dlog.aggregates import aggregate_named
from dlog.ir.functors import Functor
from dlog.language import ast
from dlog.language.source import Span
from dlog.values import FLOAT, INT, STRING, Type

if TYPE_CHECKING:
    from dlog.ir.events import Events


@dataclass(frozen=True)
class Var:
    name: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Const:
    """A literal.  `kind` is the spelling's (int, unsigned, float, string, bool); `type` is set by typing."""

    kind: str
    value: int | str | bool
    type: Type | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.kind == "string":
            return '"' + str(self.value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        return str(self.value).lower() if self.kind == "bool" else str(self.value)


Operand: TypeAlias = Var | Const


@dataclass(frozen=True)
class Atom:
    """`R(args)` or `F[args[:n_keys]] = args[n_keys]` over a materialised predicate."""

    predicate: str
    args: tuple[Operand, ...]
    n_keys: int
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def is_functional(self) -> bool:
        return self.n_keys < len(self.args)

    @property
    def keys(self) -> tuple[Operand, ...]:
        return self.args[: self.n_keys]

    def __str__(self) -> str:
        keys = ", ".join(map(str, self.keys))
        if self.is_functional:
            return f"{self.predicate}[{keys}] = {self.args[-1]}"
        return f"{self.predicate}({keys})"


@dataclass(frozen=True)
class Primitive:
    """`output = name(inputs)`, or the relation `name(inputs)` when there is no output.

    An output that is bound already, or a literal, is compared.  Decimals are exact: where the output has
    fewer digits than the result needs, the two differ.  Only heads round.
    """

    name: str
    inputs: tuple[Operand, ...]
    output: Operand | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def args(self) -> tuple[Operand, ...]:
        return self.inputs if self.output is None else (*self.inputs, self.output)

    def __str__(self) -> str:
        from dlog.ir.primitives import show

        return show(self)


@dataclass(frozen=True)
class Negation:
    body: Conj
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"!({self.body})" if len(self.body.forms) != 1 or self.body.exists else f"!{self.body}"


@dataclass(frozen=True)
class Disjunction:
    """No branch is `false`, which occurs only in the outermost conjunction of a body.

    `exclusive`: at most one branch holds, whatever is bound around it, so it has one value for what it binds.
    """

    branches: tuple[Conj, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    exclusive: bool = False

    def __str__(self) -> str:
        return "(" + " ; ".join(map(str, self.branches)) + ")"


Form: TypeAlias = Atom | Primitive | Negation | Disjunction


@dataclass(frozen=True)
class Conj:
    exists: tuple[Var, ...]
    forms: tuple[Form, ...]

    def __str__(self) -> str:
        quantifier = f"exists {', '.join(map(str, self.exists))} . " if self.exists else ""
        return quantifier + (", ".join(map(str, self.forms)) or "true")

    def atoms(self) -> Iterator[tuple[Atom, bool]]:
        """Every atom at any depth, with whether it is under a negation (or several)."""
        for form in self.forms:
            if isinstance(form, Atom):
                yield form, False
            elif isinstance(form, Disjunction):
                for branch in form.branches:
                    yield from branch.atoms()
            elif isinstance(form, Negation):
                for atom, _ in form.body.atoms():
                    yield atom, True

    def walk(self) -> Iterator[Form]:
        """Every form at any depth, outer before inner."""
        for form in self.forms:
            yield form
            if isinstance(form, Disjunction):
                for branch in form.branches:
                    yield from branch.walk()
            elif isinstance(form, Negation):
                yield from form.body.walk()

    def predicates(self) -> frozenset[str]:
        """What is read at any depth, negated or not."""
        return frozenset(atom.predicate for atom, _ in self.atoms())

    def variables(self) -> set[str]:
        return {v.name for v in self.occurrences()}

    def occurrences(self) -> Iterator[Var]:
        for form in self.walk():
            if isinstance(form, Atom | Primitive):
                yield from (a for a in form.args if isinstance(a, Var))


@dataclass(frozen=True)
class Aggregate:
    """`result = op(argument)` over the assignments of a rule's body."""

    op: str
    result: Var
    argument: Operand | None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def function(self) -> AggregateFunction:
        """The aggregate's definition, the same in every rule."""
        return aggregate_named(self.op)

    def __str__(self) -> str:
        return f"{self.result} = {self.function}({'' if self.argument is None else self.argument})"


@dataclass(frozen=True)
class Rule:
    """`forall universals . heads <- agg<<aggregates>> body`.

    A rule that `removes` is a subsumption: its head is a row that another row subsumes.  One that `numbers`
    is a sequence (`dlog.ir.lower.sequences`): it is not evaluated as a rule.

    `id` numbers rules in source order; `types` has every variable; `keys` are the variables that occur in
    key position of a materialised predicate in the body, that a generator binds, or that a disjunction may
    bind to several values: a binding of them determines all others.  `computed` are the variables that were
    made for the value of a term, as for `x + 1` in `x + 1 > 2`.
    """

    id: int
    heads: tuple[Atom, ...]
    body: Conj
    aggregates: tuple[Aggregate, ...] = ()
    universals: tuple[Var, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict, compare=False)
    keys: frozenset[str] = frozenset()
    span: Span | None = field(default=None, compare=False, repr=False)
    order: tuple[str, ...] | None = None  # of `concat`, if it is not that of the keys in the body
    removes: bool = False
    numbers: bool = False
    computed: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    def __str__(self) -> str:
        heads = ("remove " if self.removes else "") + ", ".join(map(str, self.heads))
        agg = f"agg<<{', '.join(map(str, self.aggregates))}>> " if self.aggregates else ""
        return f"{heads} <- {agg}{self.body}."

    @property
    def groups(self) -> tuple[Var, ...]:
        """The group keys of an aggregation rule: the head's variables that are not an aggregate's result."""
        results = {a.result.name for a in self.aggregates}
        return tuple(v for v in self.universals if v.name not in results)


def concat_keys(rule: Rule) -> list[str]:
    """The key variables of a body in the order of their first use: the order of concat."""
    if rule.order is not None:
        return list(rule.order)
    own = {v.name for v in (*rule.body.exists, *rule.universals)}
    used = dict.fromkeys(v.name for v in rule.body.occurrences())
    return [name for name in used if name in own and name in rule.keys]


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    domain: str | None = None  # the name of a declared subtype or union, for messages


Domain = tuple[int, ...]  # the columns of a key
COUNTER = "next autoinc"  # the relation with the next number, which is none of a program's predicates


@dataclass(frozen=True)
class Choice:
    """How the rows of a predicate are chosen: of candidates with the same key of a domain one is kept."""

    candidates: str  # the predicate that has what the rules derive; base facts are candidates, too
    domains: tuple[Domain, ...]


@dataclass(frozen=True)
class Numbering:
    """How a predicate gives numbers: its last `count` columns number the rows of another predicate."""

    assignments: str
    count: int


@dataclass
class Predicate:
    """One predicate: its columns, of which the first `n_keys` are keys."""

    name: str
    columns: tuple[Column, ...]
    n_keys: int
    declared: bool = False
    auxiliary: bool = False  # made by lowering: never shown as a result
    qualifiers: frozenset[str] = frozenset()
    span: Span | None = None
    equivalence: str | None = None  # the equivalence relation whose classes it holds
    choice: Choice | None = None
    numbering: Numbering | None = None
    given_to: str | None = None  # what has its rows as memory, where a program is loaded

    @property
    def has_memory(self) -> bool:
        """Whether its rows depend on those that it had before."""
        return self.choice is not None or self.numbering is not None

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def is_functional(self) -> bool:
        return self.n_keys < self.arity

    @property
    def is_equivalence(self) -> bool:
        """Whether it is declared as an equivalence relation."""
        return "eqrel" in self.qualifiers

    @cached_property
    def has_only_ints(self) -> bool:
        return all(column.type == INT for column in self.columns)

    @cached_property
    def has_plain_columns(self) -> bool:
        """Whether all columns are ints, floats or strings."""
        return all(column.type in (INT, FLOAT, STRING) for column in self.columns)

    @cached_property
    def has_records(self) -> bool:
        return any(column.type.is_record for column in self.columns)

    def show(self, args: tuple[object, ...]) -> str:
        keys = ", ".join(map(str, args[: self.n_keys]))
        return f"{self.name}[{keys}] = {args[-1]}" if self.is_functional else f"{self.name}({keys})"


@dataclass(frozen=True)
class FactBlock:
    """Facts of one predicate as rows of (kind, value) literals; typed by the predicate's columns."""

    predicate: str
    rows: tuple[tuple[tuple[str, int | str | bool], ...], ...]
    offsets: tuple[int, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class FactDelta:
    """`+`, `-` or `^` of one fact, in program order."""

    op: str
    predicate: str
    row: tuple[tuple[str, int | str | bool], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Constraint:
    """Whenever `left` holds, `right` must: stored as the rule that derives its violations."""

    text: str
    violations: str  # the auxiliary predicate that must stay empty
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Query:
    """`?- body`: answered by an auxiliary predicate over its variables."""

    text: str
    predicate: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Stratum:
    """Predicates that depend on each other, evaluated together after all strata before them.

    `rules` have only their heads in the stratum; in a recursive one a rule with aggregates has one head.
    `subsumptions` are the rules that remove rows of its predicates.  A predicate without rules that has one
    is a stratum, too: it is derived from its base facts.
    """

    predicates: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool
    combine: Mapping[str, str] = field(default_factory=dict)  # predicate -> min or max, where recursive
    subsumptions: tuple[Rule, ...] = ()
    totals: Mapping[str, str] = field(default_factory=dict)  # predicate -> sum or count, where recursive

    @property
    def sequence(self) -> Rule | None:
        """The rule that numbers, if it has one: then it is the only one."""
        return self.rules[0] if len(self.rules) == 1 and self.rules[0].numbers else None

    @cached_property
    def reads(self) -> frozenset[str]:
        """The predicates in the bodies of its rules, its own too, and what its subsumptions compare with."""
        compared = frozenset[str]().union(*(rule.body.predicates() for rule in self.subsumptions))
        read = frozenset[str]().union(*(rule.body.predicates() for rule in self.rules))
        return read | (compared - set(self.predicates))


@dataclass
class Program:
    """A checked program: every name resolved, every variable typed and grounded, strata in order."""

    predicates: dict[str, Predicate]
    rules: tuple[Rule, ...]
    strata: tuple[Stratum, ...]
    facts: tuple[FactBlock, ...]
    deltas: tuple[FactDelta, ...]
    constraints: tuple[Constraint, ...]
    queries: tuple[Query, ...]
    directives: tuple[ast.Directive, ...]
    pragmas: tuple[ast.Pragma, ...]
    source: ast.Program = field(repr=False)
    functors: Mapping[str, Functor] = field(default_factory=dict)  # that it declares, by name
    pulses: frozenset[str] = frozenset()  # predicates that have rows in transactions only
    references: frozenset[str] = frozenset()  # reference modes of entity types, which take no facts
    sequences: frozenset[str] = frozenset()  # functions that number, which take no facts, either
    events: Events | None = field(default=None, compare=False, repr=False)  # its delta rules
    # See `dlog.planning.stored_primitives`.
    maintained: Program | None = field(default=None, compare=False, repr=False)
    written: Program | None = field(
        default=None, compare=False, repr=False
    )  # what this one is maintained for

    @cached_property
    def inclusions(self) -> frozenset[tuple[str, str]]:
        """See `dlog.ir.analysis.inclusions`."""
        from dlog.ir.analysis.inclusions import inclusions

        return inclusions(self)

    @cached_property
    def equivalences(self) -> Mapping[str, str]:
        """The predicate with the classes of each equivalence relation: see `dlog.ir.lower.equivalence`."""
        return {p.equivalence: name for name, p in self.predicates.items() if p.equivalence is not None}

    @cached_property
    def remembered(self) -> tuple[str, ...]:
        """The predicates whose rows depend on those that they had before: state besides base facts."""
        return tuple(name for name, predicate in self.predicates.items() if predicate.has_memory)

    def remembered_in(self, stratum: Stratum) -> tuple[str, ...]:
        """Those of a stratum."""
        return tuple(name for name in stratum.predicates if self.predicates[name].has_memory)

    def classes_in(self, stratum: Stratum) -> dict[str, str]:
        """The predicates of a stratum that hold classes, with their equivalence relations."""
        if not self.equivalences:
            return {}
        of = {name: self.predicates[name].equivalence for name in stratum.predicates}
        return {name: relation for name, relation in of.items() if relation is not None}

    @cached_property
    def has_records(self) -> bool:
        """Whether a predicate has a column of records."""
        return any(predicate.has_records for predicate in self.predicates.values())

    def check(self) -> None:
        """Assert all invariants of the program.  O(size of its rules)."""
        own = (r for stratum in self.strata for r in (*stratum.rules, *stratum.subsumptions))
        for rule in (*self.rules, *own):
            check_rule(rule)
            for atom in (*rule.heads, *(atom for atom, _ in rule.body.atoms())):
                predicate = self.predicates[atom.predicate]
                assert (len(atom.args), atom.n_keys) == (predicate.arity, predicate.n_keys), str(atom)
        derived = [name for stratum in self.strata for name in stratum.predicates]
        assert len(derived) == len(set(derived)), "a predicate belongs to one stratum"

    def rules_of(self, predicate: str) -> tuple[Rule, ...]:
        """The rules with this predicate in a head, in program order.  O(1) after the first call."""
        return self._rules_by_head.get(predicate, ())

    @cached_property
    def _rules_by_head(self) -> dict[str, tuple[Rule, ...]]:
        found: dict[str, list[Rule]] = {}
        for rule in self.rules:
            for name in dict.fromkeys(head.predicate for head in rule.heads):
                found.setdefault(name, []).append(rule)
        return {name: tuple(rules) for name, rules in found.items()}

    @cached_property
    def subsumptions(self) -> tuple[Rule, ...]:
        """The rules that remove rows, which are not among `rules`."""
        return tuple(rule for stratum in self.strata for rule in stratum.subsumptions)

    @cached_property
    def stratum_of(self) -> Mapping[str, Stratum]:
        """The stratum of each derived predicate; its keys are the derived predicates, in order of strata."""
        return {name: stratum for stratum in self.strata for name in stratum.predicates}

    @cached_property
    def reader_counts(self) -> Mapping[str, int]:
        """How many strata read each predicate that is read."""
        return Counter(name for stratum in self.strata for name in stratum.reads)

    @property
    def constraint_rules(self) -> list[Rule]:
        """The rules that derive violations of constraints."""
        return [rule for constraint in self.constraints for rule in self.rules_of(constraint.violations)]

    @cached_property
    def violations(self) -> frozenset[str]:
        """The auxiliary predicates that constraints keep empty."""
        return frozenset(constraint.violations for constraint in self.constraints)

    @cached_property
    def _directed(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for directive in self.directives:
            found.setdefault(directive.kind, set()).add(directive.predicate)
        return found

    def directed(self, kind: str) -> Collection[str]:
        """The predicates that have a directive of some kind, such as "table".  O(1) after the first call."""
        return self._directed.get(kind, ())

    def is_combined(self, predicate: str) -> bool:
        """Whether a predicate is a recursive min or max.  O(1)."""
        return predicate in self.stratum_of and predicate in self.stratum_of[predicate].combine


def check_rule(rule: Rule) -> None:
    """Assert the normal form, which `dlog.ir.analysis.normal_form` states again.  O(size * depth)."""
    from dlog.ir.analysis.normal_form import check

    check(rule)
