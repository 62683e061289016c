"""Owns primitives as steps of a block: comparisons, computations, ranges, and what they determine.

Knows a block only as something that has steps and binds variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dlog.ir.record_forms import branch_of, field_of, is_record_form
from dlog.ir.rules import Form, Operand, Primitive, Var
from dlog.lftj.plan import (
    Compare,
    Compute,
    Exists,
    MakeRecord,
    RangeStep,
    RankCompare,
    ReadField,
    Step,
)
from dlog.values import RecordType, Type

if TYPE_CHECKING:
    from dlog.planning.block import Block

_COMPARE = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def try_primitive(block: Block, form: Primitive) -> bool:
    """Do a primitive, if its inputs are known; returns whether it was done."""
    names = {a.name for a in form.inputs if isinstance(a, Var)}
    missing = names - block.bound
    if form.name == "eq" and len(missing) == 1 and form.inputs[0] != form.inputs[1]:
        return _copy(block, form, missing.pop())
    if missing:
        return False
    if is_record_form(form.name):
        _record(block, form)
    elif form.output is None:
        _compare(block, form)
    elif form.name == "range":
        _range(block, form)
    else:
        _compute(block, form)
    return True


def _copy(block: Block, form: Primitive, name: str) -> bool:
    a, b = form.inputs
    source = b if isinstance(a, Var) and a.name == name else a
    operand = block.operand(source, block.c.types[name])
    block.steps.append(Compute("copy", "int", block.c.slot(name), operand))
    block.bind(name)
    return True


def _compare(block: Block, form: Primitive) -> None:
    variables = [a for a in form.inputs if isinstance(a, Var)]
    type = block.c.type(variables[0] if variables else form.inputs[0])
    a, b = (block.operand(x, type) for x in form.inputs)
    if not type.ordered_codes and form.name not in ("eq", "ne"):
        block.c.ranked += 1
        block.steps.append(RankCompare(_COMPARE[form.name], a, b))
    else:
        block.steps.append(Compare(_COMPARE[form.name], a, b))


def _compute(block: Block, form: Primitive) -> None:
    """Binds the output, or compares with it if it is known."""
    type = block.c.type(form.inputs[0])
    kind = type.kernel
    if not type.ordered_codes:
        block.c.ranked += 1
    inputs = [block.operand(a, block.c.type(a)) for a in form.inputs]
    op = _operation(form, type)
    _into(block, form.output, lambda slot: Compute(op, kind, slot, *inputs))


def _record(block: Block, form: Primitive) -> None:
    found = field_of(form.name)
    of = block.c.type(form.output if found is None else form.inputs[0])  # type: ignore[arg-type]
    assert isinstance(of, RecordType)
    number = of.numbers[branch_of(form.name)]
    if found is None:
        constructor = of.constructors[number]
        pairs = zip(form.inputs, constructor.types, strict=True)
        fields = tuple(block.operand(a, type) for a, type in pairs)
        shape = block.c.shape(number, constructor.kinds)
        _into(block, form.output, lambda slot: MakeRecord(shape, slot, fields))
    else:
        record = block.operand(form.inputs[0], of)
        _into(block, form.output, lambda slot: ReadField(number, found[1], slot, record))


def _range(block: Block, form: Primitive) -> None:
    type = block.c.type(form.inputs[0])
    inputs = [block.operand(a, type) for a in form.inputs]
    step = inputs[2] if len(inputs) > 2 else None
    output = form.output
    if isinstance(output, Var) and output.name not in block.bound:
        block.steps.append(RangeStep(block.c.slot(output.name), inputs[0], inputs[1], step, type.kernel))
        block.bind(output.name)
        return
    assert output is not None
    slot = block.c.temporary()
    inner = RangeStep(slot, inputs[0], inputs[1], step, type.kernel)
    block.steps.append(Exists((inner, Compare("=", slot, block.operand(output, type)))))


def _into(block: Block, output: Operand | None, step: Callable[[int], Step]) -> None:
    assert output is not None
    if isinstance(output, Var) and output.name not in block.bound:
        block.steps.append(step(block.c.slot(output.name)))
        block.bind(output.name)
        return
    slot = block.c.temporary()
    block.steps.append(step(slot))
    block.steps.append(Compare("=", slot, block.operand(output, block.c.type(output))))


def _operation(form: Primitive, type: Type) -> str:
    """The kernel's name of a primitive; conversions to the type a value has already are copies."""
    target = _CONVERSIONS.get(form.name)
    if target is None:
        return form.name
    return "copy" if type.kernel == target else f"to_{target}"


_CONVERSIONS = {
    "to_number": "int",
    "as_int": "int",
    "to_unsigned": "unsigned",
    "as_unsigned": "unsigned",
    "to_float": "float",
}


def determines(forms: Iterable[Form], bound: set[str]) -> set[str]:
    """Variables that only primitives bind."""
    known = set(bound)
    changed = True
    while changed:
        changed = False
        for form in forms:
            if not isinstance(form, Primitive):
                continue
            names = {a.name for a in form.inputs if isinstance(a, Var)}
            new: set[str] = set()
            if form.name == "eq" and len(names - known) == 1:
                new = names - known
            elif names <= known and isinstance(form.output, Var):
                new = {form.output.name} - known
            known |= new
            changed |= bool(new)
    return known
