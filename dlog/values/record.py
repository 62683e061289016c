"""The types that a program declares: records `[x: T, ..]` and algebraic data types `A {x: T, ..} | B {}`.

A type of either kind has constructors: a record type has one without a name, and the value `nil`.  The code
of a value with fields is the number that the dictionary's table of records has for it, so equal values have
equal codes; `nil` is 0, and a branch without fields its place in the declaration.  Codes say nothing about
order: records are compared by = and != only.

Outside rules a value is a text, as a program writes it: `[1, ["a", nil]]`, `$Add($Number(1), $Zero)`.  That
is also its form while columns are read and written.  Results and files in Arrow have structs, but for types
that mention themselves, which have no finite struct type.  Python has tuples, None for `nil`, and `Branch`
(see `dlog.values.record_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from dlog.values.arrows import column_of_values
from dlog.values.heavy import pa, pc
from dlog.values.misfit import Misfit, quoted
from dlog.values.record_text import Branch, jsonable, plain_text, read, text_of, value_of
from dlog.values.type import Codes, Converted, Literal, Type
from dlog.values.union_values import values_of

ANY_RECORD = "a record"  # stands for every type of records where types are still open
NOTHING = "nothing"  # the kind of a literal that has the code 0 in every type of records, and is never shown
FIRST_ID = 1 << 20  # smaller codes are `nil`, `[]` and branches without fields
EMPTY = 1  # the code of `[]`
PLAIN, TEXT, RECORD = range(3)  # what a field holds: a code, a text's code, a record's code


class Constructor(NamedTuple):
    """`fields` are pairs of a name and a type."""

    name: str
    fields: tuple[tuple[str, Type], ...]

    @property
    def types(self) -> list[Type]:
        return [type for _, type in self.fields]

    @property
    def kinds(self) -> tuple[int, ...]:
        return tuple(type.field_kind for type in self.types)


@dataclass(frozen=True)
class RecordType(Type):
    """`signature`: its declaration with those of the types that it mentions.  Types are equal if it is.

    `definitions` has the constructors of it and of all other record types of its program, by name: they may
    mention each other.
    """

    signature: str = ""
    definitions: Mapping[str, tuple[Constructor, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )

    literals = ("nil", "record")
    some_literal = (NOTHING, NOTHING)
    field_kind = RECORD
    is_record = True

    @cached_property
    def constructors(self) -> tuple[Constructor, ...]:
        return self.definitions[self.name]

    @cached_property
    def is_adt(self) -> bool:
        return bool(self.constructors[0].name)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The place of each constructor."""
        return {constructor.name: i for i, constructor in enumerate(self.constructors)}

    def constructor(self, name: str) -> Constructor | None:
        return self.constructors[self.numbers[name]] if name in self.numbers else None

    def immediate(self, number: int) -> int | None:
        """The code of a constructor's only value; None: it has fields."""
        if self.constructors[number].fields:
            return None
        return number if self.is_adt else EMPTY

    # Arrow

    @cached_property
    def has_structs(self) -> bool:
        """Whether its values are structs in Arrow: it does not mention itself, and has a field."""
        return any(c.fields for c in self.constructors) and not self.is_recursive

    @cached_property
    def is_recursive(self) -> bool:
        """Whether a value may contain another of the same type."""
        known: list[RecordType] = []
        todo: list[RecordType] = [self]
        while todo:
            of = todo.pop()
            inner = [t for c in of.constructors for t in c.types if isinstance(t, RecordType)]
            if self in inner:
                return True
            new = [t for t in dict.fromkeys(inner) if t not in known]
            known += new
            todo += new
        return False

    @cached_property
    def tag(self) -> str:
        """The name of the field that says which branch a struct is."""
        name = "branch"
        while name in self.numbers:
            name += "_"
        return name

    def exported(self, codes: Codes, dictionary: Any) -> pa.Array:
        return dictionary.records.structs(codes, self, dictionary)

    def arrow(self) -> pa.DataType:
        return pa.large_string()  # not `string`, as which files are read before their cells are parsed

    def csv_arrow(self) -> pa.DataType:
        return pa.string()

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        """Each distinct text is read once."""
        if not pa.types.is_string(values.type) and not pa.types.is_large_string(values.type):
            raise self.wrong_column(values)
        encoded = pc.dictionary_encode(values)
        distinct = [read(text, self) for text in encoded.dictionary.to_pylist()]
        codes = dictionary.records.codes(distinct, self, dictionary)
        return codes[encoded.indices.to_numpy(zero_copy_only=False)]

    def encode_python(self, values: Sequence[Any], dictionary: Any) -> Codes:
        """The codes of Python values, or of their texts."""
        known = [read(v, self) if isinstance(v, str) else value_of(v, self) for v in values]
        return dictionary.records.codes(known, self, dictionary)

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return dictionary.records.texts(codes, self, dictionary)

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return _Conversions({"string": self._from_string}, self._from_values)

    def _from_values(self, column: pa.ChunkedArray) -> Converted:
        """Columns of structs, unions, lists or nulls, value by value."""
        values, misfits = column_of_values(values_of(column), self)
        good = [place not in misfits for place in range(len(column))]
        return pa.chunked_array([values]), pa.array(good, pa.bool_())

    def _from_string(self, column: pa.ChunkedArray) -> Converted:
        texts = [self._canonical(text) for text in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, self.arrow())]), pa.array(
            [t is not None for t in texts], pa.bool_()
        )

    def _canonical(self, text: str | None) -> str | None:
        try:
            return self.take(text)
        except Misfit:
            return None

    # Text

    def parse(self, text: str) -> str:
        return text_of(read(text, self), self)

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        """Strings without quotes, floats with 9 digits, as Soufflé prints them."""
        if not pc.any(pc.match_substring_regex(column, '["."]')).as_py():
            return column
        return pa.array([plain_text(text) for text in column.to_pylist()], column.type)

    has_marks = True

    def quoted_texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        """As in a program, so that strings with commas and brackets can be read again."""
        return column

    def sqlite_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        return column.to_pylist()

    def json_arrow(self) -> pa.DataType:
        return pa.null()  # of any shape: read row by row

    def json(self, column: pa.Array) -> list[pa.Array | str]:
        return [pa.array([jsonable(read(text, self), self) for text in column.to_pylist()], pa.string())]

    # Python values

    def python_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        return [read(text, self) for text in column.to_pylist()]

    def direct(self, values: Sequence[Any]) -> bool:
        return False

    def take(self, value: Any) -> str:
        known = read(value, self) if isinstance(value, str) else value_of(value, self)
        return text_of(known, self)

    takes_none = True

    # Literals

    def literal(self, kind: str, value: Literal) -> str:
        try:
            return text_of(read(str(value), self, strict=True), self)
        except Misfit as misfit:
            raise ValueError(f"is not {self.called}: {misfit}") from None

    def literal_text(self, value: Any) -> str:
        return text_of(value, self)

    def shown(self, value: Any) -> str:
        return plain_text(text_of(value, self))

    def spark(self) -> str:
        raise NotImplementedError("Spark has no records")

    @property
    def called(self) -> str:
        return f"a value of {self.name}"


class _Conversions(dict[str, Callable[[Any], Converted]]):
    """The same conversion of all other kinds of columns."""

    def __init__(self, known: dict[str, Callable[[Any], Converted]], other: Callable[[Any], Converted]):
        super().__init__(known)
        self.other = other

    def get(self, kind: str, default: Any = None) -> Any:
        return super().get(kind, self.other)


__all__ = ["FIRST_ID", "PLAIN", "RECORD", "TEXT", "Branch", "Constructor", "RecordType", "quoted"]
