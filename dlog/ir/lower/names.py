"""Owns which predicates a program has, and whether each use fits: names, arities, relation or function.

A predicate exists when it is declared, has facts or rules, is inserted into, or is read from a file.  Knows
nothing of types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dlog.errors import Diagnostics, did_you_mean, place
from dlog.ir import primitives
from dlog.ir.rules import Choice, Numbering
from dlog.language import ast
from dlog.language.build import ANONYMOUS
from dlog.language.foreign import condition_help
from dlog.language.source import Span
from dlog.values import BUILTIN_TYPES, RESERVED_TYPES

MAX_ARITY = 1000  # arguments of a predicate: plans, kernels and column orders are made for far fewer


@dataclass
class Shape:
    """What is known of a predicate from its uses: how many arguments, and whether the last is a value."""

    arity: int
    functional: bool
    span: Span | None
    declaration: ast.Declaration | None = None
    auxiliary: bool = False  # created by lowering
    input: bool = False  # filled from a file or a stream
    equivalence: str | None = None  # the equivalence relation whose classes it holds: see `equivalence`
    choice: Choice | None = None  # how its rows are chosen: see `choice`
    candidates_of: str | None = None  # the relation whose rows are chosen from its rows
    numbering: Numbering | None = None  # how it gives numbers: see `numbers`
    given_to: str | None = None  # the predicate whose memory it is: see `given`

    @property
    def is_equivalence(self) -> bool:
        return self.declaration is not None and "eqrel" in self.declaration.qualifiers

    @property
    def of_aggregate(self) -> bool:
        """Whether lowering created it for an aggregate."""
        known = self.equivalence is not None or self.candidates_of is not None or self.given_to is not None
        return self.auxiliary and not known

    @property
    def parameters(self) -> tuple[ast.Parameter, ...]:
        """The declared arguments, the value last; () when undeclared."""
        if self.declaration is None:
            return ()
        value = self.declaration.value
        return (*self.declaration.keys, *((value,) if value else ()))

    def argument(self, name: str, index: int) -> str:
        """The name of an argument in messages."""
        if self.equivalence is not None:
            return f"an argument of {self.equivalence}"
        name = self.candidates_of or name
        if self.parameters:
            return f"argument {self.parameters[index].name} of {name}"
        is_value = self.functional and index == self.arity - 1
        return f"the value of {name}" if is_value else f"argument {index + 1} of {name}"


class Names:
    """The predicates of one program."""

    def __init__(self, diagnostics: Diagnostics):
        self.shapes: dict[str, Shape] = {}
        self.diagnostics = diagnostics
        self.complained: set[str] = set()  # names that are already reported

    # What exists

    def declare(self, declaration: ast.Declaration) -> None:
        known = self.shapes.get(declaration.name)
        if known is None:
            self.check_name(declaration.name, declaration.span)
            self.check_parameters(declaration)
            arity = len(declaration.keys) + (declaration.value is not None)
            self.check_arity(declaration.name, arity, declaration.span)
            functional = declaration.value is not None
            self.shapes[declaration.name] = Shape(arity, functional, declaration.span, declaration)
            return
        assert known.declaration is not None
        merged = _merged(known.declaration, declaration)
        if merged is not None and _are_both_full(known.declaration, declaration):
            assert known.span is not None
            help = f"the first declaration is at {place(known.span, declaration.span)}"
            self.diagnostics.error(f"{declaration.name} is declared twice", declaration.span, help)
        elif merged is None:
            assert known.span is not None
            message = f"{declaration.name} is declared twice, in different ways"
            help = f"the first declaration is at {place(known.span, declaration.span)}"
            self.diagnostics.error(message, declaration.span, help)
        else:
            known.declaration = merged

    def check_parameters(self, declaration: ast.Declaration) -> None:
        seen: set[str] = set()
        for parameter in (*declaration.keys, *((declaration.value,) if declaration.value else ())):
            if parameter.name in seen:
                message = f"two arguments of {declaration.name} are named {parameter.name}"
                self.diagnostics.error(message, parameter.span, "give each argument a different name")
            seen.add(parameter.name)

    def check_arity(self, name: str, arity: int, span: Span | None) -> None:
        if arity > MAX_ARITY:
            self.complained.add(name)
            message = f"{name} has {arity:,} arguments; a predicate has at most {MAX_ARITY:,}"
            help = "split it into several predicates that share a key, or write one fact for each value"
            self.diagnostics.error(message, span, help)

    def check_name(self, name: str, span: Span | None) -> None:
        if name in RESERVED_TYPES and name not in self.complained:
            self.complained.add(name)
            message = f"{name} is the name of a type and cannot name a predicate"
            self.diagnostics.error(message, span, "give the predicate another name")

    def define(self, name: str, arity: int, functional: bool, span: Span | None) -> None:
        if name == ANONYMOUS or "@" in name:
            return
        if name not in self.shapes:
            self.check_name(name, span)
            self.check_arity(name, arity, span)
            self.shapes[name] = Shape(arity, functional, span)

    def define_atom(self, node: ast.Node) -> None:
        """By a head or a delta, `R(x)` or `F[x] = y`."""
        if isinstance(node, ast.Call):
            self.define(node.name, len(node.args), False, node.span)
        elif isinstance(node, ast.Comparison) and isinstance(node.left, ast.Application):
            self.define(node.left.name, len(node.left.args) + 1, True, node.span)

    # How it is used

    def use(self, name: str, arity: int, functional: bool, span: Span) -> bool:
        """Whether a predicate exists and is used as it is defined; reports it if not."""
        shape = self.shapes.get(name)
        if shape is None:
            self.unknown(name, span)
        elif name in RESERVED_TYPES:
            pass  # its definition was reported
        elif shape.functional != functional:
            self.diagnostics.error(*_other_form(name, shape, span))
        elif shape.arity != arity:
            self.diagnostics.error(*_other_arity(name, shape, arity - functional, span))
        else:
            return True
        return False

    def unknown(self, name: str, span: Span) -> None:
        if name in self.complained:
            return
        self.complained.add(name)
        if name == ANONYMOUS:
            help = "give the predicate a name; `_(x) <- body.` alone is a query"
            self.diagnostics.error("_ does not name a predicate here", span, help)
            return
        if "@" in name:
            help = "write a delta rule, as in +q(x) <- +p(x), p@prev(y)."
            self.diagnostics.error(f"only delta rules read {name}", span, help)
            return
        if name in BUILTIN_TYPES:
            message = f"{name} is the name of a type, not a predicate"
            help = f"{name} names a type only in a declaration, as in R(x) -> {name}(x)"
            self.diagnostics.error(message, span, help)
            return
        if name in primitives.FUNCTORS:
            message = f"{name} gives a value; it is not a condition"
            self.diagnostics.error(message, span, f"compare the value, as in x = {name}(...)")
            return
        meant = did_you_mean(name, self.visible()) or condition_help(name, primitives.RELATIONS)
        meant = meant or f"declare {name}, or give it facts or rules"
        self.diagnostics.error(f"unknown predicate {name}", span, meant)

    def visible(self) -> list[str]:
        return [name for name, shape in self.shapes.items() if not shape.auxiliary]

    def directed(self, directive: ast.Directive) -> bool:
        """Whether the predicate of a directive exists."""
        if directive.predicate in self.shapes:
            return True
        if directive.predicate not in self.complained:
            self.complained.add(directive.predicate)
            name = directive.predicate
            help = did_you_mean(name, self.visible(), f"declare it, as in {name}(x) -> int(x).")
            self.diagnostics.error(f"unknown predicate {name}", directive.span, help)
        return False


def collect_names(program: ast.Program, diagnostics: Diagnostics) -> Names:
    """Declarations first, then whatever else defines a predicate: uses may come before it."""
    names = Names(diagnostics)
    for statement in program.statements:
        if isinstance(statement, ast.Declaration):
            names.declare(statement)
    for statement in program.statements:
        if isinstance(statement, ast.Facts) and statement.rows:
            names.define(statement.predicate, len(statement.rows[0]), statement.functional, statement.span)
        elif isinstance(statement, ast.Rule):
            for head in statement.heads:
                names.define_atom(head)
        elif isinstance(statement, ast.SequenceRule):
            names.define_atom(statement.head)
        elif isinstance(statement, ast.DeltaStatement):
            for delta in statement.deltas:
                if delta.op != "-":  # a predicate that is only erased does not exist
                    names.define_atom(delta.atom)
    _adopt_inputs(program, names)
    return names


def _adopt_inputs(program: ast.Program, names: Names) -> None:
    """An undeclared predicate that is read from a file has the arity of its first use."""
    inputs = {
        s.predicate
        for s in program.statements
        if isinstance(s, ast.Directive) and s.kind in ("input", "stream")
    }
    if inputs - names.shapes.keys():
        for node in _bodies(program):
            if isinstance(node, ast.Call) and node.name in inputs:
                names.define(node.name, len(node.args), False, node.span)
            elif isinstance(node, ast.Application) and node.name in inputs:
                names.define(node.name, len(node.args) + 1, True, node.span)
    for name in inputs & names.shapes.keys():
        names.shapes[name].input = True


def _bodies(program: ast.Program) -> Iterator[ast.Node]:
    for statement in program.statements:
        if isinstance(statement, ast.Rule | ast.SequenceRule | ast.Constraint | ast.Query):
            yield from statement.walk()


def _merged(first: ast.Declaration, second: ast.Declaration) -> ast.Declaration | None:
    """Two declarations of one predicate as one, or None when they contradict each other."""
    if len(first.keys) != len(second.keys) or (first.value is None) != (second.value is None):
        return None
    keys = [_merged_parameter(a, b) for a, b in zip(first.keys, second.keys, strict=True)]
    value = _merged_parameter(first.value, second.value) if first.value and second.value else None
    if any(k is None for k in keys) or (first.value is not None and value is None):
        return None
    if first.choices and second.choices and first.choices != second.choices:
        return None
    qualifiers = tuple(dict.fromkeys((*first.qualifiers, *second.qualifiers)))
    choices = first.choices or second.choices
    found = tuple(k for k in keys if k)
    return replace(first, keys=found, value=value, qualifiers=qualifiers, choices=choices)


def _are_both_full(first: ast.Declaration, second: ast.Declaration) -> bool:
    """Whether both are written `.decl`, which says all there is; those of LogiQL add to each other."""
    spans = [d.span for d in (first, second) if d.span is not None]
    return len(spans) == 2 and spans[0] != spans[1] and all(s.text().startswith(".decl") for s in spans)


def _merged_parameter(a: ast.Parameter, b: ast.Parameter) -> ast.Parameter | None:
    if a.type is None or b.type is None or a.type == b.type:
        return a if a.type is not None else replace(a, type=b.type)
    return None


def _other_form(name: str, shape: Shape, span: Span) -> tuple[str, Span, str]:
    if shape.functional:
        form = f"{name}[{', '.join('_' * (shape.arity - 1))}] = value"
        return f"{name} is a function", span, f"write {form}"
    form = f"{name}({', '.join('_' * shape.arity)})"
    return f"{name} is a relation, not a function", span, f"write {form}"


def _other_arity(name: str, shape: Shape, given: int, span: Span) -> tuple[str, Span, str | None]:
    noun = "key" if shape.functional else "argument"
    need = count_of(shape.arity - shape.functional, noun)
    message = f"{name} takes {need}, but {given} {'is' if given == 1 else 'are'} given"
    if shape.span is None:
        return message, span, None
    first = place(shape.span, span)
    return (
        message,
        span,
        f"{name} is {'declared' if shape.declaration else 'first used'} at {first}",
    )


def count_of(number: int, noun: str) -> str:
    """`1 key`, `2 keys`, `no keys`."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
