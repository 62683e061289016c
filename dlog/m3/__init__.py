"""M3, the trigger language: read, check, print, run.

>>> from dlog import m3
>>> program = m3.check(m3.parse("CREATE TABLE S(a int); DECLARE QUERY Q := AggSum([], S(a) * a);"))
>>> program.dialect
'dbtoaster'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse, parse_file
from dlog.m3.syntax.print import print_program
from dlog.m3.types.functions import register_function
from dlog.m3.types.typecheck import check

if TYPE_CHECKING:
    from dlog.m3.runtime.runtime import Runtime

__all__ = [
    "Runtime",
    "check",
    "check_axioms",
    "convert",
    "matrix_ring",
    "parse",
    "parse_file",
    "print_program",
    "product_ring",
    "register_function",
    "register_ring",
    "run",
]

_LATER = {
    "Runtime": "dlog.m3.runtime.runtime",
    "check_axioms": "dlog.m3.rings.axioms",
    "matrix_ring": "dlog.m3.rings.matrices",
    "product_ring": "dlog.m3.rings.rings",
    "register_ring": "dlog.m3.rings.registry",
}


def run(program: ast.Program, batches: Iterable[tuple[Any, ...]] = ()) -> Runtime:
    """Run a program over batches: each is (relation, rows) or (relation, rows, multiplicities).

    Rows of tables come first.  The result has every query and map by its name, as Arrow tables.

    >>> program = parse('''
    ...     CREATE STREAM R(a int, b int); DECLARE MAP Q(long)[][b: int] := 0;
    ...     DECLARE QUERY TOTAL := AggSum([], Q(long)[][b]);
    ...     ON BATCH UPDATE OF R { Q(long)[][b] += AggSum([b], (DELTA R)(a, b) * a); }''')
    >>> done = run(program, [("R", [(1, 7), (2, 8)]), ("R", [(1, 7)], [-1])])
    >>> done["Q"].to_pylist(), done["TOTAL"].to_pylist()
    ([{'b': 8, 'value': 2}], [{'value': 2}])
    """
    from dlog.m3.runtime.runtime import Runtime

    runtime = Runtime(program)
    tables = {source.name for source in program.sources if source.kind == ast.TABLE}
    for relation, *rest in batches:
        if relation in tables:
            runtime.load(relation, *rest)
        else:
            runtime.apply(relation, *rest)
    runtime.ready()
    return runtime


def __getattr__(name: str) -> Any:
    """Parts that need kernels are imported when first used: parsing and checking do without."""
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'dlog.m3' has no attribute {name!r}")
