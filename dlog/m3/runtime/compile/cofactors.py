"""Owns cofactors while code is written: products that stay lists of parts until they are added to
something, and which variables the elements of a map have.  `cofactor_kernels` computes the sums.

A value is a factor and parts: entries of maps, elements of blocks, and lifted columns.  Nothing
is multiplied before it is summed, so that an element never goes through columns, and an element of a map
has numbers only for the variables that can reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlog.jit import HEIGHT, LANES
from dlog.m3.rings.rings import Ring
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.analysis import assignments
from dlog.m3.runtime.compile.code import Code, Frame, Label, Word
from dlog.m3.runtime.machine.cofactor_plan import (
    BLOCK,
    FOUR,
    H_COUNT,
    H_HEADER,
    LIFTED,
    P_HEADER,
    Q_WORDS,
    ROWS,
    TAKEN,
    TAKEN_MANY,
)
from dlog.m3.syntax import ast

Variables = tuple[int, ...]


@dataclass(frozen=True)
class Factor:
    """A factor of a product.  `store` is the address of a map, LIFTED, or BLOCK - the place of a block."""

    store: int
    variables: Variables

    @property
    def columns(self) -> int:
        """How many columns identify it: slots or rows; or what is lifted."""
        return len(self.variables) if self.store == LIFTED else 1


@dataclass(frozen=True)
class Target:
    """The target of products: elements of these variables in a map, or in a block."""

    store: int
    variables: Variables
    is_total: bool = False  # all rows go to one element, the first
    keeps: bool = False
    is_read: bool = True  # by a trigger


def block_words(variables: Variables) -> int:
    n = len(variables)
    return 1 + n + n * (n + 1) // 2


def new_block(code: Code, frame: Frame, variables: Variables) -> int:
    """Room for an element of each row, initially 0.  Returns its identifier as a store."""
    words = block_words(variables)
    base = code.state(words * o.CHUNK)
    code.emit(o.BLOCK_ZERO, frame.word, base, words)
    return BLOCK - base


def write_sum(
    code: Code,
    frame: Frame,
    parts: tuple[Factor, ...],
    columns: tuple[Word, ...],
    slots: Word,
    target: Target,
) -> None:
    """Add products to elements: of each row to that in its slot.  `columns` begins with the factor's."""
    scale, *rest = columns
    given: list[tuple[Factor, list[Word]]] = []
    for part in parts:
        given.append((part, rest[: part.columns]))
        rest = rest[part.columns :]
    # Parts in the order of their variables: then the variables of the product are usually consecutive.
    given.sort(key=lambda pair: pair[0].variables)
    plan = _plan(code, [part for part, _ in given], target)
    listed = [column for _, some in given for column in some]
    code.emit(o.ELEMENTS, frame.word, target.store, slots, scale, plan, *listed)


def _plan(code: Code, parts: list[Factor], target: Target) -> Label:
    """See `cofactor_plan` for its words."""
    total = sum(len(part.variables) for part in parts)
    sums = TAKEN * len(parts)
    added = sums + 2 * _rounded(total, FOUR) + FOUR
    words: list[Word] = []
    start, column, at, wide = 0, 0, added + 1, 0
    for part in parts:
        size, is_lifted = len(part.variables), part.store == LIFTED
        own = size if is_lifted else block_words(part.variables) - 1
        length = _rounded(total - (start if is_lifted else start + size), LANES)
        rows, left, following = at + _rounded(own, LANES), wide, wide + _rounded(size, HEIGHT)
        words += [part.store, size, column, start, code.work(at), code.work(rows), length, left, following]
        wide = following + _rounded(total - start, LANES) + LANES
        at, start, column = rows + _rounded(size, HEIGHT) * length, start + size, column + part.columns
    block = at + ROWS * (2 + TAKEN_MANY * len(parts))
    code.work(block + ROWS * wide)
    places = [target.variables.index(v) for part in parts for v in part.variables]
    first = places[0] if places else 0
    first = first if places == list(range(first, first + len(places))) else -1
    held = _held_plan(code, parts, target, places, first)
    lifts = [(p.store, p.variables) for p in parts] == [(LIFTED, target.variables)]
    lifts = lifts and target.store >= 0 and not target.is_total
    header: list[Word] = [
        len(parts), total, len(target.variables), first, int(target.is_total),
        int(target.keeps), code.work(0), code.work(sums), code.work(added), code.work(at),
        int(lifts), code.work(block), wide, held or 0,
    ]  # fmt: skip
    assert len(header) == P_HEADER and len(words) == Q_WORDS * len(parts)
    return code.data([*header, *words, *places])


