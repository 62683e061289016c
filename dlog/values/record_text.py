"""Owns records outside the engine: as Python values, and as the texts that programs and files have.

A record is a tuple, `nil` is None, a value of an algebraic data type a `Branch`.  Nothing here recurses: a
list of a million records is a value like any other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dlog.values.float import FLOAT, NOT_FINITE
from dlog.values.heavy import pa
from dlog.values.misfit import Misfit, not_a, shortened, wrong_kind
from dlog.values.quoting import quoted, unquoted

if TYPE_CHECKING:
    from dlog.values.record import Constructor, RecordType
    from dlog.values.type import Type

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_QUOTED_OR_FLOAT = re.compile(_QUOTED.pattern + r"|-?[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?", re.DOTALL)
_RAW = re.compile(r"[^,\])]*")
_NAME = re.compile(r"\$\s*([?\w.]+)")
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?\s*[0-9][\w.]*([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Branch:
    """A value of an algebraic data type.

    >>> Branch("Add", (Branch("Number", (1,)), Branch("Zero")))
    $Add($Number(1), $Zero)
    """

    name: str
    fields: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"${self.name}({', '.join(map(repr, self.fields))})" if self.fields else f"${self.name}"


@dataclass
class _Open:
    """A value whose fields are being collected."""

    type: RecordType
    constructor: Constructor
    fields: list[Any]

    def made(self) -> Any:
        fields = tuple(self.fields)
        return Branch(self.constructor.name, fields) if self.type.is_adt else fields

    @property
    def next_type(self) -> Type:
        return self.constructor.fields[len(self.fields)][1]

    @property
    def is_full(self) -> bool:
        return len(self.fields) == len(self.constructor.fields)


# Texts


def read(text: str, type: RecordType, strict: bool = False) -> Any:
    """The value of a text, or Misfit.  Strings need quotes only if `strict`.  O(length)."""
    return _Reader(text, strict).value(type)


class _Reader:
    def __init__(self, text: str, strict: bool):
        self.text, self.strict = text, strict
        self.at = 0

    def value(self, type: RecordType) -> Any:
        """A type-directed reading of the whole text."""
        open: list[_Open] = []
        wanted: Type = type
        while True:
            found = self.begun(wanted)
            if isinstance(found, _Open) and not found.is_full:
                open.append(found)
                wanted = found.next_type
                continue
            done = self.closed(found) if isinstance(found, _Open) else found
            while open:
                open[-1].fields.append(done)
                if not open[-1].is_full:
                    self.expect(",", f"{_with_arity(open[-1])} has more fields")
                    wanted = open[-1].next_type
                    break
                done = self.closed(open.pop())
            else:
                if self.rest():
                    raise Misfit(f'"{shortened(self.rest())}" follows the value')
                return done

    def rest(self) -> str:
        return self.text[self.at :].strip()

    def begun(self, type: Type) -> Any:
        """A whole value, or one whose fields follow."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        if not type.is_record:
            return self.leaf(type)
        record: RecordType = type  # type: ignore[assignment]
        if not record.is_adt:
            if self.text.startswith("nil", self.at):
                self.at += 3
                return None
            if not self.take("["):
                raise self.misfit(type)
            return _Open(record, record.constructors[0], [])
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise self.misfit(type)
        constructor = record.constructor(name.group(1))
        if constructor is None:
            raise Misfit(f"{type} has no branch {name.group(1)}")
        self.at = name.end()
        opened = self.take("(")
        if not opened and constructor.fields:
            raise Misfit(f"${name.group(1)} needs {_fields(constructor)}")
        if not opened:
            return Branch(constructor.name)
        return _Open(record, constructor, [])

    def misfit(self, type: Type) -> Misfit:
        return not_a(self.rest(), type)

    def closed(self, open: _Open) -> Any:
        self.expect(")" if open.type.is_adt else "]", f"{_with_arity(open)} has no more fields")
        return open.made()

    def take(self, sign: str) -> bool:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        found = self.text.startswith(sign, self.at)
        self.at += len(sign) * found
        return found

    def expect(self, sign: str, reason: str) -> None:
        if not self.take(sign):
            found = f'not "{shortened(self.rest())}"' if self.rest() else "not the end"
            raise Misfit(f"`{sign}` expected, {found}: {reason}")

    def leaf(self, type: Type) -> Any:
        """A value without fields."""
        text = _QUOTED.match(self.text, self.at)
        if text is not None:
            self.at = text.end()
            value = unquoted(text.group())
            is_number = type.kernel == "float" and value in NOT_FINITE
            if self.strict and "string" not in type.literals and not is_number:
                raise not_a(value, type)
            return _leaf_value(value, type)
        raw = _RAW.match(self.text, self.at)
        assert raw is not None
        self.at = raw.end()
        if self.strict and not _is_literal(raw.group().strip(), type):
            raise not_a(raw.group().strip(), type)
        return _leaf_value(raw.group() if type.verbatim else raw.group().strip(), type)


