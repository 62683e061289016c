"""Error messages of M3 are golden files: `programs/m3/errors/FAULT.m3` has its exact output in `.stderr`.

`FAULT.a5.m3` is checked as a5, `FAULT.dbtoaster.m3` as dbtoaster; else the dialect is what the text shows.
`python -m tests.m3.test_m3_errors` writes the golden files again; read the difference before committing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_errors import ROOT, _recording, _sites, command, name_of

PROGRAMS = sorted((ROOT / "programs" / "m3" / "errors").glob("*.m3"))
FRONT_END = ("convert.py", "syntax/*.py", "types/*.py")


def said(program: Path) -> tuple[str, str, object]:
    dialect = program.suffixes[0][1:] if len(program.suffixes) == 2 else None
    options = ["--dialect", dialect] if dialect else []
    return command("m3-check", name_of(program), *options)


def golden(program: Path) -> Path:
    return program.with_suffix(".stderr")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_golden_messages(program: Path) -> None:
    assert said(program) == ("", golden(program).read_text(encoding="utf-8"), 1)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_golden_form(program: Path) -> None:
    """Each error has its place, its line, and carets under it; no place is given twice for one message."""
    lines = golden(program).read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if ": error: " in line]
    assert heads and len(heads) == len(set(heads))
    for line in heads:
        file, row, column = line.split(": error: ")[0].rsplit(":", 2)
        assert (ROOT / file).is_file() and int(row) > 0 and int(column) > 0
    assert not [line for line in lines if "None" in line]


def test_every_message_has_a_golden_file() -> None:
    recorded: set[tuple[str, int]] = set()
    with _recording(recorded):
        for program in PROGRAMS:
            said(program)
    missing = {
        f"{file.stem}: {file.read_text(encoding='utf-8').splitlines()[first - 1].strip()}"
        for file in _front_end()
        for first, last in _sites(file)
        if not any((str(file), line) in recorded for line in range(first, last + 1))
    }
    found = [(line, start) for line in sorted(missing) for start in ELSEWHERE if line.startswith(start)]
    assert [line for line, _ in found] == sorted(missing)
    assert {start for _, start in found} == ELSEWHERE


# Not mistakes of a text: dialects that a caller names, trees that cannot be printed, registered functions.
ELSEWHERE = {
    'dialects: raise DlogError(f"unknown dialect',
    'functions: raise DlogError(f"unknown kind',
    'functions: raise DlogError(f"{name} is already a function',
    'print: raise SourceError(f"M3 has no word',
    'print: raise SourceError(f"{text!r} cannot be written',
    'dialect_support: self.diagnostics.error(f"variable {name} is not in lower case',
    'dialect_support: self.diagnostics.error(f"{name!r} is not a name',
}


def _front_end() -> Iterator[Path]:
    for pattern in FRONT_END:
        yield from sorted((ROOT / "dlog" / "m3").glob(pattern))


if __name__ == "__main__":
    for path in PROGRAMS:
        text = said(path)[1]
        if not golden(path).exists() or golden(path).read_text(encoding="utf-8") != text:
            golden(path).write_text(text, encoding="utf-8")
            print(f"wrote {name_of(golden(path))}")
