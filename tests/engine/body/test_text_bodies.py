"""Bodies over many texts, where joins leave comparisons to arrays or no join is needed: against Python."""

from __future__ import annotations

import numpy as np
import pytest

import dlog

RULES = """
    .decl member(user: symbol, team: symbol)
    label(cat(cat(u, ":"), t)) <- member(u, t).
    nested(cat(cat(t, cat(u, t)), cat("<", ">"))) <- member(u, t).
    both(x, cat(x, t)) <- member(u, t), x = cat(u, "-").
    known(u, t) <- member(u, t), cat(u, cat("", t)) = "abba".
    twice(cat(x, x)) <- member(u, _), x = cat(u, u).
    unnamed(u) <- member(u, t), !label(cat(cat(t, ":"), u)).
    before(u, t) <- member(u, t), u < t.
    after(t, u) <- member(u, t), t >= u, u != "a".
    high(u, t) <- member(u, t), u > "m", u != t.
    some(u) <- member(u, t), u < t.
    mates(u, v) <- member(u, t), member(v, t), u < v.
    how_many[] = n <- agg<<n = count()>> member(u, t), u < t.
    first[t] = u <- agg<<u = min(v)>> member(v, t), v != t.
    pals(u, v) <- member(u, t), member(v, t), contains("z", t).
    how_many_pals[t] = n <- agg<<n = count()>> member(u, t), member(v, t), contains("z", t), match("a.*", u).
    odd_pals(u, t) <- member(u, t), member(v, t), contains(t, v), ends_with("m", v).
    apart(v) <- member(u, t), member(v, t), match("a.*", t), !member(v, u), u != "a".
"""


def expected(member: set[tuple[str, str]]) -> dict[str, set[tuple]]:
    teams = {t: {v for v, o in member if o == t} for _, t in member}
    least = {t: min((v for v in vs if v != t), default=None) for t, vs in teams.items()}
    return {
        "label": {(f"{u}:{t}",) for u, t in member},
        "nested": {(f"{t}{u}{t}<>",) for u, t in member},
        "both": {(f"{u}-", f"{u}-{t}") for u, t in member},
        "known": {(u, t) for u, t in member if u + t == "abba"},
        "twice": {(4 * u,) for u, _ in member},
        "unnamed": {(u,) for u, t in member if (t, u) not in member},
        "before": {(u, t) for u, t in member if u < t},
        "after": {(t, u) for u, t in member if t >= u and u != "a"},
        "high": {(u, t) for u, t in member if u > "m" and u != t},
        "some": {(u,) for u, t in member if u < t},
        "mates": {(u, v) for u, t in member for v in teams[t] if u < v},
        "how_many": {(n,) for n in [sum(u < t for u, t in member)] if n},
        "first": {(t, u) for t, u in least.items() if u is not None},
        "pals": {(u, v) for t, us in teams.items() if "z" in t for u in us for v in us},
        "how_many_pals": {
            (t, n) for t, us in teams.items() if "z" in t if (n := len(us) * sum(u[:1] == "a" for u in us))
        },
        "odd_pals": {
            (u, t) for t, us in teams.items() for u in us if any(t in v and v[-1:] == "m" for v in us)
        },
        "apart": {
            (v,)
            for t, us in teams.items()
            if t[:1] == "a"
            for v in us
            if any((v, u) not in member for u in us - {"a"})
        },
    }


def check(database: dlog.Database, member: set[tuple[str, str]]) -> None:
    for name, rows in expected(member).items():
        assert set(database[name].rows()) == rows, name


def pairs(seed: int, n: int) -> list[tuple[str, str]]:
    random = np.random.default_rng(seed)
    letters = np.array(list("abmzé"))

    def text() -> str:
        return "".join(random.choice(letters, random.integers(0, 10)))

    return [(text(), text()[:3]) for _ in range(n)] + [("ab", "ba"), ("a", "a")]


@pytest.mark.plan
def test_oracle_tests_before_joins() -> None:
    """Values that pass a test are found before the join, always or never or where that pays."""
    given = pairs(3, 3000)
    for setting in ("", "always-semijoins", "no-semijoins"):
        pragma = f'.pragma "planner" "{setting}"\n'
        database = dlog.Database(source=pragma + RULES, evaluated=False)
        with database.transaction() as change:
            change.insert("member", given)
        check(database, set(given))
        explained = database.explain("pals")
        assert ("on the values of member(u, t) alone" in explained) == (setting != "no-semijoins")


@pytest.mark.parametrize("n", [20, 4000])  # few rows stay in the join
@pytest.mark.parametrize("rules_first", [False, True])
def test_oracle_bodies_over_texts(n: int, rules_first: bool) -> None:
    given, more = pairs(1, n), pairs(2, n // 10)
    database = dlog.Database(source=RULES, evaluated=rules_first)
    with database.transaction() as change:
        change.insert("member", given)
    if not rules_first:  # evaluated from scratch, over an index of one piece and then of many pages
        check(database, set(given))
    with database.transaction() as change:
        change.insert("member", more)
        change.erase("member", given[::7])
    check(database, (set(given) | set(more)) - set(given[::7]))
