"""Owns the primitives that make records and take them apart: their names and signatures.

    r = $(a, b)           the record with these fields: `[a, b]`
    r = $Add(a, b)        the same for a branch of an algebraic data type
    a = $Add.0(r)         the first field, where `Add` made r; `$.0` for records

In a rule that has been read, `[a, b] = r` is the first form in either direction.  Once it is known which
variables are bound (`dlog.ir.analysis.safety`), one that takes r apart becomes one of the last form for each
field.  Branches without fields, and `nil`, are literals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlog.ir.rules import Primitive

SIGN = "$"


def constructor_name(branch: str) -> str:
    """The primitive of a branch; "" for records."""
    return SIGN + branch


def field_name(branch: str, index: int) -> str:
    return f"{SIGN}{branch}.{index}"


def is_record_form(name: str) -> bool:
    return name.startswith(SIGN)


def is_constructor(name: str) -> bool:
    return name.startswith(SIGN) and field_of(name) is None


def branch_of(name: str) -> str:
    """The branch that a constructor or a field belongs to."""
    found = field_of(name)
    return name[1:] if found is None else found[0]


def field_of(name: str) -> tuple[str, int] | None:
    """(Branch, place) of the primitive of a field."""
    branch, point, index = name[1:].rpartition(".")
    return (branch, int(index)) if point and index.isdigit() else None


def shown(form: Primitive) -> str:
    """As a program writes it."""
    inputs = [str(a) for a in form.inputs]
    found = field_of(form.name)
    if found is None:
        branch = form.name[1:]
        text = f"${branch}({', '.join(inputs)})" if branch else f"[{', '.join(inputs)}]"
        return f"{form.output} = {text}"
    branch, index = found
    fields = ", ".join([*["_"] * index, str(form.output), ".."])
    return f"{inputs[0]} = {f'${branch}({fields})' if branch else f'[{fields}]'}"
