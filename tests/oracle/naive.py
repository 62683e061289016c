"""Owns the meaning of a checked program: evaluates it in the plainest way there is.

An environment is a dict from variables to values.  A conjunction extends environments form by form; an atom
by every row that agrees; `exists`, `!` and `;` are taken by their definitions.  A stratum's rules are
evaluated on all facts again and again until nothing changes.  Imports only the language's own definitions.

    >>> import dlog
    >>> evaluate(dlog.check("p(x + 1) <- q(x).  q(1)."))["p"]
    {(2,)}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from dlog.errors import ConstraintError, LimitError
from dlog.ir.lower.literals import literal_value
from dlog.ir.rules import (
    Atom,
    Conj,
    Const,
    Disjunction,
    Form,
    Negation,
    Operand,
    Predicate,
    Primitive,
    Program,
    Rule,
    Stratum,
    Var,
)
from dlog.values import DECIMAL, Type
from dlog.values.record import NOTHING

from .aggregates import UNDEFINED, aggregate
from .memory import choose_by_rounds, numbered, numbers
from .primitives import holds, results
from .records import record_literal
from .totals import check_given, check_needs
from .values import Row, Value, canonical, fit, greatest, least, order

Rows = set[Row]
Facts = dict[str, Rows]
Environment = dict[str, Value]

ROUNDS = 10_000  # of a fixpoint before it is taken to be infinite


class FunctionConflict(ConstraintError):
    """A function has two values for one key."""

    def __init__(self, predicate: Predicate, rows: list[Row]):
        super().__init__(f"two values for one key: {', '.join(predicate.show(row) for row in rows)}")
        self.predicate, self.rows = predicate.name, rows


class ConstraintBroken(ConstraintError):
    """A constraint has violations: assignments of its left side's variables."""

    def __init__(self, text: str, violations: Rows):
        super().__init__(f"broken constraint {text}: {sorted(violations, key=repr)}")
        self.text, self.violations = text, violations


def evaluate(program: Program, inputs: Mapping[str, Iterable[Row]] | None = None) -> Facts:
    """Every predicate of a program, auxiliary ones too, with the program's own facts and `inputs`.

    Raises FunctionConflict, ConstraintBroken, DoesNotFit (a sum or a decimal), or LimitError.
    """
    return evaluate_base(program, base_facts(program, inputs))


def base_facts(program: Program, inputs: Mapping[str, Iterable[Row]] | None = None) -> Facts:
    """Inputs and plain facts first, then the program's + - ^ in order."""
    base: Facts = {name: set() for name in program.predicates}
    for name, rows in (inputs or {}).items():
        base[name] |= {fitted(row, program.predicates[name]) for row in rows}
    for block in program.facts:
        base[block.predicate] |= {_literals(row, program.predicates[block.predicate]) for row in block.rows}
    for delta in program.deltas:
        predicate = program.predicates[delta.predicate]
        apply_change(base[delta.predicate], delta.op, _literals(delta.row, predicate))
    return base


def apply_change(rows: Rows, op: str, row: Row) -> None:
    """`+` inserts a fact, `-` erases it, `^` replaces whatever value its key has."""
    if op == "^":
        rows -= {other for other in rows if other[:-1] == row[:-1]}
    if op == "-":
        rows.discard(row)
    else:
        rows.add(row)


def evaluate_base(program: Program, base: Facts, memory: Facts | None = None) -> Facts:
    """Every predicate, from the base facts of all; given the rows of predicates with memory, if they are
    known (see `memory`)."""
    facts = {name: set(rows) for name, rows in base.items()}
    for stratum in program.strata:
        _Stratum(program, stratum, base, facts, memory).run()
    derived = {name for stratum in program.strata for name in stratum.predicates}
    for name in program.predicates.keys() - derived:
        _check_function(program.predicates[name], facts[name])
    for constraint in program.constraints:
        if facts[constraint.violations]:
            raise ConstraintBroken(constraint.text, facts[constraint.violations])
    for relation, name in program.equivalences.items():
        facts[relation] = _closure(facts[name])
    return facts


