"""M3, the trigger language: read, check, print, run.

>>> from dlog import m3
>>> program = m3.check(m3.parse("CREATE TABLE S(a int); DECLARE QUERY Q := AggSum([], S(a) * a);"))
>>> program.dialect
'dbtoaster'
"""

from __future__ import annotations

from typing import Any

from dlog.m3.convert import convert
from dlog.m3.functions import register_function
from dlog.m3.parse import parse, parse_file
from dlog.m3.print import print_program
from dlog.m3.typecheck import check

__all__ = [
    "check",
    "check_axioms",
    "convert",
    "parse",
    "parse_file",
    "print_program",
    "product_ring",
    "register_function",
    "register_ring",
]

_LATER = {
    "check_axioms": "dlog.m3.ring_axioms",
    "product_ring": "dlog.m3.rings",
    "register_ring": "dlog.m3.rings",
}


def __getattr__(name: str) -> Any:
    """What needs kernels is imported when it is first asked for: parsing and checking do without."""
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'dlog.m3' has no attribute {name!r}")
