"""Owns implementations of functors: functions and classes in Python, by name.

    @dlog.function                      called for each distinct row of arguments, with Python values
    @dlog.function(vectorized=True)     called once with numpy arrays; "arrow": with Arrow arrays
    @dlog.function(numba=True)          compiled by numba, then as one on numpy arrays
    @dlog.aggregate                     a class with `insert` and `result`, perhaps `erase` and `merge`

Knows nothing of columns: `dlog.column_functions.functions` calls functions.  Imports nothing heavy, since
`dlog check` reads declarations only.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from dlog.errors import DlogError, SourceError
from dlog.ir.functors import Functor
from dlog.language.source import Span
from dlog.values import TYPES, Type

ROWS, NUMPY, ARROW, NUMBA = "rows", "numpy", "arrow", "numba"

# What an annotation says of the type of a value; any other says nothing.
_ANNOTATED: dict[Any, tuple[str, ...]] = {
    hint: tuple(type.name for type in TYPES if type.python[:1] == (hint,))
    for hint in dict.fromkeys(type.python[0] for type in TYPES if type.python)
}
_COMPILED = ("int", "unsigned", "float", "bool")  # the types that numba computes with


@dataclass(frozen=True)
class Function:
    """A function in Python under a name; `way` says how it is called."""

    name: str
    code: Callable[..., Any]
    way: str = ROWS

    def __call__(self, *args: Any) -> Any:
        return self.code(*args)

    def __str__(self) -> str:
        ways = {ROWS: "for each row", NUMPY: "on numpy arrays", ARROW: "on Arrow arrays", NUMBA: "by numba"}
        return f"{getattr(self.code, '__qualname__', self.name)}, called {ways[self.way]}"


@dataclass(frozen=True)
class AggregateClass:
    """A class of group states under a name: `insert(x)` and `result()`, perhaps `erase(x)` and
    `merge(other)`.  If it is `vectorized`, `insert` and `erase` take numpy arrays."""

    name: str
    code: Callable[[], Any]
    vectorized: bool = False

    def __call__(self) -> Any:
        return self.code()

    @property
    def erases(self) -> bool:
        return callable(getattr(self.code, "erase", None))

    @property
    def merges(self) -> bool:
        return callable(getattr(self.code, "merge", None))

    def __str__(self) -> str:
        how = "insert and erase" if self.erases else "insert alone: groups that lose rows are computed again"
        return f"{getattr(self.code, '__qualname__', self.name)}, with {how}"


Implementation = Function | AggregateClass

# Of this process, by name: what the decorators have registered.
REGISTERED: dict[str, Implementation] = {}


def function(
    code: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    vectorized: bool | str = False,
    numba: bool = False,
) -> Any:
    """A decorator: registers a function as the implementation of the functor of its name.

    >>> @function
    ... def initial(name: str) -> str:
    ...     return name[:1]
    >>> initial("Ada"), REGISTERED.pop("initial").name
    ('A', 'initial')
    """

    def register(code: Callable[..., Any]) -> Function:
        made = Function(_name(code, name), _plain(code), _way(code, vectorized, numba))
        REGISTERED[made.name] = made
        return made

    return register if code is None else register(code)


def aggregate(code: Any = None, *, name: str | None = None, vectorized: bool = False) -> Any:
    """A decorator: registers a class as the implementation of the aggregate of its name."""

    def register(code: Any) -> Any:
        made = AggregateClass(_name(code, name), _with_methods(code), vectorized)
        REGISTERED[made.name] = made
        return code

    return register if code is None else register(code)


def register_function(code: Any, name: str | None = None, **options: Any) -> None:
    """The same as the decorators, for a function, or a class of an aggregate, that exists."""
    if isinstance(code, Implementation):
        REGISTERED[name or code.name] = code
    else:
        (aggregate if _is_aggregate(code) else function)(code, name=name, **options)


def _name(code: Any, name: str | None) -> str:
    found = name or str(getattr(code, "__name__", ""))
    if not found.replace(".", "_").isidentifier():
        raise DlogError(f"{code!r} has no name", help="give it one: name=...")
    return found


def _way(code: Any, vectorized: bool | str, numba: bool) -> str:
    if not callable(code):
        raise TypeError(f"a function must be callable, not {code!r}")
    if numba or hasattr(code, "py_func"):
        return NUMBA
    if vectorized not in (True, False, NUMPY, ARROW):
        raise DlogError(f"vectorized is {vectorized!r}", help='it is True, which is "numpy", or "arrow"')
    return ARROW if vectorized == ARROW else NUMPY if vectorized else ROWS


def _plain(code: Any) -> Callable[..., Any]:
    """The Python function that numba has compiled."""
    return getattr(code, "py_func", code)


def _is_aggregate(code: Any) -> bool:
    return isinstance(code, type) and callable(getattr(code, "insert", None))


def _with_methods(code: Any) -> Any:
    for method in ("insert", "result"):
        if not callable(getattr(code, method, None)):
            help = "an aggregate is a class with insert(x) and result(), perhaps erase(x) and merge(other)"
            raise DlogError(f"the aggregate {getattr(code, '__name__', code)} has no {method}", help=help)
    return code


def implementation(name: str, code: Any) -> Implementation:
    """What a caller gives for a functor: a function, a class, or what the decorators gave."""
    if isinstance(code, Implementation):
        return code
    if isinstance(code, type):
        return AggregateClass(name, _with_methods(code), _is_vectorized(code))
    return Function(name, _plain(code), _way(code, False, False))


def _is_vectorized(code: type) -> bool:
    """Whether a decorator has said so of a class: it returns the class as it is."""
    made = REGISTERED.values()
    return any(isinstance(one, AggregateClass) and one.code is code and one.vectorized for one in made)


@dataclass
class Implementations:
    """The implementations that one database knows: its own, then those of the process."""

    own: Mapping[str, Implementation] = field(default_factory=dict)
    declared: dict[str, Functor] = field(default_factory=dict)  # what programs of the database use

    @classmethod
    def of(cls, given: Mapping[str, Any] | Iterable[Any] | None) -> Implementations:
        """From `{"f": f}`, or from what decorators gave."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            given = {getattr(code, "name", getattr(code, "__name__", "")): code for code in given}
        return cls({name: implementation(name, code) for name, code in given.items()})

    def find(self, name: str) -> Implementation | None:
        return self.own.get(name) or REGISTERED.get(name)

    def bind(self, functors: Mapping[str, Functor], used: Mapping[str, Span | None]) -> None:
        """Raises unless each functor that is used has an implementation that fits its declaration."""
        for name, span in used.items():
            for message, help in _faults(functors[name], self.find(name)):
                raise SourceError(message, span=functors[name].span or span, help=help)
            self.declared[name] = functors[name]


