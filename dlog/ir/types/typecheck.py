"""Owns types: every column of every predicate and every variable of every rule gets one.

Types flow both ways between columns, variables and literals, by joining type nodes.  Declarations come first,
then facts, then rules, so that a conflict is reported at the latter.  Arithmetic on mixed numbers is typed by
`widening`, digits of decimals by `decimals`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from dlog.aggregates import COFACTOR
from dlog.aggregates import Aggregate as Function
from dlog.errors import Diagnostics
from dlog.ir.functors import functor_of, is_call
from dlog.ir.lower.cofactors import is_column
from dlog.ir.lower.fact_spans import delta_literals, literal_spans
from dlog.ir.lower.literals import CANDIDATES, NOT_FINITE, candidates
from dlog.ir.lower.lowered import Lowered
from dlog.ir.lower.names import Shape
from dlog.ir.primitives import ANY, COMPARISONS, NUMERIC, RECORD, show, signature_of
from dlog.ir.record_forms import is_record_form
from dlog.ir.rules import Aggregate, Atom, Column, Const, FactBlock, Operand, Predicate, Primitive, Rule, Var
from dlog.ir.types.type_nodes import Candidates, Node, Reason, because, common, join, restrict, spell
from dlog.language.source import Span
from dlog.values import BUILTIN_TYPES, INT, STRING, TYPES, Type

# When several types remain possible, the first of these that fits.
_PREFERENCE = tuple(t.name for t in sorted(TYPES, key=lambda type: type.preference))
_NOT_FINITE_TYPES = {*CANDIDATES["string"], "float"}


class TypeChecker:
    """Collects the type constraints of a program.  `columns` and `variables` hold the nodes."""

    def __init__(self, lowered: Lowered, diagnostics: Diagnostics):
        self.lowered = lowered
        self.diagnostics = diagnostics
        self.shapes = lowered.names.shapes
        self.declared: dict[
            tuple[str, int], Type
        ] = {}  # columns with a given type, sizes of decimals included
        self.declarations: dict[tuple[str, int], Reason] = {}
        self.columns = {name: self.column_nodes(name, shape) for name, shape in self.shapes.items()}
        self.variables: dict[int, dict[str, Node]] = defaultdict(dict)  # by rule and name
        self.uses: dict[tuple[int, str], Reason] = {}  # the first use that determined a variable's type
        self.blamed: set[tuple[int, str]] = set()  # variables that were reported
        self.literals: dict[int, Node] = {}  # by id of the Const
        self.widening: list[tuple[Rule, Primitive]] = []  # typed by `widening`
        self.record_forms: list[tuple[Rule, Primitive]] = []  # typed by `record_types`
        self.quotients: list[tuple[Rule, Aggregate]] = []  # whose type depends on the argument's, too

    def column_nodes(self, name: str, shape: Shape) -> list[Node]:
        nodes = []
        for index in range(shape.arity):
            reference = shape.parameters[index].type if shape.parameters else None
            type = self.lowered.types.resolve(reference) if reference else None
            node = Node()
            if type is not None and reference is not None:
                self.declared[name, index] = type
                reason = Reason("its declaration", (type.name,), reference.span)
                self.declarations[name, index] = reason
                node = Node((type.name,), reason, declared=True)
            node.spoiled = reference is not None and type is None
            nodes.append(node)
        return nodes

    def node(self, rule: Rule, operand: Operand) -> Node:
        if isinstance(operand, Var):
            return self.variables[rule.id].setdefault(operand.name, Node())
        if id(operand) not in self.literals:
            self.literals[id(operand)] = Node(self.candidates(operand.kind, operand.value))
        return self.literals[id(operand)]

    def candidates(self, kind: str, value: int | str | bool) -> Candidates:
        """The types that a literal may have: that of its branch, if it has one."""
        owner = self.lowered.types.owner(value) if kind == "record" else None
        return (owner,) if owner is not None else candidates(kind, value)

    def collect(self) -> None:
        """The constraints of declarations, facts and rules, except for mixed arithmetic."""
        for block in self.lowered.facts:
            self.visit_facts(block)
        for delta in self.lowered.deltas:
            for index, literal in enumerate(delta_literals(delta)):
                self.visit_literal(delta.predicate, index, literal)
        for rule in self.lowered.rules:
            self.visit_rule(rule)

    # Facts

    def visit_facts(self, block: FactBlock) -> None:
        """Literals of a column restrict it by the kinds of spelling that occur, not one by one."""
        spans: dict[int, list[Span]] = {}  # by row
        for index in range(len(self.columns[block.predicate])):
            first: dict[tuple[str, bool], int] = {}
            for row_index, row in enumerate(block.rows):
                kind, value = row[index]
                first.setdefault((kind, kind == "string" and value in NOT_FINITE), row_index)
            for row_index in first.values():
                if row_index not in spans:
                    spans[row_index] = literal_spans(block, row_index)
                span = spans[row_index][index]
                self.visit_literal(block.predicate, index, Const(*block.rows[row_index][index], None, span))

    def visit_literal(self, predicate: str, index: int, literal: Const) -> None:
        column, types = self.columns[predicate][index], self.candidates(literal.kind, literal.value)
        if not restrict(column, types, Reason(f"the literal {literal}", types, literal.span)):
            self.conflict_at_column(None, literal, types, predicate, index)

    # Rules

    def visit_rule(self, rule: Rule) -> None:
        for form in rule.body.walk():
            if isinstance(form, Atom):
                self.visit_atom(rule, form)
            elif isinstance(form, Primitive):
                self.visit_primitive(rule, form)
        for aggregate in rule.aggregates:
            self.visit_aggregate(rule, aggregate)
        for head in rule.heads:
            self.visit_atom(rule, head)

    def visit_atom(self, rule: Rule, atom: Atom) -> None:
        for index, operand in enumerate(atom.args):
            node, column = self.node(rule, operand), self.columns[atom.predicate][index]
            here, there, span = node.find().candidates, column.find().candidates, operand.span or atom.span
            if not join(node, column):
                self.conflict_at_column(rule, replace(operand, span=span), here, atom.predicate, index)
            elif there != ANY:
                shape = self.shapes[atom.predicate]
                what = "the aggregate" if shape.of_aggregate else shape.argument(atom.predicate, index)
                self.used(rule, operand, Reason(what, there, span))

    def used(self, rule: Rule, operand: Operand, reason: Reason) -> None:
        if isinstance(operand, Var):
            self.uses.setdefault((rule.id, operand.name), reason)

    def visit_primitive(self, rule: Rule, form: Primitive) -> None:
        if is_record_form(form.name):
            assert form.output is not None
            self.record_forms.append((rule, form))
            self.demand(rule, form.output, (RECORD,), text_of(form), form.output.span or form.span)
            return
        if is_call(form.name):
            self.visit_call(rule, form)
            return
        is_same = form.name == "le" and form.inputs[0] == form.inputs[1]  # of x = x
        signature = signature_of("eq" if is_same else form.name, len(form.inputs))
        slots = (*signature.inputs, *((signature.result,) if signature.result else ()))
        demands = [
            (operand, signature.candidates(slot)) for slot, operand in zip(slots, form.args, strict=True)
        ]
        user = text_of(form)
        if isinstance(form.output, Var) and is_column(form.output.name):
            demands, user = [(operand, NUMERIC) for operand in form.args], COFACTOR
        misfits = [d for d in demands if not self.could_be(rule, *d)]
        for operand, demanded in misfits[:1] or demands:
            self.demand(rule, operand, demanded, user, operand.span or form.span, form.name)
        if misfits:  # the type of the result is unknown, and is not another error
            self.blamed |= {(rule.id, a.name) for a in (form.output,) if isinstance(a, Var)}
            return
        if signature.promotes:
            self.widening.append((rule, form))
            return
        shared: dict[str, Operand] = {}
        for slot, operand in zip(slots, form.args, strict=True):
            if not join(self.node(rule, shared.setdefault(slot, operand)), self.node(rule, operand)):
                self.conflict_between(rule, form, shared[slot], operand)

    def visit_call(self, rule: Rule, form: Primitive) -> None:
        functor = self.lowered.functors.known[functor_of(form.name)]
        for operand, type in zip(form.args, (*functor.inputs, functor.result), strict=True):
            self.demand(rule, operand, (type.name,), text_of(form), operand.span or form.span)

    def visit_aggregate(self, rule: Rule, aggregate: Aggregate) -> None:
        if aggregate.argument is not None:
            taken = self.taken_by(aggregate.function, self.node(rule, aggregate.argument))
            self.demand(rule, aggregate.argument, taken, str(aggregate.function), aggregate.argument.span)
        result = self.node(rule, aggregate.result)
        given = aggregate.function.result_types()
        if aggregate.function.is_quotient and aggregate.argument is not None:
            self.quotients.append((rule, aggregate))
            known = self.node(rule, aggregate.argument).find().candidates
            names = [n for n in known if n in aggregate.function.argument]
            given = tuple(dict.fromkeys(map(aggregate.function.result_name, names))) or given
        if given is None and aggregate.argument is not None:
            value = self.node(rule, aggregate.argument)
        else:
            value = Node(given or ANY)
        types = value.find().candidates, result.find().candidates
        if types[0] != ANY:
            self.used(rule, aggregate.result, Reason(f"the {aggregate.function}", types[0], aggregate.span))
        if not join(value, result):
            self.result_conflict(rule, aggregate, types[0])

    def result_conflict(self, rule: Rule, aggregate: Aggregate, given: Candidates) -> None:
        name, there = str(aggregate.result), self.node(rule, aggregate.result).find().candidates
        message = f"the result of {aggregate.function} is {spell(given)}, but {name} is {spell(there)}"
        why = self.why(rule, aggregate.result, given)
        self.conflict(message, aggregate.span, [(name, why)], rule, [aggregate.result])

    def taken_by(self, function: Function, node: Node) -> Candidates:
        """The types that an aggregate takes; where texts alone describe an argument, it is none to sum."""
        here = set(node.find().candidates)
        is_text = set(CANDIDATES["string"]) <= here and not here & set(NUMERIC)
        taken = NUMERIC if is_text and "string" not in function.argument else function.argument
        return tuple(name for name in ANY if name in taken)

    def demand(
        self,
        rule: Rule,
        operand: Operand,
        candidates: Candidates,
        user: str,
        span: Span | None,
        primitive: str | None = None,
    ) -> None:
        """What a primitive or an aggregate requires of an operand."""
        node = self.node(rule, operand)
        if restrict(node, candidates, Reason(user, candidates, span)):
            if candidates != ANY:
                self.used(rule, operand, Reason(user, candidates, span))
            return
        name = called(operand)
        message = f"{name} is {spell(node.find().candidates)}, but {user} needs {spell(candidates)}"
        sides = [(name, self.why(rule, operand, candidates))]
        adds_text = primitive == "add" and "string" in node.find().candidates
        advice = ["a number is joined to a text by to_string(n)"] if adds_text else []
        advice += _conversion(node.find().candidates, candidates)
        self.conflict(message, span, sides, rule, [operand], advice=advice)

    def could_be(self, rule: Rule, operand: Operand, candidates: Candidates) -> bool:
        node = self.node(rule, operand).find()
        return node.spoiled or bool(common(node.candidates, candidates))

    # Conflicts

    def why(self, rule: Rule | None, operand: Operand, wanted: Candidates) -> Reason | None:
        """Why an operand has none of the wanted types: by a use in its own rule, if that determines it."""
        if isinstance(operand, Const) or rule is None:
            return None
        use = self.uses.get((rule.id, operand.name))
        if use is not None and not common(use.candidates, wanted):
            return use
        return self.node(rule, operand).against(wanted)

    def conflict_at_column(
        self, rule: Rule | None, operand: Operand, here: Candidates, predicate: str, index: int
    ) -> None:
        column, shape, name = self.columns[predicate][index], self.shapes[predicate], called(operand)
        there = column.find().candidates
        what = shape.argument(predicate, index) if not shape.of_aggregate else f"{name} inside the aggregate"
        message = f"{name} is {spell(here)}, but {what} is {spell(there)}"
        reason = self.declarations.get((predicate, index)) or column.against(here)
        sides = [(name, self.why(rule, operand, there)), (what, reason)]
        self.conflict(message, operand.span, sides, rule, [operand], column, advice=advise(here, there))

    def conflict_between(self, rule: Rule, form: Primitive, a: Operand, b: Operand) -> None:
        types = [self.node(rule, operand).find().candidates for operand in (a, b)]
        verb = "compares" if form.name in COMPARISONS.values() else "mixes"
        message = f"{text_of(form)} {verb} {spell(types[0])} and {spell(types[1])}"
        sides = [(called(x), self.why(rule, x, wanted)) for x, wanted in ((a, types[1]), (b, types[0]))]
        advice = [*advise(*types), *advise(*reversed(types))]
        self.conflict(message, form.span, sides, rule, [a, b], advice=advice)

    def conflict(
        self,
        message: str,
        span: Span | None,
        sides: list[tuple[str, Reason | None]],
        rule: Rule | None,
        operands: Iterable[Operand],
        *columns: Node,
        advice: Iterable[str] = (),
    ) -> None:
        """Reports once for each variable or inferred column, however often it disagrees."""
        owners = {(rule.id, o.name) for o in operands if isinstance(o, Var) and rule is not None}
        new = not owners & self.blamed
        self.blamed |= owners
        inferred = [column.find() for column in columns if not column.find().declared]
        new &= not any(column.spoiled for column in inferred)
        for column in inferred:
            column.spoiled = True
        if new:
            reasons = [text for name, why in sides if (text := because(name, why, span))]
            help = "; ".join(dict.fromkeys([*reasons, *advice]))
            self.diagnostics.error(f"type conflict: {message}", span, help or None)

    # Results

    def type_of(self, node: Node) -> Type:
        candidates = node.find().candidates
        if (
            set(candidates) == _NOT_FINITE_TYPES
        ):  # only "inf", "-inf" or "nan" is special: other texts are just texts
            return STRING
        known = next((n for n in _PREFERENCE if n in candidates), None)
        if known is not None:
            return BUILTIN_TYPES[known]
        return self.lowered.types.record(candidates[0]) or INT  # INT: it was reported

    def column_type(self, predicate: str, index: int) -> Type:
        return self.declared.get((predicate, index)) or self.type_of(self.columns[predicate][index])

    def predicate(self, name: str, shape: Shape) -> Predicate:
        parameters = shape.parameters or (None,) * shape.arity
        columns = []
        for index, parameter in enumerate(parameters):
            label = parameter.name if parameter else f"c{index}"
            domain = parameter.type.name if parameter and parameter.type else None
            columns.append(Column(label, self.column_type(name, index), domain))
        declaration = shape.declaration
        return Predicate(
            name,
            tuple(columns),
            shape.arity - shape.functional,
            declaration is not None,
            shape.auxiliary,
            frozenset(declaration.qualifiers) if declaration else frozenset(),
            shape.span,
            shape.equivalence,
            shape.choice,
            shape.numbering,
            shape.given_to,
        )

    def check_inputs(self) -> None:
        """Columns read from a file need types: nothing else may determine them."""
        for name, shape in self.shapes.items():
            for index, node in enumerate(self.columns[name]):
                if shape.input and not node.find().spoiled and node.find().candidates == ANY:
                    message = f"the type of {shape.argument(name, index)} is not known"
                    self.diagnostics.error(message, shape.span, f"declare it, as in {_example(name, shape)}")
                    break


def _example(name: str, shape: Shape) -> str:
    names = [f"x{i + 1}" for i in range(shape.arity)]
    types = ", ".join(f"string({n})" for n in names)
    if shape.functional:
        return f"{name}[{', '.join(names[:-1])}] = {names[-1]} -> {types}."
    return f"{name}({', '.join(names)}) -> {types}."


def called(operand: Operand) -> str:
    """An operand in messages: its name, its text, or the text that computes it."""
    if isinstance(operand, Var) and operand.name.startswith("_") and operand.span is not None:
        return quote(operand.span.text())
    return str(operand)


def advise(here: Candidates, there: Candidates) -> list[str]:
    """What to write instead of a number where a date is expected, or of another kind of time."""
    if len(there) != 1 or there[0] not in BUILTIN_TYPES:
        return []
    type = BUILTIN_TYPES[there[0]]
    if "int" in here and type.example:
        return [f"{type.called} is written {type.example}"]
    return _conversion(here, there)


def _conversion(here: Candidates, there: Candidates) -> list[str]:
    """How to convert a value to another type, if its own type has advice."""
    ways = BUILTIN_TYPES[here[0]].becomes if len(here) == 1 and here[0] in BUILTIN_TYPES else {}
    return [ways[name] for name in there if name in ways][:1]


def text_of(form: Primitive) -> str:
    """A primitive as it was written."""
    return quote(form.span.text()) if form.span is not None else f"`{show(form)}`"


def quote(text: str, length: int = 50) -> str:
    """A text on one line between quotes, truncated if it is long, without brackets around all of it."""
    text = " ".join(text.split())
    if text.startswith("(") and text.find(")") == len(text) - 1:
        text = text[1:-1].strip()
    return f"`{text}`" if len(text) <= length else f"`{text[: length - 3]}...`"
