"""M3, the trigger language: read, check, print, run.

>>> from dlog import m3
>>> program = m3.check(m3.parse("CREATE TABLE S(a int); DECLARE QUERY Q := AggSum([], S(a) * a);"))
>>> program.dialect
'dbtoaster'
"""

from __future__ import annotations

from dlog.m3.parse import parse, parse_file
from dlog.m3.typecheck import check

__all__ = ["check", "parse", "parse_file"]
