"""Owns the table of primitives: names, signatures, and how they are written.

A primitive is a function or relation that is calculated on demand.  It is partial: where it is undefined, its
literal is false.  What each one computes is in `dlog.lftj` (inside the join kernel) and
`dlog.column_functions` (on columns); this table has the types it takes and gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlog.ir.functors import is_call
from dlog.ir.record_forms import is_constructor, is_record_form, shown
from dlog.values import OPERATIONS, TYPES, grouped
from dlog.values.record import ANY_RECORD

if TYPE_CHECKING:
    from dlog.ir.rules import Primitive

# Classes of types, by their names.  Types say themselves which they belong to.
VALUES = tuple(type.name for type in TYPES)
RECORD = ANY_RECORD
ANY = (*VALUES, RECORD)
NUMERIC = grouped("numeric")
INTEGRAL = grouped("integral")
DATES = grouped("calendar")


def _with_own(name: str, types: tuple[str, ...]) -> tuple[str, ...]:
    """Types, and those that calculate an operation themselves."""
    own = {t for (op, *inputs), o in OPERATIONS.items() if op == name for t in (*inputs, o.result)}
    return tuple(t for t in VALUES if t in own or t in types)


@dataclass(frozen=True)
class Signature:
    """`inputs` name a class or share a letter: arguments with the same letter have the same type.

    'a' stands for one type of `letters["a"]`.  `result` is None for a relation.  With `promotes`, integer
    inputs may be mixed with decimals or floats, and the result has the wider type.
    """

    inputs: tuple[str, ...]
    result: str | None
    letters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    promotes: bool = False
    generator: bool = False

    def candidates(self, slot: str) -> tuple[str, ...]:
        return dict(self.letters).get(slot, (slot,))


def _numeric(name: str) -> Signature:
    types = (*NUMERIC, "string") if name == "add" else NUMERIC  # `+` joins texts, too
    return Signature(("a", "a"), "a", (("a", _with_own(name, types)),), promotes=True)


def _integral(n: int) -> Signature:
    return Signature(("a",) * n, "a", (("a", INTEGRAL),))


_EQUALITY = Signature(("a", "a"), None, (("a", ANY),))
_COMPARISON = Signature(("a", "a"), None, (("a", VALUES),))
_FLOAT_FUNCTION = Signature(("a",), "a", (("a", grouped("real")),))
_ROUNDING = Signature(("a",), "a", (("a", grouped("rounded")),))
_DATE_PART = Signature(("a",), "int", (("a", DATES),))
_TIME_PART = Signature(("a",), "int", (("a", grouped("clock")),))

_BITWISE = ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor")

# What `match` is under `!`: it holds for a bad pattern, too, so that `!match(p, s)` is false then.
NEGATED_MATCH = "match_or_bad_pattern"

# (name, number of inputs) -> signature.  `show` and the lowering of operators use the same names.
SIGNATURES: dict[tuple[str, int], Signature] = {
    ("eq", 2): _EQUALITY,
    ("ne", 2): _EQUALITY,
    ("lt", 2): _COMPARISON,
    ("le", 2): _COMPARISON,
    ("gt", 2): _COMPARISON,
    ("ge", 2): _COMPARISON,
    **{(name, 2): _numeric(name) for name in ("add", "sub", "mul", "div")},
    ("mod", 2): _integral(2),
    ("pow", 2): Signature(("a", "a"), "a", (("a", grouped("powers")),)),
    ("neg", 1): Signature(("a",), "a", (("a", grouped("signed")),)),
    ("abs", 1): Signature(("a",), "a", (("a", grouped("signed")),)),
    **{(name, 2): _integral(2) for name in _BITWISE},
    ("bnot", 1): _integral(1),
    ("lnot", 1): _integral(1),
    ("min", 2): Signature(("a", "a"), "a", (("a", VALUES),), promotes=True),
    ("max", 2): Signature(("a", "a"), "a", (("a", VALUES),), promotes=True),
    ("cat", 2): Signature(("string", "string"), "string"),
    ("strlen", 1): Signature(("string",), "int"),
    ("substr", 3): Signature(("string", "int", "int"), "string"),
    ("contains", 2): Signature(("string", "string"), None),
    ("match", 2): Signature(("string", "string"), None),
    (NEGATED_MATCH, 2): Signature(("string", "string"), None),
    ("starts_with", 2): Signature(("string", "string"), None),
    ("ends_with", 2): Signature(("string", "string"), None),
    ("lower", 1): Signature(("string",), "string"),
    ("upper", 1): Signature(("string",), "string"),
    ("trim", 1): Signature(("string",), "string"),
    ("replace", 3): Signature(("string", "string", "string"), "string"),
    ("ord", 1): Signature(("string",), "int"),
    ("split", 2): Signature(("string", "string"), "string", generator=True),
    ("split", 3): Signature(("string", "string", "int"), "string"),
    ("to_string", 1): Signature(("a",), "string", (("a", VALUES),)),
    **{(t.conversion, 1): Signature(("a",), t.name, (("a", t.converts),)) for t in TYPES if t.conversion},
    ("range", 2): Signature(("a", "a"), "a", (("a", grouped("ranges")),), generator=True),
    ("range", 3): Signature(("a", "a", "a"), "a", (("a", grouped("ranges")),), generator=True),
    ("floor", 1): _ROUNDING,
    ("ceil", 1): _ROUNDING,
    ("round", 1): _ROUNDING,
    ("sqrt", 1): _FLOAT_FUNCTION,
    ("exp", 1): _FLOAT_FUNCTION,
    ("log", 1): _FLOAT_FUNCTION,
    ("year", 1): _DATE_PART,
    ("month", 1): _DATE_PART,
    ("day", 1): _DATE_PART,
    ("weekday", 1): _DATE_PART,
    ("hour", 1): _TIME_PART,
    ("minute", 1): _TIME_PART,
    ("second", 1): _TIME_PART,
    ("add_days", 2): Signature(("a", "int"), "a", (("a", DATES),)),
    ("days_between", 2): Signature(("a", "a"), "int", (("a", DATES),)),
}  # fmt: skip
# `as(x, T)` is the primitive as_T.  Between int and unsigned it preserves the bits; any other only states the
# type, and is an equality once types are known.
for _type in VALUES:
    SIGNATURES[(f"as_{_type}", 1)] = (
        Signature(("a",), _type, (("a", INTEGRAL),)) if _type in INTEGRAL else Signature((_type,), _type)
    )

COMPARISONS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "^": "pow"}
OPERATORS |= {word: word for word in _BITWISE}
PREFIXES = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}
# Functors of any number of arguments: two at a time, from the left.
VARIADIC = frozenset({"cat", "min", "max"})
# Those that have no value for some arguments.
PARTIAL = frozenset({"div", "mod", "pow", "split", "sqrt", "log", "add_days", "match", NEGATED_MATCH}) | {
    name for name, _ in SIGNATURES if name.startswith(("to_", "as_")) and name != "to_string"
}
# Those that have a value for all numbers; of times they may have none.
TOTAL = frozenset({"add", "sub", "mul", "neg"})
# Names that a program can call as functors or relations.
_CASTS = {f"as_{type}" for type in VALUES}
_OPERATORS_ONLY = {*COMPARISONS.values(), *OPERATORS.values(), *PREFIXES.values(), NEGATED_MATCH, *_CASTS}
FUNCTORS = frozenset(name for name, _ in SIGNATURES if name not in _OPERATORS_ONLY)
RELATIONS = frozenset(name for (name, _), s in SIGNATURES.items() if s.result is None and name in FUNCTORS)

_SYMBOLS = {v: k for k, v in (COMPARISONS | OPERATORS).items()}


def signature_of(name: str, inputs: int) -> Signature:
    """The signature of a primitive.  What records are and what their fields hold depends on the program, and
    so does what a functor takes: those of record forms and of calls say nothing about types."""
    if is_record_form(name) or is_call(name):
        return Signature(("a",) * inputs, "a", (("a", ANY),))
    if name.startswith("as_") and name not in _CASTS:  # a type that the program declares
        return Signature((name[3:],), name[3:])
    return SIGNATURES[name, inputs]


def is_total(form: Primitive) -> bool:
    """Whether it has a value for all its inputs; sums of times have none outside the calendar."""
    return form.name in TOTAL or is_constructor(form.name)


def arities(name: str) -> list[int]:
    return sorted(n for other, n in SIGNATURES if other == name)


def show(primitive: Primitive) -> str:
    """The primitive as a user would write it."""
    inputs = [str(a) for a in primitive.inputs]
    if is_record_form(primitive.name):
        return shown(primitive)
    if primitive.name in _SYMBOLS and len(inputs) == 2:
        text = f"{inputs[0]} {_SYMBOLS[primitive.name]} {inputs[1]}"
    elif primitive.name in PREFIXES.values():
        text = f"{'-' if primitive.name == 'neg' else primitive.name + ' '}{inputs[0]}"
    elif primitive.name.startswith("as_"):
        text = f"as({inputs[0]}, {primitive.name[3:]})"
    else:
        name = "match" if primitive.name == NEGATED_MATCH else primitive.name
        text = f"{name}({', '.join(inputs)})"
    return text if primitive.output is None else f"{primitive.output} = {text}"
