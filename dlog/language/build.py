"""Owns grammar reductions -> syntax tree nodes: one method per production of grammar.lark."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from lark import Token, Transformer

from dlog.aggregates import AGGREGATES
from dlog.aggregates.user import USER
from dlog.errors import Diagnostics, SourceError
from dlog.language import ast
from dlog.language.complaints import MISSING_END
from dlog.language.declare import (
    CANONICAL_TYPE,
    DECLARING,
    declaration_and_constraint,
    excluding_qualifiers,
)
from dlog.language.lexer import FactRun
from dlog.language.source import Source, Span
from dlog.language.vocabulary import AUTOINC
from dlog.values.quoting import ESCAPES

# Binding strength of binary operators, low to high; prefixes bind tighter than `*`, looser than `^`.
PRECEDENCE: dict[str, int] = {
    "lor": 1, "lxor": 2, "land": 3, "bor": 4, "bxor": 5, "band": 6,
    "bshl": 7, "bshr": 7, "bshru": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "^": 11,
}  # fmt: skip
PREFIX_PRECEDENCE = 10
ANONYMOUS = "_"  # the name of the head of a query


class _Prefixed:
    """A prefix operator whose operand is not decided yet: in `-x ^ 2` it is `x ^ 2`."""

    def __init__(self, op: Token, operand: Any):
        self.op, self.operand = op, operand


class Builder(Transformer):
    """REQUIRES: `source` and `diagnostics` are set before each statement."""

    source: Source
    diagnostics: Diagnostics

    def span(self, *children: Any) -> Span:
        """From the first to the last position among children, which are in text order."""
        start = next(place for child in children if (place := _start(child)) is not None)
        end = next(place for child in reversed(children) if (place := _end(child)) is not None)
        return Span(self.source, start, end)

    # Statements: each returns a list, since one text may contain several statements.

    def start(self, c: list[Any]) -> list[ast.Node]:
        return c[0]

    def facts(self, c: list[Any]) -> list[ast.Node]:
        run: FactRun = c[0].value
        span = Span(self.source, c[0].start_pos, c[0].end_pos)
        return [ast.Facts(run.predicate, tuple(run.rows), run.functional, tuple(run.offsets), span=span)]

    def fact(self, c: list[Any]) -> list[ast.Node]:
        heads = _items(c[0])
        span = self.span(*c)
        plain = _plain_fact(heads[0], span) if len(heads) == 1 else None
        return [plain or ast.Rule(heads, span=span)]

    def rule(self, c: list[Any]) -> list[ast.Node]:
        if _is_anonymous(c[0]):
            return [ast.Query(c[2], c[0], span=self.span(*c))]
        return [ast.Rule(_items(c[0]), c[2], span=self.span(*c))]

    def empty_rule(self, c: list[Any]) -> list[ast.Node]:
        return self.fact([c[0], c[2]])

    def aggregate_rule(self, c: list[Any]) -> list[ast.Node]:
        aggregations = tuple(x for x in c if isinstance(x, ast.Aggregation))
        if _is_anonymous(c[0]):
            return [ast.Query(c[-2], c[0], aggregations, span=self.span(*c))]
        return [ast.Rule(_items(c[0]), c[-2], aggregations, span=self.span(*c))]

    def constraint(self, c: list[Any]) -> list[ast.Node]:
        return declaration_and_constraint(c[0], c[2], self.span(*c), self.diagnostics)

    def bare_declaration(self, c: list[Any]) -> list[ast.Node]:
        return declaration_and_constraint(c[0], None, self.span(*c), self.diagnostics)

    def deltas(self, c: list[Any]) -> list[ast.Node]:
        return [ast.DeltaStatement(tuple(x for x in c if isinstance(x, ast.Delta)), span=self.span(*c))]

    def delta_rule(self, c: list[Any]) -> list[ast.Node]:
        arrow = next(i for i, x in enumerate(c) if isinstance(x, Token) and x.type == "ARROW")
        heads = tuple(x for x in c[:arrow] if isinstance(x, ast.Delta))
        aggregations = tuple(x for x in c if isinstance(x, ast.Aggregation))
        return [ast.DeltaRule(heads, c[-2], aggregations, span=self.span(*c))]

    def sequence_rule(self, c: list[Any]) -> list[ast.Node]:
        if str(c[2]).startswith("list"):
            help = "number the values: f[i] = x <- seq<<>> p(x).  The one after f[i] is f[i + 1]"
            self.diagnostics.error("there is no list<<...>>", self.span(c[2]), help)
        index, order = (str(c[3]), c[5]) if c[3] is not None else (None, ())
        return [ast.SequenceRule(c[0], c[-2], index, order, span=self.span(*c))]

    def order(self, c: list[Any]) -> Any:
        return tuple(x for x in c if isinstance(x, ast.Node))

    def quoted_name(self, c: list[Any]) -> Token:
        return c[1]

    def property(self, c: list[Any]) -> list[ast.Node]:
        names = tuple(str(x) for x in c[1:] if isinstance(x, Token) and x.type == "NAME")
        value = next((x for x in c if isinstance(x, ast.Node)), None)
        return [ast.Property(str(c[0]), names, value, span=self.span(*c))]

    def block(self, c: list[Any]) -> list[ast.Node]:
        name = "".join(str(x) for x in c[3:-2])
        return [ast.BlockStart(name, span=self.span(*c))]

    def query(self, c: list[Any]) -> list[ast.Node]:
        return [ast.Query(c[1], span=self.span(*c))]

    def delta(self, c: list[Any]) -> ast.Node:
        atom = c[1]
        if isinstance(atom, ast.Binary) and atom.op in ("+", "-", "^"):
            self._missing_end_of_delta(atom)
        return ast.Delta(str(c[0]), atom, span=self.span(*c))

    def _missing_end_of_delta(self, atom: ast.Binary) -> None:
        """`+p(1) +p(2).`: a fact is not a sum, so the second sign begins another delta."""
        end, start = atom.left.span.end, atom.right.span.start
        between = self.source.text[end:start]
        if "\n" in between:
            self.diagnostics.error(MISSING_END, Span(self.source, end, end + 1))
            return
        place = end + max(0, between.find(atom.op))
        message = f"missing `,` or `.` before `{atom.op}`"
        self.diagnostics.error(message, Span(self.source, place, place + 1))

    def aggregation(self, c: list[Any]) -> ast.Node:
        args = tuple(x for x in c if isinstance(x, ast.Node))
        sign = "" if c[2] is None else USER
        return ast.Aggregation(str(c[0]), sign + str(c[3]), args, span=self.span(*c))

    # Formulas

    def disjunction(self, c: list[Any]) -> ast.Node:
        return ast.Disjunction(_flat(ast.Disjunction, c), span=self.span(*c))

    def conjunction(self, c: list[Any]) -> ast.Node:
        return ast.Conjunction(_flat(ast.Conjunction, c), span=self.span(*c))

    def negation(self, c: list[Any]) -> ast.Node:
        return ast.Negation(c[1], span=self.span(*c))

    def comparison(self, c: list[Any]) -> ast.Node:
        return ast.Comparison(str(c[1]), c[0], c[2], span=self.span(*c))

    # Terms

    def operator(self, c: list[Any]) -> Token:
        return c[0]

    def prefixed(self, c: list[Any]) -> _Prefixed:
        return _Prefixed(c[0], c[1])

    def expression(self, c: list[Any]) -> ast.Node:
        if len(c) == 1 and isinstance(c[0], ast.Node):
            return c[0]
        flat: list[Any] = []
        for item in c:
            while isinstance(item, _Prefixed):
                flat.append(item.op)
                item = item.operand
            flat.append(item)
        node, rest = self._climb(flat, 0, 0)
        assert rest == len(flat)
        return node

    def _climb(self, items: list[Any], index: int, floor: int) -> tuple[ast.Node, int]:
        """Precedence climbing over operands, operators and prefixes.  Returns a term and where it ends."""
        left = items[index]
        if isinstance(left, Token):
            operand, index = self._climb(items, index + 1, PREFIX_PRECEDENCE)
            left = self._negated(left, operand)
        else:
            index += 1
        while index < len(items) and PRECEDENCE[str(items[index])] >= floor:
            op = str(items[index])
            right, index = self._climb(items, index + 1, PRECEDENCE[op] + (op != "^"))
            left = ast.Binary(op, left, right, span=self.span(left, right))
        return left, index

    def _negated(self, op: Token, operand: ast.Node) -> ast.Node:
        span = self.span(op, operand)
        if op == "-" and isinstance(operand, ast.Constant) and operand.kind in ("int", "float"):
            value = -operand.value if operand.kind == "int" else _minus(str(operand.value))  # type: ignore[operator]
            return ast.Constant(operand.kind, value, span=span)
        return ast.Unary(str(op), operand, span=span)

    def name(self, c: list[Any]) -> ast.Node:
        text, span = str(c[0]), self.span(*c)
        if text in ("true", "false"):
            return ast.Constant("bool", text == "true", span=span)
        if text == "__FILE__":
            return ast.Constant("string", span.file, span=span)
        if text == "__LINE__":
            return ast.Constant("int", span.line, span=span)
        return ast.Variable(text, span=span)

    def wildcard(self, c: list[Any]) -> ast.Node:
        return ast.Wildcard(span=self.span(*c))

    def number(self, c: list[Any]) -> ast.Node:
        kind, value = c[0].value
        return ast.Constant(kind, value, span=self.span(*c))

    def string(self, c: list[Any]) -> ast.Node:
        return ast.Constant("string", self._text(c[0]), span=self.span(*c))

    def _text(self, token: Token) -> str:
        text = str(token)[1:-1]
        return (
            re.sub(r"\\(.)", lambda m: self._escape(m, token), text, flags=re.DOTALL)
            if "\\" in text
            else text
        )

    def _escape(self, match: re.Match[str], token: Token) -> str:
        if match.group(1) not in ESCAPES:
            start = (token.start_pos or 0) + 1 + match.start()
            span = Span(self.source, start, start + 2)
            help = r"the escapes are \n \t \r \" \\ \' \0 \a \b \f \v"
            self.diagnostics.add(
                SourceError(f"bad literal: unknown escape {match.group()}", span=span, help=help)
            )
        return ESCAPES.get(match.group(1), "")

    def arguments(self, c: list[Any]) -> list[ast.Node]:
        return [x for x in c if isinstance(x, ast.Node)]

    def call(self, c: list[Any]) -> ast.Node:
        return ast.Call(str(c[0]), tuple(c[2]), span=self.span(*c))

    def application(self, c: list[Any]) -> ast.Node:
        return ast.Application(str(c[0]), tuple(c[2]), span=self.span(*c))

    def reference(self, c: list[Any]) -> ast.Node:
        key = ast.Variable(str(c[2]), span=self.span(c[2]))
        pair = ast.Reference(key, c[4], span=self.span(c[2], c[4]))
        return ast.Call(str(c[0]), (pair,), span=self.span(*c))

    def sized_call(self, c: list[Any]) -> ast.Node:
        """`decimal[10, 2](x)`: a type with its sizes, stored in the name of the call."""
        sizes = [x.value for x in c[2] if isinstance(x, ast.Constant) and x.kind == "int"]
        if str(c[0]) not in DECLARING or len(sizes) != len(c[2]):
            self.diagnostics.error("only a type can take both [...] and (...)", self.span(*c))
        name = f"{c[0]}[{','.join(map(str, sizes))}]"
        return ast.Call(name, tuple(c[5]), span=self.span(*c))

    def group(self, c: list[Any]) -> ast.Node:
        return replace(c[1], span=self.span(*c))

    def functional_body(self, c: list[Any]) -> ast.Node:
        application = ast.Application(str(c[0]), tuple(c[2]), span=self.span(*c[:4]))
        return ast.Comparison("=", application, c[5], span=self.span(*c))

    def inline_aggregate(self, c: list[Any]) -> ast.Node:
        *targets, body = [x for x in c if isinstance(x, ast.Node)]
        target, span = targets[0] if targets else None, self.span(*c)
        if c[0] is not None:
            return ast.InlineAggregate(USER + str(c[1]), target, body, span=span)
        op = str(c[1])
        aggregate = AGGREGATES[op]
        if (target is not None) != aggregate.takes_argument:
            need = "needs an argument" if aggregate.takes_argument else "takes no argument"
            self.diagnostics.error(f"{op} {need}", span, help=f"write {aggregate.inline_usage(name=op)}")
        return ast.InlineAggregate(op, target, body, span=span)

    def cast(self, c: list[Any]) -> ast.Node:
        return ast.Cast(c[2], c[4], span=self.span(*c))

    def nil(self, c: list[Any]) -> ast.Node:
        return ast.Constant("nil", "nil", span=self.span(*c))

    def record(self, c: list[Any]) -> ast.Node:
        return ast.Record(tuple(c[1]), span=self.span(*c))

    def branch(self, c: list[Any]) -> ast.Node:
        return ast.Branch(str(c[1]), tuple(c[3]) if len(c) > 2 else (), span=self.span(*c))

    def counter(self, c: list[Any]) -> ast.Node:
        """`$`, the older form of `autoinc()`."""
        return ast.Call(AUTOINC, (), span=self.span(*c))

    def user_functor(self, c: list[Any]) -> ast.Node:
        return ast.UserCall(str(c[1]), tuple(c[3]), span=self.span(*c))

    # Declarations and directives

    def type_ref(self, c: list[Any]) -> ast.Node:
        sizes = tuple(x.value[1] for x in c if isinstance(x, Token) and x.type == "INT")
        name = str(c[0])
        return ast.TypeRef(CANONICAL_TYPE.get(name, name), sizes, span=self.span(*c))

    def parameter(self, c: list[Any]) -> ast.Node:
        return ast.Parameter(str(c[0]), c[2], span=self.span(*c))

    def qualifier(self, c: list[Any]) -> Token:
        return c[0]

    def choice(self, c: list[Any]) -> ast.Node:
        names = [x for x in c if x.type == "NAME"]
        return ast.ChoiceDomain(
            tuple(ast.Variable(str(x), span=self.span(x)) for x in names), span=self.span(*c)
        )

    def choice_domain(self, c: list[Any]) -> list[ast.Node]:
        return [x for x in c if isinstance(x, ast.ChoiceDomain)]

    def declaration(self, c: list[Any]) -> list[ast.Node]:
        bracket = next(i for i, x in enumerate(c) if isinstance(x, Token) and x.type == "LPAR")
        names = [x for x in c[1:bracket] if x.type == "NAME"]
        parameters = tuple(x for x in c if isinstance(x, ast.Parameter))
        words = [str(x) for x in c[bracket:] if isinstance(x, Token) and x.type == "QUALIFIER"]
        kept = tuple(w for w in words if w not in _OLD_IO)
        choices = tuple(x for found in c if isinstance(found, list) for x in found)
        span = self.span(*c)
        for first, second in excluding_qualifiers(words):
            message = f"{second} is given twice" if first == second else f"{second} contradicts {first}"
            token = next(x for x in reversed(c) if isinstance(x, Token) and x == second)
            self.diagnostics.error(message, self.span(token), "leave out one of them")
        out: list[ast.Node] = [
            ast.Declaration(str(n), parameters, None, kept, choices, span=span) for n in names
        ]
        out += [ast.Directive(w, str(n), span=span) for w in words if w in _OLD_IO for n in names]
        return out

    def subtype(self, c: list[Any]) -> list[ast.Node]:
        return [ast.TypeDeclaration(str(c[1]), "subtype", (c[3],), span=self.span(*c))]

    def union(self, c: list[Any]) -> list[ast.Node]:
        """A union of types, or an algebraic data type: one without fields has its braces, too."""
        bases = tuple(x for x in c if isinstance(x, ast.TypeRef))
        branches = tuple(x for x in c if isinstance(x, ast.BranchType))
        if bases and branches:
            help = f"a branch has braces, as in {bases[0].name} {{}}"
            self.diagnostics.error(f"{bases[0].name} is not a branch", bases[0].span, help)
        kind = "adt" if branches else "union"
        return [ast.TypeDeclaration(str(c[1]), kind, () if branches else bases, branches, span=self.span(*c))]

    def variant(self, c: list[Any]) -> ast.Node:
        return self.type_ref([c[0]])

    def adt_variant(self, c: list[Any]) -> ast.Node:
        return ast.BranchType(str(c[0]), _parameters(c), span=self.span(*c))

    def record_type(self, c: list[Any]) -> list[ast.Node]:
        branch = ast.BranchType("", _parameters(c), span=self.span(*c[3:]))
        return [ast.TypeDeclaration(str(c[1]), "record", (), (branch,), span=self.span(*c))]

    def bare_type(self, c: list[Any]) -> list[ast.Node]:
        base = ast.TypeRef("string", span=self.span(*c))
        return [ast.TypeDeclaration(str(c[1]), "subtype", (base,), span=self.span(*c))]

    def old_type(self, c: list[Any]) -> list[ast.Node]:
        base = ast.TypeRef("int" if c[0] == "number_type" else "string", span=self.span(*c))
        return [ast.TypeDeclaration(str(c[1]), "subtype", (base,), span=self.span(*c))]

    def io(self, c: list[Any]) -> list[ast.Node]:
        """Parameters after a list of predicates apply to the whole list."""
        items = [x for x in c if isinstance(x, ast.Directive)]
        params: tuple[ast.DirectiveParameter, ...] = ()
        out: list[ast.Node] = []
        for item in reversed(items):
            params = item.params or params
            out.insert(0, ast.Directive(str(c[0]), item.predicate, params, span=item.span))
        return out

    def io_item(self, c: list[Any]) -> ast.Node:
        params = tuple(x for x in c if isinstance(x, ast.DirectiveParameter))
        return ast.Directive("", str(c[0]), params, span=self.span(*c))

    def io_parameter(self, c: list[Any]) -> ast.Node:
        token, value = c[-1], c[-1].value
        if token.type == "STRING":
            value = self._text(token)
        elif token.type in ("INT", "FLOAT"):
            value = value[1] if len(c) == 3 else -value[1]
        elif value in ("true", "false"):
            value = value == "true"
        return ast.DirectiveParameter(str(c[0]), value, span=self.span(*c))

    def materialize(self, c: list[Any]) -> list[ast.Node]:
        """The mode at the end applies to all predicates of the list."""
        *names, mode = (x for x in c[1:] if x.type == "NAME")
        params = (ast.DirectiveParameter("mode", str(mode), span=self.span(mode)),)
        spans = [self.span(name) for name in names[:-1]] + [self.span(names[-1], mode)]
        pairs = zip(names, spans, strict=True)
        return [ast.Directive(str(c[0]), str(name), params, span=span) for name, span in pairs]

    def pragma(self, c: list[Any]) -> list[ast.Node]:
        texts = [self._text(x) for x in c[1:] if x is not None]
        return [ast.Pragma(*texts, span=self.span(*c))]

    def plan_item(self, c: list[Any]) -> tuple[Any, ...]:
        """The item's text, then its tokens for the span."""
        numbers = [str(x.value[1]) for x in c if isinstance(x, Token) and x.type == "INT"]
        return (f"{numbers[0]}:({', '.join(numbers[1:])})", *c)

    def plan(self, c: list[Any]) -> list[ast.Node]:
        return [ast.Plan(", ".join(x[0] for x in c if isinstance(x, tuple)), span=self.span(*c))]

    def include(self, c: list[Any]) -> list[ast.Node]:
        return [ast.Include(self._text(c[1]), span=self.span(*c))]

    def component_type(self, c: list[Any]) -> ast.Node:
        names = [str(x) for x in c if isinstance(x, Token) and x.type == "NAME"]
        for token, wanted in zip(
            [x for x in c if isinstance(x, Token) and x.type == "CMP"], "<>", strict=False
        ):
            if token != wanted:
                help = f"parameters of a component are written {names[0]}<...>"
                self.diagnostics.error(f"unexpected `{token}`", self.span(token), help)
        return ast.ComponentRef(names[0], tuple(names[1:]), span=self.span(*c))

    def component(self, c: list[Any]) -> list[ast.Node]:
        own, *bases = (x for x in c if isinstance(x, ast.ComponentRef))
        return [ast.ComponentStart(own, tuple(bases), span=self.span(*c))]

    def component_end(self, c: list[Any]) -> list[ast.Node]:
        return [ast.ComponentEnd(span=self.span(*c))]

    def init(self, c: list[Any]) -> list[ast.Node]:
        return [ast.Init(str(c[1]), c[3], span=self.span(*c))]

    def override(self, c: list[Any]) -> list[ast.Node]:
        return [ast.Override(str(c[1]), span=self.span(*c))]

    def functor_parameter(self, c: list[Any]) -> ast.Node:
        return self.parameter(c) if len(c) > 1 else ast.Parameter("", c[0], span=self.span(*c))

    def functor(self, c: list[Any]) -> list[ast.Node]:
        end = next(i for i, x in enumerate(c) if isinstance(x, Token) and x.type == "COLON")
        parameters = tuple(x for x in c[:end] if isinstance(x, ast.Parameter))
        words = tuple(dict.fromkeys(str(x) for x in c[end + 2 :]))
        return [ast.FunctorDeclaration(str(c[1]), parameters, c[end + 1], words, span=self.span(*c))]

    def once(self, c: list[Any]) -> list[ast.Node]:
        return []


