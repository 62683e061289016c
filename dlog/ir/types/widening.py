"""Owns arithmetic on mixed numbers: integers widen to decimals or floats.

`c = a op b` allows a, b and c of one type, or one int operand beside a decimal or float one, with the wider
type as its result.  Candidates that take part in no allowed triple are removed until nothing changes; that
has one outcome, whatever the order.  Then, for all that is still open at once: operands take the type of a
known result; where nothing is known, operands and result are one type.
"""

from __future__ import annotations

from itertools import product

from dlog.ir.primitives import ANY
from dlog.ir.rules import Primitive, Rule, Var
from dlog.ir.types.type_nodes import Candidates, Node, Reason, join, restrict, spell
from dlog.ir.types.typecheck import TypeChecker, called, text_of

_MIXED = [("int", "decimal", "decimal"), ("decimal", "int", "decimal")]
_MIXED += [("int", "float", "float"), ("float", "int", "float")]
ALLOWED = frozenset([(t, t, t) for t in ANY] + _MIXED)


def settle(checker: TypeChecker) -> None:
    """Types for the operands of all mixed arithmetic.  O(forms) per round, a round for each type found."""
    pending = [_Form(checker, rule, form) for rule, form in checker.widening]
    while pending:
        changed = [form.narrow() for form in pending]
        pending = [form for form in pending if not form.done]
        if not any(changed) and not _take_results(pending) and not _take_one_type(pending):
            return


class _Form:
    def __init__(self, checker: TypeChecker, rule: Rule, form: Primitive):
        assert form.output is not None and len(form.inputs) == 2
        self.checker = checker
        self.rule = rule
        self.form = form
        self.nodes = [checker.node(rule, operand) for operand in form.args]
        self.done = False

    def candidates(self) -> list[Candidates]:
        return [node.find().candidates for node in self.nodes]

    def narrow(self) -> bool:
        """Removes what no allowed triple has; whether anything changed."""
        if any(node.find().spoiled for node in self.nodes):
            self.done = True
            return False
        triples = [t for t in product(*self.candidates()) if t in ALLOWED]
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

    def join_beside_int(self) -> bool:
        """Beside an int operand, the other operand and the result have one type."""
        a, b, c = (node.find() for node in self.nodes)
        for known, other in ((a, b), (b, a)):
            if known.candidates == ("int",) and other.find() is not c.find():
                join(other, c)
                return True
        return False

    def conflict(self) -> None:
        """Either the operands do not go together, or the result is not what its place wants."""
        a, b, c = self.candidates()
        text = text_of(self.form)
        results = tuple(dict.fromkeys(t[2] for t in product(a, b, ANY) if t in ALLOWED))
        if not results:
            message = f"{text} mixes {spell(a)} and {spell(b)}"
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
        self.checker.conflict(message, self.form.span, sides, self.rule, self.form.args)


def _take_results(pending: list[_Form]) -> bool:
    """`x * 2` with a decimal result makes 2 a decimal; whether that told anything."""
    todo: list[tuple[Node, Candidates]] = []
    for form in pending:
        result = form.nodes[2]
        if result.settled:
            todo += [(node, result.find().candidates) for node in form.nodes[:2] if not node.settled]
    for node, candidates in todo:
        restrict(node, candidates)
    return bool(todo)


def _take_one_type(pending: list[_Form]) -> bool:
    """Where nothing is known, everything is of one type; whether that told anything."""
    todo = [form for form in pending if not any(node.settled for node in form.nodes)]
    todo = [form for form in todo if len({id(node.find()) for node in form.nodes}) > 1]
    for form in todo:
        if set.intersection(*map(set, form.candidates())):
            for node in form.nodes[1:]:
                join(form.nodes[0], node)
        else:
            triples = sorted(t for t in product(*form.candidates()) if t in ALLOWED)
            for node, name in zip(form.nodes, triples[0] if triples else (), strict=False):
                restrict(node, (name,))
    return bool(todo)
