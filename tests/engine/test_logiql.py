"""LogiQL in a live database: entity types, widths, blocks, settings, queries without a name."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlog
from dlog.language.parse import parse
from dlog.language.printing import format_node

PERSONS = """
person(p), person_name(p : n) -> string(n).
likes(x, y) -> person(x), person(y).
age[p] = a -> person(p), int[8](a).
person("ann").
named(n) <- age[p] = _, person_name[p] = n.
"""


def test_an_entity_is_created_by_its_name_in_every_form() -> None:
    db = dlog.Database(source=PERSONS)
    db.execute('+person("bob").')
    db.execute('+person_name(p : "carl").')
    db.execute('+person(p), +person_name[p] = "dora", +age[p] = 40.')
    db.execute('+likes("ann", "dora").')
    assert db["person"].rows() == [("ann",), ("bob",), ("carl",), ("dora",)]
    assert db["person_name"].rows() == [(n, n) for n in ("ann", "bob", "carl", "dora")]
    assert db["named"].rows() == [("dora",)] and db["age"].rows() == [("dora", 40)]
    db.execute('-person_name["carl"] = "carl".')
    assert ("carl",) not in db["person"].rows()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('+likes("ann", "zoe").', "constraint broken"),
        ('-person("ann").  +age["ann"] = 3.', "constraint broken"),
        ('+age["ann"] = 128.', "constraint broken"),
        ('^person_name["ann"] = "eve".', "keeps its name"),
        ('+person_name["eve"] = "ann".', "another name than its own"),
    ],
)
def test_what_contradicts_an_entity_aborts(text: str, message: str) -> None:
    db = dlog.Database(source=PERSONS)
    with pytest.raises(dlog.DlogError, match=message):
        db.execute(text)
    assert db["person"].rows() == [("ann",)] and db["age"].rows() == []


def test_a_reference_mode_takes_no_facts_from_python() -> None:
    db = dlog.Database(source=PERSONS)
    for _ in range(2):  # on the general path, and on the short one
        with pytest.raises(dlog.DataError, match="takes no facts"):
            db.apply(insert={"person_name": [("eve", "eve")]})
        db.apply(insert={"person": [("x",)]})
        db.apply(erase={"person": [("x",)]})
    assert db["person"].rows() == [("ann",)]


def test_rules_and_delta_rules_create_entities() -> None:
    rules = """
    seen(n) -> string(n).  host(n) -> string(n).
    person(p), person_name[p] = n <- host(n).
    +person(p), +person_name(p : n), +age[p] = 1 <- +seen(n).
    +seen(m) <- +person_name[p] = n, m = cat(n, "'s friend"), n = "eve".
    """
    db = dlog.Database(source=PERSONS + rules)
    db.execute('+host("hugo").  +seen("eve").')
    assert db["person"].rows() == [("ann",), ("eve",), ("eve's friend",), ("hugo",)]
    assert db["age"].rows() == [("eve", 1), ("eve's friend", 1)]
    db.execute('-host("hugo").')
    assert ("hugo",) not in db["person"].rows()
    db.verify()


def test_names_with_colons_and_numbers_as_names() -> None:
    db = dlog.Database(source="item(i), item:code(i : c) -> int(c).  part(i, j) -> item(i), item(j).")
    db.execute("+item(i), +item:code[i] = 7.  +item(8).  +part(7, 8).")
    assert db["item:code"].rows() == [(7, 7), (8, 8)]
    assert db.query("part(i, j), item:code(j : c), c > 7").rows() == [(7, 8, 8)]


@pytest.mark.parametrize(
    ("type", "inside", "outside"),
    [
        ("int[8]", [-128, 127], [-129, 128]),
        ("int[16]", [-(2**15), 2**15 - 1], [2**15]),
        ("int[32]", [-(2**31), 2**31 - 1], [2**31, -(2**31) - 1]),
        ("int[64]", [-(2**63), 2**63 - 1], []),
        ("uint[8]", [0, 255], [256]),
        ("uint[32]", [0, 2**32 - 1], [2**32]),
        ("uint[64]", [0, 2**64 - 1], []),
        ("uint", [0, 2**64 - 1], []),
        ("float[32]", [0.1], []),
        ("boolean", [True, False], []),
    ],
)
def test_widths_are_ranges(type: str, inside: list[object], outside: list[object]) -> None:
    db = dlog.Database(source=f"p(x) -> {type}(x).  f[x] = y -> int(x), {type}(y).")
    db.apply(insert={"p": [(value,) for value in inside], "f": list(enumerate(inside))})
    assert len(db["p"]) == len(db["f"]) == len(inside)
    for value in outside:
        for rows in ({"p": [(value,)]}, {"f": [(9, value)]}):
            with pytest.raises(dlog.ConstraintError):
                db.apply(insert=rows)
    assert len(db["p"]) == len(db["f"]) == len(inside)


def test_blocks_come_and_go_in_transactions_folders_and_branches(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "db", source="e(x, y) -> int(x), int(y).  e(1, 2).  e(2, 3).") as db:
        added = db.add_block("paths", "p(x, y) <- e(x, y).  p(x, z) <- p(x, y), e(y, z).  start(1).")
        assert added.changes["p"].inserted.rows() == [(1, 2), (1, 3), (2, 3)]
        db.branch("other")
        db.checkout("other")
        db.remove_block("paths")
        assert db["p"].rows() == db["start"].rows() == [] and db.blocks() == {}
        db.checkout("main")
        assert list(db.blocks()) == ["paths"]
        with pytest.raises(dlog.DlogError, match="already a block"):
            db.add_block("paths", "q(1).")
        with pytest.raises(dlog.DlogError, match="unknown predicate"), db.transaction() as tx:
            tx.remove_block("paths")
            tx.add_block("paths", "q(x) <- r(x).")
        with db.transaction() as tx:
            tx.remove_block("paths")
            tx.add_block("paths", "p(x, y) <- e(y, x).")
        assert db["p"].rows() == [(2, 1), (3, 2)]
    with dlog.Database(tmp_path / "db") as db:
        assert db.blocks() == {"paths": "p(x, y) <- e(y, x)."} and db["p"].rows() == [(2, 1), (3, 2)]
        db.checkpoint()
    with dlog.Database(tmp_path / "db") as db:
        db.remove_block("paths")
        assert db["p"].rows() == []
        db.verify()


def test_rules_of_a_block_are_maintained() -> None:
    db = dlog.Database(
        source="e(x, y) -> int(x), int(y).  block(`b) { n[x] = c <- agg<<c = count()>> e(x, _). }"
    )
    db.execute("+e(1, 2).  +e(1, 3).")
    db.execute("-e(1, 2).")
    assert db["n"].rows() == [(1, 1)]
    db.verify()


def test_settings_choose_what_is_stored() -> None:
    source = 'a(x) -> int(x).  b(x) <- a(x).  c(x) <- a(x).  lang:derivationType[`b] = "Derived".'
    db = dlog.Database(source=source + ' lang:derivationType[`c] = "DerivedAndStored".')
    db.execute("+a(1).")
    assert "on_read" in db.explain("b") and "on_read" not in db.explain("c")
    assert db["b"].rows() == db["c"].rows() == [(1,)]


def test_a_query_without_a_name_has_the_columns_of_its_head() -> None:
    db = dlog.Database(
        source='p(x, y) -> int(x), string(y).  p(1, "a").  p(2, "b").  p(2, "c").  _(y) <- p(1, y).'
    )
    assert [result.rows() for _, result in db.queries()] == [[("a",)]]
    result = db.execute("_(y, x, x + 1) <- p(x, y), x > 1.")
    assert [c.name for c in result.columns] == ["y", "x", "column3"]
    assert result.rows() == [("b", 2, 3), ("c", 2, 3)]
    assert db.execute("_[x] = n <- agg<<n = count()>> p(x, _).").rows() == [(1, 1), (2, 2)]
    commit = db.execute('+p(3, "d").  _[] = n <- agg<<n = count()>> p(_, _).')
    assert [answer.rows() for _, answer in commit.answers] == [[(4,)]]


@pytest.mark.parametrize(
    "text",
    [
        "person(p), person:name(p : n) -> string(n).",
        "f[x] = y -> int[32](x), bool(y).",
        "+p(x), -q(x) <- ^f[x] = y, !+r(x), (-s(y) ; t@prev(y)), -u(x) < 3, -(v[x]) = y.",
        "+t[x] = n <- agg<<n = count()>> -p(x, _).",
        "_[x] = y <- p(x, y).",
        "rank[g, i] = x <- seq<<i = (-s, x)>> score(g, x, s).",
        'lang:derivationType[`a:b] = "Derived".',
        "x(y) <- y = sum z : { p(z) }, w = max z : { a:b(z) }, a:b(w).",
    ],
)
def test_formatting_keeps_what_is_said(text: str) -> None:
    program = parse(text)
    printed = " ".join(map(format_node, program.statements))
    assert parse(printed).statements == program.statements
    assert printed == text
