"""Owns the checking of random programs in tests of evaluation: a program that is refused is passed over.

That nearly all are accepted is asserted where programs are generated.
"""

from __future__ import annotations

from hypothesis import reject

import dlog
from dlog.errors import SourceError
from dlog.ir.rules import Program


def accepted(text: str) -> Program:
    try:
        return dlog.check(text)
    except SourceError:
        reject()
