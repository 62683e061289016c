"""Owns warnings about a program that is legal: what is probably a mistake.  Reads the syntax tree only.

1. A variable that occurs once in a rule: a misspelt name joins nothing.  `_`, and names that begin with it,
   say that it is meant.  In the body of `agg<<..>>` variables often only name what is aggregated.
2. A predicate that is read or written, and has no rules and no facts.
3. A predicate that nothing reads or writes; those of a component may serve other instances.  One that is not
   stored (`.materialize`) has subscribers or readers outside.
4. A `lang:` setting that changes nothing here.
2 and 3 are for programs with results: without any, a program is for transactions and queries, which may fill
and read every predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dlog.errors import ProgramWarning
from dlog.ir.expand.blocks import inside_blocks
from dlog.ir.expand.properties import PULSE, is_meaningful
from dlog.ir.lower.lonely import lonely
from dlog.ir.rules import Program
from dlog.language import ast
from dlog.language.source import Span

_WRITES = ("output", "printsize")
_FROM_OUTSIDE = ("input", "stream", "table")


def program_warnings(program: Program) -> list[ProgramWarning]:
    """In the order of the text, file by file; of a component each once, whatever its instances.  O(nodes)."""
    statements = program.source.statements
    found = [*_lonely_variables(statements), *_predicate_warnings(program), *_idle_settings(statements)]
    once: dict[tuple[str, int, int, str], ProgramWarning] = {}
    for warning in found:
        place = (warning.file or "", warning.line or 0, warning.column or 0)
        once.setdefault((*place, warning.message), warning)
    return [once[key] for key in sorted(once)]


def has_results(program: Program) -> bool:
    """Whether a run prints or writes something, or checks constraints."""
    writes = any(directive.kind in _WRITES for directive in program.directives)
    return writes or bool(program.queries or program.constraints)


def _idle_settings(statements: Iterable[ast.Node]) -> Iterator[ProgramWarning]:
    for statement in inside_blocks(statements):
        if isinstance(statement, ast.Property) and not is_meaningful(statement):
            help = "it is about the storage or the compiler of another system; leave it out"
            yield ProgramWarning(f"{statement.name} has no effect", span=statement.span, help=help)


# Variables


def _lonely_variables(statements: Iterable[ast.Node]) -> Iterator[ProgramWarning]:
    for statement in statements:
        if isinstance(statement, ast.Component | ast.Block):
            yield from _lonely_variables(statement.statements)
        elif isinstance(statement, ast.Rule | ast.DeltaRule) and not (
            statement.body is None or statement.aggregations
        ):
            yield from _of_rule(statement)


def _of_rule(rule: ast.Rule | ast.DeltaRule) -> Iterator[ProgramWarning]:
    for variable in lonely(rule):
        message = f"the variable {variable.name} occurs only once in its rule"
        yield ProgramWarning(message, span=variable.span, help=f"write _ or _{variable.name} if it is meant")


# Predicates


@dataclass
class _Uses:
    """What the statements of a program do with predicates, with the first place of each."""

    declared: dict[str, Span] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    read: dict[str, Span] = field(default_factory=dict)
    written: dict[str, Span] = field(default_factory=dict)

    def add(self, statement: ast.Node) -> None:
        if isinstance(statement, ast.Declaration):
            self.declared.setdefault(statement.name, statement.span)
            self.written.update(
                {statement.name: statement.span} if {*statement.qualifiers} & {*_WRITES} else {}
            )
            self.defined.update([statement.name] if "input" in statement.qualifiers else [])
        elif isinstance(statement, ast.Directive):
            if statement.kind in _WRITES:
                self.written.setdefault(statement.predicate, statement.span)
            elif statement.kind in _FROM_OUTSIDE:
                self.defined.add(statement.predicate)
            elif statement.kind == "materialize" and statement.params[0].value != "always":
                # somebody subscribes to it, or reads it now and then
                self.written.setdefault(statement.predicate, statement.span)
        elif isinstance(statement, ast.Facts):
            self.defined.add(statement.predicate)
            self.declared.setdefault(statement.predicate, statement.span)
        elif isinstance(statement, ast.DeltaStatement):
            self.defined.update(_head(delta.atom) for delta in statement.deltas)
        elif isinstance(statement, ast.Rule):
            self._add_rule(statement)
        elif isinstance(statement, ast.SequenceRule):
            self.defined.add(_head(statement.head))
            self.declared.setdefault(_head(statement.head), statement.head.span)
            self._add_reads(statement.body, set())
        elif isinstance(statement, ast.DeltaRule):
            self.defined.update(_head(delta.atom) for delta in statement.heads)
            self._add_reads(statement, set())
        elif isinstance(statement, ast.Entity):
            self.declared.setdefault(statement.name, statement.span)
            self.defined.add(statement.reference)
        elif isinstance(statement, ast.Property):
            self.read.update(dict.fromkeys(statement.predicates, statement.span))
            self.defined.update(statement.predicates if statement.name == PULSE else ())
        elif isinstance(statement, ast.Constraint | ast.Query):
            self._add_reads(statement, set())

    def _add_rule(self, rule: ast.Rule) -> None:
        heads = {_head(head) for head in rule.heads}
        self.defined |= heads
        for head in rule.heads:
            self.declared.setdefault(_head(head), head.span)
        self._add_reads(rule, heads)

    def _add_reads(self, statement: ast.Node, heads: set[str]) -> None:
        """A predicate that reads only itself is not read."""
        for node in statement.walk():
            if isinstance(node, ast.Call | ast.Application) and node.name not in heads:
                self.read.setdefault(node.name.partition("@")[0], node.span)


def _head(atom: ast.Node) -> str:
    """The predicate of `p(x)` or of `f[x] = v`."""
    while not isinstance(atom, ast.Call | ast.Application):
        atom = next(atom.children())
    return atom.name


def _predicate_warnings(program: Program) -> Iterator[ProgramWarning]:
    uses = _Uses()
    for statement in inside_blocks(program.source.statements):
        uses.add(statement)
    if not has_results(program):
        return
    for name, span in uses.declared.items():
        used = name in uses.read or name in uses.written
        if used and name not in uses.defined:
            help = "add a rule, a fact or .input, or .stream if only transactions fill it"
            yield ProgramWarning(f"{name} has no rules and no facts", span=span, help=help)
        elif not used and "." not in name:
            help = "write it with .output, or leave it out"
            yield ProgramWarning(f"{name} is not used", span=span, help=help)
