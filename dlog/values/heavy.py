"""Owns the heavy libraries of the types: numpy and Arrow, each loaded when first used.

`dlog check` and `dlog format` know the types and must not load pyarrow.  A module of this package writes
`from dlog.values.heavy import np, pa, pc` and uses the names inside functions only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
else:

    class Lazy:
        """A module that is imported when the first attribute is read; attributes are cached."""

        def __init__(self, name: str):
            self.__dict__["__name__"] = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self.__dict__["__name__"]), attribute)
            self.__dict__[attribute] = value
            return value

    np, pa, pc = Lazy("numpy"), Lazy("pyarrow"), Lazy("pyarrow.compute")

__all__ = ["np", "pa", "pc"]
