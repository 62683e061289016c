"""Owns syntax tree -> rules, statement by statement.

Afterwards every inline aggregate is a separate rule, every constraint a rule that derives its violations,
every query a rule over its variables.  A head whose terms are computed is a separate rule, too: if they have
no value, other heads still do.  A statement that was reported is omitted, so that later passes do
not report it again.  Types, safety and strata are handled by later modules.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.errors import Diagnostics, did_you_mean
from dlog.ir.lower.aggregates import (
    OwnForms,
    RuleMaker,
    aggregation,
    by_group,
    check_aggregates,
    check_head_terms,
)
from dlog.ir.lower.choice import choice_rules, declare_choices, derived_name
from dlog.ir.lower.cofactors import with_entries
from dlog.ir.lower.declared_types import with_declared_types
from dlog.ir.lower.dependencies import Dependencies, head_name
from dlog.ir.lower.equivalence import class_rules, declare_classes
from dlog.ir.lower.fact_spans import fact_span
from dlog.ir.lower.functors import Functors
from dlog.ir.lower.given import mark_given
from dlog.ir.lower.grounding import RawForm, ground
from dlog.ir.lower.lonely import ungrounded_in_negations
from dlog.ir.lower.lowered import Lowered
from dlog.ir.lower.named_types import NamedTypes
from dlog.ir.lower.names import Shape, collect_names
from dlog.ir.lower.numbers import with_numbers
from dlog.ir.lower.scope import Scope, free_variables, variables
from dlog.ir.lower.sequences import check_alone, sequence_rules
from dlog.ir.lower.subsumptions import is_subsumption, removing_rule
from dlog.ir.primitives import RELATIONS, is_total
from dlog.ir.rules import Aggregate, Atom, Constraint, FactBlock, FactDelta, Operand, Primitive, Query, Var
from dlog.language import ast
from dlog.language.build import literal_row
from dlog.language.foreign import type_help
from dlog.values import BUILTIN_TYPES


def lower(program: ast.Program, diagnostics: Diagnostics) -> Lowered:
    """REQUIRES: includes are expanded."""
    program = with_declared_types(program, diagnostics)
    types = NamedTypes((s for s in program.statements if isinstance(s, ast.TypeDeclaration)), diagnostics)
    program, wrong = with_entries(program, diagnostics)
    names = collect_names(program, diagnostics)
    declare_classes(names)
    check_alone(program, names)
    functors = Functors(program.statements, types, diagnostics)
    lowered = Lowered(names, types, functors, has_times=_declares_times(program))
    lowered.rules += class_rules(names)
    declare_choices(names)
    lowered.rules += choice_rules(names, len(lowered.rules))
    dependencies = Dependencies(program)
    for statement in program.statements:
        if statement not in wrong:
            _lower_statement(statement, lowered, dependencies)
    mark_given(lowered)
    return lowered


def _declares_times(program: ast.Program) -> bool:
    """Whether a column is declared whose type has sums that are no values."""
    named: set[str] = set()
    for statement in program.statements:
        if isinstance(statement, ast.TypeDeclaration):
            named.update(base.name for base in statement.bases)
        elif isinstance(statement, ast.Declaration):
            columns = (*statement.keys, statement.value)
            named.update(c.type.name for c in columns if c is not None and c.type is not None)
    return any(BUILTIN_TYPES[name].has_undefined_sums for name in named & BUILTIN_TYPES.keys())


def _lower_statement(statement: ast.Node, lowered: Lowered, dependencies: Dependencies) -> None:
    match statement:
        case ast.Facts():
            _lower_facts(statement, lowered)
        case ast.SequenceRule():
            _lower_sequence(statement, lowered, dependencies)
        case ast.Rule():
            _lower_rule(statement, lowered, dependencies)
        case ast.Constraint():
            _lower_constraint(statement, lowered, dependencies)
        case ast.Query():
            _lower_query(statement, lowered, dependencies)
        case ast.DeltaStatement():
            for delta in statement.deltas:
                _lower_delta(delta, lowered)
        case ast.Directive():
            if lowered.names.directed(statement):
                lowered.directives.append(statement)
        case ast.Pragma():
            lowered.pragmas.append(statement)
        case _:  # declarations were handled before, .plan is a hint that changes no result
            known = ast.Declaration | ast.TypeDeclaration | ast.FunctorDeclaration | ast.Plan | ast.Include
            assert isinstance(statement, known), type(statement).__name__


def _lower_facts(facts: ast.Facts, lowered: Lowered) -> None:
    block = FactBlock(facts.predicate, facts.rows, facts.offsets, facts.span)
    width = -1
    for index, row in enumerate(facts.rows):
        if len(row) != width:
            width = len(row)
            span = fact_span(block, index)
            if not lowered.names.use(facts.predicate, width, facts.functional, span):
                return
    lowered.facts.append(block)


# Rules


def _lower_rule(node: ast.Rule, lowered: Lowered, dependencies: Dependencies) -> None:
    if not is_subsumption(node):
        _lower_plain_rule(node, lowered, dependencies)
    elif plain := removing_rule(node, lowered.names):
        known = len(lowered.rules)
        _lower_plain_rule(plain, lowered, dependencies)
        lowered.rules[known:] = [replace(rule, removes=True) for rule in lowered.rules[known:]]


def _lower_plain_rule(node: ast.Rule, lowered: Lowered, dependencies: Dependencies) -> None:
    scope = Scope(node, lowered)
    forms: list[RawForm] = []
    if node.body is not None:
        scope.formula(node.body, forms)
    for variable in ungrounded_in_negations(node):
        help = f"a negation tests values but binds none; write _ or _{variable.name} for any value"
        scope.error(f"ungrounded variable {variable.name}", variable.span, help)
    computed: OwnForms = {}
    aggregates = [a for x in node.aggregations if (a := _aggregate(scope, x, computed)) is not None]
    heads = [h for x in node.heads if (h := _head_with_terms(scope, x, computed)) is not None]
    if not lowered.has_times:
        forms += _always_defined(computed)
    if not scope.failed:
        check_aggregates(scope, aggregates, heads)
    if scope.failed:
        return
    maker = RuleMaker(scope, dependencies, tuple(map(head_name, node.heads)))
    if scope.numbers:
        forms = with_numbers(maker, scope, node, forms, tuple(scope.numbers))
    for part, used in by_group(heads, aggregates, computed):
        items: tuple[Atom | Aggregate, ...] = (*used, part[0])
        own = (form for item in items for form in computed.get(item, ()))
        maker.add(part, (*forms, *own), used, node.span)


def _always_defined(computed: OwnForms) -> list[RawForm]:
    """Takes out what always has a value: it may be computed for all heads, which then stay one rule."""
    total = [
        item
        for item, forms in computed.items()
        if all(isinstance(form, Primitive) and is_total(form) for form in forms)
    ]
    return [form for item in total for form in computed.pop(item)]


def _aggregate(scope: Scope, node: ast.Aggregation, computed: OwnForms) -> Aggregate | None:
    forms: list[RawForm] = []
    found = aggregation(scope, node, forms)
    if found is not None and forms:
        computed[found] = tuple(forms)
    return found


def _head_with_terms(scope: Scope, node: ast.Node, computed: OwnForms) -> Atom | None:
    forms: list[RawForm] = []
    head = _head(scope, node, forms)
    if head is not None and forms:
        computed[head] = tuple(forms)
    return head


def _head(scope: Scope, node: ast.Node, forms: list[RawForm]) -> Atom | None:
    atom, value = _split(node)
    if not isinstance(atom, ast.Call | ast.Application):
        _not_a_head(scope, node)
        return None
    args = (*atom.args, *value)
    if isinstance(scope.root, ast.Rule) and scope.root.aggregations:
        check_head_terms(scope, args)
    if not scope.use(atom.name, len(args), bool(value), node.span):
        return None
    operands: list[Operand] = []
    for arg in args:
        if isinstance(arg, ast.Wildcard):
            scope.error("_ cannot be used in a head", arg.span, "every argument of a head needs a value")
        elif not scope.failed:
            operands.append(scope.term(arg, forms))
    if scope.failed:
        return None
    return Atom(derived_name(scope.names, atom.name), tuple(operands), len(atom.args), node.span)


def _split(node: ast.Node | None) -> tuple[ast.Node | None, tuple[ast.Node, ...]]:
    """`R(x)` as (R(x), ()) and `F[x] = y` as (F[x], (y,)); None for what is neither."""
    if isinstance(node, ast.Comparison) and node.op == "=" and isinstance(node.left, ast.Application):
        return node.left, (node.right,)
    return (node if isinstance(node, ast.Call) else None), ()


def _not_a_head(scope: Scope, node: ast.Node) -> None:
    help = "write R(x) or F[x] = y"
    if isinstance(node, ast.Negation):
        help = "a head cannot be negated; rules derive what is true"
    elif isinstance(node, ast.Disjunction):
        help = "a head cannot be a disjunction; write two rules"
    elif isinstance(node, ast.Application):
        help = f"a function's head has a value, as in {node.name}[...] = x"
    elif isinstance(node, ast.Variable):
        help = f"a predicate without arguments is written {node.name}()"
    scope.error("a head must be an atom", node.span, help)


def _lower_sequence(node: ast.SequenceRule, lowered: Lowered, dependencies: Dependencies) -> None:
    parts = sequence_rules(node, lowered.names)
    if parts is not None:
        _lower_plain_rule(parts.rows, lowered, dependencies)
        known = len(lowered.rules)
        _lower_plain_rule(parts.numbers, lowered, dependencies)
        lowered.rules[known:] = [replace(rule, numbers=True) for rule in lowered.rules[known:]]


# Constraints and queries


def _lower_constraint(node: ast.Constraint, lowered: Lowered, dependencies: Dependencies) -> None:
    """Its violations: the left side holds and the right side does not."""
    if _declares_nothing(node, lowered):
        return
    scope = Scope(node, lowered)
    forms: list[RawForm] = []
    scope.formula(node.left, forms)
    given = ground(forms, around=set(variables(node.right)))
    inner = scope.conjunct(node.right)
    if scope.failed:
        return
    scope.negate(inner, node.right.span, forms)
    names = [n for n in free_variables(node.left) if n in given]
    name = f"constraint'{len(lowered.constraints) + 1}"
    _auxiliary_rule(scope, dependencies, name, names, forms)
    lowered.constraints.append(Constraint(_text(node), name, node.span))


def _declares_nothing(node: ast.Constraint, lowered: Lowered) -> bool:
    """Whether the right side names a type that it cannot declare, or that is misspelt, which is reported."""
    diagnostics = lowered.names.diagnostics
    right = node.right.items if isinstance(node.right, ast.Conjunction) else (node.right,)
    for item in right:
        if not isinstance(item, ast.Call):
            continue
        if item.name.split("[")[0] in BUILTIN_TYPES:
            help = "a type is declared for the arguments of one atom over variables, as in R(x, y) -> int(x)"
            diagnostics.error("this does not declare a type, and a type is not a condition", node.span, help)
            return True
        help = type_help(item.name) or did_you_mean(item.name, BUILTIN_TYPES) or ""
        if help and item.name not in lowered.names.shapes and item.name not in RELATIONS:
            diagnostics.error(f"unknown type or predicate {item.name}", item.span, help)
            return True
    return False


def _lower_query(node: ast.Query, lowered: Lowered, dependencies: Dependencies) -> None:
    name = f"query'{len(lowered.queries) + 1}"
    if node.head is not None:
        _lower_anonymous(node, name, lowered, dependencies)
        return
    scope = Scope(node, lowered)
    forms: list[RawForm] = []
    scope.formula(node.body, forms)
    if scope.failed:
        return
    _auxiliary_rule(scope, dependencies, name, free_variables(node.body), forms)
    lowered.queries.append(Query(_text(node), name, node.span))


def _lower_anonymous(node: ast.Query, name: str, lowered: Lowered, dependencies: Dependencies) -> None:
    """`_(x, y) <- body.`: a rule for the predicate of the query."""
    head, value = _split(node.head)
    assert isinstance(head, ast.Call | ast.Application) and node.head is not None
    arity = len(head.args) + len(value)
    lowered.names.shapes[name] = Shape(arity, bool(value), node.span, auxiliary=True)
    called = replace(head, name=name)
    full = called if not value else ast.Comparison("=", called, value[0], span=node.head.span)
    before = len(lowered.rules)
    _lower_plain_rule(ast.Rule((full,), node.body, node.aggregations, span=node.span), lowered, dependencies)
    if len(lowered.rules) > before:
        lowered.queries.append(Query(_text(node), name, node.span))


def _auxiliary_rule(
    scope: Scope, dependencies: Dependencies, name: str, names: list[str], forms: list[RawForm]
) -> None:
    maker = RuleMaker(scope, dependencies)
    places = {n.name: n.span for n in reversed(list(scope.root.walk())) if isinstance(n, ast.Variable)}
    args = tuple(Var(n, places[n]) for n in names)
    head = maker.auxiliary(name, args, len(args), scope.root.span)
    maker.add((head,), forms, (), scope.root.span)


def _text(node: ast.Node) -> str:
    """A statement as written, on one line."""
    return " ".join(node.span.text().split())


# Deltas


def _lower_delta(delta: ast.Delta, lowered: Lowered) -> None:
    diagnostics = lowered.names.diagnostics
    atom, value = _split(delta.atom)
    if not isinstance(atom, ast.Call | ast.Application):
        help = f"write {delta.op}R(1, 2) or {delta.op}F[1] = 2"
        diagnostics.error("a delta must be a fact", delta.span, help)
        return
    if delta.op == "^" and not value:
        message = f"^ replaces the value of a function, but {atom.name}(...) has none"
        diagnostics.error(message, delta.span, "use - and + to change a relation")
        return
    args = (*atom.args, *value)
    row = literal_row(args)
    if row is None:
        other = next(a for a in args if literal_row((a,)) is None)
        diagnostics.error("a delta takes constants only", other.span, "write out the fact to insert or erase")
    elif lowered.names.use(atom.name, len(args), bool(value), delta.span):
        lowered.deltas.append(FactDelta(delta.op, atom.name, row, delta.span))