def _faults(functor: Functor, found: Implementation | None) -> Iterator[tuple[str, str]]:
    name = functor.name
    if found is None:
        what = "aggregate" if functor.aggregate else "functor"
        how = f"@dlog.{'aggregate' if functor.aggregate else 'function'}"
        help = f"write it in Python with {how}: dlog ... --functions FILE.py, or Database(functions={{..}})"
        yield f"there is no implementation of the {what} {name}", help
    elif functor.aggregate and not isinstance(found, AggregateClass):
        yield f"{name} is implemented by a function", "an aggregate is a class with insert(x) and result()"
    elif not functor.aggregate and not isinstance(found, Function):
        yield f"{name} is implemented by a class of an aggregate", f"declare it: .functor {functor} aggregate"
    elif isinstance(found, Function):
        yield from _misfits(functor, found)


def _misfits(functor: Functor, found: Function) -> Iterator[tuple[str, str]]:
    """Where the parameters and annotations of a function differ from a declaration."""
    if found.way == NUMBA:
        for type in (*functor.inputs, functor.result):
            if type.name not in _COMPILED:
                yield f"numba cannot compute with {type.called}", f"its types are {', '.join(_COMPILED)}"
    try:
        signature = inspect.signature(found.code)
        signature.bind(*functor.inputs)
    except ValueError:  # one of C, without a signature
        return
    except TypeError:
        message = f"the function {found.name} does not take {len(functor.inputs)} arguments"
        yield message, f"it is declared as .functor {functor}"
        return
    if found.way in (ROWS, NUMBA):
        hints = _hints(found.code)
        places = [*zip(signature.parameters, functor.inputs, strict=False), ("return", functor.result)]
        for place, type in places:
            allowed = _annotated(hints.get(place))
            if allowed is not None and type.name not in allowed:
                what = "its result" if place == "return" else place
                message = f"the function {found.name} says that {what} is {' or '.join(allowed)}"
                yield message, f"it is declared as .functor {functor}"


def _hints(code: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(code)
    except Exception:  # annotations may be anything
        return {}


def _annotated(hint: Any) -> tuple[str, ...] | None:
    """The types that an annotation allows; None: any."""
    hints = [h for h in typing.get_args(hint) if h is not NoneType] or [hint]
    return _ANNOTATED.get(hints[0]) if len(hints) == 1 else None


def fitting(functor: Functor, type: Type) -> Type:
    """The type that results are checked against: the declared one has the digits of decimals."""
    return functor.result if functor.result.name == type.name else type
