"""Goal-directed evaluation: the same answers as the naive evaluator, for no more work than was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.state.limits import Limits
from dlog.errors import ConstraintError, DataError
from dlog.ir.goals.magic import Rewriting, goal_directed
from tests.examples import relaxed
from tests.oracle.accepted import accepted, checked
from tests.oracle.bodies import Draw, Features
from tests.oracle.compare import same
from tests.oracle.domains import VALUES, literal
from tests.oracle.naive import evaluate
from tests.oracle.programs import ALL, RECURSIVE, programs

LEFT = "reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z).\n"
RIGHT = "reach(x, y) <- edge(x, y).  reach(x, z) <- edge(x, y), reach(y, z).\n"
CHAIN = " ".join(f"edge({i}, {i + 1})." for i in range(300))
EAGER = '.pragma "magic-transform" "*"\n'


# Random programs with random queries


@st.composite
def asking(draw: Draw, features: Features, derived: int = 4) -> str:
    """A program with one to three queries about its predicates, some columns bound to constants; now and
    then restricted by whatever is bound."""
    text = draw(programs(features, derived=derived))
    program = checked(text)
    if program is None:
        return text
    shown = [p for p in program.predicates.values() if not p.auxiliary and p.name.startswith("p")]
    queries = [_query(draw, draw(st.sampled_from(shown))) for _ in range(draw(st.integers(1, 3))) if shown]
    return (EAGER if draw(st.booleans()) else "") + text + "\n".join(queries)


def _query(draw: Draw, predicate: object) -> str:
    names = []
    always = draw(st.integers(0, predicate.arity - 1))  # type: ignore[attr-defined]
    for index, column in enumerate(predicate.columns):  # type: ignore[attr-defined]
        kind = column.type.name
        if kind in VALUES and (index == always or draw(st.booleans())):
            names.append(literal(draw(st.sampled_from(VALUES[kind]))))
        else:
            names.append(f"y{index}")
    return f"?- {predicate.show(tuple(names))}."  # type: ignore[attr-defined]


def agree(text: str) -> Rewriting | None:
    program = accepted(text)
    try:
        expected = evaluate(program)
    except ConstraintError:
        with pytest.raises(ConstraintError):
            dlog.Database(source=text, goals_only=True)
        return None
    except (DataError, OverflowError):
        return None  # a value that does not fit may be one that no goal needs
    rewriting = goal_directed(program)
    rewriting.program.check()
    asked = dlog.Database(source=text, goals_only=True)
    lazy = dlog.Database(source=text, evaluated=False)
    for database in (asked, lazy):
        for query, (_, result) in zip(program.queries, database.queries(), strict=True):
            types = [c.type for c in program.predicates[query.predicate].columns]
            same(result.rows(), expected[query.predicate], types, query.text)
    for name in lazy.predicates():
        same(lazy[name].rows(), expected[name], [c.type for c in program.predicates[name].columns], name)
        same(asked[name].rows(), expected[name], [c.type for c in program.predicates[name].columns], name)
    asked.check()
    return rewriting


@relaxed(40)
@given(asking(Features().with_("comparisons", "negation", *RECURSIVE), derived=3))
def test_oracle_recursive(text: str) -> None:
    agree(text)


@relaxed(50)
@given(asking(ALL, derived=5))
def test_oracle_everything(text: str) -> None:
    agree(text)


@pytest.mark.fuzz
@relaxed(5000, random=True)
@given(asking(ALL, derived=6))
def test_fuzz_everything(text: str) -> None:
    agree(text)


def test_random_queries_are_mostly_restricted() -> None:
    """What the random tests compare is goal-directed in fact, through negations and aggregates too."""
    seen: list[tuple[str, Rewriting]] = []

    @relaxed(400)
    @given(asking(ALL, derived=5))
    def sample(text: str) -> None:
        seen.append((text, goal_directed(accepted(text))))

    sample()
    restricted = [(text, r) for text, r in seen if r.restricted]
    assert len(restricted) > len(seen) / 3
    rules = [rule for _, r in restricted for rule in r.program.rules]
    made = [rule for rule in rules if any(_is_restricted(a.predicate) for a in rule.heads)]
    assert any(rule.aggregates for rule in made)
    assert any(negated and _is_restricted(a.predicate) for rule in rules for a, negated in rule.body.atoms())


def _is_restricted(name: str) -> bool:
    return "b" in name.partition("'")[2] and set(name.partition("'")[2]) <= {"b", "f"}


# Recursions of every linear kind, with their own base facts

STEPS = (
    "reach(x, z) <- edge(x, y), reach(y, z).",
    "reach(x, z) <- reach(x, y), edge(y, z).",
    "reach(x, z) <- edge(x, m), edge(m, y), reach(y, z).",
    "reach(x, z) <- reach(x, y), reach(y, z).",
    "reach(x, z) <- edge(y, x), !edge(x, y), reach(y, z).",
    "reach(x, z) <- edge(x, y), reach(y, z), edge(z, y).",
    "reach(x, x) <- reach(x, y), edge(y, y).",
    "reach(x, z) <- edge(x, y), (reach(y, z) ; edge(z, y)).",
    "reach(x, z) <- edge(x, 1), reach(2, z).",
    "back(x, y) <- reach(y, x).  reach(x, z) <- edge(x, y), back(z, y).",
    "far[x] = n <- agg<<n = count()>> reach(x, _).  busy(x) <- far[x] > 1.",
)
_NODES = st.integers(0, 4)
_PAIRS = st.lists(st.tuples(_NODES, _NODES), min_size=1, max_size=9, unique=True)
_QUERIES = ("?- reach({0}, y).", "?- reach(x, {0}).", "?- reach({0}, {1}).", "?- edge({0}, y), reach(y, z).")


@relaxed(60)
@given(_PAIRS, _PAIRS, st.sets(st.sampled_from(STEPS), min_size=1, max_size=3), st.data())
def test_oracle_linear_recursions(
    edges: list[tuple[int, int]], facts: list[tuple[int, int]], steps: set[str], data: st.DataObject
) -> None:
    first = data.draw(st.sampled_from(["edge(x, y)", "edge(x, m), edge(m, y)", "edge(y, x)"]))
    lines = [f"edge({x}, {y})." for x, y in edges] + [f"reach(x, y) <- {first}."]
    if data.draw(st.booleans()):
        lines += [f"reach({x}, {y})." for x, y in facts]
    asked = st.builds(str.format, st.sampled_from(_QUERIES), _NODES, _NODES)
    queries = data.draw(st.lists(asked, min_size=1, max_size=2))
    agree("\n".join([*lines, *sorted(steps), *queries]))


# What is computed


def rules_for(text: str) -> list[str]:
    return [str(rule) for rule in goal_directed(dlog.check(text)).program.rules]


@pytest.mark.parametrize("rules", [LEFT, RIGHT])
@pytest.mark.parametrize("query", ["?- reach(290, y).", "?- reach(x, 10).", "?- reach(290, 295)."])
def test_one_node_costs_its_own_reach(rules: str, query: str) -> None:
    """The closure of the chain has 45,150 rows; what is asked for needs less than 1,000."""
    text = rules + CHAIN
    full = dlog.Database(source=text).query(query).rows()
    database = dlog.Database(source=text, evaluated=False, limits=Limits(rows=1000))
    assert database.query(query).rows() == full
    assert full


def test_an_output_whose_rule_has_a_constant() -> None:
    text = LEFT + CHAIN + "near(y) <- reach(295, y).\n.output near\n"
    database = dlog.Database(source=text, goals_only=True, limits=Limits(rows=100))
    assert database["near"].rows() == [(i,) for i in range(296, 301)]


def test_predicates_that_are_no_goals_are_computed_when_read() -> None:
    text = LEFT + "edge(1, 2). edge(2, 3). other(x) <- reach(x, x).\n.output other\n"
    database = dlog.Database(source=text.replace("reach(x, x)", "reach(x, 3)"), goals_only=True)
    assert database.pending == {"reach"}
    assert database["reach"].rows() == [(1, 2), (1, 3), (2, 3)]
    with database.transaction() as tx:
        tx.insert("edge", [(3, 4)])
    assert not database.pending
    assert tx.commit_info is not None
    assert tx.commit_info.changes["reach"].inserted.rows() == [(1, 4), (2, 4), (3, 4)]


def test_a_snapshot_of_a_database_that_is_not_evaluated() -> None:
    database = dlog.Database(source=LEFT + "edge(1, 2). edge(2, 3).", evaluated=False)
    view = database.snapshot()
    with database.transaction() as tx:
        tx.insert("edge", [(3, 4)])
    assert view.query("?- reach(1, y).").rows() == [(2,), (3,)]
    assert database.query("?- reach(1, y).").rows() == [(2,), (3,), (4,)]


def test_last_calls_keep_the_answers_of_the_start_alone() -> None:
    exits = "edge(1, 2). end(2, 3). reach(x, y) <- end(x, y). reach(x, z) <- edge(x, y), reach(y, z)."
    assert rules_for(exits + " ?- reach(1, y).") == [
        "reach'bf'path(start, start) <- reach'bf'wanted(start).",
        "reach'bf'path(start, y) <- exists x . reach'bf'path(start, x), edge(x, y).",
        "reach'bf'wanted(1) <- true.",
        "reach'bf(start, y) <- exists x . reach'bf'path(start, x), end(x, y).",
        "query'1(y) <- reach'bf(1, y).",
    ]


def test_a_closure_goes_from_the_start_on_whichever_side_it_recurs() -> None:
    assert rules_for(RIGHT + "edge(1, 2). ?- reach(1, y).") == [
        "reach'bf'wanted(1) <- true.",
        "reach'bf(x, y) <- reach'bf'wanted(x), edge(x, y).",
        "reach'bf(start, y) <- exists x . reach'bf(start, x), edge(x, y).",
        "query'1(y) <- reach'bf(1, y).",
    ]
    assert rules_for(LEFT + "edge(1, 2). ?- reach(x, 1).")[1:3] == [
        "reach'fb(x, y) <- reach'fb'wanted(y), edge(x, y).",
        "reach'fb(y, start) <- exists z . reach'fb(z, start), edge(y, z).",
    ]


def test_the_start_is_not_a_variable_of_the_rules() -> None:
    """Names that dlog makes up must not meet those of the program."""
    for name in ("start", "_s0"):
        rules = f"reach({name}, y) <- edge({name}, y). reach(x, z) <- edge(x, {name}), reach({name}, z)."
        answers = dlog.Database(source="edge(1, 2). edge(2, 3). edge(3, 4)." + rules, evaluated=False)
        assert answers.query("?- reach(1, y).").rows() == [(2,), (3,), (4,)]
    assert "reach'bf(start_, start) <- exists x . reach'bf(start_, x), edge(x, start)." in rules_for(
        "edge(1, 2). reach(start, y) <- edge(start, y)."
        " reach(x, z) <- edge(x, start), reach(start, z). ?- reach(1, y)."
    )


def test_predicates_without_constants_are_computed_in_full() -> None:
    text = LEFT + "edge(1, 2). out(x, z) <- edge(x, y), reach(y, z).\n.output out\n"
    assert goal_directed(dlog.check(text)).full["reach"] == "all of it is needed"
    assert goal_directed(dlog.check(EAGER + text)).restricted == {"reach": ("reach'bf",)}


def test_switches() -> None:
    query = "edge(1, 2). ?- reach(1, y)."
    assert goal_directed(dlog.check(LEFT + query)).restricted
    for off in ('.pragma "magic-transform-exclude" "reach"\n', '.pragma "magic-transform-exclude" "*"\n'):
        assert not goal_directed(dlog.check(off + LEFT + query)).restricted
    declared = ".decl reach(x: number, y: number) no_magic\n"
    assert not goal_directed(dlog.check(declared + LEFT + query)).restricted
    eager = ".decl reach(x: number, y: number) magic\n" + LEFT + "edge(1, 2). ?- edge(x, y), reach(y, z)."
    assert goal_directed(dlog.check(eager)).restricted


def test_conflicts_and_constraints_are_found_without_a_query() -> None:
    conflict = "f[x] = y <- e(x, y). e(1, 2). e(1, 3). e(5, 6). ?- f[5] = y."
    broken = LEFT + "edge(1, 2). edge(7, 7). reach(x, y) -> x != y. ?- reach(1, y)."
    for text in (conflict, broken):
        with pytest.raises(ConstraintError) as full:
            dlog.Database(source=text)
        with pytest.raises(ConstraintError) as asked:
            dlog.Database(source=text, goals_only=True)
        assert str(asked.value) == str(full.value)


def test_a_demand_that_would_count_forever_is_not_passed_on() -> None:
    """p(n) is wanted for n - 1 only where the number is stored; the recursion itself ends."""
    text = "top(3). p(0). p(n) <- p(m), n = m + 1, top(t), n <= t. q(x) <- p(x), x > 1. ?- p(2). ?- q(3)."
    database = dlog.Database(source=text, goals_only=True, limits=Limits(rows=1000))
    assert [len(result) for _, result in database.queries()] == [1, 1]
    down = (
        "num(0). num(1). num(2). p(n, 0) <- num(n), n = 0. p(n, k) <- num(n), m = n - 1, p(m, k). ?- p(2, k)."
    )
    database = dlog.Database(source=down, goals_only=True, limits=Limits(rows=1000))
    assert [result.rows() for _, result in database.queries()] == [[(0,)]]
