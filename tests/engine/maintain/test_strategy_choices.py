"""Every shipped program keeps its strategies: one line for each stratum, against a golden file.

    DLOG_RECORD=1 pytest tests/engine/maintain/test_strategy_choices.py      writes the file again

Programs are seen empty, with their facts, and with statistics as if there were far more rows: most shipped
facts are too few for anything but deltas.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import dlog
from dlog.engine.state.store import Store
from dlog.errors import DlogError
from tests.oracle.shipped import PROGRAMS

GOLDEN = Path(__file__).with_name("strategy_choices.txt")
FILES = [p for p in sorted(PROGRAMS.rglob("*.dl")) if not {"errors", "includes"} & {*p.parts}]
WISHES = ("delta", "trace", "trace-exact", "views", "multilevel")
HEADS = ("a row that may be lost", "each row has one derivation", "the number of derivations")
ASKED = "was requested"


class Grown(Store):
    """A store that reports more rows than it has, and values that more of them share."""

    def rows(self, name: str) -> int:
        return 5000 * super().rows(name)

    def distinct(self, name: str, column: int) -> float:
        return 20 * super().distinct(name, column)

    def partners(self, name: str, column: int) -> float:
        return 250 * super().partners(name, column)


def expected() -> dict[str, list[str]]:
    """The lines of each program."""
    found: dict[str, list[str]] = {}
    for line in GOLDEN.read_text().splitlines():
        if not line.startswith(" "):
            found[line] = []
        found[[*found][-1]].append(line)
    return found


if os.environ.get("DLOG_RECORD"):

    def test_record() -> None:
        GOLDEN.write_text("\n".join(line for path in FILES for line in _choices(path)) + "\n")


def test_every_shipped_program_is_recorded() -> None:
    assert [*expected()] == [name_of(path) for path in FILES]


@pytest.mark.plan
@pytest.mark.parametrize("path", FILES, ids=lambda path: name_of(path))
def test_a_shipped_program_keeps_its_strategies(path: Path) -> None:
    assert [*_choices(path)] == expected()[name_of(path)]


def name_of(path: Path) -> str:
    return str(path.relative_to(PROGRAMS))


def test_the_choices_differ() -> None:
    """The file would show it if one strategy were taken for all."""
    text = GOLDEN.read_text()
    for way in (
        "delta, because",
        "trace, because",
        "views: a view tree",
        "multilevel: levels of maps",
        "stages,",
    ):
        assert text.count(f"] {way}") > 3, way
    assert text.count("trace-exact] as requested") > 100
    assert "] maintained from scratch" in text


def _choices(path: Path) -> Iterator[str]:
    """For each stratum its maintenance, with the circumstances under which it is that."""
    yield name_of(path)
    found: dict[tuple[str, str], list[str]] = {}
    for title, lines in _circumstances(path):
        for key in lines:
            found.setdefault(key, []).append(title)
    for names in dict.fromkeys(names for names, _ in found):
        yield f"  {names}"
        for (own, line), titles in found.items():
            if own == names:
                yield f"    [{' '.join(titles)}] {line}"


def _circumstances(path: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    facts = path.with_suffix("") / "facts"
    settings = {"empty": {"load": False, "evaluated": False}, "facts": {}}
    for title, how in (settings | {wish: {"strategy": wish} for wish in WISHES}).items():
        try:
            database = dlog.Database(path, facts=facts, **how)  # type: ignore[arg-type]
        except DlogError as error:
            yield title, [(type(error).__name__, "")]
            continue
        yield title, [*_maintained(database, database.store)]
        if title == "facts":
            grown = database.store.under(database.store.predicates)
            grown.__class__ = Grown
            yield "grown", [*_maintained(database, grown)]


def _maintained(database: dlog.Database, store: Store) -> Iterator[tuple[str, str]]:
    maintenance = database._maintenance.of(database.program, database._maintenance.requested)
    for number, stratum in enumerate(database.program.strata):
        first, *others = (line.strip() for line in maintenance.explain(number, store))
        wish = maintenance.requested
        heads = HEADS if wish is None else ()  # they do not depend on a wish
        shown = [line for line in others if ", because " in line or line.startswith(heads) or ASKED in line]
        text = " | ".join([first.removeprefix("maintained by strategy "), *shown])
        yield (
            ", ".join(stratum.predicates),
            text.replace(f"{wish}, because it was", "as").replace(f"{wish} {ASKED}", f"another {ASKED}"),
        )