def _leaf_value(text: str, type: Type) -> Any:
    if type.verbatim:
        return text
    if type.kernel == "unsigned":
        text = text.removesuffix("u")
    if not text:
        raise Misfit(f"is empty, {type} expected")
    return type.parse(text)


def _is_literal(text: str, type: Type) -> bool:
    if text in ("true", "false"):
        return "bool" in type.literals
    kinds = {"int", "unsigned", "float"} & set(type.literals)
    return bool(kinds) and _NUMBER.fullmatch(text) is not None


def _with_arity(open: _Open) -> str:
    return f"{open.type}" if not open.constructor.name else f"${open.constructor.name}"


def _fields(constructor: Constructor) -> str:
    n = len(constructor.fields)
    return f"{n} argument{'' if n == 1 else 's'}"


def text_of(value: Any, type: RecordType) -> str:
    """A value as a program writes it.  REQUIRES: it is one of the type.

    O(size of the text)."""
    return "".join(_pieces(value, type))


def _pieces(value: Any, type: Type) -> Iterator[str]:
    todo: list[tuple[Any, Type | None]] = [(value, type)]  # a piece of text has no type
    while todo:
        value, of = todo.pop()
        if of is None:
            yield value
        elif not of.is_record:
            text = of.literal_text(value)
            yield quoted(text) if of.quoted_literal else text
        elif value is None:
            yield "nil"
        elif not isinstance(value, Branch):
            yield "["
            todo += _reversed_fields(value, of.constructors[0], "]")  # type: ignore[attr-defined]
        elif not value.fields:
            yield f"${value.name}"
        else:
            yield f"${value.name}("
            constructor = of.constructor(value.name)  # type: ignore[attr-defined]
            todo += _reversed_fields(value.fields, constructor, ")")


def _reversed_fields(
    fields: tuple[Any, ...], constructor: Constructor, end: str
) -> list[tuple[Any, Type | None]]:
    found: list[tuple[Any, Type | None]] = [(end, None)]
    for value, (_, type) in reversed(list(zip(fields, constructor.fields, strict=True))):
        found += [(value, type), (", ", None)]
    return found[:-1] if len(found) > 1 else found


def plain_text(text: str) -> str:
    """A text with its strings as they are, without quotes and escapes, and floats as files have them.

    >>> plain_text('["a", [2.0, nil]]')
    '[a, [2, nil]]'
    """
    return _QUOTED_OR_FLOAT.sub(_plain, text)


def _plain(match: re.Match[str]) -> str:
    text = match.group()
    return unquoted(text) if text[0] == '"' else _float_text(text)


@lru_cache(maxsize=4096)
def _float_text(text: str) -> str:
    return str(FLOAT.texts(pa.array([float(text)]))[0].as_py())


# Python values


def value_of(value: Any, type: RecordType) -> Any:
    """A Python value in the form described above, or Misfit: lists are tuples, texts of records are
    read, leaves are what their types take."""
    open: list[tuple[_Open, list[Any]]] = []
    wanted: Type = type
    while True:
        done = None
        if wanted.is_record and isinstance(value, str):
            done = read(value, wanted)  # type: ignore[arg-type]
        elif wanted.is_record and value is not None:
            opened, fields = _opened(value, wanted)  # type: ignore[arg-type]
            if fields:
                open.append((opened, fields))
                value, wanted = fields[0], opened.next_type
                continue
            done = opened.made()
        elif wanted.is_record:
            if wanted.is_adt:  # type: ignore[attr-defined]
                raise Misfit(f"is null, {wanted} expected")
        else:
            done = _taken(value, wanted)
        while open:
            opened, fields = open[-1]
            opened.fields.append(done)
            if not opened.is_full:
                value, wanted = fields[len(opened.fields)], opened.next_type
                break
            open.pop()
            done = opened.made()
        else:
            return done


