"""dlog: a Datalog engine whose answers stay up to date.

>>> import dlog
>>> program = dlog.check("reach(x, y) <- edge(x, y).  edge(1, 2).")
>>> [column.type.name for column in program.predicates["reach"].columns]
['int', 'int']
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dlog.errors import (
    ConstraintError,
    DataError,
    DlogError,
    DlogErrors,
    FunctionError,
    LimitError,
    PlanError,
    SourceError,
    StoreError,
    SubscriberError,
    UnsupportedError,
    VerifyError,
)

if TYPE_CHECKING:
    from dlog.durable.database import Database
    from dlog.engine.state.limits import Limits
    from dlog.implementations import aggregate, function, register_function
    from dlog.ir.rules import Program
    from dlog.language import ast
    from dlog.values import Branch
    from dlog.views.regression import regression

__version__ = "0.1.0"

__all__ = [
    "Branch",
    "ConstraintError",
    "DataError",
    "Database",
    "DlogError",
    "DlogErrors",
    "FunctionError",
    "LimitError",
    "Limits",
    "PlanError",
    "SourceError",
    "StoreError",
    "SubscriberError",
    "UnsupportedError",
    "VerifyError",
    "aggregate",
    "check",
    "function",
    "parse",
    "register_function",
    "regression",
]


def __getattr__(name: str) -> object:
    """The engine is imported when it is first used: checking and formatting do without it."""
    if name == "Database":
        from dlog.durable.database import Database

        return Database
    if name == "Branch":
        from dlog.values import Branch

        return Branch
    if name == "Limits":
        from dlog.engine.state.limits import Limits

        return Limits
    if name == "regression":
        from dlog.views.regression import regression

        return regression
    if name in ("aggregate", "function", "register_function"):
        from dlog import implementations

        return getattr(implementations, name)
    if name == "m3":
        import importlib

        return importlib.import_module("dlog.m3")
    raise AttributeError(f"module 'dlog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def parse(text: str, name: str = "<string>") -> ast.Program:
    """The syntax tree of a program text; raises `SourceError` (or `DlogErrors`) when it is not one."""
    from dlog.language.parse import parse

    return parse(text, name)


def check(text: str | Path, name: str = "<string>") -> Program:
    """The checked program of a text, or of a file when a `Path` is given."""
    from dlog.ir.check import load_program
    from dlog.language.source import read_source, text_source

    return load_program(read_source(text) if isinstance(text, Path) else text_source(text, name))[1]
