"""Owns the flattening of one statement: formulas and terms of the syntax tree become forms.

Afterwards every term is a variable or a literal and every function application an atom.  Inline aggregates
become `AggregateForm`s with their groups; `aggregates` makes rules of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlog.aggregates import AGGREGATES, COFACTOR, aggregate_named
from dlog.errors import did_you_mean
from dlog.ir import primitives
from dlog.ir.functors import is_call, primitive_name
from dlog.ir.lower.equivalence import is_equivalence, same_class
from dlog.ir.lower.grounding import AggregateForm, RawForm, raw
from dlog.ir.lower.lowered import Lowered
from dlog.ir.lower.surroundings import Surroundings
from dlog.ir.record_forms import constructor_name
from dlog.ir.rules import Atom, Conj, Const, Disjunction, Negation, Operand, Primitive, Var
from dlog.language import ast
from dlog.language.foreign import function_help
from dlog.language.source import Span
from dlog.language.vocabulary import AUTOINC


class Scope:
    """The variables of one statement.  `failed` is set once an error in it is reported."""

    def __init__(self, root: ast.Node, lowered: Lowered):
        self.root = root
        self.lowered = lowered
        self.names = lowered.names
        self.diagnostics = lowered.names.diagnostics
        self.failed = False
        self.taken = set(variables(root))
        self.fresh_count = 0
        self.computed: set[str] = set()  # the fresh variables for values of terms; those of `_` are not
        self.negated = False  # whether what is being flattened is under an odd number of `!`
        self.numbers: list[Var] = []  # the values of `autoinc()`
        self.inside = ""  # the innermost part of a formula of which assignments are not those of the rule
        self.surroundings = Surroundings(root, self.is_test)

    def fresh(self, span: Span | None) -> Var:
        """A variable that the statement does not use."""
        while True:
            self.fresh_count += 1
            name = f"_{self.fresh_count}"
            if name not in self.taken:
                return Var(name, span)

    def value(self, span: Span | None) -> Var:
        """A fresh variable for the value of a term."""
        variable = self.fresh(span)
        self.computed.add(variable.name)
        return variable

    def error(self, message: str, span: Span | None, help: str | None = None) -> None:
        self.failed = True
        self.diagnostics.error(message, span, help)

    def use(self, name: str, arity: int, functional: bool, span: Span) -> bool:
        known = self.names.use(name, arity, functional, span)
        self.failed |= not known
        return known

    def is_test(self, name: str) -> bool:
        """Whether a condition `name(..)` is a primitive; a predicate may have the same name."""
        return name in primitives.RELATIONS and name not in self.names.shapes

    # Formulas

    def formula(self, node: ast.Node, forms: list[RawForm]) -> None:
        """Adds the forms of a formula to a conjunction."""
        match node:
            case ast.Conjunction():
                for item in node.items:
                    self.formula(item, forms)
            case ast.Disjunction():
                self.disjunction(node, forms)
            case ast.Negation():
                self.negation(node, forms)
            case ast.Comparison():
                self.comparison(node, forms)
            case ast.Call():
                self.call(node, forms)
            case ast.Constant(kind="bool"):
                if not node.value:
                    forms.append(Disjunction((), node.span))
            case _:
                self.not_a_condition(node)

    def disjunction(self, node: ast.Disjunction, forms: list[RawForm]) -> None:
        items = [self.part(item, "a disjunction") for item in node.items]
        branches = [branch for branch in items if not _is_false(branch)]
        if len(branches) == 1:
            forms += branches[0]
        else:
            forms.append(Disjunction(tuple(map(_conj, branches)), node.span))

    def negation(self, node: ast.Negation, forms: list[RawForm]) -> None:
        self.negated = not self.negated
        inner = self.part(node.body, "a negation")
        self.negated = not self.negated
        self.negate(inner, node.span, forms)

    def negate(self, inner: list[RawForm], span: Span, forms: list[RawForm]) -> None:
        """Adds the negation of a conjunction; that of `true` is `false`, that of `false` needs no form.

        Three in a row are one, so that a long chain of them stays cheap to check.
        """
        if not inner:
            forms.append(Disjunction((), span))
        elif (double := _negated(inner)) is not None and _negated(double) is not None:
            forms += double
        elif not _is_false(inner):
            forms.append(Negation(_conj(inner), span))

    def part(self, node: ast.Node, inside: str) -> list[RawForm]:
        """The forms of a part that has assignments of its own."""
        before, self.inside = self.inside, inside
        inner = self.conjunct(node)
        self.inside = before
        return inner

    def conjunct(self, node: ast.Node) -> list[RawForm]:
        inner: list[RawForm] = []
        self.formula(node, inner)
        return inner

    def call(self, node: ast.Call, forms: list[RawForm]) -> None:
        if self.is_test(node.name):
            if self.check_arity(node):
                inputs = tuple(self.term(a, forms) for a in node.args)
                name = primitives.NEGATED_MATCH if node.name == "match" and self.negated else node.name
                forms.append(Primitive(name, inputs, None, node.span))
        elif self.use(node.name, len(node.args), False, node.span):
            args = tuple(self.argument(a, forms) for a in node.args)
            if is_equivalence(self.names, node.name):
                forms += same_class(node.name, args, self.fresh(node.span), node.span)
            else:
                forms.append(Atom(node.name, args, len(args), node.span))

    def comparison(self, node: ast.Comparison, forms: list[RawForm]) -> None:
        left, right = node.left, node.right
        if node.op == "=" and (_compound(left) or _compound(right)):
            if not _compound(left):
                left, right = right, left
            self.term(left, forms, self.argument(right, forms))
            return
        operands = (self.term(left, forms), self.term(right, forms))
        # x = x does not bind x: it is a test like x <= x.
        op = "<=" if node.op == "=" and operands[0] == operands[1] else node.op
        forms.append(Primitive(primitives.COMPARISONS[op], operands, None, node.span))

    def not_a_condition(self, node: ast.Node) -> None:
        help = "compare it with = or another comparison"
        if isinstance(node, ast.Application):
            help = f"compare it, as in {node.name}[...] = x"
        elif isinstance(node, ast.Variable) and node.name in self.names.shapes:
            help = f"a predicate is written with its arguments: {node.name}(...)"
        self.error("this is a value, not a condition", node.span, help)

    # Terms

    def argument(self, node: ast.Node, forms: list[RawForm]) -> Operand:
        """A term in an argument position, where a wildcard is allowed."""
        return self.fresh(node.span) if isinstance(node, ast.Wildcard) else self.term(node, forms)

    def term(self, node: ast.Node, forms: list[RawForm], target: Operand | None = None) -> Operand:
        """The operand that a term denotes; adds the forms that compute it.  A `target` receives the value."""
        match node:
            case ast.Variable():
                if "." in node.name:
                    self.not_a_variable(node)
                return self.equate(Var(node.name, node.span), target, forms)
            case ast.Constant():
                return self.equate(Const(node.kind, node.value, None, node.span), target, forms)
            case ast.Application():
                return self.application(node, forms, target)
            case ast.Binary():
                name = primitives.OPERATORS[node.op]
                return self.primitive(name, (node.left, node.right), node, forms, target)
            case ast.Unary():
                return self.primitive(primitives.PREFIXES[node.op], (node.operand,), node, forms, target)
            case ast.Call():
                return self.functor(node, forms, target)
            case ast.UserCall():
                return self.user_call(node, forms, target)
            case ast.Cast():
                return self.cast(node, forms, target)
            case ast.InlineAggregate():
                return self.aggregate(node, forms, target)
            case ast.Record():
                return self.record(constructor_name(""), node, forms, target)
            case ast.Branch():
                return self.branch(node, forms, target)
        self.not_a_value(node)
        return _nothing(node)

    def branch(self, node: ast.Branch, forms: list[RawForm], target: Operand | None) -> Operand:
        types = self.lowered.types
        owner = types.record(types.branches.get(node.name, ""))
        if owner is None:
            help = did_you_mean(node.name, types.branches, "branches are declared as in .type T = A {x: int}")
            self.error(f"unknown branch {node.name}", node.span, help)
            return _nothing(node)
        if not node.args and owner.immediate(owner.numbers[node.name]) is not None:
            return self.equate(Const("record", f"${node.name}", None, node.span), target, forms)
        return self.record(constructor_name(node.name), node, forms, target)

    def record(
        self, name: str, node: ast.Record | ast.Branch, forms: list[RawForm], target: Operand | None
    ) -> Operand:
        """A record that is made, or taken apart: which of them is settled when forms are ordered."""
        if not node.args and isinstance(node, ast.Record):
            return self.equate(Const("record", "[]", None, node.span), target, forms)
        output = target if target is not None else self.value(node.span)
        inner: list[RawForm] = []
        inputs = tuple(self.argument(a, inner) for a in node.args)
        forms.append(Primitive(name, inputs, output, node.span))
        forms += inner
        return output

    def equate(self, operand: Operand, target: Operand | None, forms: list[RawForm]) -> Operand:
        if target is not None:
            spans = [o.span for o in (operand, target) if o.span is not None]
            forms.append(Primitive("eq", (target, operand), None, spans[0].to(spans[-1]) if spans else None))
        return operand

    def application(self, node: ast.Application, forms: list[RawForm], target: Operand | None) -> Operand:
        if not self.use(node.name, len(node.args) + 1, True, node.span):
            return _nothing(node)
        args = tuple(self.argument(a, forms) for a in node.args)
        value = target if target is not None else self.value(node.span)
        forms.append(Atom(node.name, (*args, value), len(args), node.span))
        return value

    def primitive(
        self,
        name: str,
        args: tuple[ast.Node, ...],
        node: ast.Node,
        forms: list[RawForm],
        target: Operand | None,
    ) -> Operand:
        inputs = tuple(self.term(a, forms) for a in args)
        output = target if target is not None else self.value(node.span)
        forms.append(Primitive(name, inputs, output, node.span))
        return output

    def functor(self, node: ast.Call, forms: list[RawForm], target: Operand | None) -> Operand:
        if node.name == AUTOINC and node.name not in self.names.shapes:
            return self.number(node, forms, target)
        if node.name not in primitives.FUNCTORS or node.name in primitives.RELATIONS:
            self.unknown_functor(node)
            return _nothing(node)
        if node.name in primitives.VARIADIC and len(node.args) > 2:
            inputs = [self.term(a, forms) for a in node.args]
            return self.folded(node, inputs, forms, target)
        if not self.check_arity(node):
            return _nothing(node)
        return self.primitive(node.name, node.args, node, forms, target)

    def user_call(self, node: ast.UserCall, forms: list[RawForm], target: Operand | None) -> Operand:
        if self.lowered.functors.function(node.name, len(node.args), node.span) is None:
            self.failed = True
            return _nothing(node)
        return self.primitive(primitive_name(node.name), node.args, node, forms, target)

    def folded(
        self, node: ast.Call, inputs: list[Operand], forms: list[RawForm], target: Operand | None
    ) -> Operand:
        """`cat(a, b, c)`: two at a time, from the left."""
        value = inputs[0]
        for operand in inputs[1:]:
            last = operand is inputs[-1]
            output = target if last and target is not None else self.value(node.span)
            forms.append(Primitive(node.name, (value, operand), output, node.span))
            value = output
        return value

    def check_arity(self, node: ast.Call) -> bool:
        counts = primitives.arities(node.name)
        if len(node.args) in counts:
            return True
        need = "2 or more" if node.name in primitives.VARIADIC else " or ".join(map(str, counts))
        given = f"{len(node.args)} {'is' if len(node.args) == 1 else 'are'} given"
        message = f"{node.name} takes {need} argument{'' if need == '1' else 's'}, but {given}"
        aggregate = node.name in AGGREGATES and len(node.args) == 1
        help = f"over rows it is written x = {node.name} y : {{ ... }}" if aggregate else None
        self.error(message, node.span, help)
        return False

    def unknown_functor(self, node: ast.Call) -> None:
        self.failed = True
        shape = self.names.shapes.get(node.name)
        if shape is not None and shape.functional:
            self.error(
                f"{node.name} is a function", node.span, f"write its keys in brackets: {node.name}[...]"
            )
        elif shape is not None or node.name in primitives.RELATIONS:
            help = "use it as a separate condition"
            self.error(f"{node.name} is a relation and has no value", node.span, help)
        elif node.name in AGGREGATES:
            aggregate = AGGREGATES[node.name]
            inline, other = aggregate.inline_usage("y", node.name), aggregate.usage("y", node.name)
            help = f"write x = {inline}, or agg<<x = {other}>>"
            self.error(f"{node.name} is an aggregate, not a function", node.span, help)
        elif node.name == COFACTOR:
            self.error(
                "cofactor is an aggregate, not a function", node.span, "write agg<<m = cofactor(x, y)>>"
            )
        else:
            self.error(f"unknown function {node.name}", node.span, self.function_meant(node.name))

    def function_meant(self, name: str) -> str | None:
        """What to write for a function that does not exist."""
        if name in self.lowered.functors.declared:
            return f"{name} is a functor: write @{name}(...)"
        if name in self.lowered.types.branches:
            return f"{name} is a branch of {self.lowered.types.branches[name]}: write ${name}(...)"
        return function_help(name) or did_you_mean(name, primitives.FUNCTORS - primitives.RELATIONS)

    def number(self, node: ast.Call, forms: list[RawForm], target: Operand | None) -> Operand:
        """`autoinc()`: a number for each assignment of the rule's body."""
        text = node.span.text()
        rule = self.root if isinstance(self.root, ast.Rule) else None
        if node.args:
            self.error(f"{AUTOINC} takes no argument", node.span, f"write {AUTOINC}()")
        elif rule is None:
            kind = "a query" if isinstance(self.root, ast.Query) else "a constraint"
            help = f"only rules give numbers, and keep them; store them first, as in id(x, {text}) :- p(x)."
            self.error(f"{text} cannot be used in {kind}", node.span, help)
        elif self.inside:
            help = "each assignment of the whole body gets a number: use it in the head"
            self.error(f"{text} cannot be used inside {self.inside}", node.span, help)
        elif rule.aggregations:
            help = "store the result, and number its rows in a second rule"
            self.error(f"{text} cannot be used in a rule that aggregates", node.span, help)
        value = self.value(node.span)
        self.numbers.append(value)
        return self.equate(value, target, forms)

    def cast(self, node: ast.Cast, forms: list[RawForm], target: Operand | None) -> Operand:
        """`as(e, T)` asserts the type of a value; between int and unsigned it keeps the bits."""
        type = self.lowered.types.resolve(node.type)
        if type is None:
            self.failed = True
            return _nothing(node)
        if node.type.params:
            help = f"write as(..., {node.type.name}); digits are rounded by the column of a head"
            self.error("as changes no digits, so it takes a type without sizes", node.type.span, help)
        return self.primitive(f"as_{type.name}", (node.term,), node, forms, target)

    def not_a_variable(self, node: ast.Variable) -> None:
        help = "fields of a record: r = [x, _]; write a space after a `.` that ends a statement"
        self.error(f"{node.name} can name a predicate, not a variable", node.span, help)

    def not_a_value(self, node: ast.Node) -> None:
        if isinstance(node, ast.Wildcard):
            self.error("_ has no value that can be used here", node.span, "give it a name")
        else:
            self.error("this is a condition, not a value", node.span, "use it as a separate condition")

    # Inline aggregates

    def aggregate(self, node: ast.InlineAggregate, forms: list[RawForm], target: Operand | None) -> Operand:
        """`surroundings` says which of its variables are groups or witnesses; the others are its own."""
        negated, self.negated, before = self.negated, False, self.inside
        self.inside = "an aggregate"
        inner = self.conjunct(node.body)
        argument = self.term(node.target, inner) if node.target is not None else None
        self.negated, self.inside = negated, before
        shared = self.surroundings.of(node)
        places = {n.name: n.span for n in reversed(list(node.walk())) if isinstance(n, ast.Variable)}
        name: str | None = node.op
        if is_call(node.op):
            name = self.lowered.functors.aggregate(node.op, node.span, int(node.target is not None))
        if name is None:
            self.failed = True
            return _nothing(node)
        op = aggregate_named(name)
        if shared.witnesses and not op.has_witnesses:
            self.no_witness(node, shared.witnesses[0], places)
        groups, witnesses = (
            tuple(Var(name, places[name]) for name in names) for names in (shared.groups, shared.witnesses)
        )
        direct = isinstance(target, Var) and target.name not in places
        result = target if direct and isinstance(target, Var) else self.value(node.span)
        forms.append(AggregateForm(op.name, result, argument, tuple(inner), groups, node.span, witnesses))
        return result if direct else self.equate(result, target, forms)

    def no_witness(self, node: ast.InlineAggregate, name: str, places: dict[str, Span]) -> None:
        message = f"{name} has a value only inside this {node.op}, but is used outside"
        help = (
            f"for one {node.op} for each {name}, use {name} in a positive atom outside, too; "
            f"min and max alone say which {name} has the result"
        )
        self.error(message, places[name], help)