def fitted(row: Row, predicate: Predicate) -> Row:
    """A row as its predicate's columns hold it."""
    return tuple(fit(v, column.type) for v, column in zip(row, predicate.columns, strict=True))


def _literals(row: Iterable[tuple[str, int | str | bool]], predicate: Predicate) -> Row:
    pairs = zip(row, predicate.columns, strict=True)
    return tuple(literal(kind, value, column.type) for (kind, value), column in pairs)


def literal(kind: str, value: int | str | bool, type: Type) -> Value:
    """The value of a literal."""
    if kind == NOTHING:
        return None
    if type.is_record:
        return record_literal(str(value), type)
    return canonical(literal_value(kind, value, type))


def _check_function(predicate: Predicate, rows: Rows) -> None:
    if not predicate.is_functional:
        return
    first: dict[Row, Row] = {}
    for row in rows:
        if first.setdefault(row[:-1], row) != row:
            raise FunctionConflict(predicate, [first[row[:-1]], row])


class _Stratum:
    """One stratum on its way to its fixpoint; `facts` holds what all predicates are so far."""

    def __init__(
        self, program: Program, stratum: Stratum, base: Facts, facts: Facts, memory: Facts | None = None
    ):
        self.memory, self.remembered = memory, program.remembered_in(stratum)
        self.program, self.stratum, self.base, self.facts = program, stratum, base, facts
        self.indices: dict[tuple[str, tuple[int, ...]], dict[Row, list[Row]]] = {}

    def run(self) -> None:
        self.replace({name: set() for name in self.stratum.predicates})
        self.classes = self.program.classes_in(self.stratum)
        if self.remembered and self.memory is None:
            self.run_without_memory()
            return
        check_given(self.stratum, self.base)
        for number in range(ROUNDS):
            if number & (number - 1) == 0:
                self.check_totals()
            derived = self.derive()
            if self.stratum.subsumptions:
                derived = self.not_subsumed(derived)
            done = derived == {name: self.facts[name] for name in self.stratum.predicates}
            self.replace(derived)
            if done or not self.stratum.recursive:
                break
        else:
            raise LimitError(f"no fixpoint of {', '.join(self.stratum.predicates)}")
        self.check_totals()
        for name in self.stratum.predicates:
            _check_function(self.program.predicates[name], self.facts[name])

    def check_totals(self) -> None:
        """Raises if a sum is computed from itself."""
        if self.stratum.totals:
            solutions = lambda rule, forms: _Body(rule, self).solutions(Conj((), forms), {})  # noqa: E731
            check_needs(self.stratum, solutions, _value)

    def run_without_memory(self) -> None:
        """For the first time: everything is chosen, and numbers are given from where they ended."""
        predicates = self.program.predicates
        choices = {name: c for name in self.remembered if (c := predicates[name].choice) is not None}
        for name in self.remembered:
            if (numbering := predicates[name].numbering) is not None:
                given = (
                    n
                    for other in self.program.remembered
                    for n in numbers(self.program, other, self.facts[other])
                )
                rows = numbered(
                    self.facts[numbering.assignments], numbering.count, 1 + max(given, default=-1)
                )
                self.replace({name: rows})
                return

        def derive() -> Facts:
            self.indices.clear()
            return self.derive()

        choose_by_rounds(choices, self.base, self.facts, derive)
        self.indices.clear()

    def not_subsumed(self, derived: Facts) -> Facts:
        """The rows so far and the derived ones, without those that another one subsumes."""
        candidates = {name: self.facts[name] | rows for name, rows in derived.items()}
        before = {name: self.facts[name] for name in candidates}
        self.replace(candidates)
        subsumed: Facts = {name: set() for name in candidates}
        for rule in self.stratum.subsumptions:
            (head,) = rule.heads
            for environment in self.assignments(rule):
                subsumed[head.predicate].add(tuple(_value(a, environment) for a in head.args))
        self.replace(before)
        return {name: rows - subsumed[name] for name, rows in candidates.items()}

    def replace(self, rows: Facts) -> None:
        self.facts.update(rows)
        self.indices.clear()

    def derive(self) -> Facts:
        """What all rules give on the facts so far.  Base facts are one more rule."""
        derived = {name: set(self.base[name]) for name in self.stratum.predicates}
        for rule in self.stratum.rules:
            if rule.numbers:
                derived[rule.heads[0].predicate] = self.sequence_rows(rule)
                continue
            for environment in self.assignments(rule):
                for head in rule.heads:
                    row = tuple(_value(a, environment) for a in head.args)
                    if UNDEFINED in row:
                        continue
                    derived[head.predicate].add(fitted(row, self.program.predicates[head.predicate]))
        for name, op in self.stratum.combine.items():
            derived[name] = _best(derived[name], op)
        for name in self.remembered if self.memory is not None else ():
            derived[name] = self.given(name, derived[name])
        for name, relation in self.classes.items():
            derived[name] = _classes(self.facts[relation])
        return derived

    def given(self, name: str, derived: Rows) -> Rows:
        """What the memory has of the derived rows of a predicate; a number is derived with its assignment."""
        assert self.memory is not None
        numbering = self.program.predicates[name].numbering
        if numbering is None:
            return derived & self.memory.get(name, set())
        assignments = self.facts[numbering.assignments]
        return {row for row in self.memory.get(name, set()) if row[: -numbering.count] in assignments}

    def sequence_rows(self, rule: Rule) -> Rows:
        """A row's number is the number of rows of its group that are before it, column by column."""
        (head,), (atom,) = rule.heads, [a for a, _ in rule.body.atoms()]
        names = [arg.name for arg in atom.args if isinstance(arg, Var)]
        n_groups = head.n_keys - 1
        found: Rows = set()
        for row in self.facts[atom.predicate]:
            key = tuple(map(order, row[n_groups:]))
            group = [r for r in self.facts[atom.predicate] if r[:n_groups] == row[:n_groups]]
            before = sum(tuple(map(order, r[n_groups:])) < key for r in group)
            values = dict(zip(names, row, strict=True))
            found.add(tuple(values.get(getattr(arg, "name", ""), before) for arg in head.args))
        return found

    def assignments(self, rule: Rule) -> Iterator[Environment]:
        """Environments that give values to all variables of the heads."""
        environments = _Body(rule, self).solutions(rule.body, {})
        return _aggregated(rule, environments) if rule.aggregates else environments

    def matching(self, name: str, bound: dict[int, Value]) -> list[Row]:
        """Rows that hold these values at these positions, from an index made when it is first asked for."""
        positions = tuple(bound)
        if (name, positions) not in self.indices:
            index = self.indices[name, positions] = defaultdict(list)
            for row in self.facts[name]:
                index[tuple(row[p] for p in positions)].append(row)
        return self.indices[name, positions].get(tuple(bound.values()), [])


