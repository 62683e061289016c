"""Delta rules against their definition: random rules and transactions.

By definition: what a transaction asks for is three sets for each predicate; the rules, with `+p`, `-p`, `^p`
under other names, are an ordinary program over these sets and the state before, which the naive evaluator
evaluates; what it derives is applied.  Shares no code with `dlog.ir.events` and `dlog.engine.events`.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import dlog
from tests.oracle import naive

SIGNS = {"+": "come_", "-": "gone_", "^": "set_"}
PROGRAM = """
p(x) -> int(x).  q(x) -> int(x).  r(x, y) -> int(x), int(y).
f[x] = y -> int(x), int(y).  g[x] = y -> int(x), int(y).
d(x) <- q(x), !p(x).
n[x] = c <- agg<<c = count()>> r(x, _).
"""
BASE = {"p": 1, "q": 1, "r": 2, "f": 2, "g": 2}
FUNCTIONS = ("f", "g", "n")
Rows = set[tuple[int, ...]]


def atom(name: str, args: str, sign: str = "", stage: str = "") -> str:
    if name in FUNCTIONS:
        x, y = args.split(",")
        return f"{sign}{name}{stage}[{x}] = {y}"
    return f"{sign}{name}{stage}({args})"


def rule(rng: random.Random, waits: bool) -> str:
    """`waits`: the body has an event that is not negated."""
    sign = rng.choice("++--^")
    head = rng.choice(FUNCTIONS[:2] if sign == "^" else ["p", "q", "r", "p", "q", "r", "f"])
    body, has_y = [], False
    if waits or rng.random() < 0.7:
        event = rng.choice("+-^")
        name = rng.choice(FUNCTIONS[:2] if event == "^" else [*BASE])
        has_y = BASE[name] == 2
        body.append(atom(name, "x,y" if has_y else "x", event))
    stages = ["", "@prev", "@start", "@previous"]
    for _ in range(rng.randrange(2) if body else 1 + rng.randrange(2)):
        name = rng.choice(["p", "q", "r", "f", "d", "n"])
        two = name in ("r", "f", "n")
        body.append(atom(name, "x,y" if two else "x", "", rng.choice(stages)))
        has_y |= two
    if rng.random() < 0.4:
        body.append("!" + atom(rng.choice("pq"), "x", rng.choice(["", "+", "-"]), ""))
    if rng.random() < 0.3:
        body.append("x < 3")
    if not has_y:
        body.append(f"y = x + {rng.randrange(2)}")
    args = "x,y" if BASE[head] == 2 else rng.choice("xy")
    if rng.random() < 0.1 and BASE[head] == 1 and sign != "^":
        return f"{sign}{head}(c) <- agg<<c = count()>> {', '.join(body)}."
    return f"{atom(head, args, sign)} <- {', '.join(body)}."


def renamed(text: str) -> str:
    """`+f[x] = y` as `come_f(x, y)`, and `f@prev[x] = y` as `f(x, y)`."""
    text = re.sub(r"@\w+", "", text)
    text = re.sub(r"\b([fgn])\[(\w+)\] = (\w+)", r"\1(\2,\3)", text)
    return re.sub(r"([-+^])([pqrfg])\(", lambda m: f"{SIGNS[m[1]]}{m[2]}(", text)


def happened(
    rules: list[str], asked: dict[tuple[str, str], Rows], before: dict[str, Rows]
) -> dict[str, Rows]:
    lines = [
        f".decl {s}{n}({', '.join(f'c{i}: number' for i in range(k))})"
        for s in SIGNS.values()
        for n, k in BASE.items()
    ]
    arities = {**BASE, "d": 1, "n": 2}
    lines += [f".decl {n}({', '.join(f'c{i}: number' for i in range(k))})" for n, k in arities.items()]
    lines += map(renamed, rules)
    for n in ("f", "g"):
        lines.append(f"come_{n}(x, y) :- set_{n}(x, y).")
        lines.append(f"gone_{n}(x, z) :- set_{n}(x, y), {n}(x, z), z != y.")
    inputs = {f"{SIGNS[sign]}{name}": rows for (sign, name), rows in asked.items()}
    return naive.evaluate(dlog.check("\n".join(lines)), {**inputs, **before})


def conflict(found: dict[str, Rows]) -> bool:
    for name in BASE:
        come, gone = found[f"come_{name}"], found[f"gone_{name}"]
        if come & gone:
            return True
        if name in FUNCTIONS:
            for rows in (come, found[f"set_{name}"]):
                if len({row[0] for row in rows}) < len(rows):
                    return True
    return False


def asked_for(
    statements: list[tuple[str, str, tuple[int, ...]]], base: dict[str, Rows]
) -> dict[tuple[str, str], Rows]:
    """Statement by statement; the last word on each row counts."""
    words: dict[tuple[str, tuple[int, ...]], str] = {}
    for sign, name, row in statements:
        if sign == "^":
            for other in [*base[name], *(r for n, r in words if n == name)]:
                if other[0] == row[0]:
                    words[name, other] = "-"
        words[name, row] = sign
    asked: dict[tuple[str, str], Rows] = {(s, n): set() for s in SIGNS for n in BASE}
    for (name, row), sign in words.items():
        asked["-" if sign == "-" else "+", name].add(row)
        if sign == "^":
            asked["^", name].add(row)
    return asked


def statements(rng: random.Random) -> list[tuple[str, str, tuple[int, ...]]]:
    out = []
    for _ in range(1 + rng.randrange(4)):
        sign = rng.choice("+++--^")
        name = rng.choice(FUNCTIONS[:2] if sign == "^" else [*BASE])
        if sign == "+" and name in FUNCTIONS and rng.random() < 0.8:  # mostly not a second value
            sign = "^"
        out.append((sign, name, tuple(rng.randrange(5) for _ in range(BASE[name]))))
    return out


def follow(seed: int, folder: Path | None = None) -> tuple[int, int]:
    """Random rules through random transactions; (how many fired, how many failed)."""
    rng = random.Random(seed)
    rules: list[str] = []
    while len(rules) < 4:
        one = rule(rng, waits=True)
        try:
            dlog.check(PROGRAM + "\n".join([*rules, one]))
            rules.append(one)
        except dlog.DlogError:  # a cycle through a negation
            continue
    base: dict[str, Rows] = {name: set() for name in BASE}
    for name, arity in BASE.items():  # facts of a program are its beginning, not events
        for x in rng.sample(range(5), 3):
            base[name].add((x, *(rng.randrange(5) for _ in range(arity - 1))))
    facts = [f"{atom(n, ','.join(map(str, row)))}." for n in BASE for row in base[n]]
    db = dlog.Database(folder, source=PROGRAM + "\n".join([*rules, *facts]))
    fired = failed = 0
    for step in range(12):
        wanted = statements(rng)
        once = [rule(rng, waits=False)] if rng.random() < 0.3 else []
        text = "\n".join(f"{atom(n, ','.join(map(str, row)), s)}." for s, n, row in wanted)
        before = naive.evaluate(dlog.check(PROGRAM), base)
        try:
            found = happened(
                rules + once, asked_for(wanted, base), {n: set(before[n]) for n in (*BASE, "d", "n")}
            )
        except dlog.DlogError:  # the rule for once is no program with the others
            with pytest.raises(dlog.DlogError):
                db.execute("\n".join([text, *once]))
            continue
        after = {n: (base[n] - found[f"gone_{n}"]) | found[f"come_{n}"] for n in BASE}
        two_values = any(len({r[0] for r in after[n]}) < len(after[n]) for n in ("f", "g"))
        if conflict(found) or two_values:
            with pytest.raises(dlog.DlogError):
                db.execute("\n".join([text, *once]))
            failed += 1
        else:
            db.execute("\n".join([text, *once]))
            fired += after != {
                n: (base[n] - asked_for(wanted, base)["-", n]) | asked_for(wanted, base)["+", n] for n in BASE
            }
            base = after
        for name in BASE:
            assert set(db[name].rows()) == base[name], (seed, step, rules, once, text, name)
        if folder is not None and step % 4 == 3:
            db.close()
            db = dlog.Database(folder)
    db.verify()
    db.close()
    return fired, failed


def test_oracle_random_rules_and_transactions() -> None:
    counts = [follow(seed) for seed in range(8)]
    assert sum(fired for fired, _ in counts) > 15, counts
    assert sum(failed for _, failed in counts) > 3, counts


def test_oracle_in_a_folder(tmp_path: Path) -> None:
    for seed in range(100, 104):
        follow(seed, tmp_path / str(seed))


@pytest.mark.fuzz
def test_oracle_many_random_rules() -> None:
    for seed in range(1000, 1400):
        follow(seed)


def test_rules_fire_in_a_chain_and_on_what_is_asked() -> None:
    """By hand: `+q(1)` again is still an event, and the log sees the value before."""
    source = """
    q(x) -> int(x).  p(x) -> int(x).  f[x] = y -> int(x), int(y).  log(x, o, n) -> int(x), int(o), int(n).
    +p(x) <- +q(x).
    ^f[x] = 10 * x <- +p(x).
    +log(x, o, n) <- ^f[x] = n, f@prev[x] = o.
    """
    db = dlog.Database(source=source)
    db.execute("+q(1).")
    assert db["f"].rows() == [(1, 10)] and db["log"].rows() == []
    db.execute("^f[1] = 7.")
    assert db["log"].rows() == [(1, 10, 7)]
    db.execute("+q(1).")
    assert db["f"].rows() == [(1, 10)] and db["log"].rows() == [(1, 7, 10), (1, 10, 7)]
    db.execute("-q(1).")
    assert db["p"].rows() == [(1,)]


def test_a_rule_that_is_typed_runs_once_and_one_that_is_added_stays() -> None:
    db = dlog.Database(source="p(x) -> int(x).  q(x) -> int(x).  q(1).")
    db.execute("+p(x + 1) <- q(x).")
    assert db["p"].rows() == [(2,)]
    db.execute("+q(5).")
    assert db["p"].rows() == [(2,)]
    db.add_rules("+p(x) <- +q(x).")
    db.execute("+q(6).")
    assert db["p"].rows() == [(2,), (6,)]
    db.remove_rule("+p(x) <- +q(x).")
    db.execute("+q(7).")
    assert db["p"].rows() == [(2,), (6,)]


def test_a_transaction_that_fails_changes_nothing_and_can_be_repeated() -> None:
    db = dlog.Database(source="p(x) -> int(x).  q(x) -> int(x).  p(x) -> x < 5.  +p(x) <- +q(x).")
    tx = db.transaction()
    tx.insert("q", [(9,)])
    for _ in range(2):
        with pytest.raises(dlog.ConstraintError):
            db.commit(tx)
        assert db["p"].rows() == db["q"].rows() == []
        assert len(tx.changes) == 1


def test_subscribers_branches_and_snapshots_see_what_rules_did() -> None:
    db = dlog.Database(source="p(x) -> int(x).  q(x) -> int(x).  +p(x) <- +q(x).  -p(x) <- -q(x).")
    seen = []
    db.subscribe("p", lambda change: seen.append((change.inserted.rows(), change.erased.rows())))
    db.execute("+q(1).")
    before = db.snapshot()
    db.branch("other")
    db.checkout("other")
    db.execute("+q(2).  -q(1).")
    assert seen == [([(1,)], []), ([(2,)], [(1,)])]
    assert before["p"].rows() == [(1,)]
    db.checkout("main")
    assert db["p"].rows() == [(1,)]
    db.execute("+p(7).")
    db.merge("other")  # what the rules did there is merged; they do not run again
    assert db["p"].rows() == [(2,), (7,)]


def test_python_values_and_whole_tables_are_events() -> None:
    import pyarrow as pa

    db = dlog.Database(source="p(x) -> string(x).  q(x) -> string(x).  +p(upper(x)) <- +q(x).")
    db.apply(insert={"q": pa.table({"x": [f"a{i}" for i in range(2000)]})})
    assert len(db["p"]) == 2000 and db.query('p("A7")').rows() == [()]


def test_pulse_predicates_have_rows_in_a_transaction_only() -> None:
    source = """
    order(i, n) -> string(i), int(n).  lang:pulse(`order).  sold[i] = n -> string(i), int(n).
    ^sold[i] = n + m <- +order(i, n), sold@prev[i] = m.
    ^sold[i] = n <- +order(i, n), !(sold@prev[i] = _).
    """
    db = dlog.Database(source=source)
    db.execute('+order("tea", 2).')
    db.execute('+order("tea", 3).')
    assert db["sold"].rows() == [("tea", 5)] and db["order"].rows() == []


def test_equivalence_relations_and_predicates_that_are_not_stored_can_be_read() -> None:
    source = """
    .decl same(x: number, y: number) eqrel
    q(x) -> int(x).  p(x) -> int(x).
    e(x) <- q(x), x > 1.
    .materialize e on_read
    +p(y) <- +q(x), same(x, y), !e(y).
    """
    db = dlog.Database(source=source)
    db.execute("+same(1, 2).  +same(2, 3).  +q(3).")
    assert db["p"].rows() == []
    db.execute("+q(1).")
    assert db["p"].rows() == [(1,), (2,)]


def test_a_predicate_that_a_rule_reads_for_the_first_time_stays_right_when_the_transaction_fails() -> None:
    source = """
    a(x) -> int(x).  q(x) -> int(x).  p(x) -> int(x).  p(x) -> x < 5.
    d(x) <- a(x), x > 0.
    .materialize d on_read
    +p(x) <- +q(_), d(x).
    """
    db = dlog.Database(source=source)
    db.execute("+a(1).  +a(9).")
    for _ in range(2):
        with pytest.raises(dlog.ConstraintError):
            db.execute("+q(1).  +a(2).")
        assert db["d"].rows() == [(1,), (9,)] and db["p"].rows() == db["q"].rows() == []
    db.execute("-a(9).  +a(3).")
    db.execute("+q(1).")
    assert db["p"].rows() == [(1,), (3,)]
    db.check()
    db.verify()


def test_explain_shows_delta_rules() -> None:
    db = dlog.Database(source="p(x) -> int(x).  q(x) -> int(x).  +p(x) <- +q(x), !-q(x).")
    assert "+p(x) <- +q(x), !-q(x)." in db.explain() and "waits for +q" in db.explain("p")
    assert "waits for" not in db.explain("q")


def test_a_batch_that_comes_again_runs_no_rules(tmp_path: Path) -> None:
    """The second time the rules would contradict each other."""
    source = "q(x) -> int(x).  p(x) -> int(x).  +p(x) <- +q(x).  -p(x) <- +q(x), q@prev(x)."
    with dlog.Database(tmp_path / "db", source=source) as db:
        for repeated in (False, True):
            with db.transaction(batch_id="b#1") as tx:
                tx.insert("q", [(1,)])
            assert tx.commit_info is not None and tx.commit_info.repeated == repeated
        with pytest.raises(dlog.ConstraintError, match="both insert and erase"):
            db.apply(insert={"q": [(1,)]})
        assert db["p"].rows() == [(1,)]


def test_inline_aggregates_over_events_and_over_the_state_before() -> None:
    db = dlog.Database(
        source="""
        sold(i, n) -> string(i), int(n).  total[] = t -> int(t).  total[] = 0.
        most(i, n) -> string(i), int(n).  quiet(i) -> string(i).
        ^total[] = t + s <- +sold(_, _), total@prev[] = t, s = sum n : { +sold(_, n) }.
        +most(i, n) <- +sold(_, _), n = max m : { sold(_, m) }, sold(i, n).
        +quiet(i) <- +sold(i, _), 0 = count : { sold@prev(i, _) }.
        """
    )
    db.execute('+sold("tea", 4), +sold("mug", 7).')
    assert db["total"].rows() == [(11,)] and db["most"].rows() == []
    assert db["quiet"].rows() == [("mug",), ("tea",)]
    db.execute('+sold("mug", 2), +sold("pot", 1).')
    assert db["total"].rows() == [(14,)] and db["most"].rows() == [("mug", 7)]
    assert db["quiet"].rows() == [("mug",), ("pot",), ("tea",)]
    db.execute("-sold(i, n) <- sold(i, n), !n = max m : { sold(_, m) }.")
    assert db["sold"].rows() == [("mug", 7)]
    with pytest.raises(dlog.DlogError, match="the recursive count is not monotone"):
        db.add_rules("+sold(i, n) <- +quiet(i), n = count : { +sold(_, _) }.")


def test_delta_rules_read_inline_predicates() -> None:
    db = dlog.Database(
        source="""
        at(x) -> int(x).  seen(x, y) -> int(x), int(y).  at(1).  at(4).
        .decl less(x: number, y: number) inline
        less(x, y) :- x < y.
        .decl below(x: number, y: number) inline
        below(x, y) :- at(x), less(x, y).
        .decl far(x: number) inline
        far(x) :- below(_, x), x > 8.
        +seen(x, y) <- +at(y), below@prev(x, y), !far(y).
        """
    )
    db.execute("+at(3), +at(5), +at(9).")
    assert db["seen"].rows() == [(1, 3), (1, 5), (4, 5)]
    db.execute("-at(x) <- below(x, 4).")
    assert db["at"].rows() == [(4,), (5,), (9,)]
