"""Owns the checking of random programs in tests of evaluation: a program that is refused is passed over.

That nearly all are accepted is asserted where programs are generated.
"""

from __future__ import annotations

from functools import lru_cache

from hypothesis import reject

import dlog
from dlog.errors import DlogErrors, SourceError
from dlog.ir.rules import Program


def accepted(text: str) -> Program:
    program = checked(text)
    if program is None:
        reject()
    return program


@lru_cache(maxsize=8)
def checked(text: str) -> Program | None:
    """None where it is refused.  A test asks for its program several times, and changes nothing in it."""
    try:
        return dlog.check(text)
    except (SourceError, DlogErrors):
        return None