def _classes(pairs: Rows) -> Rows:
    """Each value in the pairs of an equivalence relation, with the one that stands for its class."""
    chosen = {value: value for pair in pairs for value in pair}
    for x, y in pairs:
        old, new = chosen[x], chosen[y]
        for value in [v for v, representative in chosen.items() if representative == old]:
            chosen[value] = new
    return set(chosen.items())


def _closure(classes: Rows) -> Rows:
    return {(x, y) for x, one in classes for y, other in classes if one == other}


def _best(rows: Rows, op: str) -> Rows:
    """For each key its least or greatest value."""
    values = defaultdict(list)
    for row in rows:
        values[row[:-1]].append(row[-1])
    choose = least if op == "min" else greatest
    return {(*key, choose(candidates)) for key, candidates in values.items()}


class _Body:
    """The body of one rule over one stratum's facts."""

    def __init__(self, rule: Rule, stratum: _Stratum):
        self.rule, self.stratum = rule, stratum

    def solutions(self, conj: Conj, environment: Environment) -> Iterator[Environment]:
        """Extensions of an environment that satisfy all forms, one after the other."""
        environments: Iterator[Environment] = iter([environment])
        for form in conj.forms:
            environments = self.extend_all(form, environments)
        return environments

    def extend_all(self, form: Form, environments: Iterator[Environment]) -> Iterator[Environment]:
        for environment in environments:
            yield from self.extend(form, environment)

    def extend(self, form: Form, environment: Environment) -> Iterator[Environment]:
        if isinstance(form, Atom):
            yield from self.extend_by_atom(form, environment)
        elif isinstance(form, Primitive):
            yield from self.extend_by_primitive(form, environment)
        elif isinstance(form, Negation):
            if next(self.solutions(form.body, environment), None) is None:
                yield environment
        else:
            assert isinstance(form, Disjunction)
            for branch in form.branches:
                local = {v.name for v in branch.exists}
                for solution in self.solutions(branch, environment):
                    yield {name: value for name, value in solution.items() if name not in local}

    def extend_by_atom(self, atom: Atom, environment: Environment) -> Iterator[Environment]:
        known = {i: a for i, a in enumerate(atom.args) if isinstance(a, Const) or a.name in environment}
        bound = {i: _value(a, environment) for i, a in known.items()}
        for row in self.stratum.matching(atom.predicate, bound):
            extended = dict(environment)
            if all(_bind(a, v, extended) for a, v in zip(atom.args, row, strict=True)):
                yield extended

    def extend_by_primitive(self, form: Primitive, environment: Environment) -> Iterator[Environment]:
        if form.name == "eq":
            yield from _equate(form.inputs, environment)
            return
        inputs = tuple(_value(a, environment) for a in form.inputs)
        if form.output is None:
            if holds(form.name, inputs):
                yield environment
            return
        for value in results(form.name, self.result_type(form), inputs):
            extended = dict(environment)
            if _bind(form.output, value, extended):
                yield extended

    def result_type(self, form: Primitive) -> Type:
        """The output's type, but decimals keep the digits they are computed with: only heads round.  Sums and
        products are exact; a quotient has at least 12 digits after the point, and a conversion 6."""
        assert form.output is not None
        type = self.type_of(form.output)
        if form.name == "div" and type.is_decimal:
            return Type("decimal", max(12, *(self.type_of(a).scale for a in form.inputs)))
        return DECIMAL if form.name == "to_decimal" else type

    def type_of(self, operand: Operand) -> Type:
        type = self.rule.types[operand.name] if isinstance(operand, Var) else operand.type
        assert type is not None
        return type