def variables(node: ast.Node) -> list[str]:
    """Names of the variables below a node, in order of first use."""
    return list(dict.fromkeys(n.name for n in node.walk() if isinstance(n, ast.Variable)))


def free_variables(node: ast.Node) -> list[str]:
    """Names of the variables below a node that are not inside a negation or an aggregate, in order."""
    return list(dict.fromkeys(_free(node)))


def answer_columns(query: ast.Query) -> list[str]:
    """The names of the columns of a query's answer: its variables, or the arguments of its head."""
    if query.head is None:
        return free_variables(query.body)
    head, value = query.head, list[ast.Node]()
    if isinstance(head, ast.Comparison):
        value, head = [head.right], head.left
    assert isinstance(head, ast.Call | ast.Application)
    args: tuple[ast.Node, ...] = (*head.args, *value)
    names: list[str] = []
    for number, arg in enumerate(args, 1):
        plain = isinstance(arg, ast.Variable) and arg.name not in names
        names.append(arg.name if plain and isinstance(arg, ast.Variable) else f"column{number}")
    return names


def _free(node: ast.Node) -> Iterator[str]:
    if isinstance(node, ast.Variable):
        yield node.name
    elif not isinstance(node, ast.Negation | ast.InlineAggregate):
        for child in node.children():
            yield from _free(child)


def _conj(forms: list[RawForm]) -> Conj:
    return Conj((), tuple(forms))  # type: ignore[arg-type]


def _negated(forms: Sequence[RawForm]) -> tuple[RawForm, ...] | None:
    """The body of a conjunction that is one negation."""
    return raw(forms[0].body) if len(forms) == 1 and isinstance(forms[0], Negation) else None


def _is_false(forms: list[RawForm]) -> bool:
    return any(isinstance(f, Disjunction) and not f.branches for f in forms)


def _compound(node: ast.Node) -> bool:
    return not isinstance(node, ast.Variable | ast.Constant | ast.Wildcard)


def _nothing(node: ast.Node) -> Const:
    """Represents a term that was reported."""
    return Const("int", 0, None, node.span)
