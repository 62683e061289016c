"""Owns the facts of a program: literals that fit their columns, one value for each key of a function."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from dlog.errors import Diagnostics, place
from dlog.ir.lower.fact_spans import delta_literals, fact_span, literal_span
from dlog.ir.lower.literals import denotes, literal_value
from dlog.ir.lower.lowered import Lowered
from dlog.ir.rules import Const, FactBlock, Predicate
from dlog.ir.types.retype import literal_fits
from dlog.language.source import Span
from dlog.values import Type

Literal = tuple[str, "int | str | bool"]
Place = tuple[FactBlock, int] | Span  # the place of a row in a block is computed on demand
Values = dict[object, tuple[Literal, Place]]  # the values of one key, and where each was stated


def check_literals(lowered: Lowered, predicates: Mapping[str, Predicate], diagnostics: Diagnostics) -> bool:
    """Reports the literals of facts and deltas that do not fit.  O(literals)."""
    before = len(diagnostics.errors)
    for block in lowered.facts:
        _check_block(block, predicates[block.predicate], diagnostics)
    for delta in lowered.deltas:
        for index, literal in enumerate(delta_literals(delta)):
            literal_fits(literal, predicates[delta.predicate].columns[index].type, diagnostics)
    return len(diagnostics.errors) == before


def _check_block(block: FactBlock, predicate: Predicate, diagnostics: Diagnostics) -> None:
    types = [column.type for column in predicate.columns]
    plain = [type.plain_literal for type in types]
    for row_index, row in enumerate(block.rows):
        for index, (kind, value) in enumerate(row):
            if not plain[index](kind, value):
                try:
                    _value(kind, value, types[index])
                except ValueError:
                    literal = Const(kind, value, None, literal_span(block, row_index, index))
                    literal_fits(literal, types[index], diagnostics)


def _value(kind: str, value: int | str | bool, type: Type) -> object:
    return literal_value(kind, value, type) if denotes(kind, value, type) else None


def check_functions(
    lowered: Lowered,
    predicates: Mapping[str, Predicate],
    combined: Collection[str],
    diagnostics: Diagnostics,
) -> None:
    """Reports keys that have two values after the program's own facts and deltas.  O(facts of functions).

    REQUIRES: all literals fit.  Predicates in `combined` take all their facts as candidates of a min or max.
    """
    table: dict[tuple[str, tuple[object, ...]], Values] = {}
    for op, name, row, span in _changes(lowered):
        predicate = predicates[name]
        if predicate.is_functional and name not in combined:
            typed = [_value(k, v, c.type) for (k, v), c in zip(row, predicate.columns, strict=True)]
            _change(table.setdefault((name, tuple(typed[:-1])), {}), op, typed[-1], row[-1], span)
    for values in table.values():
        if len(values) > 1:
            (old, first), (new, second) = list(values.values())[:2]
            span = _span(second)
            key = span.text().lstrip("+^ ").rpartition("=")[0].rstrip()
            message = f"two values for one key of a function: {key} is {Const(*old)} and {Const(*new)}"
            first_place = place(_span(first), span)
            help = f"the other value is stated at {first_place}; ^{key} = {Const(*new)} replaces it"
            diagnostics.error(message, span, help)


def _changes(lowered: Lowered) -> Iterator[tuple[str, str, tuple[Literal, ...], Place]]:
    """(op, predicate, row, place) of all facts, then all deltas, in order."""
    for block in lowered.facts:
        if lowered.names.shapes[block.predicate].functional:
            for index, row in enumerate(block.rows):
                yield "+", block.predicate, row, (block, index)
    for delta in lowered.deltas:
        assert delta.span is not None
        yield delta.op, delta.predicate, delta.row, delta.span


def _span(place: Place) -> Span:
    return place if isinstance(place, Span) else fact_span(*place)


def _change(values: Values, op: str, value: object, literal: Literal, place: Place) -> None:
    if op == "^":
        values.clear()
    if op == "-":
        values.pop(value, None)
    else:
        values.setdefault(value, (literal, place))
