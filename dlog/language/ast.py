"""Owns the syntax tree: what was written, with its positions.  Knows nothing of types or meaning.

Two nodes are equal when they say the same, wherever they are: comparison ignores spans.
Terms denote values, formulas denote truth.  Since `p(x)` may be an atom or a functor and `(a)` a group
of either, the parser builds `Call` and `Group` for both and `dlog.ir.lower.lower` decides by position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from dlog.language.source import Span


@dataclass(frozen=True)
class Node:
    span: Span = field(default=None, compare=False, repr=False, kw_only=True)  # type: ignore[assignment]

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, in the order they were written."""
        for name in parts(type(self)):
            value = getattr(self, name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from _nodes(value)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, depth first.  O(nodes), however deep."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(list(node.children())))


_PARTS: dict[type[Node], tuple[str, ...]] = {}


def parts(kind: type[Node]) -> tuple[str, ...]:
    """The names of the fields of a node, without its span."""
    known = _PARTS.get(kind)
    if known is None:
        known = _PARTS[kind] = tuple(f.name for f in fields(kind) if f.name != "span")
    return known


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


# Terms


@dataclass(frozen=True)
class Variable(Node):
    name: str


@dataclass(frozen=True)
class Wildcard(Node):
    pass


@dataclass(frozen=True)
class Constant(Node):
    """`kind`: int, unsigned, float, string, bool or nil.  A float keeps its text, which may become a decimal.

    A fact has records without variables as literals of the kind `record`: see `record_literal`.
    """

    kind: str
    value: int | str | bool


@dataclass(frozen=True)
class Unary(Node):
    op: str
    operand: Node


@dataclass(frozen=True)
class Binary(Node):
    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call(Node):
    """`name(args)`: an atom in formula position, a functor in term position."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class UserCall(Node):
    """`@name(args)`: the value of a functor that the program declares."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Application(Node):
    """`name[args]`: the value of a functional predicate."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class InlineAggregate(Node):
    """`op target : { body }`; `count` has no target.  An aggregate that the program declares is `@name`."""

    op: str
    target: Node | None
    body: Node


@dataclass(frozen=True)
class Cast(Node):
    """`as(term, type)`."""

    term: Node
    type: TypeRef


@dataclass(frozen=True)
class Record(Node):
    """`[args]`: a new record, or a pattern that takes one apart."""

    args: tuple[Node, ...]


@dataclass(frozen=True)
class Branch(Node):
    """`$name(args)`, or `$name` without arguments: a value of an algebraic data type, or a pattern."""

    name: str
    args: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Reference(Node):
    """`key : value`: the only argument of a reference mode."""

    key: Node
    value: Node


# Formulas


@dataclass(frozen=True)
class Comparison(Node):
    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Negation(Node):
    body: Node


@dataclass(frozen=True)
class Conjunction(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Disjunction(Node):
    items: tuple[Node, ...]


# Statements


@dataclass(frozen=True)
class TypeRef(Node):
    name: str
    params: tuple[int, ...] = ()


@dataclass(frozen=True)
class Parameter(Node):
    name: str
    type: TypeRef | None


@dataclass(frozen=True)
class ChoiceDomain(Node):
    """One key of `choice-domain x, (y, z)`: the names of its arguments, which are variables for their
    position."""

    keys: tuple[Variable, ...]


@dataclass(frozen=True)
class Declaration(Node):
    """`.decl R(x: T)` or `R(x) -> T(x).`; `value` is set for a functional predicate."""

    name: str
    keys: tuple[Parameter, ...]
    value: Parameter | None = None
    qualifiers: tuple[str, ...] = ()
    choices: tuple[ChoiceDomain, ...] = ()


@dataclass(frozen=True)
class FunctorDeclaration(Node):
    """`.functor f(x: T, y: U): V stateful`; a parameter without a name has "" for it."""

    name: str
    parameters: tuple[Parameter, ...]
    result: TypeRef
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class BranchType(Node):
    """One branch of an algebraic data type, `name {x: T, ..}`; a record type is one branch without a name."""

    name: str
    fields: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class TypeDeclaration(Node):
    """`kind`: subtype (`<:`), union (`=`), or the two old forms as subtypes; record (`= [x: T, ..]`) or adt
    (`= A {x: T, ..} | B {}`), which have branches."""

    name: str
    kind: str
    bases: tuple[TypeRef, ...]
    branches: tuple[BranchType, ...] = ()


@dataclass(frozen=True)
class Directive(Node):
    """`.input`, `.output`, `.printsize`, `.limitsize`, `.table`, `.stream`, `.materialize` for one predicate.

    The mode of `.materialize` is its parameter `mode`."""

    kind: str
    predicate: str
    params: tuple[DirectiveParameter, ...] = ()


@dataclass(frozen=True)
class DirectiveParameter(Node):
    name: str
    value: str | int | bool


@dataclass(frozen=True)
class Pragma(Node):
    key: str
    value: str | None = None


@dataclass(frozen=True)
class Include(Node):
    path: str


@dataclass(frozen=True)
class Plan(Node):
    """`.plan` after a rule: a hint that changes no result; stored so that `format` can print it."""

    text: str


@dataclass(frozen=True)
class ComponentRef(Node):
    """`X<T, U>`: a component and its parameters, or what is given for them."""

    name: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComponentStart(Node):
    """`.comp X<T> : B<T> {`: the statements up to its `ComponentEnd` are its own."""

    component: ComponentRef
    bases: tuple[ComponentRef, ...] = ()


@dataclass(frozen=True)
class ComponentEnd(Node):
    pass


@dataclass(frozen=True)
class Component(Node):
    """A component with its statements; `dlog.language.blocks` makes it."""

    start: ComponentStart
    statements: tuple[Node, ...]


@dataclass(frozen=True)
class BlockStart(Node):
    """``block(`name) {``: the statements up to its `ComponentEnd` are added and removed together."""

    name: str


@dataclass(frozen=True)
class Block(Node):
    """A block with its statements; `dlog.language.blocks` makes it."""

    start: BlockStart
    statements: tuple[Node, ...]

    @property
    def name(self) -> str:
        return self.start.name


@dataclass(frozen=True)
class Init(Node):
    """`.init a = X<T>`: the statements of X, with names that begin with `a.`"""

    name: str
    component: ComponentRef


@dataclass(frozen=True)
class Override(Node):
    """`.override r`: the rules of r in the bases are left out."""

    predicate: str


COMPONENTS = (Component, ComponentStart, ComponentEnd, Init, Override)

_PYTHON_TYPE = {
    "int": int,
    "unsigned": int,
    "float": str,
    "string": str,
    "bool": bool,
    "nil": str,
    "record": str,
}


@dataclass(frozen=True)
class Facts(Node):
    """A run of plain facts of one predicate, stored as rows so that a hundred thousand stay cheap.

    Values are (kind, value) pairs as in `Constant`; `offsets` say where each fact begins.
    """

    predicate: str
    rows: tuple[tuple[tuple[str, int | str | bool], ...], ...]
    functional: bool = False
    offsets: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def children(self) -> Iterator[Node]:
        """None: values are not nodes."""
        return iter(())

    def check(self) -> None:
        """There are rows, functional ones have a value, and each that was read has its position, in order."""
        assert self.rows and all(len(row) >= self.functional for row in self.rows)
        assert not self.offsets or len(self.offsets) == len(self.rows)
        assert list(self.offsets) == sorted(set(self.offsets))
        assert all(isinstance(value, _PYTHON_TYPE[kind]) for row in self.rows for kind, value in row)


@dataclass(frozen=True)
class Aggregation(Node):
    """One `result = op(argument)` of `agg<<...>>`."""

    result: str
    op: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Rule(Node):
    """`heads <- agg<<...>> body.`; a fact that is not plain has no body."""

    heads: tuple[Node, ...]
    body: Node | None = None
    aggregations: tuple[Aggregation, ...] = ()


@dataclass(frozen=True)
class Constraint(Node):
    """`left -> right.`"""

    left: Node
    right: Node


@dataclass(frozen=True)
class SequenceRule(Node):
    """`head <- seq<<index = order>> body.`; without an index, it is the key that the body does not have."""

    head: Node
    body: Node
    index: str | None = None
    order: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Delta(Node):
    """`+atom`, `-atom` or `^atom`; in the body of a delta rule, what the transaction does."""

    op: str
    atom: Node


@dataclass(frozen=True)
class DeltaStatement(Node):
    deltas: tuple[Delta, ...]


@dataclass(frozen=True)
class DeltaRule(Node):
    """`+p(x) <- body.`: what a transaction does besides, because of what it does."""

    heads: tuple[Delta, ...]
    body: Node
    aggregations: tuple[Aggregation, ...] = ()


@dataclass(frozen=True)
class Query(Node):
    """`?- body.`; or `head <- agg<<...>> body.` with a head `_(x)` or `_[x] = y`."""

    body: Node
    head: Node | None = None
    aggregations: tuple[Aggregation, ...] = ()


@dataclass(frozen=True)
class Property(Node):
    """``lang:name(`p).`` or ``lang:name[`p] = value.``: a setting of LogiQL."""

    name: str
    predicates: tuple[str, ...] = ()
    value: Node | None = None


@dataclass(frozen=True)
class Entity(Node):
    """`person(p), person_name(p : n) -> string(n).`: a type whose values are named by their references."""

    name: str
    reference: str
    variables: tuple[str, str]
    type: TypeRef


@dataclass(frozen=True)
class Program(Node):
    statements: tuple[Node, ...]
