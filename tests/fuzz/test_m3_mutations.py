"""Mutants of the shipped M3 programs: read, checked, printed, converted and made ready to run, or errors with
a place in the text; nothing else.

A failure names its seed; `python tests/fuzz/test_m3_mutations.py SEED` shows that mutant.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from mutations import mutant, new_seeds, programs

from dlog.errors import DlogError, DlogErrors, UnsupportedError
from dlog.language.source import decode
from dlog.m3 import check, convert, parse, print_program
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast


def check_mutant(seed: int) -> str:
    """What became of a mutant: `syntax` or `meaning` for the phase that refused it, or `right`."""
    name, text = mutant(seed, ".m3")
    try:
        return _read(name, text)
    except BaseException as error:
        error.add_note(f"seed {seed}, a mutant of {name}")
        raise


def _read(name: str, text: str | bytes) -> str:
    try:
        text = decode(text, name) if isinstance(text, bytes) else text
        program = parse(text, name)
    except DlogError as error:
        _check_places(error, name)
        return "syntax"
    assert parse(print_program(program), name, program.dialect) == program
    other = ast.DBTOASTER if program.dialect == ast.A5 else ast.A5
    try:
        converted = convert(program, other)
        assert parse(print_program(converted), name, other) == converted
    except DlogError as error:
        _check_places(error, name)
    try:
        checked = check(program)
    except DlogError as error:
        _check_places(error, name)
        return "meaning"
    try:
        Runtime(checked, checked=True)
    except UnsupportedError as error:
        _check_places(error, name)
    return "right"


def _check_places(error: DlogError, name: str) -> None:
    for one in error.errors if isinstance(error, DlogErrors) else [error]:
        assert one.span is not None, f"no place: {one.message}"
        assert one.file == name and one.line is not None and one.column is not None
        assert one.render().encode()


def test_the_shipped_programs_are_right() -> None:
    """Without this, mutants could all fail for one and the same reason."""
    good = [path for path in programs(".m3") if "/errors/" not in path]
    assert len(good) > 10
    for path in good:
        assert _read(path, Path(path).read_text(encoding="utf-8")) == "right"


def test_some_mutants() -> None:
    outcomes = Counter(check_mutant(seed) for seed in range(120))
    assert min(outcomes[kind] for kind in ("syntax", "meaning", "right")) > 2


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_mutants() -> None:
    for seed in new_seeds():
        check_mutant(seed)


if __name__ == "__main__":
    print(mutant(int(sys.argv[1]), ".m3")[1])
