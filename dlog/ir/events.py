"""Owns delta rules: what a transaction does besides, as a program over its events and the state before it.

    # ^stock[x] = n - m <- +sold(x, m), stock@prev[x] = n.        becomes
    # `event ^stock`[x] = n - m <- `event +sold`(x, m), stock[x] = n.
    # `event +stock`[x] = n <- `event ^stock`[x] = n.
    # `event -stock`(x, m) <- `event ^stock`[x] = n, stock[x] = m, m != n.

Every predicate of the database is a relation without rules in this program: the state before the transaction,
which `p`, `p@prev`, `p@previous` and `p@start` all mean.  What the transaction asks for is there at first in
the predicates of events; the rules add to them, as any rules do.  Knows nothing of transactions:
`dlog.engine.events` evaluates the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlog.errors import Diagnostics, did_you_mean
from dlog.ir.declared import declaration, functors_of, types_of
from dlog.ir.expand.blocks import inside_blocks
from dlog.ir.expand.entities import without_entities
from dlog.ir.rules import Predicate, Program
from dlog.language import ast

BEFORE = frozenset({"prev", "previous", "start"})
_NO_STAGES = {
    "final": "write an ordinary rule or a constraint: it reads the state after the transaction",
    "init": "p@start is the state before the transaction, and +p(x) and -p(x) what it changes",
    "initial": "p@start is the state before the transaction, and +p(x) and -p(x) what it changes",
}


@dataclass
class Events:
    """Delta rules as a program.  `read`: the events, as (sign, predicate), that rules wait for; `changed`:
    the predicates of their heads."""

    program: Program
    named: tuple[str, ...]  # the predicates that have events in the program
    read: frozenset[tuple[str, str]]
    changed: frozenset[str]
    always: bool  # whether some rule waits for nothing


def event_name(sign: str, predicate: str) -> str:
    """The predicate of an event; no identifier of the language."""
    return f"event {sign}{predicate}"


def installed(program: ast.Program) -> list[ast.DeltaRule]:
    """The delta rules of a program."""
    return [s for s in inside_blocks(program.statements) if isinstance(s, ast.DeltaRule)]


def changed_by(rule: ast.DeltaRule) -> set[str]:
    """The predicates of a rule's heads."""
    return {_named(head.atom) for head in rule.heads}


def waits_for(rule: ast.DeltaRule) -> list[str]:
    """The events that must be there for a rule, such as `+p`."""
    return list(dict.fromkeys(f"{op}{name}" for op, name in _waits(rule.body)))


def check_events(
    program: Program,
    rules: Sequence[ast.DeltaRule],
    once: Sequence[ast.DeltaRule],
    check: Callable[[ast.Program], Program],
) -> Events | None:
    """The delta rules of a checked program, with those of one transaction; None if there are none.

    Raises all errors together.
    """
    if not rules and not once:
        return None
    diagnostics = Diagnostics()
    written = (*_expanded(program, rules, diagnostics), *_expanded(program, once, diagnostics))
    rewriting = _Rewriting(program, diagnostics)
    made = [rewriting.rule(rule) for rule in written]
    made += rewriting.inlined()
    for rule in written[: len(rules)]:
        if not any(True for _ in _waits(rule.body)):
            message = "this rule waits for no event, so it would change something in every transaction"
            help = "read what transactions change, as in +q(x); in a transaction, such a rule runs once"
            diagnostics.error(message, rule.span, help)
    diagnostics.raise_if_any()
    statements = [
        *types_of(program),
        *functors_of(program),
        *rewriting.inline.values(),
        *rewriting.declarations(),
        *made,
        *rewriting.replacements(),
    ]
    events = check(ast.Program(tuple(statements), span=program.source.span))
    read = frozenset(pair for rule in written for pair in _waits(rule.body))
    always = any(not any(True for _ in _waits(rule.body)) for rule in written)
    changed = frozenset(_named(head.atom) for rule in written for head in rule.heads)
    return Events(events, tuple(rewriting.events), read, changed, always)