_OLD_IO = ("input", "output", "printsize")


def _start(child: Any) -> int | None:
    """Where a token, a node or a list of them begins; None if nothing has a position."""
    if isinstance(child, Token):
        return child.start_pos
    if isinstance(child, ast.Node):
        return child.span.start
    if isinstance(child, list | tuple):
        return next((place for item in child if (place := _start(item)) is not None), None)
    return None


def _end(child: Any) -> int | None:
    if isinstance(child, Token):
        return child.end_pos
    if isinstance(child, ast.Node):
        return child.span.end
    if isinstance(child, list | tuple):
        return next((place for item in reversed(child) if (place := _end(item)) is not None), None)
    return None


def _minus(text: str) -> str:
    return text[1:] if text.startswith("-") else "-" + text


def _parameters(children: list[Any]) -> tuple[ast.Parameter, ...]:
    return tuple(x for x in children if isinstance(x, ast.Parameter))


def _items(node: ast.Node) -> tuple[ast.Node, ...]:
    return node.items if isinstance(node, ast.Conjunction) else (node,)


def _is_anonymous(head: ast.Node) -> bool:
    """Whether a head is `_(x)` or `_[x] = y`: its rule is a query."""
    atom = head.left if isinstance(head, ast.Comparison) and head.op == "=" else head
    return isinstance(atom, ast.Call | ast.Application) and atom.name == ANONYMOUS