def _taken(value: Any, type: Type) -> Any:
    from dlog.values.arrows import exact_value

    return exact_value(value, type)


def _opened(value: Any, type: RecordType) -> tuple[_Open, list[Any]]:
    """A value with no fields yet, and the fields that it will have."""
    if type.is_adt:
        name, fields = _branch_of(value, type)
        constructor = type.constructor(name)
        if constructor is None:
            raise Misfit(f"{type} has no branch {name}")
    else:
        constructor = type.constructors[0]
        found = _in_order(value, constructor)
        if found is None:
            raise wrong_kind(value, type)
        fields = found
    if len(fields) != len(constructor.fields):
        what = f"${constructor.name}" if constructor.name else str(type)
        count = len(constructor.fields)
        raise Misfit(f"{what} has {count} field{'' if count == 1 else 's'}, not {len(fields)}")
    return _Open(type, constructor, []), fields


def _branch_of(value: Any, type: RecordType) -> tuple[str, list[Any]]:
    """A branch; a struct with its name, as Arrow has it; an object of one name with its fields, as JSON has
    it; an object of a class of its name."""
    if isinstance(value, Branch):
        return value.name, list(value.fields)
    name, fields = "" if isinstance(value, dict) else type_name(value), value
    if isinstance(value, dict) and isinstance(value.get(type.tag), str):
        name = value[type.tag]
        fields = value.get(name)
    elif isinstance(value, dict) and len(value) == 1:
        ((name, fields),) = value.items()
    constructor = type.constructor(name) if isinstance(name, str) else None
    if constructor is None and isinstance(value, dict) and name and isinstance(name, str):
        raise Misfit(f"{type} has no branch {name}")
    found = None if constructor is None else [] if fields is None else _in_order(fields, constructor)
    if found is None:
        raise wrong_kind(value, type)
    return name, found


def type_name(value: Any) -> str:
    return type(value).__name__


def _in_order(value: Any, constructor: Constructor) -> list[Any] | None:
    """The fields of a list, of a dictionary or dataclass with their names, or None."""
    names = [name for name, _ in constructor.fields]
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields_of(value)}
    if isinstance(value, dict) and set(value) == set(names):
        return [value[name] for name in names]
    return list(value) if isinstance(value, tuple | list) else None


def jsonable(value: Any, type: RecordType) -> str:
    """As JSON: arrays, null, and `{"Branch": [fields]}`."""
    out: list[str] = []
    todo: list[tuple[Any, Type | None]] = [(value, type)]
    while todo:
        value, of = todo.pop()
        if of is None:
            out.append(value)
        elif not of.is_record:
            out.append(_json_leaf(value, of))
        elif value is None:
            out.append("null")
        elif isinstance(value, Branch):
            out.append(f"{{{json.dumps(value.name)}:[")
            constructor = of.constructor(value.name)  # type: ignore[attr-defined]
            todo += _reversed_fields(value.fields, constructor, "]}")
        else:
            out.append("[")
            todo += _reversed_fields(value, of.constructors[0], "]")  # type: ignore[attr-defined]
    return "".join(out)


def _json_leaf(value: Any, type: Type) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'"{value}"'
    if type.quoted_literal or not isinstance(value, int | float):
        return json.dumps(value if isinstance(value, str) else str(value), ensure_ascii=False)
    return json.dumps(value)


def order_key(value: Any, type: Type) -> tuple[Any, ...]:
    """A key by which values of one type are sorted: flat, since Python cannot compare long lists of pairs."""
    key: list[Any] = []
    todo: list[tuple[Any, Type]] = [(value, type)]
    while todo:
        value, of = todo.pop()
        if not of.is_record:
            key.append((2, value))
        elif value is None:
            key.append((0, 0))
        else:
            is_adt = isinstance(value, Branch)
            number = of.numbers[value.name if is_adt else ""]  # type: ignore[attr-defined]
            key.append((1, number))
            fields = value.fields if is_adt else value
            todo += reversed(list(zip(fields, of.constructors[number].types, strict=True)))  # type: ignore[attr-defined]
    return tuple(key)
