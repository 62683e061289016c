"""Owns functions that compile to processor instructions, each defined next to its callers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Operation:
    """Compiles to instructions.  numba is imported when it asks for their type.

    `meaning`: the same for a call from Python.
    """

    def __init__(self, define: Callable[..., Any], meaning: Callable[..., Any] | None = None):
        self._define, self._meaning = define, meaning
        self._type: Any = None

    @property
    def _numba_type_(self) -> Any:
        if self._type is None:
            import numba

            make: Any = numba.extending.intrinsic
            self._made = make(self._define)  # numba holds it weakly
            context = numba.core.registry.cpu_target.typing_context
            context.refresh()
            self._type = context.resolve_value_type(self._made)
        return self._type

    def __call__(self, *args: Any) -> Any:
        if self._meaning is None:
            raise TypeError("only kernels can call this")
        return self._meaning(*args)