def _flat(kind: type[ast.Conjunction] | type[ast.Disjunction], children: list[Any]) -> tuple[ast.Node, ...]:
    items: list[ast.Node] = []
    for child in children:
        if isinstance(child, kind):
            items.extend(child.items)
        elif isinstance(child, ast.Node):
            items.append(child)
    return tuple(items)


def _plain_fact(head: ast.Node, span: Span) -> ast.Facts | None:
    """A fact whose arguments are all constants, as the lexer's fast path would have read it."""
    value: tuple[ast.Node, ...] = ()
    functional = False
    if isinstance(head, ast.Comparison) and head.op == "=" and isinstance(head.left, ast.Application):
        value, functional, head = (head.right,), True, head.left
    elif not isinstance(head, ast.Call):
        return None
    row = literal_row((*head.args, *value))
    if row is None:
        return None
    return ast.Facts(head.name, (row,), functional, (span.start,), span=span)


def literal_row(args: tuple[ast.Node, ...]) -> tuple[tuple[str, int | str | bool], ...] | None:
    """The arguments of a fact as literals; None if some are not."""
    row = [(a.kind, a.value) if isinstance(a, ast.Constant) else record_literal(a) for a in args]
    literals = tuple(literal for literal in row if literal is not None)
    return literals if len(literals) == len(args) else None


def record_literal(node: ast.Node) -> tuple[str, str] | None:
    """A record without variables as a literal, whose value is its text; None for other nodes."""
    if not isinstance(node, ast.Record | ast.Branch):
        return None
    from dlog.language.printing import term

    kinds = ast.Record | ast.Branch | ast.Constant
    return ("record", term(node)) if all(isinstance(inner, kinds) for inner in node.walk()) else None
