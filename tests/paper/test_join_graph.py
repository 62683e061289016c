"""The examples of the thesis on join graphs, recomputed, and cases in which its algorithms fail if taken
literally.

Texts stand for codes; a view is a bag: every row with its number of assignments.
"""

from __future__ import annotations

import pytest

from dlog.joingraph.body import Atom, Body, Comparison
from dlog.joingraph.plan import Plan, Refusal, plan_graph
from tests.joingraph.following import Followed

TEXTS: dict[str, int] = {}


def code(text: str) -> int:
    return TEXTS.setdefault(text, 1000 + len(TEXTS))


def row(text: str) -> tuple[int, ...]:
    """The codes of words.

    >>> row("joe t1") == (code("joe"), code("t1"))
    True
    """
    return tuple(code(word) for word in text.split())


def rows(*texts: str) -> set[tuple[int, ...]]:
    return {row(text) for text in texts}


def body(text: str, outputs: str, *comparisons: Comparison) -> Body:
    """Atoms as in "R a b, S b c"."""
    atoms = [words.split() for words in text.split(",")]
    return Body(tuple(Atom(a[0], tuple(a[1:])) for a in atoms), tuple(outputs.split()), comparisons)


# ---- the running example (5, Figures 5.1 to 5.3)

TRACKER = body("User u g c, Tweet u t d, Retweet w r t", "u g c t d r")


@pytest.fixture
def tracker() -> Followed:
    followed = Followed(TRACKER)
    followed.insert("User", *rows("joe m USA", "bob m USA", "alice f USA", "cathy m Canada"))
    followed.insert("Tweet", *rows("joe t1 2/2/15", "joe t9 2/3/15"))
    followed.insert("Retweet", *rows("t2 bob t1", "t3 bob t1", "t4 alice t1", "t6 bob t3"))
    return followed


def test_figure_5_3_vertex_values(tracker: Followed) -> None:
    variables = [vertex.variables for vertex in tracker.plan.vertices]
    assert variables == [("u",), ("t",)]
    assert tracker.vertex(0) == rows("joe", "bob", "alice", "cathy")
    assert tracker.vertex(1) == rows("t1", "t9", "t3")


def test_figure_5_3_join_tuples_and_projected_tuples(tracker: Followed) -> None:
    """Without repeating join attributes in projected tuples."""
    user, tweet, retweet = (tracker.atom(i) for i in range(3))
    assert user == {
        row("joe"): {row("m USA"): 1},
        row("bob"): {row("m USA"): 1},
        row("alice"): {row("f USA"): 1},
        row("cathy"): {row("m Canada"): 1},
    }
    assert tweet == {row("joe t1"): {row("2/2/15"): 1}, row("joe t9"): {row("2/3/15"): 1}}
    assert retweet == {row("t1"): {row("bob"): 2, row("alice"): 1}, row("t3"): {row("bob"): 1}}
    tracker.check()


def test_the_view_has_complete_paths_only(tracker: Followed) -> None:
    assert tracker.view == {row("joe m USA t1 2/2/15 bob"): 2, row("joe m USA t1 2/2/15 alice"): 1}


def test_example_13_counts_of_other_atoms_multiply(tracker: Followed) -> None:
    """The text's Algorithm 5 multiplies by the changed atom's own count, too: 3 * 3."""
    counter = Followed(body("User u g c, Tweet u t d, Retweet w r t", "u"))
    for relation, there in tracker.relations.items():
        counter.insert(relation, *there)
    assert counter.view == {row("joe"): 3}
    assert counter.insert("Retweet", row("t7 cathy t1")) == {row("joe"): 1}
    assert counter.erase("Tweet", row("joe t1 2/2/15")) == {row("joe"): -4}
    counter.check()


def test_example_17_timeline() -> None:
    timeline = Followed(body("Follower u f, Tweet u t d", "u f t"))
    timeline.insert("Follower", *rows("joe bob", "joe alice", "cathy bob"))
    timeline.insert("Tweet", *rows("joe t1 2/2/15", "joe t9 2/3/15"))
    assert set(timeline.view) == rows("joe bob t1", "joe alice t1", "joe bob t9", "joe alice t9")
    timeline.check()


def test_example_4_rows_wait_for_others() -> None:
    followed = Followed(body("R a b, S b c, T c d", "a b c d"))
    assert not followed.insert("R", (2, 2)) and not followed.insert("S", (2, 2))
    assert followed.atom(0) == {(2,): {(2,): 1}}
    assert followed.insert("T", (2, 7)) == {(2, 2, 2, 7): 1}
    followed.check()


# ---- maintenance (6, Algorithms 1 to 4)


def test_algorithm_1_filters() -> None:
    """An update is one, an insertion, an erasure or nothing, by which of its rows pass."""
    followed = Followed(body("R a x, S a y", "a x y", Comparison(">", "x", 10)))
    followed.insert("S", (1, 5))
    assert not followed.insert("R", (1, 3)) and followed.atom(0) == {}
    assert followed.change("R", updated=[((1, 3), (1, 11))]) == {(1, 11, 5): 1}
    assert followed.change("R", updated=[((1, 11), (1, 12))]) == {(1, 11, 5): -1, (1, 12, 5): 1}
    assert followed.change("R", updated=[((1, 12), (1, 4))]) == {(1, 12, 5): -1}
    assert not followed.change("R", updated=[((1, 4), (1, 2))])
    followed.check()
    assert followed.atom(0) == {}


