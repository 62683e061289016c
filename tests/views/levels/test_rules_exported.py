"""What `dlog m3 --levels` writes for shipped programs, in both dialects, single rows and batches, gives what
they derive; and which of all their predicates levels of maps refuse, and why.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog import m3
from dlog.ir.check import load_program
from dlog.language.source import read_source
from dlog.views.levels.export import level_text
from dlog.views.levels.program import Options
from dlog.views.m3.export import read_any, target
from dlog.views.rules.nested import nested_query
from dlog.views.rules.sources import source_name
from dlog.views.run.maintained import Maintained
from tests.oracle.shipped import PROGRAMS, shipped_programs
from tests.views.m3.test_rules_exported import plain

WAYS = [{"consumer": "a5"}, {"consumer": "dbtoaster"}, {"consumer": "fivm"}]
SHOWN = {
    "finance/vwap": "vwap",
    "finance/mst": "missed",
    "finance/psp": "spread",
    "finance/axf": "far",
    "finance/bsp": "moved",
    "finance/bsv": "together",
    "disjunction": "stranger",
    "negated_conjunction": "graduate",
    "constraints": "free",
    "several_heads": "lost_to",
    "retail": "never_sold",
}
REFUSED = {
    "is recursive: levels of maps have no recursion",
    "has a subsumption: levels of maps have none",
    "is a sequence: levels of maps have none",
    "depend on those that it had: levels of maps have no such memory",
    "is an equivalence relation: levels of maps have none",
    "levels of maps maintain sums",
    "levels of maps have no columns of type",
    "levels of maps have no constants of type",
    "levels of maps do not compute",
    "levels of maps do not support",
    "levels of maps do not round",
    "have more than 64 atoms",
    "M3 reads delimited files without a header",
    "is rounded in M3",
}


@pytest.mark.parametrize("name", SHOWN)
def test_oracle_derived_rows(name: str) -> None:
    path, predicate = PROGRAMS / f"{name}.dl", SHOWN[name]
    facts = path.with_suffix("") / "facts"
    query = read_any(path, predicate, facts, levels=True)
    database = dlog.Database(path, facts=facts)
    expected = {tuple(map(plain, row)) for row in database[predicate].rows()}
    assert expected
    for way in WAYS:
        levels, text = level_text(query, target(**way), Options())  # type: ignore[arg-type]
        assert rows_of(text, way["consumer"], levels, database) == expected, way


def rows_of(text: str, consumer: str, levels: Any, database: dlog.Database) -> set[tuple[Any, ...]]:
    """The rows of the predicate, from its M3 query."""
    runtime = m3.Runtime(m3.parse(text, dialect="a5" if consumer == "a5" else "dbtoaster"))
    names = {source_name(name).lower(): name for name in database.predicates()}
    for source in runtime.program.sources:
        name = source.name.lower().removeprefix("rel_").removesuffix("_")
        rows = [tuple(map(plain, row)) for row in database.base(names[name]).rows()]
        (runtime.load if source.kind == m3.ast.TABLE else runtime.apply)(source.name, rows)
    runtime.ready()
    ((_, table),) = runtime.results()
    columns = {n.removeprefix("v_"): table[n].to_pylist() for n in table.column_names[:-1]}
    value = table.column(table.num_columns - 1).to_pylist()
    shown = [columns.get(column.group or "", value) for column in levels.columns]
    return set(zip(*shown, strict=True))


@pytest.mark.parametrize("path", shipped_programs(), ids=lambda path: path.stem)
def test_refusals_have_their_place(path: Path) -> None:
    _, program = load_program(read_source(path))
    for name in program.stratum_of:
        if not program.predicates[name].auxiliary:
            try:
                nested_query(program, name).check()
            except dlog.DlogError as error:
                assert error.span is not None, error.message
                assert any(reason in error.message for reason in REFUSED), error.message


@pytest.mark.parametrize("levels", [True, False])
def test_quotients_in_conditions_are_rounded_once(tmp_path: Path, levels: bool) -> None:
    """49 * (1 / 49) is below 1."""
    program = tmp_path / "ratios.dl"
    program.write_text(
        "a(x, y) -> float(x), float(y).\nn[] = c <- agg<<c = count()>> a(x, y), q = x / y, q >= 1.0.\n"
    )
    maintained = Maintained(read_any(program, "n", levels=levels))
    maintained.apply("a", [(49.0, 49.0), (48.0, 49.0)])
    assert maintained.result().to_pylist() == [{"c": 1}]
