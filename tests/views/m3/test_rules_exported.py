"""Every shipped rule that has a view tree: what `dlog m3` writes for it, in both dialects, gives what the
program derives.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog import m3
from dlog.ir.check import load_program
from dlog.language.source import read_source
from dlog.m3.consumers.consumers import CONSUMERS
from dlog.views.m3.export import export
from dlog.views.rules.sources import aggregation_rules, source_name

PROGRAMS = Path(__file__).parents[3] / "programs"
WAYS = ({"consumer": "fivm"}, {"consumer": "dbtoaster"}, {"consumer": "a5"})
REFUSED = {
    "is derived by rules: an M3 program has base relations only",
    "view trees maintain sums, counts and means, not",
    "view trees have no negation",
    "view trees have no disjunction of atoms",
    "view trees have no columns of type",
    "view trees do not compute",
    "view trees group by columns",
    "M3 reads delimited files without a header",
}


def exported(path: Path, predicate: str, **way: Any) -> str | None:
    try:
        return export(path, predicate, facts=path.with_suffix("") / "facts", **way)
    except dlog.DlogError as error:
        assert error.span is not None, error.message  # with its place
        assert any(reason in error.message for reason in REFUSED), error.message
        return None


def plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def close(one: Any, other: Any) -> bool:
    if isinstance(one, str | datetime.date) or isinstance(other, str | datetime.date):
        return one == other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def run(text: str, database: dlog.Database, dialect: str) -> dict[str, list[tuple]]:
    runtime = m3.Runtime(m3.parse(text, dialect=dialect))
    names = {source_name(name).lower(): name for name in database.predicates()}
    for source in runtime.program.sources:  # a word of M3 has a `_` after it, a name of one letter a prefix
        given = source.name.lower().removeprefix("rel_")
        name = names.get(given) or names[given.removesuffix("_")]
        rows = [tuple(map(plain, row)) for row in database.base(name).rows()]
        if rows:
            (runtime.load if source.kind == m3.ast.TABLE else runtime.apply)(source.name, rows)
    runtime.ready()
    return {name: [tuple(row.values()) for row in table.to_pylist()] for name, table in runtime.results()}


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.dl")), ids=lambda path: path.stem)
def test_oracle_derived_rows(path: Path) -> None:
    _, program = load_program(read_source(path))
    rules = aggregation_rules(program)
    heads = {
        h.predicate for rule in rules for h in rule.heads if not program.predicates[h.predicate].auxiliary
    }
    accepted = {
        h: texts for h in sorted(heads) if (texts := [exported(path, h, **way) for way in WAYS]) != [None] * 3
    }
    if not accepted:
        return
    database = dlog.Database(path, facts=path.with_suffix("") / "facts")
    for predicate, texts in accepted.items():
        rule = next(r for r in rules if predicate in {h.predicate for h in r.heads})
        (head,) = [h for h in rule.heads if h.predicate == predicate][:1]
        result = next(a.result.name for a in rule.aggregates if a.result in head.args)
        rows = [tuple(map(plain, row)) for row in database[predicate].rows()]
        expected = sorted(row for row in rows if row[-1] != 0)  # a map has no entries of 0
        for text, way in zip(texts, WAYS, strict=True):
            assert text is not None
            if "RingCofactor" in text or "'" in result:
                continue  # see `test_cofactors`
            results = run(text, database, CONSUMERS[way["consumer"]].dialect)
            found = sorted(results[result] if result in results else results[f"m_{result}"])
            assert len(found) == len(expected), predicate
            for one, other in zip(found, expected, strict=True):
                assert all(map(close, one, other)), (predicate, way, one, other)
