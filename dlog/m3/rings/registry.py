"""Owns which ring a type of M3 means: rings that users register, and those that are built in.

A ring is tested when it is registered, and one that a function makes for a type with parameters when it is
first made: a ring that breaks a law would give wrong results without any error.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from dlog.errors import DlogError, did_you_mean
from dlog.m3.rings.averages import average_ring
from dlog.m3.rings.axioms import check_axioms
from dlog.m3.rings.matrices import matrix_ring_of
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, Ring, cofactor_ring
from dlog.m3.syntax.ast import Call, MapAccess, MapDeclaration, Program, TypeRef
from dlog.m3.types.typing import FLOATS, INTEGERS

RingMaker = Callable[[Sequence[TypeRef]], Ring]
Sample = Callable[[random.Random], Any]
_registered: dict[str, RingMaker] = {}


def register_ring(name: str, ring: Ring | RingMaker, sample: Sample | None = None) -> None:
    """Give the M3 type `name` its ring.  Raises `DlogError` with a counterexample if it breaks a law.

    `sample(random)` gives a value to test the laws with; without it, and without `ring.sample`, elements are
    made with the ring's lifting functions.  A type with parameters has a function instead: it gets all types
    of that name in a program, each with its parameters, and makes the one ring that they are all elements of.

    >>> from dataclasses import replace
    >>> register_ring("Broken", replace(INTEGER_RING, one=2))
    Traceback (most recent call last):
    dlog.errors.DlogError: ring integer breaks a * 1 = a, for a = 3
    """
    if name in (*INTEGERS, *FLOATS):
        raise DlogError(f"type {name} already has a ring")
    if isinstance(ring, Ring):
        check_axioms(ring, sample)
        _registered[name] = lambda _: ring
    else:
        _registered[name] = _tested(ring, sample)


def _tested(maker: RingMaker, sample: Sample | None) -> RingMaker:
    """A function that tests each ring that it makes, those of one name once."""
    known: set[str] = set()

    def make(types: Sequence[TypeRef]) -> Ring:
        ring = maker(types)
        if ring.name not in known:
            check_axioms(ring, sample)
            known.add(ring.name)
        return ring

    return make


def rings_of(program: Program) -> dict[str, Ring]:
    """The ring of every type that maps, or calls of functions, of a program have, by the type's name."""
    types: dict[str, list[TypeRef]] = {}
    for node in program.walk():
        if isinstance(node, MapDeclaration | MapAccess | Call) and node.type is not None:
            types.setdefault(node.type.name, []).append(node.type)
    keys = ("string", "char", "date")
    return {name: _ring(name, found) for name, found in types.items() if name not in keys}


def ring_of(type_: TypeRef) -> Ring:
    """The ring of one type.  Raises if it is a user type without a registered ring.

    >>> ring_of(TypeRef("long")).name, ring_of(TypeRef("double")).words
    ('integer', 2)
    """
    return _ring(type_.name, [type_])


def commutes(type_: TypeRef) -> bool:
    """Whether products of a type's values may be reordered; also if its ring is not registered.

    >>> commutes(TypeRef("double")), commutes(TypeRef("RingMatrix", (2,))), commutes(TypeRef("Unknown"))
    (True, False, True)
    """
    return type_.name not in _registered or ring_of(type_).commutes


def _ring(name: str, types: Sequence[TypeRef]) -> Ring:
    if name in INTEGERS:
        return INTEGER_RING
    if name in FLOATS:
        return FLOAT_RING
    if name in _registered:
        return _registered[name](types)
    help = "register one with dlog.m3.register_ring, in a file for --functions"
    if close := did_you_mean(name, _registered):
        help = f"{close} Otherwise {help}"
    raise DlogError(f"no ring is registered for type {name}", span=types[0].span, help=help)


def _cofactor_of(types: Sequence[TypeRef]) -> Ring:
    """RingCofactor<first, double, number> has variables first .. first + number - 1 of all."""
    return cofactor_ring(max(sum(p for p in t.params if isinstance(p, int)) or 1 for t in types))


# Built in: F-IVM's names.  Their laws are tested in tests/m3/rings.
_registered |= {
    "RingCofactor": _cofactor_of,
    "RingAvg": lambda _: average_ring(),
    "RingMatrix": matrix_ring_of,
}