def test_algorithm_3_searches_before_it_unlinks() -> None:
    followed = Followed(body("R a b, S b c", "a b c"))
    followed.insert("R", (1, 2))
    followed.insert("S", (2, 3))
    assert followed.erase("R", (1, 2)) == {(1, 2, 3): -1}
    assert followed.erase("S", (2, 3)) == {}
    assert followed.is_empty()


def test_algorithm_4_leaves_other_rows_at_their_join_tuple() -> None:
    """The text moves all projected tuples of the join tuple."""
    followed = Followed(body("R a, S a p", "a p"))
    followed.insert("S", *rows("two x", "two y"))
    followed.change("S", updated=[(row("two x"), row("three x"))])
    assert followed.atom(1) == {row("two"): {row("y"): 1}, row("three"): {row("x"): 1}}
    assert followed.insert("R", row("two")) == {row("two y"): 1}
    followed.check()


def test_an_update_is_searched_once() -> None:
    both, update = (Followed(body("R a b x, S b c, T c d", "a b c d x")) for _ in range(2))
    for followed in (both, update):
        followed.insert("S", *((2, c) for c in range(5)))
        followed.insert("T", *((c, d) for c in range(5) for d in range(3)))
        followed.insert("R", (1, 2, 8))
    before = both.graph.visits
    assert before == update.graph.visits
    expected = both.change("R", {(1, 2, 8)}, {(1, 2, 9)})
    assert update.change("R", updated=[((1, 2, 8), (1, 2, 9))]) == expected
    assert both.graph.visits - before == 2 * (update.graph.visits - before)
    update.check()


def test_an_update_of_nothing_that_is_read_finds_nothing() -> None:
    followed = Followed(body("R a b x, S b c", "a c"))
    followed.insert("S", (2, 3))
    followed.insert("R", (1, 2, 8))
    visits = followed.graph.visits
    assert not followed.change("R", updated=[((1, 2, 8), (1, 2, 9))])
    assert followed.graph.visits == visits
    followed.check()


def test_self_joins_telescope() -> None:
    followed = Followed(body("R a b, R b c", "a b c"))
    assert followed.insert("R", (1, 1)) == {(1, 1, 1): 1}
    assert followed.erase("R", (1, 1)) == {(1, 1, 1): -1}
    assert followed.insert("R", (1, 2), (2, 1)) == {(1, 2, 1): 1, (2, 1, 2): 1}
    assert followed.is_empty() is False
    followed.check()


def test_several_relations_in_one_transaction() -> None:
    followed = Followed(body("R a b, S b c", "a b c"))
    assert followed.insert("R", (1, 2)) + followed.insert("S", (2, 3)) == {(1, 2, 3): 1}
    gone, come = followed.erase("R", (1, 2)), followed.insert("R", (1, 2))
    gone.update(come)
    assert set(gone.values()) == {0}


def test_a_cycle_is_refused() -> None:
    assert plan_graph(body("R a b, S b c, T c a", "a")) == Refusal("its atoms join in a cycle")
    assert isinstance(plan_graph(body("R a b, S b c, T c a, U a b c", "a")), Plan)


# ---- look-ahead (7.1)


def reach(lookahead: str, searched: bool) -> Followed:
    """Example 14, made consistent."""
    followed = Followed(body("T t, R1 q t, R2 w user q, F user f", "t f"), lookahead)
    followed.change("T", inserted=rows("t1"), wanted=searched)
    followed.change("R1", inserted=rows("t2 t1", "t7 t3"), wanted=searched)
    followed.change("R2", inserted=rows("t4 ch t2", "t5 ch t9", "t8 ch t7"), wanted=searched)
    return followed


@pytest.mark.parametrize(("lookahead", "visits"), [("none", 6), ("local", 4), ("marks", 4)])
def test_example_14_join_tuples_entered(lookahead: str, visits: int) -> None:
    """The first search enters what only a search can rule out, the next ones do not."""
    followed = reach(lookahead, searched=False)
    assert followed.insert("F", row("ch bob")) == {row("t1 bob"): 1}
    assert followed.graph.visits == visits
    assert followed.insert("F", row("ch joe")) == {row("t1 joe"): 1}
    assert followed.graph.visits - visits == (3 if lookahead == "marks" else visits)


def test_example_14_after_other_searches() -> None:
    """Those that came from R2 have found out what leads nowhere."""
    followed = reach("marks", searched=True)
    before = followed.graph.visits
    assert followed.insert("F", row("ch bob")) == {row("t1 bob"): 1}
    assert followed.graph.visits - before == 3


@pytest.mark.parametrize("lookahead", ["none", "local", "marks"])
def test_look_ahead_is_directional(lookahead: str) -> None:
    """S(2, 3) is in no complete path before R(1, 2) comes, and must be entered then."""
    followed = Followed(body("R a b, S b c, T c d", "a b c d"), lookahead)
    followed.insert("S", (2, 3))
    followed.insert("T", (3, 4))
    followed.graph.whole()
    assert followed.insert("R", (1, 2)) == {(1, 2, 3, 4): 1}
    followed.check()


def test_what_is_dead_is_revived_when_something_comes_behind() -> None:
    followed = Followed(body("R a b, S b c, T c d, U d e", "a e"))
    followed.insert("S", (2, 3))
    followed.insert("T", (3, 4))
    assert not followed.insert("R", (1, 2)) and not followed.insert("R", (7, 2))
    assert followed.insert("U", (4, 5)) == {(1, 5): 1, (7, 5): 1}
    assert followed.insert("R", (8, 2)) == {(8, 5): 1}
    assert followed.erase("U", (4, 5)) == {(1, 5): -1, (7, 5): -1, (8, 5): -1}
    assert not followed.erase("R", (8, 2))
    followed.check()