def _expanded(program: Program, rules: Sequence[ast.Node], errors: Diagnostics) -> list[ast.DeltaRule]:
    """With what entity types of the program mean."""
    entities = [s for s in inside_blocks(program.source.statements) if isinstance(s, ast.Entity)]
    both = without_entities(ast.Program((*entities, *rules), span=program.source.span), errors)
    return [s for s in both.statements if isinstance(s, ast.DeltaRule)]


def _waits(node: ast.Node) -> Iterator[tuple[str, str]]:
    """The events that must be there: those outside of negations and aggregates."""
    if isinstance(node, ast.Delta):
        yield node.op, _named(node.atom)
    elif not isinstance(node, ast.Negation | ast.InlineAggregate):
        for child in node.children():
            yield from _waits(child)


def _named(atom: ast.Node) -> str:
    node = atom.left if isinstance(atom, ast.Comparison) else atom
    return node.name if isinstance(node, ast.Call | ast.Application) else ""


class _Rewriting:
    """Events as atoms of their predicates.  Collects what the rules read, and which events they name."""

    def __init__(self, program: Program, diagnostics: Diagnostics):
        self.known = {name: p for name, p in program.predicates.items() if not p.auxiliary}
        self.diagnostics = diagnostics
        self.read: dict[str, None] = {}
        self.events: dict[str, None] = {}
        self.replaced: dict[str, None] = {}  # functions whose values rules replace
        self.statements = tuple(inside_blocks(program.source.statements))
        self.inline: dict[str, ast.Declaration] = {}  # the inline predicates that are read

    def rule(self, rule: ast.DeltaRule) -> ast.Rule:
        heads = tuple(self.event(head) for head in rule.heads)
        for head in rule.heads:
            if head.op == "^":
                self.replaced[_named(head.atom)] = None
        body = self.node(rule.body)
        aggregations = tuple(map(self.node, rule.aggregations))
        return ast.Rule(heads, body, aggregations, span=rule.span)

    def node(self, node: Any) -> Any:
        if isinstance(node, ast.Delta):
            return self.event(node)
        changed: dict[str, Any] = {}
        for part in ast.parts(type(node)):
            value = getattr(node, part)
            if isinstance(value, ast.Node):
                changed[part] = self.node(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], ast.Node):
                changed[part] = tuple(map(self.node, value))
        if isinstance(node, ast.Call | ast.Application):
            changed["name"] = self.before(node)
        return replace(node, **changed) if changed else node

    def before(self, node: ast.Call | ast.Application) -> str:
        """The predicate that an atom without a sign reads: in the state before the transaction."""
        name, _, stage = node.name.partition("@")
        if stage and stage not in BEFORE:
            help = _NO_STAGES.get(stage, f"{name}@prev is the state before the transaction")
            self.diagnostics.error(f"there is no stage @{stage}", node.span, help)
        elif name not in self.known and (declared := self.inline_declaration(name)) is not None:
            self.inline[name] = declared
        elif stage and name not in self.known:
            self.unknown(name, node)
        if name in self.known:
            self.read[name] = None
        return name

    def inline_declaration(self, name: str) -> ast.Declaration | None:
        for statement in self.statements:
            if isinstance(statement, ast.Declaration) and statement.name == name:
                return statement if "inline" in statement.qualifiers else None
        return None

    def inlined(self) -> Iterator[ast.Rule]:
        """The rules of the inline predicates that are read, and of those that they read."""
        done: set[str] = set()
        while todo := [name for name in self.inline if name not in done]:
            done.update(todo)
            for rule in self.statements:
                heads = rule.heads if isinstance(rule, ast.Rule) else ()
                for head in heads:
                    if _named(head) in todo:
                        assert isinstance(rule, ast.Rule)
                        yield replace(rule, heads=(head,), body=self.node(rule.body))

    def event(self, delta: ast.Delta) -> ast.Node:
        atom = delta.atom
        value: ast.Node | None = None
        if isinstance(atom, ast.Comparison) and atom.op == "=" and isinstance(atom.left, ast.Application):
            value, atom = atom.right, atom.left
        if not isinstance(atom, ast.Application if value is not None else ast.Call):
            help = f"write {delta.op}R(x) or {delta.op}F[x] = y"
            self.diagnostics.error("an event is of an atom", delta.span, help)
            return delta.atom
        assert isinstance(atom, ast.Call | ast.Application)
        self.check(delta, atom, value is not None)
        args = tuple(map(self.node, atom.args))
        name = event_name(delta.op, atom.name)
        if value is None:
            return ast.Call(name, args, span=delta.span)
        if delta.op == "-":
            return ast.Call(name, (*args, self.node(value)), span=delta.span)
        function = ast.Application(name, args, span=atom.span)
        return ast.Comparison("=", function, self.node(value), span=delta.span)

    def check(self, delta: ast.Delta, atom: ast.Call | ast.Application, is_function: bool) -> None:
        """Notes an event that fits its predicate, and reports another."""
        predicate = self.known.get(atom.name)
        if predicate is None:
            self.unknown(atom.name, atom, is_function)
        elif predicate.is_functional != is_function:
            form = f"{atom.name}[...] = x" if predicate.is_functional else f"{atom.name}(...)"
            what = "a function" if predicate.is_functional else "a relation, not a function"
            self.diagnostics.error(f"{atom.name} is {what}", delta.span, f"write {delta.op}{form}")
        elif delta.op == "^" and not is_function:
            message = f"^ replaces the value of a function, but {atom.name}(...) has none"
            self.diagnostics.error(message, delta.span, "use - and + to change a relation")
        else:
            self.events[atom.name] = None
            self.read[atom.name] = None

    def unknown(self, name: str, node: ast.Node, is_function: bool = False) -> None:
        form = f"{name}[x] = y -> int(x), int(y)." if is_function else f"{name}(x) -> int(x)."
        help = did_you_mean(name, self.known, f"declare it first, as in {form}")
        self.diagnostics.error(f"unknown predicate {name}", node.span, help)

    # What belongs to all of them

    def declarations(self) -> Iterator[ast.Node]:
        for name in self.read:
            plain = replace(declaration(self.known[name]), qualifiers=())
            yield plain
            if name in self.events:
                yield from self.event_declarations(plain, self.known[name])

    def event_declarations(self, plain: ast.Declaration, predicate: Predicate) -> Iterator[ast.Node]:
        """Erased rows are a relation: a transaction may name several values of one key."""
        for sign in "+^" if predicate.is_functional else "+":
            yield replace(plain, name=event_name(sign, plain.name))
        keys = (*plain.keys, *((plain.value,) if plain.value is not None else ()))
        yield replace(plain, name=event_name("-", plain.name), keys=keys, value=None)

    def replacements(self) -> Iterator[ast.Rule]:
        """`^f[x] = y` inserts f[x] = y and erases another value of f[x]."""
        for name in self.replaced:
            predicate = self.known.get(name)
            if predicate is None or not predicate.is_functional:
                continue
            span: Any = predicate.span
            keys = tuple(ast.Variable(f"key{n}", span=span) for n in range(predicate.n_keys))
            new, old = (ast.Variable(word, span=span) for word in ("new", "old"))

            def function(name: str, keys: Any = keys, span: Any = span) -> ast.Node:
                return ast.Application(name, keys, span=span)

            asked = ast.Comparison("=", function(event_name("^", name)), new, span=span)
            head = ast.Comparison("=", function(event_name("+", name)), new, span=span)
            yield ast.Rule((head,), asked, span=span)
            known = ast.Comparison("=", function(name), old, span=span)
            other = ast.Comparison("!=", old, new, span=span)
            body = ast.Conjunction((asked, known, other), span=span)
            erased = ast.Call(event_name("-", name), (*keys, old), span=span)
            yield ast.Rule((erased,), body, span=span)
