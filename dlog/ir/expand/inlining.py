"""Owns predicates declared `inline`: their rules take the place of their atoms.

    # pair(x, y) :- n(x), n(y).      with .decl pair(..) inline
    # q(x) :- pair(x, x), x < 2.     becomes
    # q(x) :- n(x), n(x), x < 2.

From syntax tree to syntax tree, before names are resolved.  Several rules become a disjunction.  No answer
changes: an atom stays where its rules would change how many assignments an aggregate ranges over.  A
predicate stays, too, if it has facts, or if its rules aggregate; then it is like any other.  What no
statement needs any more is left out, so it may have rules that cannot be evaluated alone, such as
`less(x, y) :- x < y.`
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dlog.errors import Diagnostics
from dlog.language import ast
from dlog.language.vocabulary import AUTOINC
from dlog.values import BOOL, BUILTIN_TYPES, INT, STRING, UNSIGNED

_FACTS = (ast.Facts, ast.DeltaStatement)
# A column of any other built-in type changes what it stores, or says what the literals of a rule mean.
_PLAIN = (INT, UNSIGNED, STRING, BOOL)


@dataclass(frozen=True)
class Clause:
    """One rule of an inline predicate: the arguments of its head and what it says of them."""

    args: tuple[ast.Node, ...]
    body: ast.Node | None

    def renamed(self, taken: set[str]) -> Clause:
        """With variables that are not taken; they are from now on."""
        names: dict[str, str] = {}
        for node in (*self.args, *((self.body,) if self.body is not None else ())):
            for name in variables(node):
                if name not in names:
                    names[name] = fresh(name, taken)
        body = None if self.body is None else substituted(self.body, names)
        return Clause(tuple(substituted(arg, names) for arg in self.args), body)

    @property
    def is_injective(self) -> bool:
        """Whether each row of the predicate has one assignment of the body's variables."""
        free = () if self.body is None else tuple(_outside_negations(self.body))
        own = {arg.name for arg in self.args if isinstance(arg, ast.Variable)}
        return all(not isinstance(node, ast.Wildcard | ast.Disjunction) for node in free) and own >= {
            node.name for node in free if isinstance(node, ast.Variable)
        }


