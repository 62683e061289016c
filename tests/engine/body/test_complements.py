"""`T(x), !S(x)` with S inside T: the same answers by counts as row by row, and where it is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.body import complements
from dlog.ir.analysis.inclusions import inclusions
from tests.engine.followed import follow
from tests.examples import relaxed
from tests.oracle.accepted import accepted

PRAGMA = '.pragma "planner" "always-complements"\n'
TYPES = "t(x, y) -> int(x), int(y). a(x, y) -> int(x), int(y). b(x) -> int(x).\n"


@st.composite
def differences(draw: st.DrawFn) -> str:
    """One or two rules of s, of which some are not inside t, and rules that read t without s."""
    insides = [
        "s(x, y) <- t(x, y), a(x, z).",
        "s(x, y) <- t(x, y), !b(x).",
        "s(u, v) <- b(u), t(u, v), u < v.",
    ]
    outside = ["s(x, y) <- t(y, x), b(x).", "s(x, y) <- a(x, y), t(x, z)."]
    rules = draw(st.lists(st.sampled_from(insides * 3 + outside), min_size=1, max_size=2, unique=True))
    readers = [
        "p(x, y) <- t(x, y), !s(x, y).",
        "q(x) <- t(x, y), !s(x, y), a(y, z).",
        "n[x] = c <- agg<<c = count()>> t(x, y), !s(x, y).",
        "m[] = c <- agg<<c = sum(y)>> t(x, y), !s(x, y), b(x).",
        "r(x) <- t(x, x), !s(x, x).",
        "w(y, x) <- t(x, y), !s(y, x).",
    ]
    rules += draw(st.lists(st.sampled_from(readers), min_size=1, max_size=3, unique=True))
    pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)
    facts = [f"{name}({x}, {y})." for name in "ta" for x, y in draw(pairs)]
    facts += [f"b({x})." for x in draw(st.sets(st.integers(0, 4)))]
    return PRAGMA + TYPES + " ".join(facts) + "\n" + "\n".join(rules)


@relaxed(60)
@given(st.data(), differences())
def test_oracle_complements(data: st.DataObject, text: str) -> None:
    """From scratch and after transactions, also with base facts of s, which may lie outside t."""
    follow(data, text)


@pytest.mark.parametrize(
    ("rules", "inside"),
    [
        ("s(x) <- t(x), a(x).", True),
        ("s(x) <- t(x), a(x). s(y) <- a(y), t(y), !b(y).", True),
        ("s(x) <- t(x), a(x). s(x) <- a(x).", False),
        ("s(x) <- t(y), a(x), x = y + 1.", False),
        ("s(x) <- a(x), !t(x).", False),
        ("s(x) <- a(x), (t(x) ; b(x)).", False),
        ("s(x) <- t(x), a(x). s(x) <- s(y), t(x), a(y).", True),
    ],
)
def test_known_inclusions(rules: str, inside: bool) -> None:
    types = "t(x) -> int(x). a(x) -> int(x). b(x) -> int(x).\n"
    program = accepted(types + rules)
    assert (("s", "t") in inclusions(program)) == inside


@pytest.mark.plan
def test_rows_that_both_have_are_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of 20,000 rows are missing: they are found by counts, and explain shows it."""
    source = """
    t(x) -> int(x). bad(x) -> int(x).
    good(x) <- t(x), !bad(x).
    left(x) <- t(x), !good(x).
    """
    used: list[int] = []
    table = complements.Complement.table

    def counted(self: complements.Complement, store: object) -> object:
        found = table(self, store)  # type: ignore[arg-type]
        used.append(found.n)
        return found

    monkeypatch.setattr(complements.Complement, "table", counted)
    db = dlog.Database(source=source)
    with db.transaction() as tx:
        tx.insert("t", [(i,) for i in range(20_000)])
        tx.insert("bad", [(5,), (19_999,), (7,), (30_000,)])
    assert db["left"].rows() == [(5,), (7,), (19_999,)] and used == [3]
    assert "t(x), !good(x): counts are compared" in db.explain()
    with db.transaction() as tx:
        tx.insert("good", [(5,), (-1,)])
        tx.insert("t", [(i,) for i in range(20_000, 40_000)])
    assert db["left"].rows() == [(7,), (19_999,), (30_000,)] and used == [
        3
    ]  # base facts: not known to be inside
