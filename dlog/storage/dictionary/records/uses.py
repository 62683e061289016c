"""Owns who uses records: evaluations in progress, and objects that keep codes between them.

While something is evaluated, in any thread, there are records that nothing keeps yet: nothing is collected.
Otherwise all that is in use is what holders keep: databases, snapshots, results, commits, open transactions.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from dlog.jit import Words

_LOCK = threading.RLock()
_evaluations = 0  # of all databases of the process


class Holder(Protocol):
    def held_records(self) -> Iterable[Words]:
        """Codes of the records that it keeps; others may be among them."""


@contextmanager
def in_use() -> Iterator[None]:
    """No records are collected meanwhile."""
    global _evaluations
    with _LOCK:
        _evaluations += 1
    try:
        yield
    finally:
        with _LOCK:
            _evaluations -= 1


@contextmanager
def alone() -> Iterator[bool]:
    """Whether nothing is evaluated; nothing is begun meanwhile."""
    with _LOCK:
        yield _evaluations == 0


class Holders:
    """Objects that keep codes, as long as they exist."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Holder]] = {}

    def add(self, holder: Holder) -> None:
        known, key = self._known, id(holder)

        def forget(reference: weakref.ref[Holder]) -> None:
            if known.get(key) is reference:
                del known[key]

        with _LOCK:
            known[key] = weakref.ref(holder, forget)

    def codes(self) -> Iterator[Words]:
        """What all of them keep."""
        for reference in list(self._known.values()):
            holder = reference()
            if holder is not None:
                yield from holder.held_records()