def inline(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """O(size of the program) if it has inline predicates, else O(statements)."""
    declared = {
        s.name: s
        for s in program.statements
        if isinstance(s, ast.Declaration) and "inline" in s.qualifiers and "eqrel" not in s.qualifiers
    }
    if not declared:
        return program
    clauses = _clauses(program, declared)
    order = _in_order(clauses, declared, diagnostics)
    if order is None:
        return program
    done: dict[str, list[Clause]] = {}
    for name in order:
        done[name] = [_expanded_clause(clause, done) for clause in clauses[name]]
    statements = [_expanded(statement, done) for statement in program.statements]
    return ast.Program(tuple(_needed(statements, set(done))), span=program.span)


# Which predicates


def _clauses(program: ast.Program, declared: dict[str, ast.Declaration]) -> dict[str, list[Clause]]:
    """The rules of those that can be inlined, by name."""
    found: dict[str, list[Clause]] = {}
    named = _named_types(program)
    stored = {name for name, d in declared.items() if any(p.type and p.type.name in named for p in d.keys)}
    for statement in program.statements:
        if isinstance(statement, ast.Rule):
            for head in statement.heads:
                if isinstance(head, ast.Comparison) and isinstance(head.left, ast.Call):
                    stored.add(head.left.name)  # it has a subsumption, which lowering refuses
                if isinstance(head, ast.Call) and head.name in declared:
                    if statement.aggregations or _has_aggregates(statement) or _gives_numbers(statement):
                        stored.add(head.name)
                    found.setdefault(head.name, []).append(Clause(head.args, statement.body))
        elif isinstance(statement, ast.Facts):
            stored.add(statement.predicate)
        elif isinstance(statement, ast.DeltaStatement):
            stored.update(node.name for node in statement.walk() if isinstance(node, ast.Call))
        elif isinstance(statement, ast.Directive) and statement.kind in ("input", "table", "stream"):
            stored.add(statement.predicate)
    return {name: clauses for name, clauses in found.items() if name not in stored}


def _named_types(program: ast.Program) -> set[str]:
    """The types that give a meaning to literals, and those derived from them."""
    found = {name for name, type in BUILTIN_TYPES.items() if type not in _PLAIN}
    declarations = [s for s in program.statements if isinstance(s, ast.TypeDeclaration)]
    while more := {d.name for d in declarations if {b.name for b in d.bases} & found} - found:
        found |= more
    return found


def _gives_numbers(rule: ast.Node) -> bool:
    """A rule that does is stored: an assignment has one number, wherever it is read."""
    return any(isinstance(node, ast.Call) and node.name == AUTOINC for node in rule.walk())


def _has_aggregates(rule: ast.Rule) -> bool:
    """A variable of an aggregate may have a value outside where the rule is put, and none in the rule."""
    return any(isinstance(node, ast.InlineAggregate) for node in rule.walk())


def _in_order(
    clauses: dict[str, list[Clause]], declared: dict[str, ast.Declaration], diagnostics: Diagnostics
) -> list[str] | None:
    """Each after those that its rules use.  None if two depend on each other, which is reported."""
    order: list[str] = []
    path: list[str] = []

    def visit(name: str) -> bool:
        if name in order:
            return True
        if name in path:
            cycle = [*path[path.index(name) :], name]
            needs = ", ".join(f"{a} needs {b}" for a, b in itertools.pairwise(cycle))
            message = f"{cycle[0]} is inline and depends on itself"
            help = f"the cycle: {needs}; a recursive predicate cannot be inline"
            diagnostics.error(message, declared[cycle[0]].span, help)
            return False
        path.append(name)
        uses = dict.fromkeys(
            used for clause in clauses[name] for used in _used(clause.body) if used in clauses
        )
        if not all(visit(used) for used in uses):
            return False
        path.pop()
        order.append(name)
        return True

    return order if all(visit(name) for name in clauses) else None


def _used(body: ast.Node | None) -> Iterator[str]:
    if body is not None:
        yield from (node.name for node in body.walk() if isinstance(node, ast.Call))


def _needed(statements: list[ast.Node], inlined: set[str]) -> Iterator[ast.Node]:
    """Without the inlined predicates that nothing mentions any more."""
    mentioned: dict[str | None, set[str]] = {}
    for statement in statements:
        names = (
            {statement.predicate} if isinstance(statement, ast.Directive) else set(_used(_read(statement)))
        )
        for head in {head if head in inlined else None for head in _heads(statement)} or {None}:
            mentioned.setdefault(head, set()).update(names & inlined)
    kept: set[str] = set()
    pending = list(mentioned.get(None, ()))
    while pending:
        name = pending.pop()
        if name not in kept:
            kept.add(name)
            pending.extend(mentioned.get(name, ()))
    for statement in statements:
        if isinstance(statement, ast.Declaration):
            if statement.name not in inlined - kept:
                yield statement
        elif not isinstance(statement, ast.Rule) or not _heads(statement) & (inlined - kept):
            yield statement
        elif heads := tuple(h for h in statement.heads if not (_heads_of(h) & (inlined - kept))):
            yield replace(statement, heads=heads)


def _heads(statement: ast.Node) -> set[str]:
    if not isinstance(statement, ast.Rule):
        return set()
    return set().union(*map(_heads_of, statement.heads))


def _heads_of(head: ast.Node) -> set[str]:
    return {head.name} if isinstance(head, ast.Call) else {""}


def _read(statement: ast.Node) -> ast.Node | None:
    """What a statement reads; the heads of a rule read nothing but what their terms do."""
    if not isinstance(statement, ast.Rule):
        return None if isinstance(statement, ast.Declaration | ast.Facts) else statement
    terms = [arg for head in statement.heads if isinstance(head, ast.Call) for arg in head.args]
    terms += [head for head in statement.heads if not isinstance(head, ast.Call)]
    body = (statement.body,) if statement.body is not None else ()
    return ast.Conjunction((*terms, *statement.aggregations, *body))


# Expansion


def _expanded_clause(clause: Clause, done: dict[str, list[Clause]]) -> Clause:
    if clause.body is None:
        return clause
    expander = _Expander(done, set(variables(ast.Conjunction((*clause.args, clause.body)))))
    return replace(clause, body=expander.formula(clause.body))


def _expanded(statement: ast.Node, done: dict[str, list[Clause]]) -> ast.Node:
    if not isinstance(statement, ast.Rule | ast.Query | ast.Constraint):
        return statement
    nodes = list(statement.walk())
    if not any(isinstance(node, ast.Call) and node.name in done for node in nodes):
        return statement
    if any(isinstance(n, ast.Aggregation | ast.InlineAggregate) and n.op == "concat" for n in nodes):
        return statement  # it joins in the order in which the body mentions variables
    expander = _Expander(done, set(variables(statement)))
    if isinstance(statement, ast.Query):
        return replace(statement, body=expander.formula(statement.body))
    if isinstance(statement, ast.Constraint):
        left, right = expander.formula(statement.left), expander.formula(statement.right)
        return replace(statement, left=left, right=right)
    expander.counts = bool(statement.aggregations) or _gives_numbers(statement)
    body = None if statement.body is None else expander.formula(statement.body)
    return replace(statement, heads=tuple(map(expander.head, statement.heads)), body=body)


class _Expander:
    """Of one statement.  `counts`: whether the assignments of what is being expanded are counted."""

    def __init__(self, done: dict[str, list[Clause]], taken: set[str]):
        self.done = done
        self.taken = taken
        self.counts = False

    def formula(self, node: ast.Node) -> ast.Node:
        match node:
            case ast.Conjunction():
                return replace(node, items=tuple(_flat(map(self.formula, node.items))))
            case ast.Disjunction():
                return replace(node, items=tuple(map(self.formula, node.items)))
            case ast.Negation():
                counts, self.counts = self.counts, False
                body = self.formula(node.body)
                self.counts = counts
                return replace(node, body=body)
            case ast.Comparison():
                return replace(node, left=self.term(node.left), right=self.term(node.right))
            case ast.Call():
                return self.atom(replace(node, args=tuple(map(self.term, node.args))))
        return node

    def head(self, node: ast.Node) -> ast.Node:
        if isinstance(node, ast.Call | ast.Application):
            return replace(node, args=tuple(map(self.term, node.args)))
        return self.formula(node) if isinstance(node, ast.Comparison) else node

    def term(self, node: ast.Node) -> ast.Node:
        """A term with its inline aggregates expanded."""
        match node:
            case ast.InlineAggregate():
                counts, self.counts = self.counts, True
                body = self.formula(node.body)
                self.counts = counts
                target = None if node.target is None else self.term(node.target)
                return replace(node, target=target, body=body)
            case ast.Binary():
                return replace(node, left=self.term(node.left), right=self.term(node.right))
            case ast.Unary():
                return replace(node, operand=self.term(node.operand))
            case ast.Cast():
                return replace(node, term=self.term(node.term))
            case ast.Call() | ast.Application() | ast.UserCall():
                return replace(node, args=tuple(map(self.term, node.args)))
        return node

    def atom(self, node: ast.Call) -> ast.Node:
        clauses = self.done.get(node.name)
        if clauses is None or any(len(clause.args) != len(node.args) for clause in clauses):
            return node
        if self.counts and not (len(clauses) == 1 and clauses[0].is_injective):
            return node
        branches = [self.applied(clause.renamed(self.taken), node) for clause in clauses]
        return branches[0] if len(branches) == 1 else ast.Disjunction(tuple(branches), span=node.span)

    def applied(self, clause: Clause, atom: ast.Call) -> ast.Node:
        """What a clause says of the arguments of an atom."""
        values: dict[str, ast.Node] = {}
        equal: list[ast.Node] = []
        for given, own in zip(atom.args, clause.args, strict=True):
            if isinstance(given, ast.Wildcard):
                if isinstance(own, ast.Variable | ast.Constant):
                    continue
                given = ast.Variable(fresh("any", self.taken), span=given.span)
            if isinstance(own, ast.Variable) and own.name not in values and _simple(given):
                values[own.name] = given
            else:
                equal.append(ast.Comparison("=", given, own, span=atom.span))
        items = [] if clause.body is None else [clause.body]
        whole = ast.Conjunction(tuple(_flat((*equal, *items))), span=atom.span)
        found = substituted(whole, values)
        assert isinstance(found, ast.Conjunction)
        kept = tuple(item for item in found.items if not _is_trivial(item))
        if len(kept) == 1:
            return kept[0]
        return replace(found, items=kept) if kept else ast.Constant("bool", True, span=atom.span)


def _simple(node: ast.Node) -> bool:
    return isinstance(node, ast.Variable | ast.Constant)


def _is_trivial(item: ast.Node) -> bool:
    return (
        isinstance(item, ast.Comparison) and item.op == "=" and _simple(item.left) and item.left == item.right
    )


def _flat(items: Iterable[ast.Node]) -> Iterator[ast.Node]:
    for item in items:
        if isinstance(item, ast.Conjunction):
            yield from item.items
        else:
            yield item


def _outside_negations(node: ast.Node) -> Iterator[ast.Node]:
    yield node
    if not isinstance(node, ast.Negation):
        for child in node.children():
            yield from _outside_negations(child)


# Variables


def variables(node: ast.Node) -> list[str]:
    return list(dict.fromkeys(n.name for n in node.walk() if isinstance(n, ast.Variable)))


def fresh(name: str, taken: set[str]) -> str:
    """A name like this one that is not taken; it is from now on."""
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"


def substituted(node: ast.Node, values: dict[str, str] | dict[str, ast.Node]) -> ast.Node:
    """A node with other names, or terms, for some variables.  O(nodes)."""
    if isinstance(node, ast.Variable):
        value = values.get(node.name)
        return replace(node, name=value) if isinstance(value, str) else value or node
    changed: dict[str, Any] = {}
    for part in ast.parts(type(node)):
        value = getattr(node, part)
        if isinstance(value, ast.Node):
            changed[part] = substituted(value, values)
        elif isinstance(value, tuple):
            changed[part] = tuple(
                substituted(item, values) if isinstance(item, ast.Node) else item for item in value
            )
    return replace(node, **changed) if changed else node
