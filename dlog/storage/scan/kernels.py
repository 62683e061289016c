"""Owns the kernels for scans that Python calls.  Each passes bare pointers to the helper of the same name.

Their effects, requirements and costs are documented at the helpers.
"""

from __future__ import annotations

from dlog.jit import Words, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.scan import scan_kernels


@kernel
def scan_rows(A: Words, root: int, lower: int, d: int, upper: int, e: int, column: int) -> int:
    return scan_kernels.scan_rows(pointer(A), root, lower, d, upper, e, column)
