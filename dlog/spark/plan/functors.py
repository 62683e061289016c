"""Owns the refusal of functors where rules run in other processes: only this one has their functions."""

from __future__ import annotations

from collections.abc import Iterable

from dlog.errors import UnsupportedError
from dlog.ir.functors import used_functors
from dlog.ir.rules import Rule


def refuse_functors(rules: Iterable[Rule], option: str) -> None:
    """Raises if rules use a functor; `option` is what asks for other processes."""
    for name, span in used_functors(rules).items():
        message = f"@{name} cannot be called in other processes: its function is in this one alone"
        raise UnsupportedError(message, span=span, help=f"leave out {option}")
