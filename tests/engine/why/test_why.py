"""Why a fact holds: trees of random programs under an independent checker, and the text of a few."""

from __future__ import annotations

import pytest
from hypothesis import given

import dlog
from dlog.engine.commit.printed_facts import fact_text
from dlog.engine.why import derivation, derivation_tree
from dlog.errors import ConstraintError, DataError
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.bodies import Features
from tests.oracle.derivations import Checker, acyclic
from tests.oracle.naive import base_facts, evaluate
from tests.oracle.programs import ALL, NONRECURSIVE, RECURSIVE, programs

ASKED = 4  # facts of each predicate


def explains(text: str) -> None:
    program = accepted(text)
    try:
        facts = evaluate(program)
    except (ConstraintError, DataError, OverflowError):
        return
    database = dlog.Database(source=text)
    checker = Checker(program, base_facts(program), facts)
    for name in database.predicates():
        for row in database[name].rows()[:ASKED]:
            fact = fact_text(database.program.predicates[name], row)
            tree = derivation(database, fact)
            assert tree.predicate.name == name and fact_text(tree.predicate, tree.row) == fact
            checker.check(tree)
            printed = derivation_tree(database, fact).splitlines()
            assert printed[0].startswith(fact) and len(printed) >= sum(1 for _ in acyclic(tree))


@relaxed(30)
@given(programs(NONRECURSIVE))
def test_oracle_why_nonrecursive(text: str) -> None:
    explains(text)


@relaxed(30)
@given(programs(Features().with_("comparisons", "negation", "disjunctions", *RECURSIVE), derived=3))
def test_oracle_why_recursive(text: str) -> None:
    explains(text)


@relaxed(30)
@given(programs(ALL))
def test_oracle_why_everything(text: str) -> None:
    explains(text)


@pytest.mark.fuzz
@relaxed(2000, random=True)
@given(programs(ALL, derived=6))
def test_fuzz_why(text: str) -> None:
    explains(text)


# Texts

EDGES = "edge(1, 2). edge(2, 3). edge(3, 1)."
GRAPH = f"{EDGES}\nreach(x, y) <- edge(x, y).\nreach(x, z) <- reach(x, y), edge(y, z).\n"
TEXTS = {
    "recursion": (
        GRAPH,
        "reach(2, 2)",
        """
reach(2, 2)   by <string>:3
  reach(2, 1)   by <string>:3
    reach(2, 3)   by <string>:2
      edge(2, 3)   base fact
    edge(3, 1)   base fact
  edge(1, 2)   base fact
""",
    ),
    "negation, functions and primitives": (
        'price["tea"] = 3.50.  price["salt"] = 0.40.  sold("salt").\n'
        "dear(x, c) <- price[x] = p, p > 1.0, !sold(x), c = p * 2.0, !(sold(y), price[y] = q, q > p).\n",
        'dear("tea", 7.0)',
        """
dear("tea", 7.0)   by <string>:2
  price["tea"] = 3.5   base fact
  3.5 > 1.0
  no sold("tea")
  7.0 = 3.5 * 2.0
  no (sold(y), price[y] = q, q > 3.5)
""",
    ),
    "disjunction and a derived predicate with facts": (
        "a(1). b(2). c(3).\nc(x) <- (a(x) ; b(x)), x > 1.\n",
        "c(2).",
        """
c(2)   by <string>:2
  b(2)   base fact
  2 > 1
""",
    ),
    "a base fact of a derived predicate": ("c(3).\nc(x) <- a(x).\na(3).\n", "c(3)", "\nc(3)   base fact\n"),
    "aggregates": (
        "line(1, 5). line(1, 7). line(2, 1).\ntotal[o] = t <- agg<<t = sum(n)>> line(o, n).\n"
        "best(o) <- total[o] = m, m = max n : { total[_] = n }.\n",
        "best(1)",
        """
best(1)   by <string>:3
  total[1] = 12   by <string>:2: sum of 2 assignments
    with n = 5, o = 1
      line(1, 5)   base fact
    with n = 7, o = 1
      line(1, 7)   base fact
  max n : { total[_] = n } = 12   by <string>:3: max of 2 assignments
    with n = 12
      total[1] = 12   shown above
    and 1 more
""",
    ),
    "recursive min with a cycle of no length": (
        "road(1, 2, 0). road(2, 1, 0). road(2, 3, 4).\ndist[1] = 0.\n"
        "dist[y] = d <- agg<<d = min(e)>> dist[x] = a, road(x, y, w), e = a + w.\n",
        "dist[3] = 4",
        """
dist[3] = 4   by <string>:3
  dist[2] = 0   by <string>:3
    dist[1] = 0   base fact
    road(1, 2, 0)   base fact
    0 = 0 + 0
  road(2, 3, 4)   base fact
  4 = 0 + 4
""",
    ),
    "recursive min through a value that was replaced": (
        "f[1] = 4.\nf[2] = e <- f[1] = a, e = max(a, 5).\n"
        "f[1] = d <- agg<<d = min(e)>> f[2] = a, e = a - 2.\n",
        "f[1] = 3",
        """
f[1] = 3   by <string>:3
  f[2] = 5   by <string>:2
    f[1] = 4   replaced since   base fact
    5 = max(4, 5)
  3 = 5 - 2
""",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_of_a_derivation(name: str) -> None:
    source, fact, expected = TEXTS[name]
    assert dlog.Database(source=source).why(fact) == expected.strip("\n")


def test_a_long_chain_needs_no_recursion() -> None:
    n = 300
    edges = " ".join(f"edge({i}, {i + 1})." for i in range(n))
    lines = dlog.Database(source=GRAPH.replace(EDGES, edges)).why(f"reach(0, {n})")
    assert len(lines.splitlines()) == 2 * n and f"[{n}] edge(0, 1)   base fact" in lines


def test_many_assignments_are_cut_off() -> None:
    source = "n(x) <- x = range(0, 40).\nall[] = c <- agg<<c = count()>> n(_).\n"
    lines = dlog.Database(source=source).why("all[] = 40").splitlines()
    assert lines[0] == "all[] = 40   by <string>:2: count of 40 assignments" and lines[-1] == "  and 30 more"


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("reach(1, 7)", "reach(1, 7) does not hold"),
        ("raech(1, 2)", "unknown predicate raech"),
        ("reach(1, y)", "this is not one fact"),
        ("reach(1)", "reach takes 2 arguments, but 1 is given"),
        ('reach(1, "a")', 'type conflict: "a" is string, but argument c1 of reach is int'),
        ("reach(1, 2", "`(` is not closed"),
        ("", "unexpected `.`"),
    ],
)
def test_a_fact_that_does_not_hold_or_is_none(fact: str, message: str) -> None:
    with pytest.raises(dlog.DlogError) as caught:
        dlog.Database(source=GRAPH).why(fact)
    assert caught.value.message == message


def test_why_changes_nothing() -> None:
    db = dlog.Database(source=GRAPH)
    db.why("reach(1, 1)")
    db.check()
    db.execute("-edge(3, 1).")
    db.verify()
    with pytest.raises(dlog.DataError, match="does not hold"):
        db.why("reach(1, 1)")
