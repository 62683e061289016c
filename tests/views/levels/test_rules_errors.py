"""Rules that levels of maps cannot maintain, as golden files: each `programs/errors/levels/FAULT.dl` has the
output of `dlog m3 FAULT.dl result --levels` in `.stderr`.

`python -m tests.views.levels.test_rules_errors` writes the golden files again; read the difference before a
commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import dlog
from dlog.ir.check import load_program
from dlog.language.source import Source
from dlog.views.rules.nested import nested_query
from tests.test_errors import ROOT, _recording, _sites, command, name_of

PROGRAMS = sorted((ROOT / "programs" / "errors" / "levels").glob("*.dl"))
READERS = sorted((ROOT / "dlog" / "views" / "rules").glob("*.py"))
# Of view trees alone, or of what only Python asks for.
ELSEWHERE = {
    "query: raise self._unsupported(",
    "query: return UnsupportedError(message, span=span or self.rule.span)",
    'nested: raise UnsupportedError(f"{LEVELS} do not compute means of decimals", span=span)',
    'values: raise self.unsupported(f"{self.reader} do not round", span)',
}


def said(program: str) -> tuple[str, str, object]:
    return command("m3", program, "result", "--levels")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_golden_messages(program) -> None:
    golden = program.with_suffix(".stderr").read_text(encoding="utf-8")
    assert said(name_of(program)) == ("", golden, 1)
    assert command("check", name_of(program)) == ("", "", 0)


def test_every_message_has_a_golden_file() -> None:
    recorded: set[tuple[str, int]] = set()
    with _recording(recorded):
        for program in PROGRAMS:
            said(name_of(program))
    missing = {
        f"{file.stem}: {file.read_text(encoding='utf-8').splitlines()[first - 1].strip()}"
        for file in READERS
        for first, last in _sites(file)
        if not any((str(file), line) in recorded for line in range(first, last + 1))
    }
    assert {m for m in missing if not any(m.startswith(known) for known in ELSEWHERE)} == set()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("q[] = m <- agg<<m = mean(p)>> d(p).", "do not compute means of decimals"),
        ("q(p) <- d(p), x = p / 3, x * 3 = p.", "do not compute div"),
        (
            "q[] = n <- agg<<n = count()>> d(p), d(r), p * 1.5 = r, f(p).\nf(p) <- d(r), p = r * 1.25.",
            "do not round",
        ),
    ],
)
def test_decimals_in_units_of_their_last_digit(rule: str, message: str) -> None:
    _, program = load_program(Source("x.dl", f"d(p) -> decimal[9, 2](p). f(p) -> decimal[9, 2](p). {rule}"))
    with pytest.raises(dlog.DlogError, match=f"levels of maps {message}"):
        nested_query(program, "q")


def test_commands(tmp_path: Path) -> None:
    program = "programs/errors/levels/least_value_inside.dl"
    assert "error: no rule of " in command("m3", program, "bids", "--levels")[1]
    assert "help: did you mean result?" in command("m3", program, "resul", "--levels")[1]
    finance = "programs/finance/vwap.dl"
    assert "help: --levels maintains it by levels of maps" in command("m3", finance)[1]
    assert "--all is about strategies" in command("explain", finance, "--levels", "--all")[1]
    picture = tmp_path / "maps.svg"
    assert command("explain", finance, "--levels", "--tree", str(picture))[1:] == ("", 0)
    assert "bids" in picture.read_text(encoding="utf-8")
    assert command("m3", finance, "vwap", "--levels") == command("m3", finance, "--levels")
    assert (
        "has several results\nhelp: name the predicate: "
        in command("m3", "programs/wildcards.dl", "--levels")[1]
    )
    out, err, status = command("explain", finance, "--levels")
    assert (err, status) == ("", 0) and out.startswith("levels of maps: it was requested\n\ns[] := ")


if __name__ == "__main__":
    for path in PROGRAMS:
        text = said(name_of(path))[1]
        golden = path.with_suffix(".stderr")
        if not golden.exists() or golden.read_text(encoding="utf-8") != text:
            golden.write_text(text, encoding="utf-8")
            print(f"wrote {name_of(golden)}")
