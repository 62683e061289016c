"""Owns what a command gives to all programs that it reads: folders of included files, and macros."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Surroundings:
    """`macros` are pairs of a name, perhaps with parameters, and a value."""

    folders: tuple[Path, ...] = ()
    macros: tuple[tuple[str, str], ...] = ()


_NOTHING = Surroundings()
_CURRENT: ContextVar[Surroundings] = ContextVar("surroundings", default=_NOTHING)


def use(surroundings: Surroundings) -> None:
    _CURRENT.set(surroundings)


def current() -> Surroundings:
    return _CURRENT.get()
