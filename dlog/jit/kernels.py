"""Owns what `@kernel` and `@helper` make of a function, and how a call finds machine code.

A call goes to the kernel's image.  If there can be none, it goes to numba: for kernels of modules outside
dlog, with checks of array bounds, and when images cannot be made (with a note on standard error).
Uncompiled, decorators return the function itself.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from dlog.jit import cache
from dlog.jit.cache import BOUNDSCHECK, DISABLED

Words: TypeAlias = npt.NDArray[np.int64]  # most kernels work on nothing else
Floats: TypeAlias = npt.NDArray[np.float64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
F = TypeVar("F", bound=Callable[..., Any])

# What a parameter of a kernel can be.
KINDS = ("Words", "Floats", "Bytes", "Bools", "int", "float")

# Every kernel and helper in order of definition.
KERNELS: list[Any] = []


def kernel(function: F) -> F:
    """Compile a pure function over arrays of numbers.  Its parameters are annotated by KINDS.

    Compiled code releases the GIL and divides as numpy does (no exception).
    """
    return _compiled(function, is_entry=True)


def helper(function: F) -> F:
    """A kernel that only kernels call, compiled with them."""
    return _compiled(function, is_entry=False)


def _compiled(function: Any, is_entry: bool) -> Any:
    compiled = function if DISABLED else Kernel(function, is_entry)
    KERNELS.append(compiled)
    return compiled


def compiled_kernels() -> dict[str, int]:
    """For how many signatures each kernel of this process is ready."""
    return {f"{k.__module__}.{k.__name__}": getattr(k, "signature_count", 0) for k in KERNELS}


class Kernel:
    """A function that runs as machine code.  Calls cost 0.1 us more than the machine code's own wrapper."""

    def __init__(self, function: Any, is_entry: bool):
        self.py_func = function
        self.is_entry = is_entry
        self.__module__ = function.__module__
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.target: Any = self._first_call
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        return self.target(*args)

    def __repr__(self) -> str:
        return f"<{'kernel' if self.is_entry else 'helper'} {self.__module__}.{self.__name__}>"

    @property
    def kinds(self) -> list[str]:
        """The kind of each parameter.  A missing or different annotation is a mistake in the kernel's
        source.
        """
        code = self.py_func.__code__
        names = code.co_varnames[: code.co_argcount]
        kinds = [str(self.py_func.__annotations__.get(name)) for name in names]
        for name, kind in zip(names, kinds, strict=True):
            if kind not in KINDS:
                raise TypeError(f"{self}: parameter {name} needs one of the annotations {', '.join(KINDS)}")
        return kinds

    @property
    def source(self) -> Path:
        return Path(self.py_func.__code__.co_filename)

    @property
    def signature_count(self) -> int:
        if self._dispatcher is not None:
            return len(self._dispatcher.signatures)
        return int(self.target != self._first_call)

    @property
    def dispatcher(self) -> Any:
        """numba's form of the function, made when numba first asks for it."""
        if self._dispatcher is None:
            from dlog.jit.dispatch import make_dispatcher

            self._dispatcher = make_dispatcher(self.py_func, self.source, self.is_entry)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """How numba types the name of a kernel in another kernel's source."""
        from dlog.jit.dispatch import dispatcher_type

        return dispatcher_type(self.dispatcher)

    def _first_call(self, *args: Any) -> Any:
        if not self.is_entry:
            raise TypeError(f"{self} can only be called by kernels")
        with _loading:
            if self.target == self._first_call:
                _find_code(self)
        return self.target(*args)


_loading = threading.Lock()
_no_images = False  # they could not be made: numba compiles in this process


def _find_code(wanted: Kernel) -> None:
    """Set the target of the kernel."""
    global _no_images
    if BOUNDSCHECK or _no_images or not cache.is_ours(wanted.source):
        wanted.target = wanted.dispatcher
        return
    from dlog.jit import image

    try:
        wanted.target = image.function_of(wanted.__module__, wanted.source, wanted.__name__)
    except image.NoImage as error:
        print(f"kernels are compiled at their first call: {error}", file=sys.stderr)
        _no_images = True
        wanted.target = wanted.dispatcher
