"""Mutants of the shipped programs: success, or errors with a place in the text; nothing else, and soon.

A failure names its seed; `python tests/fuzz/test_mutations.py SEED` shows that mutant and what becomes of it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from mutations import mutant, new_seeds, programs

import dlog
from dlog.errors import DlogError, DlogErrors
from dlog.language.ast import Facts
from dlog.language.format import format_program
from dlog.language.parse import parse
from dlog.language.source import decode

# Of processor time for one mutant; the unchanged programs take a few hundredths.  Macros may expand to a few
# hundred thousand tokens before they are stopped, and pcpp is slow.
SECONDS, SECONDS_WITH_MACROS = 1.0, 5.0


def check_mutant(seed: int) -> str:
    """What became of a mutant: `syntax` or `meaning` for the phase that refused it, or `right`."""
    name, text = mutant(seed)
    with_macros = b"#" in text if isinstance(text, bytes) else "#" in text
    limit = SECONDS_WITH_MACROS if with_macros else SECONDS
    try:
        start = time.process_time()
        outcome = _read(name, text)
        if time.process_time() - start >= limit:  # once more, in case something was loaded
            start = time.process_time()
            _read(name, text)
            assert time.process_time() - start < limit, "took too long"
        return outcome
    except BaseException as error:
        error.add_note(f"seed {seed}, a mutant of {name}")
        raise


def _read(name: str, text: str | bytes) -> str:
    """Parses, checks and formats; every error must have its place in the text."""
    try:
        text = decode(text, name) if isinstance(text, bytes) else text
        program = parse(text, name)
    except DlogError as error:
        _check_places(error, name)
        with pytest.raises(DlogError) as caught:  # which examines the statements that can be read, too
            dlog.check(text, name) if isinstance(text, str) else decode(text, name)
        _check_places(caught.value, name)
        return "syntax"
    program.span.source.check()
    for statement in program.statements:
        if isinstance(statement, Facts):
            statement.check()
    assert parse(format_program(program), name) == program
    try:
        dlog.check(text, name)
    except DlogError as error:
        _check_places(error, name)
        return "meaning"
    return "right"


def _check_places(error: DlogError, name: str) -> None:
    for one in error.errors if isinstance(error, DlogErrors) else [error]:
        assert one.span is not None, f"no place: {one.message}"
        # A mutant may include another of the programs, and its errors are there.
        assert one.file == name or one.file in programs() or Path(str(one.file)).is_file()
        source = one.span.source  # type: ignore[attr-defined]
        start, end = one.span.start, one.span.end  # type: ignore[attr-defined]
        assert 0 <= start <= end <= len(source.text) + 1
        line = source.origin(source.position(start)[0]).text
        assert one.column is not None and 1 <= one.column <= len(line) + 1
        assert one.render().encode()


def test_the_shipped_programs_are_right() -> None:
    """Without this, mutants could all fail for one and the same reason."""
    good = [path for path in programs() if "/errors/" not in path]
    assert len(good) > 30
    for path in good:
        dlog.check(Path(path))


def test_some_mutants() -> None:
    outcomes = Counter(check_mutant(seed) for seed in range(250))
    assert min(outcomes[kind] for kind in ("syntax", "meaning", "right")) > 10


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_mutants() -> None:
    for seed in new_seeds():
        check_mutant(seed)


if __name__ == "__main__":
    shown_name, shown = mutant(int(sys.argv[1]))
    print(shown)
    try:
        dlog.check(decode(shown, shown_name) if isinstance(shown, bytes) else shown, shown_name)
    except DlogError as shown_error:
        print(shown_error.render())
