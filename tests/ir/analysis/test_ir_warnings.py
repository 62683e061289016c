"""Warnings about programs that are legal: when there are any, and that shipped programs have none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.ir.analysis.warnings import has_results, program_warnings
from dlog.ir.check import load_program
from dlog.language.source import read_source, text_source

PROGRAMS = Path(__file__).parents[3] / "programs"
SHIPPED = [p for p in sorted(PROGRAMS.rglob("*.dl")) if not {"errors", "includes", "include"} & {*p.parts}]
BASE = ".decl p(x: number, y: number)\n.decl q(x: number)\np(1, 2).\n"


def warnings(text: str) -> list[str]:
    return [warning.message for warning in program_warnings(load_program(text_source(text))[1])]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(PROGRAMS)))
def test_shipped_programs_have_none(path: Path) -> None:
    program = load_program(read_source(path))[1]
    assert not program_warnings(program)
    assert has_results(program)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("q(x) :- p(x, y).", ["y"]),
        ("q(x) :- p(x, _), p(_, _y).", []),
        ("q(x) :- p(x, y), y > 1.", []),
        ("q(x) :- p(x, y), !p(z, y), p(z, _).", []),
        ("q(x) :- p(x, _), x = count : { p(a, b) }.", ["a", "b"]),
        ("q(x) <- p(x, ?y).", ["?y"]),
        ("q(x) <- p(x, ?_y).", []),
        ("q(n) <- agg<<n = count()>> p(x, y).", []),
        ("q(1). p(x, y) -> q(x).  ?- p(x, y).", []),
    ],
)
def test_variables_that_occur_once(text: str, names: list[str]) -> None:
    found = [w for w in warnings(f"{BASE}{text}\n") if w.startswith("the variable")]
    assert found == [f"the variable {name} occurs only once in its rule" for name in names]


rules = st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", "d", "_", "_e"])] * 2), min_size=1, max_size=4)


@given(rules)
def test_oracle_of_variables_counts_words(atoms: list[tuple[str, str]]) -> None:
    body = ", ".join(f"p({x}, {y})" for x, y in atoms)
    words = re.findall(r"\b[a-e]\b", body)
    expected = sorted(word for word in words if words.count(word) == 1)
    found = [w.split()[2] for w in warnings(f"{BASE}q(1) :- {body}.\n") if w.startswith("the variable")]
    assert sorted(found) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q(x) :- p(x, _).", []),
        ("q(x) :- p(x, _).  .output q", []),
        (".output p", ["q is not used"]),
        (".output p, q", ["q has no rules and no facts"]),
        ("q(x) :- p(x, _).\n.output p\n.materialize q on_read", []),
        ("q(x) :- p(x, _).\n.output p\n.materialize q always", ["q is not used"]),
        (".input q\n.output p, q", []),
        (".stream q\n.output p, q", []),
        (".table q\n.output p, q", []),
        ("+q(1).\n.output p, q", []),
        (".printsize q\nq(x) :- p(x, _).", []),
        ("q(x) :- p(x, _).\n?- q(x).", []),
        ("q(x) :- p(x, _).\nq(x) -> x > 0.", []),
        ("q(x) :- q(x), p(x, _).\n.output p", ["q is not used"]),
        ("f[x] = y -> int(x), int(y).\nq(f[x]) <- p(x, _).\n.output q", ["f has no rules and no facts"]),
        ("f[x] = y <- p(x, y).\nq(y) <- f[_] = y.\n.output q", []),
        (".decl r(x: number) output\nr(x) :- q(x), p(_, x).", ["q has no rules and no facts"]),
        (
            ".comp C { .decl r(x: number)  r(1).  .decl s(x: number)  s(x) :- r(x). }\n"
            ".init c = C\n.output p, q",
            ["q has no rules and no facts"],
        ),
    ],
)
def test_predicates_that_are_empty_or_unused(text: str, expected: list[str]) -> None:
    assert warnings(f"{BASE}{text}\n") == expected


def test_included_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "rules.dl").write_text(f"{BASE}q(x) :- p(x, y).\n")
    (tmp_path / "main.dl").write_text('.include "rules.dl"\n')
    (found,) = program_warnings(load_program(read_source(tmp_path / "main.dl"))[1])
    assert found.file and found.file.endswith("rules.dl") and (found.line, found.column) == (4, 14)
    assert found.render().startswith(f"{found.file}:4:14: warning: the variable y occurs")
