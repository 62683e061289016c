"""SQL with queries in queries, kept up to date by levels of maps: after every batch what DuckDB gives."""

from __future__ import annotations

import random

import pytest

from dlog.views.levels.program import Options
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql
from tests.views.levels.following import Followed, batches, declarations, duck, row_of, stream

CASES = {
    "vwap": """SELECT COALESCE(SUM(b1.price * b1.volume), 0) FROM BIDS b1
        WHERE 4 * (SELECT COALESCE(SUM(b2.volume), 0) FROM BIDS b2 WHERE b2.price > b1.price)
            < (SELECT COALESCE(SUM(b3.volume), 0) FROM BIDS b3)""",
    "correlated": """SELECT COALESCE(SUM(S.c), 0) FROM R, S WHERE R.b = S.b
        AND 5 * R.a < (SELECT COALESCE(SUM(c), 0) FROM S x WHERE x.b = R.b)""",
    "depth two": """SELECT COUNT(*) FROM R WHERE a < (SELECT COUNT(*) FROM S WHERE S.b = R.b
        AND S.c <= (SELECT COALESCE(SUM(a), 0) FROM R y WHERE y.b = S.b))""",
    "exists": """SELECT b, SUM(a) AS total FROM R WHERE EXISTS (SELECT * FROM S WHERE S.b = R.b AND S.c > R.a)
        GROUP BY b""",
    "not exists": """SELECT b, SUM(a) FROM R WHERE NOT EXISTS (SELECT 1 FROM S WHERE S.b = R.b) GROUP BY b""",
    "in": "SELECT COUNT(*) FROM R WHERE a IN (SELECT c FROM S WHERE S.b = R.b)",
    "not in": "SELECT DISTINCT a + 1 AS k FROM R WHERE a NOT IN (SELECT c FROM S)",
    "all": """SELECT COUNT(*) AS n, COALESCE(SUM(a), 0) AS s FROM R WHERE a >= ALL (SELECT c FROM
        S WHERE c < 3)""",
    "not all": "SELECT COUNT(*) FROM R WHERE NOT a > ALL (SELECT c FROM S WHERE S.b = R.b)",
    "any": "SELECT COUNT(*) FROM R WHERE a < ANY (SELECT c FROM S WHERE S.b = R.b) OR b = 2",
    "in groups": """SELECT COALESCE(SUM(a), 0) FROM R WHERE b IN
        (SELECT b FROM S GROUP BY b HAVING SUM(c) > 2)""",
    "all of groups": "SELECT COUNT(*) FROM R WHERE a >= ALL (SELECT COUNT(*) FROM S GROUP BY b)",
    "having": """SELECT b, COUNT(*) AS n, COALESCE(SUM(a), 0) AS s, AVG(a) AS m FROM R GROUP BY b
        HAVING COUNT(*) > 1 AND SUM(a) <> 1 ORDER BY s DESC, b""",
    "having a query": """SELECT b, SUM(c) AS s FROM S GROUP BY b
        HAVING 2 * SUM(c) >= (SELECT COALESCE(SUM(c), 0) FROM S) ORDER BY s DESC""",
    "having correlated": """SELECT b, COUNT(*) FROM R GROUP BY b
        HAVING COUNT(*) > (SELECT COUNT(*) FROM S WHERE S.b = R.b)""",
    "computed groups": """SELECT a + b AS k, COUNT(DISTINCT a) AS n, SUM(DISTINCT a) FROM R GROUP BY a + b
        ORDER BY 1""",
    "groups of text": "SELECT SUBSTRING(s FROM 1 FOR 1) AS h, COUNT(*) FROM T, S WHERE T.c = S.c GROUP BY h",
    "in from": "SELECT COALESCE(SUM(a), 0) FROM (SELECT a FROM R WHERE b > 0) x",
    "in from computed": """SELECT k, SUM(v) FROM (SELECT R.b AS k, a * c AS v FROM R, S WHERE R.b = S.b) x
        GROUP BY k""",
    "groups of groups": """SELECT n, COUNT(*) AS m FROM (SELECT b, COUNT(*) AS n FROM R GROUP BY b) t GROUP BY
        n""",
    "groups joined": """SELECT x.b, SUM(x.v * d) FROM (SELECT b, SUM(a) AS v FROM R GROUP BY b) x, S, T
        WHERE x.b = S.b AND S.c = T.c AND x.v > 1 GROUP BY x.b""",
    "one row in from": """SELECT COUNT(*) FROM R, (SELECT COALESCE(SUM(c), 0) AS v FROM S) t WHERE R.a <
        t.v""",
    "distinct in from": "SELECT COUNT(*), COALESCE(SUM(b), 0) FROM (SELECT DISTINCT b, a FROM R) x",
    "with": """WITH q AS (SELECT b, COALESCE(SUM(a), 0) AS v FROM R GROUP BY b)
        SELECT q1.b, COUNT(*) FROM q q1, q q2 WHERE q1.v > q2.v GROUP BY q1.b""",
    "with of with": """WITH q AS (SELECT b, a + 1 AS v FROM R),
        p(k, w) AS (SELECT b, SUM(v) FROM q GROUP BY b)
        SELECT COUNT(*), COALESCE(SUM(w), 0) FROM p WHERE k > 0""",
    "arithmetic": """SELECT b, SUM(a) * SUM(a) AS q, SUM(a) + COUNT(*) AS u, b * COUNT(*) AS v FROM R
        GROUP BY b""",
    "shares": """SELECT b, COUNT(*) * (SELECT COUNT(*) FROM S) AS x, COUNT(*) + (SELECT COUNT(*) FROM S
        WHERE S.b = R.b) AS y FROM R GROUP BY b""",
    "several": """SELECT COALESCE(SUM(a * c), 0) AS p, COALESCE(SUM(a + c), 0) AS s, COUNT(*) AS n
        FROM R JOIN S USING (b)""",
    "either": """SELECT COUNT(*) FROM R WHERE a > 2 OR (SELECT COUNT(*) FROM S WHERE S.b = R.b) > 1
        OR EXISTS (SELECT * FROM S WHERE S.c = R.a)""",
    "common factors": """SELECT COALESCE(SUM(a * c), 0) FROM R, S
        WHERE (R.b = S.b AND a > 1 AND c < 2) OR (R.b = S.b AND a < 1 AND c > 0)""",
    "case": """SELECT COALESCE(SUM(CASE WHEN EXISTS (SELECT * FROM S WHERE S.b = R.b) THEN a
        WHEN b BETWEEN 0 AND 1 THEN 10 ELSE (SELECT COUNT(*) FROM S) END), 0) FROM R""",
    "ranges": """SELECT x.broker, SUM(x.volume - y.volume) FROM BIDS x, BIDS y
        WHERE x.broker = y.broker AND x.t > y.t GROUP BY x.broker""",
    "far apart": """SELECT b.broker, SUM(a.volume) FROM BIDS b, BIDS a WHERE a.broker = b.broker
        AND (a.price - b.price > 1 OR b.price - a.price > 1) GROUP BY b.broker""",
    "power": "SELECT x.b, SUM(x.a * y.a) FROM R x, R y WHERE x.b = y.b GROUP BY x.b",
    "uncorrelated": """SELECT COALESCE(SUM(x.price - y.price), 0) FROM BIDS x, BIDS y
        WHERE 2 * x.volume > (SELECT COALESCE(SUM(volume), 0) FROM BIDS)
        AND 2 * y.volume < (SELECT COALESCE(SUM(volume), 0) FROM BIDS)""",
    "in the select list": "SELECT COALESCE(SUM(a), 0) - (SELECT COALESCE(SUM(c), 0) FROM S) AS d FROM R",
    "average inside": """SELECT COUNT(*) FROM R WHERE 2 * a > (SELECT COALESCE(AVG(c), 0) FROM S WHERE S.b =
        R.b)""",
    "floats": "SELECT COUNT(*) FROM R WHERE a > (SELECT COALESCE(SUM(x), 0) FROM S WHERE S.b = R.b)",
    "like": """SELECT COUNT(*) FROM S WHERE c IN (SELECT c FROM T WHERE s LIKE 'a%') AND c IN (1, 2)""",
    "never": """SELECT COUNT(*) AS n FROM (SELECT a FROM R GROUP BY a) x WHERE EXISTS (SELECT 1 FROM S)
        OR x.a <> 2 GROUP BY x.a HAVING COUNT(*) > 2""",
    "counts compared with rows": """SELECT COUNT(*) AS n FROM (SELECT COUNT(*) AS c FROM BIDS b, R
        WHERE b.t <> 2 GROUP BY b.volume) q, BIDS x WHERE q.c < x.volume GROUP BY x.price""",
    "either bound": """SELECT COUNT(*) FROM (SELECT z.c FROM (SELECT R.b AS k, S.x AS v FROM S JOIN R
        ON S.c = R.a WHERE R.b > S.b OR R.b >= S.x) q, S z WHERE q.v = z.b GROUP BY q.k, z.c) w, BIDS""",
    "a whole number and a float": """SELECT COALESCE(SUM(R.b), 0), COUNT(*) FROM R, S
        WHERE R.b = S.x AND EXISTS (SELECT * FROM BIDS WHERE broker = R.b)""",
    "a float among whole numbers": "SELECT COALESCE(SUM(b), 0) FROM S WHERE b IN (SELECT S.x FROM R)",
    "groups of a float": "SELECT S.x, SUM(R.b) FROM R, S WHERE R.b = S.x AND R.b <> S.b GROUP BY S.x",
    "global having": "SELECT SUM(a) FROM R HAVING COUNT(*) > 3",
    "names around": """SELECT COUNT(*) FROM R WHERE EXISTS (SELECT * FROM S WHERE S.b = R.b AND EXISTS
        (SELECT * FROM BIDS WHERE broker = a AND volume = c))""",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_oracle_duckdb_cases(case: str) -> None:
    """Rows in and out again, in batches of one size after the other."""
    follow(case, Options(), seed=1, sizes=(1, 5))


@pytest.mark.parametrize(
    "options",
    [Options(depth=0), Options(depth=1), Options(batch=False), Options(inputs=True, batch=False)],
    ids=["depth 0", "depth 1", "single rows", "inputs"],
)
@pytest.mark.parametrize(
    "case",
    ["vwap", "correlated", "exists", "having", "groups joined", "ranges", "counts compared with rows"],
)
def test_oracle_duckdb_options(case: str, options: Options) -> None:
    follow(CASES[case], options, seed=2, sizes=(3,))


@pytest.mark.parametrize("levels", [True, False])
def test_oracle_duckdb_quotients_are_rounded_once(levels: bool) -> None:
    """49 * (1 / 49) is not 1, and 9 * (1 / 3), if digits are kept, not 3."""
    text = "SELECT COUNT(*) AS n FROM R WHERE a <= b / 49"
    inside = "SELECT COUNT(*) AS n FROM R WHERE (SELECT AVG(a) FROM R) * -1 + 2 >= -1"
    for query, rows in ((text, [(1, 49), (3, 147), (2, 97)]), (inside, [(3, 3)] * 3)):
        kept = Maintained(parse_sql(declarations() + query, levels=levels))
        kept.apply("R", rows)
        duck().execute("DELETE FROM R")
        duck().executemany("INSERT INTO R VALUES (?, ?)", rows)
        assert [tuple(row.values()) for row in kept.result().to_pylist()] == duck().execute(query).fetchall()


def follow(text: str, options: Options, seed: int, sizes: tuple[int, ...]) -> None:
    rng = random.Random(seed)
    for size in sizes:
        followed = Followed(text, options, {"T": [row_of(rng, "T") for _ in range(6)]})
        followed.check()
        for batch in batches(stream(rng, followed.streams, 14), size):
            followed.apply(batch)
            followed.check()
        followed.check_empty()