def _value(operand: Operand, environment: Environment) -> Value:
    if isinstance(operand, Var):
        return environment[operand.name]
    assert operand.type is not None
    return literal(operand.kind, operand.value, operand.type)


def _bind(operand: Operand, value: Value, environment: Environment) -> bool:
    """Give a variable its value; false if it, or the literal, has another one."""
    if isinstance(operand, Var):
        return holds("eq", (environment.setdefault(operand.name, value), value))
    return holds("eq", (_value(operand, environment), value))


def _equate(sides: tuple[Operand, ...], environment: Environment) -> Iterator[Environment]:
    """`a = b`, where one side may be a variable without a value."""
    a, b = sides
    if isinstance(a, Var) and a.name not in environment:
        a, b = b, a
    extended = dict(environment)
    if _bind(b, _value(a, environment), extended):
        yield extended


# Aggregation


def _aggregated(rule: Rule, environments: Iterator[Environment]) -> Iterator[Environment]:
    """One environment for each group: its keys and the results over its distinct assignments."""
    variables = [v.name for v in (*rule.groups, *rule.body.exists)]
    distinct = {tuple(environment[v] for v in variables) for environment in environments}
    groups = defaultdict(list)
    for values in distinct:
        groups[values[: len(rule.groups)]].append(dict(zip(variables, values, strict=True)))
    for keys, members in groups.items():
        members.sort(key=lambda member: _concat_order(rule, member))
        result = {v.name: key for v, key in zip(rule.groups, keys, strict=True)}
        for a in rule.aggregates:
            arguments = [None if a.argument is None else _value(a.argument, m) for m in members]
            result[a.result.name] = aggregate(a.op, arguments, rule.types[a.result.name])
        yield result


def _concat_order(rule: Rule, assignment: Environment) -> list[Value]:
    """The values of the body's key variables, in the order in which the body first uses these."""
    names = dict.fromkeys(v.name for v in rule.body.occurrences() if v.name in rule.keys)
    return [order(assignment[name]) for name in names if name in assignment]
