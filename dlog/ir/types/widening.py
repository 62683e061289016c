"""Owns arithmetic on mixed numbers: integers widen to decimals or floats.

`c = a op b` allows a, b and c of one type, or one int operand with a decimal or float one, with the wider
type as its result, or operations that types implement, as a timestamp plus a duration.  Candidates that take
part in no allowed triple are removed until nothing changes; the outcome does not depend on the order.  Then,
for everything still open at once: operands take the type of a known result; if nothing is known, operands
and result are one type.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from dlog.ir.lower.literals import meant_by
from dlog.ir.primitives import NUMERIC, OPERATORS, VALUES
from dlog.ir.rules import Aggregate, Const, Primitive, Rule, Var
from dlog.ir.types.type_nodes import Candidates, Node, Reason, join, restrict, spell
from dlog.ir.types.typecheck import TypeChecker, advise, called, text_of
from dlog.values import OPERATIONS, TYPES

_WIDER = [(type.name, wider) for type in TYPES for wider in type.widens_to]
_MIXED = [(a, b, wider) for name, wider in _WIDER for a, b in ((name, wider), (wider, name))]
_NUMBERS = frozenset([(t, t, t) for t in NUMERIC] + _MIXED)
_TEXTS = frozenset([("string",) * 3])  # `+` joins texts, as `cat` does


@cache
def allowed(name: str) -> frozenset[tuple[str, ...]]:
    """The types (a, b, c) that an operation can have."""
    if name in ("min", "max"):
        return frozenset([(t, t, t) for t in VALUES] + _MIXED)
    return _NUMBERS | own_triples(name) | (_TEXTS if name == "add" else frozenset())


@cache
def own_triples(name: str) -> frozenset[tuple[str, ...]]:
    """Those that types implement themselves."""
    return frozenset((*k[1:], o.result) for k, o in OPERATIONS.items() if k[0] == name and len(k) == 3)


def settle(checker: TypeChecker) -> None:
    """Types for the operands of all mixed arithmetic.  O(forms) per round, a round for each type found."""
    pending = [_Form(checker, rule, form) for rule, form in checker.widening]
    quotients = [_Quotient(checker, rule, aggregate) for rule, aggregate in checker.quotients]
    while pending or quotients:
        changed = [form.narrow() for form in pending]
        changed += [quotient.narrow() for quotient in quotients]
        pending = [form for form in pending if not form.done]
        quotients = [quotient for quotient in quotients if not quotient.done]
        if (
            any(changed)
            or _take_numbers(quotients)
            or _take_results(pending)
            or _take_one_type(pending)
            or _refuse_texts(pending)
            or _take_own(pending)
        ):
            continue
        return


class _Form:
    def __init__(self, checker: TypeChecker, rule: Rule, form: Primitive):
        assert form.output is not None and len(form.inputs) == 2
        self.checker = checker
        self.rule = rule
        self.form = form
        self.nodes = [checker.node(rule, operand) for operand in form.args]
        self.allowed = allowed(form.name)
        for operand, node in zip(form.args, self.nodes, strict=True):
            if isinstance(operand, Const):
                restrict(node, meant_by(operand.kind, operand.value))
        self.done = False

    def candidates(self) -> list[Candidates]:
        return [node.find().candidates for node in self.nodes]

    def triples(self) -> list[tuple[str, ...]]:
        return [t for t in product(*self.candidates()) if t in self.allowed]

    def narrow(self) -> bool:
        """Removes what no allowed triple has; whether anything changed."""
        if self.done or any(node.find().spoiled for node in self.nodes):
            self.done = True
            return False
        triples = self.triples()
        if not triples:
            self.done = True
            self.conflict()
            return True
        changed = False
        for place, node in enumerate(self.nodes):
            left = tuple(dict.fromkeys(t[place] for t in triples))
            changed |= set(left) < set(node.find().candidates)
            restrict(node, left, Reason(text_of(self.form), left, self.form.span))
        changed |= self.join_beside_int()
        self.done = all(node.settled for node in self.nodes)
        return changed

    def is_own(self) -> bool:
        """Whether only types that implement it themselves remain."""
        own = own_triples(self.form.name)
        return all(t in own for t in self.triples())

    def join_beside_int(self) -> bool:
        """With an int operand, the other operand and the result have one type."""
        a, b, c = (node.find() for node in self.nodes)
        for known, other in ((a, b), (b, a)):
            if known.candidates == ("int",) and other.find() is not c.find():
                join(other, c)
                return True
        return False

    def own_forms(self, a: Candidates, b: Candidates) -> list[str]:
        """What the operation is defined for, if one operand is of a type that implements it itself."""
        sign = {name: sign for sign, name in OPERATORS.items()}.get(self.form.name)
        for place, here in enumerate((a, b)):
            own = sorted(t for t in own_triples(self.form.name) if here == (t[place],))
            if own:
                defined = ", ".join(f"{left} {sign} {right}" for left, right, _ in own)
                others = [t[1 - place] for t in own]
                like = here[0] if here[0] in others else others[0]
                return [f"defined: {defined}", *advise(("int",), (like,))]
        return []

    def text(self) -> int | None:
        """The first operand that text literals alone describe: it could be several types of times."""
        for place, candidates in enumerate(self.candidates()[:2]):
            if len(candidates) > 1 and not set(candidates) & set(NUMERIC):
                return place
        return None

    def refuse_text(self, place: int) -> None:
        operand = self.form.args[place]
        name, span = called(operand), operand.span or self.form.span
        sides = [(name, self.checker.why(self.rule, operand, NUMERIC))]
        advice = ["a number is joined to a text by to_string(n)"] if self.form.name == "add" else []
        beside_time = any(n.settled and n.only not in NUMERIC for n in self.nodes[:2])
        needs = "a time or a duration of a declared type" if beside_time else "a number"
        message = f"{name} is string, but {text_of(self.form)} needs {needs}"
        self.checker.conflict(message, span, sides, self.rule, self.form.args, advice=advice)
        for node in map(Node.find, self.nodes):
            if len(node.candidates) > 1:
                node.candidates = ("string",)

    def conflict(self) -> None:
        """Either the operands do not fit together, or the result does not fit its place."""
        a, b, c = self.candidates()
        text = text_of(self.form)
        place = self.text()
        if place is not None:
            self.refuse_text(place)
            return
        results = tuple(dict.fromkeys(t[2] for t in product(a, b, VALUES) if t in self.allowed))
        if not results:
            verb = "is not defined for" if a == b else "mixes"
            message = f"{text} {verb} {spell(a)} and {spell(b)}"
            wanted = [b, a]
        else:
            output = self.form.output
            named = isinstance(output, Var) and not output.name.startswith("_")
            there = f"{output} is {spell(c)}" if named else f"{spell(c)} is needed here"
            message = f"{text} is {spell(results)}, but {there}"
            wanted = [c, c, results]
        sides = [
            (called(operand), self.checker.why(self.rule, operand, other))
            for operand, other in zip(self.form.args, wanted, strict=False)
        ]
        if results:
            advice = []
        else:
            conversions = [] if set(NUMERIC) & {*a, *b} else [*advise(a, b), *advise(b, a)]
            advice = conversions or self.own_forms(a, b)
        self.checker.conflict(message, self.form.span, sides, self.rule, self.form.args, advice=advice)


class _Quotient:
    """A mean: of numbers it is a float, of a type with means of its own one of these."""

    def __init__(self, checker: TypeChecker, rule: Rule, aggregate: Aggregate):
        assert aggregate.argument is not None
        self.checker, self.rule, self.aggregate = checker, rule, aggregate
        self.argument = checker.node(rule, aggregate.argument)
        self.result = checker.node(rule, aggregate.result)
        self.done = False

    def narrow(self) -> bool:
        """Removes what the other side rules out; whether anything changed."""
        argument, result, item = self.argument.find(), self.result.find(), self.aggregate
        if argument.spoiled or result.spoiled:
            self.done = True
            return False
        function = item.function
        pairs = [(a, function.result_name(a)) for a in argument.candidates if a in function.argument]
        fitting = [pair for pair in pairs if pair[1] in result.candidates]
        if not fitting:
            self.done = True
            if pairs:  # else the argument was reported
                self.checker.result_conflict(self.rule, item, tuple(dict.fromkeys(r for _, r in pairs)))
            return bool(pairs)
        before = argument.candidates, result.candidates
        restrict(argument, tuple(a for a, _ in fitting), Reason(item.op, function.argument, item.span))
        results = tuple(dict.fromkeys(r for _, r in fitting))
        restrict(result, results, Reason(f"the {item.op}", results, item.span))
        self.done = result.settled and all(given == result.only for _, given in fitting)
        return before != (argument.candidates, result.candidates)


def _take_numbers(quotients: list[_Quotient]) -> bool:
    """A mean of what may be numbers is one of numbers; whether that changed anything."""
    open = [quotient for quotient in quotients if not quotient.result.settled]
    changed = [restrict(quotient.argument, NUMERIC) for quotient in open]
    return any(changed)


def _take_results(pending: list[_Form]) -> bool:
    """`x * 2` with a decimal result makes 2 a decimal; returns whether anything changed."""
    todo: list[tuple[Node, Candidates]] = []
    for form in pending:
        result = form.nodes[2]
        if result.settled and (result.only,) * 3 in form.allowed and not form.is_own():
            todo += [(node, result.find().candidates) for node in form.nodes[:2] if not node.settled]
    for node, candidates in todo:
        restrict(node, candidates)
    return bool(todo)


def _take_one_type(pending: list[_Form]) -> bool:
    """If nothing is known, everything has one type; returns whether anything changed."""
    todo = [form for form in pending if not any(node.settled for node in form.nodes) and not form.is_own()]
    todo = [form for form in todo if len({id(node.find()) for node in form.nodes}) > 1]
    for form in todo:
        if set.intersection(*map(set, form.candidates())):
            for node in form.nodes[1:]:
                join(form.nodes[0], node)
        else:
            triples = sorted(form.triples())
            for node, name in zip(form.nodes, triples[0] if triples else (), strict=False):
                restrict(node, (name,))
    return bool(todo)


def _refuse_texts(pending: list[_Form]) -> bool:
    """Operands that may be times or durations, and nothing says which, are texts; whether there were any."""
    form = next((f for f in pending if f.is_own() and f.text() is not None), None)
    if form is None:
        return False
    form.conflict()
    form.done = True
    return True


def _take_own(pending: list[_Form]) -> bool:
    """Of several operations that types implement, the first; returns whether anything changed."""
    form = next((f for f in pending if f.is_own() and len(f.triples()) > 1), None)
    if form is None:
        return False
    for node, name in zip(form.nodes, sorted(form.triples())[0], strict=True):
        restrict(node, (name,))
    return True
