"""Owns what a type is: the interface that every type implements, each in its own file.

A type is what a column holds; a subtype or a union of Soufflé's `.type` is a name for one of these.  A type
answers everything that depends on it: its names, the int64 codes of its values, their order, texts, JSON,
Arrow and Python values, literals, and which operations apply.  Other modules ask the object and never test
its name.  `dlog.values` registers the types.

Codes have the order of the values wherever `ordered_codes` says so, and equal values have equal codes.
There is no NULL.  Conversions work on whole columns; only `parse`, `take` and `literal` see one value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dlog.values.heavy import np, pa
from dlog.values.misfit import BadValue, is_not, wrong_kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PRECISION = 18  # digits of a decimal that fit an int64

# The result of converting an Arrow column: the typed values, and which of them are right (None: all that
# are not null and in range).
Converted = tuple[Any, Any]
Codes = Any  # an int64 array
Literal = int | str | bool
CLASSES: dict[str, type[Type]] = {}


class Operation(NamedTuple):
    """An operation on codes: the name of its result's type, and `calculate(codes of inputs, result type)`,
    which gives the result's codes and which of them are defined (None: all)."""

    result: str
    calculate: Callable[[Sequence[Any], Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Type:
    """A type with its sizes.  `Type("decimal", 2)` is an instance of the class that decimals have.

    `scale` and `precision` matter for decimals only.
    """

    name: str
    scale: int = 0
    precision: int = MAX_PRECISION

    # Names
    names: ClassVar[tuple[str, ...]] = ()  # every spelling, LogiQL's and Soufflé's; the first is `name`
    preference: ClassVar[int] = 100  # inference picks the lowest of several possible types
    elsewhere: ClassVar[tuple[str, ...]] = ()  # what other languages call it, for messages
    reserved: ClassVar[bool] = True  # False: a predicate or a `.type` may also have the name
    article: ClassVar[str] = "a"
    form: ClassVar[str] = ""  # the format of its texts, for messages: " (YYYY-MM-DD)"
    example: ClassVar[str] = ""  # a literal, for messages
    range_note: ClassVar[str] = ""
    becomes: ClassVar[Mapping[str, str]] = {}  # advice on converting a value to another type

    # Order and codes
    ordered_codes: ClassVar[bool] = True  # False: codes are compared by rank in the dictionary
    kernel: ClassVar[str] = "int"  # how kernels compute with the codes: int, unsigned, float or string

    # Records
    is_record: ClassVar[bool] = False  # a record or an algebraic data type, which a program declares
    field_kind: ClassVar[int] = 0  # what a field of this type holds: see `dlog.values.record`
    takes_none: ClassVar[bool] = False  # None is a value
    no_field: ClassVar[str] = ""  # why it cannot be the type of a field

    # Which operations apply
    groups: ClassVar[frozenset[str]] = frozenset()  # classes of `dlog.ir.primitives` that it belongs to
    conversion: ClassVar[str | None] = None  # the function that converts to it: to_date
    converts: ClassVar[tuple[str, ...]] = ()  # the types that the function takes
    readable: ClassVar[str] = ""  # a pattern of the texts that the function reads
    operations: ClassVar[Mapping[tuple[str, ...], Operation]] = {}  # (operation, types of inputs)
    literals: ClassVar[tuple[str, ...]] = ()  # kinds of spelling that may denote a value
    some_literal: ClassVar[tuple[str, Literal]] = ("int", 0)  # of any one value
    literal_is_value: ClassVar[bool] = False  # a literal contains the value itself, so each value has one
    literal_shape: ClassVar[str] = ""  # a pattern: a text literal of this form is meant for this type
    widens_to: ClassVar[tuple[str, ...]] = ()  # what it converts to beside an operand of that type
    day: ClassVar[int] = 0  # for points in time, a day as a difference of codes

    # Sums
    codes_add_up: ClassVar[bool] = False  # the code of a sum is the sum of the codes
    mean: ClassVar[str] = "float"  # the name of the type of a mean, if values can be summed
    zero: ClassVar[tuple[str, Literal]] = ("int", 0)  # the literal of the sum of nothing
    room: ClassVar[str] = "64 bits"  # what a sum that is too large does not fit, for messages

    # Python
    python: ClassVar[tuple[type, ...]] = ()  # types of values that Arrow converts exactly, or refuses

    # View trees
    m3: ClassVar[str | None] = None  # its type in M3

    # SQLite
    sqlite: ClassVar[str] = "TEXT"  # the type of its columns

    # Spark
    spark_bytes: ClassVar[int] = 8  # for Spark's hash: 4 or 8; 0: as text
    own_texts: ClassVar[bool] = False  # Spark's texts of values are others, so it gets texts to write

    def __new__(cls, name: str = "", *sizes: Any, **named: Any) -> Type:
        return object.__new__(CLASSES.get(name, cls) if cls is Type else cls)

    def __init_subclass__(cls) -> None:
        CLASSES.update(dict.fromkeys(cls.names[:1], cls))

    def __str__(self) -> str:
        return self.name

    @property
    def called(self) -> str:
        """With an article, for messages."""
        return f"{self.article} {self}"

    @property
    def is_numeric(self) -> bool:
        return "numeric" in self.groups

    @property
    def adds_up(self) -> bool:
        """Whether values can be summed; the sum has the same type."""
        return self.is_numeric or self.codes_add_up

    @property
    def adds_up_exactly(self) -> bool:
        """Whether a sum of values is a sum of integers."""
        return self.adds_up and self.kernel != "float"

    @property
    def is_decimal(self) -> bool:
        """Whether rules compute with it exactly, in wide columns."""
        return False

    # Arrow

    def arrow(self) -> pa.DataType:
        """The one Arrow type of its columns."""
        raise NotImplementedError

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        """The codes of a non-empty Arrow array without nulls, of any Arrow type.  Raises BadValue."""
        raise NotImplementedError

    def encode_python(self, values: Sequence[Any], dictionary: Any) -> Codes | None:
        """The codes of Python values that have no Arrow form of their own; None: there is such a form."""
        return None

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        """The values of codes, as an array of `arrow`."""
        raise NotImplementedError

    def exported(self, codes: Codes, dictionary: Any) -> pa.Array:
        """The values of codes, as results have them outside: records are structs."""
        return self.decode(codes, dictionary)

    def inside(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_] | None:
        """Which values of an `arrow` column the type can hold; None if its Arrow type has the same range."""
        return None

    def defined(self, codes: Codes) -> NDArray[np.bool_] | None:
        """Which results of arithmetic on codes are values; None where all are."""
        return None

    @property
    def has_undefined_sums(self) -> bool:
        """Whether the sum of two values may be no value."""
        return type(self).defined is not Type.defined

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        """The named kinds of Arrow types for conversions, and which types they are."""
        return {}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        """How columns of a kind, its own or that of another type, are converted to `arrow`."""
        raise NotImplementedError

    def refusal(self, kind: str) -> str:
        """Why a column of another kind is rejected, and what to do."""
        return f"holds {kind}, {self} expected"

    unreadable: ClassVar[str | None] = None  # why a value of an Arrow column of its own kind is rejected

    # Text

    def plain(self) -> str:
        """A pattern: cells that match are converted by `read_plain`, which never fails on a matching number.
        Without one, each distinct cell is parsed."""
        return ""

    def read_plain(self, cells: pa.Array) -> pa.Array:
        """Cells that match `plain`, or are null, as a column.  Raises ArrowInvalid."""
        return cells.cast(self.arrow())

    def parse(self, text: str) -> Any:
        """The Python value of one cell without spaces around it, or Misfit with the reason."""
        raise NotImplementedError

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        """The column as text."""
        return column.cast(pa.string())

    verbatim: ClassVar[bool] = False  # a cell is its value verbatim, spaces included
    has_marks: ClassVar[bool] = False  # a cell may have commas and quotes in it: quoted where strings are

    def quoted_texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        """The column as text for cells in quotes, whose quotes are not doubled yet."""
        return self.texts(column, full_precision)

    # The column type for pyarrow's own readers: `string` if they treat a cell differently from `parse`.

    def csv_arrow(self) -> pa.DataType:
        return self.arrow()

    def json_arrow(self) -> pa.DataType:
        return self.arrow()

    def doubtful(self, column: pa.ChunkedArray) -> bool:
        """Whether what pyarrow's CSV reader made of a column must be read again cell by cell."""
        return False

    exact_json: ClassVar[bool] = False  # numbers of JSON must be read without rounding

    def json(self, column: pa.Array) -> list[pa.Array | str]:
        """The column as JSON, in pieces to be joined."""
        return [self.texts(column, full_precision=True)]

    # Python values

    def python_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        """The values of an `arrow` column."""
        return column.to_pylist()

    def direct(self, values: Sequence[Any]) -> bool:
        """Whether `pa.array` converts these values exactly, or refuses."""
        return set(map(type, values)) <= set(self.python)

    def take(self, value: Any) -> Any:
        """The value as the type holds it, or Misfit."""
        raise wrong_kind(value, self)

    # Literals

    def literal(self, kind: str, value: Literal) -> Any:
        """The value that a spelling denotes.  Raises ValueError with the reason when there is none."""
        raise NotImplementedError

    def plain_literal(self, kind: str, value: Any) -> bool:
        """Whether a literal certainly denotes a value: a quick test for large blocks of facts."""
        return False

    def literal_text(self, value: Any) -> str:
        """A value as a literal that denotes it, without quotes if `quoted_literal`."""
        return str(value)

    quoted_literal: ClassVar[bool] = False

    def shown(self, value: Any) -> str:
        """A value in a table for display."""
        return str(value)

    # SQLite

    def sqlite_values(self, column: pa.Array | pa.ChunkedArray) -> list[Any]:
        """The values of an `arrow` column, as SQLite stores them without loss."""
        return self.texts(column, full_precision=True).to_pylist()

    def of_sqlite(self, value: Any) -> Any:
        """What a cell other than text means; `take` decides whether it is a value of the type."""
        return value

    # Spark

    def spark(self) -> str:
        """Its Spark type, as DDL."""
        raise NotImplementedError

    def to_spark(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """A column as values of the Spark type."""
        return column

    def of_spark(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """A column of a Parquet file that Spark wrote as its type of this name: the file's own type may say
        less."""
        return column

    def spark_words(self, values: pa.Array) -> Any:
        """The integers that Spark's hash reads."""
        return values.to_numpy(zero_copy_only=False)

    # Helpers for types

    def wrong_column(self, values: pa.Array) -> BadValue:
        return BadValue(0, is_not(values[0].as_py(), self))

    def require(self, good: Any, values: pa.Array, reason: str | None = None) -> None:
        """REQUIRES: one truth value for each row."""
        if not np.all(good):
            row = int(np.argmin(good))
            shown = values[row].as_py()
            raise BadValue(row, f"{shown} {reason}" if reason else is_not(shown, self))
