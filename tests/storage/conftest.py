"""Storage tests run with real pages, and once more in their own process with tiny ones (test_tiny_pages)."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator

import pytest

import dlog.storage
from dlog import jit

TINY = os.environ.get("DLOG_TINY_PAGES") == "1"
TINY_CONSTANTS = {
    "LEAF_ROWS": 8,
    "FANOUT": 4,
    "NODE_FIRST": 4 + 4 * 4,
    "NODE_SCAN": 4 + 4 * 4 + 4,
    "FOLD_BITS": 1,
    "FOLD": 2,
    "FOLD_MASK": 1,
    "BUNCH": 4,
}


def _shrink_pages() -> None:
    """Kernels read page sizes from their modules; uncompiled, they see a change."""
    assert jit.DISABLED, "compiled kernels have their page sizes built in"
    shrunk = set()
    for info in pkgutil.walk_packages(dlog.storage.__path__, "dlog.storage."):
        module = importlib.import_module(info.name)
        for name, value in TINY_CONSTANTS.items():
            if hasattr(module, name):
                setattr(module, name, value)
                shrunk.add((info.name, name))
    assert ("dlog.storage.index.leaf_kernels", "LEAF_ROWS") in shrunk, "no kernel has smaller pages"


if TINY:
    _shrink_pages()


@pytest.fixture(autouse=True, scope="session")
def one_signature_per_kernel() -> Iterator[None]:
    """After all storage tests: no kernel was compiled for two kinds of arguments."""
    yield
    counts = jit.compiled_kernels()
    for name in ("_pointer", "_pointer_at"):  # with checks of bounds they take any array
        counts.pop(f"dlog.jit.pointers.{name}", None)
    several = {name: n for name, n in counts.items() if n > 1}
    assert not several, several
