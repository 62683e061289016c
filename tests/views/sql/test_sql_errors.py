"""Error messages of SQL files are golden files: `programs/sql/errors/FAULT.sql` has its output in `.stderr`.

`python -m tests.views.sql.test_sql_errors` writes the golden files again; read the difference before a
commit.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_errors import ROOT, _recording, _sites, check, name_of

QUERIES = sorted((ROOT / "programs" / "sql" / "errors").glob("*.sql"))
FRONT_END = sorted((ROOT / "dlog" / "views" / "sql").glob("*.py"))


def golden(query: Path) -> Path:
    return query.with_suffix(".stderr")


@pytest.mark.parametrize("query", QUERIES, ids=lambda p: p.stem)
def test_golden_messages(query: Path) -> None:
    assert check(name_of(query)) == ("", golden(query).read_text(encoding="utf-8"), 1)


@pytest.mark.parametrize("query", QUERIES, ids=lambda p: p.stem)
def test_golden_form(query: Path) -> None:
    """Each error has its place, its line, and carets under it; no place is given twice for one message."""
    lines = golden(query).read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if ": error: " in line]
    assert heads and len(heads) == len(set(heads))
    for line in heads:
        file, row, column = line.split(": error: ")[0].rsplit(":", 2)
        assert (ROOT / file).is_file() and int(row) > 0 and int(column) > 0
    assert sum(set(line) <= {"^", " "} for line in lines) >= len(heads)
    assert not [line for line in lines if re.search(r"None|(?i:external_\d)|<class", line)]


def test_every_message_has_a_golden_file() -> None:
    recorded: set[tuple[str, int]] = set()
    with _recording(recorded):
        for query in QUERIES:
            check(name_of(query))
    missing = {
        f"{file.stem}: {file.read_text(encoding='utf-8').splitlines()[first - 1].strip()}"
        for file in FRONT_END
        for first, last in _sites(file)
        if not any((str(file), line) in recorded for line in range(first, last + 1))
    }
    assert missing == UNREACHED


# As far as is known, what sqlglot cannot cut into words is a quote or a comment without an end.
UNREACHED = {'tokens: return SourceError("this is not SQL", span=Span(source, 0, 1))'}


if __name__ == "__main__":
    for path in QUERIES:
        text = check(name_of(path))[1]
        if not golden(path).exists() or golden(path).read_text(encoding="utf-8") != text:
            golden(path).write_text(text, encoding="utf-8")
            print(f"wrote {name_of(golden(path))}")