def _held_plan(
    code: Code, parts: list[Factor], target: Target, places: list[int], first: int
) -> Label | None:
    """The plan by which the product of one row is deferred, if it can be.  See `cofactor_held_kernels`."""
    if target.is_read or target.keeps or not target.is_total or not parts:
        return None
    total = sum(len(part.variables) for part in parts)
    own, lengths, start = [], [], 0
    for part in parts:
        start += len(part.variables)
        own.append(_rounded(block_words(part.variables), o.LINE))
        lengths.append(_rounded(total - start, FOUR))
    sizes = [a + len(part.variables) * b for a, b, part in zip(own, lengths, parts, strict=True)]
    size_of_all = H_HEADER + sum(sizes)
    base = code.shared((target.store, tuple(part.variables for part in parts)), size_of_all)
    sums = _rounded(TAKEN * len(parts), o.LINE)
    words: list[Word] = []
    start, column, at, work = 0, 0, base + H_HEADER, sums + 2 * (_rounded(total, FOUR) + FOUR)
    for part, mine, length in zip(parts, own, lengths, strict=True):
        size, work = len(part.variables), _rounded(work, o.LINE)
        vectors = _rounded(block_words(part.variables), FOUR)
        words += [part.store, size, column, start, at + 1, at + mine, length, vectors, code.work(work)]
        at, start, column, work = (
            at + mine + size * length,
            start + size,
            column + part.columns,
            work + mine + FOUR,
        )
    code.work(work)
    header: list[Word] = [
        len(parts), total, len(target.variables), first, 1, 0, code.work(0), code.work(sums), base + H_COUNT,
        base + size_of_all, 0, 0, 0, base,
    ]  # fmt: skip
    assert len(header) == P_HEADER and len(words) == Q_WORDS * len(parts)
    return code.data([*header, *words, *places])


def _rounded(n: int, by: int) -> int:
    return (n + by - 1) // by * by


# Which variables elements have


def variables_of_maps(program: ast.Program, rings: Mapping[str, Ring]) -> dict[str, set[int]]:
    """For each map of cofactors the variables that reach it through statements, directly or through
    others.
    """
    types = {m.name: m.type.name for m in program.maps if m.type is not None}
    found: dict[str, set[int]] = {m: set() for m, t in types.items() if _is_cofactor(rings, t)}
    changes = [(a.target.name, a) for t in program.triggers for a in assignments(t.statements)]
    changes = [(name, a) for name, a in changes if name in found]
    is_growing = bool(found)
    while is_growing:
        is_growing = False
        for name, statement in changes:
            new = variables_in(statement, rings, found) - found[name]
            found[name] |= new
            is_growing = is_growing or bool(new)
    return found


def variables_in(node: ast.Node, rings: Mapping[str, Ring], maps: Mapping[str, set[int]]) -> set[int]:
    """The variables of cofactors that an expression may have."""
    found: set[int] = set()
    for part in node.walk():
        if isinstance(part, ast.MapAccess):
            found |= maps.get(part.name, set())
        elif isinstance(part, ast.Call) and _is_cofactor(rings, part.type.name):
            found |= set(lifted_variables(part, rings[part.type.name]))
    return found


def lifted_variables(call: ast.Call, ring: Ring) -> range:
    """Those that a call lifts; all, if it is a function of a user."""
    if not ring.lifts_natively(call.function):
        return range(ring.most)
    first = call.parameters[0] if call.parameters else 0
    return range(first, first + len(call.arguments))


def _is_cofactor(rings: Mapping[str, Ring], type_: str) -> bool:
    return type_ in rings and rings[type_].variables is not None
