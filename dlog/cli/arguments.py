"""Owns the command line as it is typed, before a command takes it: short forms, and options of Soufflé that
have another name here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from dlog.errors import DlogError

# Soufflé's options that have another name here, or no meaning, and what to write.
_ELSEWHERE = {
    "-p": "for a profile write --profile PAGE.html",
    "-t": "for a derivation of a fact write dlog why PROGRAM.dl 'fact(1, 2)'",
    "--provenance": "for a derivation of a fact write dlog why PROGRAM.dl 'fact(1, 2)'",
    "-c": "programs need no compilation: leave it out",
    "--compile": "programs need no compilation: leave it out",
    "-o": "programs need no compilation: leave it out",
    "--dl-program": "programs need no compilation: leave it out",
    "-g": "programs need no compilation: leave it out",
    "--fact-dir": "the folder of facts is given by -F or --facts",
    "--output-dir": "the folder of outputs is given by -D or --output",
    "--show": "dlog explain PROGRAM.dl shows how rules are evaluated",
}


def completed(arguments: list[str], commands: Collection[str]) -> list[str]:
    """`dlog PROGRAM.dl` is `dlog run PROGRAM.dl`, with options before or after the program.

    >>> completed(["-F", "facts", "a.dl"], ["run"])
    ['run', '-F', 'facts', 'a.dl']
    >>> completed(["chekc", "a.dl"], ["run", "check"])
    ['chekc', 'a.dl']
    """
    if arguments and _begins_run(arguments[0], commands) and any(map(_is_program, arguments)):
        arguments = ["run", *arguments]
    if arguments[:1] == ["run"]:
        _refuse_foreign(arguments[1:])
    return arguments


def _begins_run(first: str, commands: Collection[str]) -> bool:
    """Another word that is neither is a misspelt command."""
    return first not in commands and (first.startswith("-") or _is_program(first))


def _is_program(argument: str) -> bool:
    return not argument.startswith("-") and Path(argument).suffix == ".dl"


def _refuse_foreign(options: list[str]) -> None:
    for option in options:
        name = option.partition("=")[0]
        short = option[:2] if option[:1] == "-" and option[:2] != "--" else name
        if short in _ELSEWHERE:
            raise DlogError(f"unknown option {short}", help=_ELSEWHERE[short])


def read_jobs(text: str | int) -> int:
    """A number of cores; `auto`: all that this process may use."""
    import os

    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise DlogError(f"bad number of cores: {text}", help="write 1 or more, or auto")
    return number


_MACRO = re.compile(r"[A-Za-z_]\w*(?:\([\w, ]*\))?", re.ASCII)


def read_macros(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Names, perhaps with parameters, and values; without a value it is 1, as in C.

    >>> read_macros(["N=3", "DEBUG"])
    (('N', '3'), ('DEBUG', '1'))
    """
    pairs = []
    for text in texts:
        name, equal, value = text.partition("=")
        if _MACRO.fullmatch(name) is None:
            raise DlogError(f"bad macro: {text}", help="write -M NAME=VALUE")
        pairs.append((name, value if equal else "1"))
    return tuple(pairs)


def read_folders(folders: Iterable[Path]) -> tuple[Path, ...]:
    found = tuple(folders)
    for folder in found:
        if not folder.is_dir():
            raise DlogError(f"no such folder: {folder}", help="-I names a folder of included files")
    return found
