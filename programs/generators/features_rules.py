"""Data of the small programs about rules: heads, bodies, functions, constraints, changes, recursion."""

from collections import Counter
from itertools import permutations

from common import Example, closure


def main() -> None:
    several_heads()
    disjunction()
    negated_conjunction()
    functions()
    constraints()
    deltas()
    lending()
    wildcards()
    ranges()
    project_plan()
    inferred_types()
    facts_and_rules()
    queens()
    two_syntaxes()


def several_heads() -> None:
    example = Example("several_heads")
    score = [("ada", 1, 12), ("ada", 2, 7), ("ada", 3, 20), ("bob", 1, 9), ("bob", 2, 30), ("cy", 2, 5)]
    players = {p for p, _, _ in score}
    points = {p: [s for q, _, s in score if p == q] for p in players}
    beats = {(p, q, r) for p, r, s in score for q, k, t in score if r == k and s > t}
    example.expected("player", {(p,) for p in players})
    example.expected("round_played", {(r,) for _, r, _ in score})
    example.expected("mark", {(p, r, "played", 10 * r) for p, r, _ in score})
    example.expected("total", {(p, sum(s)) for p, s in points.items()})
    example.expected("rounds", {(p, len(s)) for p, s in points.items()})
    example.expected("best", {(p, max(s)) for p, s in points.items()})
    example.expected("beats", beats)
    example.expected("lost_to", {(q, p) for p, q, _ in beats})


def disjunction() -> None:
    example = Example("disjunction")
    rng = example.random
    people = [f"n{i:02}" for i in range(24)]
    age = {p: rng.randrange(18, 85) for p in people}
    knows = {tuple(rng.sample(people, 2)) for _ in range(70)}
    knows |= {(y, x) for x, y in sorted(knows)[::4]} | {("n01", "n01")}
    works = {tuple(rng.sample(people, 2)) for _ in range(40)} | set(sorted(knows)[:8])
    example.facts("age", age.items())
    example.facts("knows", knows)
    example.facts("works_with", works)
    either = {(y, x) for x, y in knows} | knows
    example.expected("acquainted", either | works)
    young = {(x,) for x, n in age.items() if n < 30}
    example.expected("invited", young | {(x,) for y, x in knows if age[y] > 60})
    trusted = {(x, y) for x, y in knows if (y, x) in knows}
    trusted |= {(x, y) for x, y in works if age[x] > 50 or age[y] > 50}
    example.expected("trusted", {(x, y) for x, y in trusted if x != y})
    met = either | works | {(y, x) for x, y in works}
    example.expected("stranger", {(x, y) for x in people for y in people if x < y and (x, y) not in met})
    example.expected("contacts", Counter(x for x, _ in knows | works).items())


def negated_conjunction() -> None:
    example = Example("negated_conjunction")
    rng = example.random
    requires = {
        "physics": ["algebra", "analysis", "mechanics", "optics"],
        "maths": ["algebra", "analysis", "logic"],
        "music": ["harmony", "rhythm"],
    }
    courses = sorted({c for cs in requires.values() for c in cs})
    students = [f"s{i:02}" for i in range(40)]
    passed = {}
    for s in students[:-2]:
        for c in rng.sample(courses, rng.randrange(1, len(courses) + 1)):
            passed[s, c] = rng.choice((60, 70, 75, 80, 85, 90, 95, 100))
    for c in requires["maths"]:
        passed["s03", c] = 90
    example.facts("student", {(s,) for s in students})
    example.facts("requires", {(p, c) for p, cs in requires.items() for c in cs})
    example.facts("passed", {(s, c, g) for (s, c), g in passed.items()})

    def done(least: int) -> set:
        return {
            (s, p)
            for s in students
            for p, cs in requires.items()
            if all(passed.get((s, c), -1) >= least for c in cs)
        }

    grades = {s: [g for (t, _), g in passed.items() if s == t] for s in students}
    taken = {s: {c for t, c in passed if s == t} for s in students}
    example.expected("graduate", done(0))
    example.expected("with_honours", done(80))
    example.expected("varied", {(s,) for s, gs in grades.items() if gs and len(gs) == len(set(gs))})
    example.expected(
        "disjoint", {(s, t) for s in students for t in students if s < t and not taken[s] & taken[t]}
    )
    example.expected("idle", {(s,) for s, gs in grades.items() if not gs})


def functions() -> None:
    example = Example("functions")
    father = {"abel": "carl", "bert": "carl", "carl": "dirk", "dora": "emil", "dirk": "fred", "gwen": "bert"}
    born = {"abel": 1990, "bert": 1987, "carl": 1961, "dirk": 1933, "dora": 1992, "emil": 1960, "gwen": 2015}
    capital = {"x": "xanten", "y": "ypern"}
    people = {"xanten": 21600, "ypern": 35000, "zell": 4100}
    home = {"abel": "xanten", "bert": "zell", "carl": "ypern"}
    gap = {x: born[x] - born[father[x]] for x in father if x in born and father[x] in born}
    oldest = min(born.values())
    example.expected("grandfather", {(x, father[f]) for x, f in father.items() if f in father})
    example.expected("age_of_father", gap.items())
    example.expected(
        "half_brothers", {(x, y) for x in father for y in father if x < y and father[x] == father[y]}
    )
    example.expected(
        "lives_in_capital", {(x, c) for x, t in home.items() for c, u in capital.items() if t == u}
    )
    example.expected("young_father", {(x,) for x, n in gap.items() if n < 28})
    example.expected(
        "in_the_larger_town", {(x, y) for x in home for y in home if people[home[x]] > people[home[y]]}
    )
    example.expected("oldest_birth", {(oldest,)})
    example.expected("years_after_oldest", {(x, b - oldest) for x, b in born.items()})
    example.expected("no_father", {(x,) for x in born if x not in father})


def constraints() -> None:
    example = Example("constraints")
    rng = example.random
    flights = {f"DL{100 + i}": rng.choice((12, 18, 24)) for i in range(12)}
    leaves = {f: (f"2026-05-{1 + i % 4:02}", 6 + i // 4 * 5) for i, f in enumerate(sorted(flights))}
    rivals = {("DL100", "DL105"), ("DL105", "DL100")}
    passengers = {f"p{i:03}": rng.choice(("economy",) * 4 + ("first",)) for i in range(90)}
    booked: dict[tuple[str, str], int] = {}
    for p in passengers:
        for f in rng.sample(sorted(flights)[:-1], 2):  # the last flight stays empty
            mine = [g for q, g in booked if q == p]
            clash = any(leaves[f] == leaves[g] or (f, g) in rivals for g in mine)
            free = set(range(1, flights[f] + 1)) - {s for (_, g), s in booked.items() if f == g}
            if not clash and free:
                booked[p, f] = rng.choice(sorted(free))
    example.facts("flight", flights.items())
    example.facts("leaves", {(f, *when) for f, when in leaves.items()})
    example.facts("passenger", passengers.items())
    example.facts("booked", {(p, f, s) for (p, f), s in booked.items()})
    example.facts("rival", rivals)
    taken = Counter(f for _, f in booked)
    example.expected("taken", taken.items())
    example.expected("free", {(f, flights[f] - n) for f, n in taken.items()})
    example.expected("empty", {(f,) for f in flights if f not in taken})
    example.expected("first_class", Counter(f for p, f in booked if passengers[p] == "first").items())


def deltas() -> None:
    example = Example("deltas")
    stock = {"tea": 7, "rice": 4, "salt": 1, "oats": 3}
    shelf = {("tea", 1), ("rice", 2), ("oats", 3), ("salt", 5)}
    example.expected("stock", stock.items())
    example.expected("shelf", shelf)
    example.expected("items", {(len(stock),)})
    example.expected("pieces", {(sum(stock.values()),)})
    example.expected("alone", {(place, item) for item, place in shelf})


def lending() -> None:
    example = Example("lending")
    copies, lent, members = {1: 2, 2: 1, 3: 0}, {(2, "ann")}, {"ann", "bob"}
    example.expected("copies", copies.items())
    example.expected("loans", Counter(m for _, m in lent).items())
    example.expected("turn", {(3, 0, "ann")})
    example.expected("idle", {(m,) for m in members - {m for _, m in lent}})


def wildcards() -> None:
    example = Example("wildcards")
    rng = example.random
    places, airlines = [f"X{c}{d}" for c in "ABCDE" for d in "PQR"], ["red", "green", "blue"]
    flight = {(*rng.sample(places, 2), rng.choice(airlines)) for _ in range(60)}
    flight = {(x, y, "red" if x.endswith("P") else a) for x, y, a in flight if x != "XAQ" and y != "XER"}
    example.facts("flight", flight)
    leave, arrive = {x for x, _, _ in flight}, {y for _, y, _ in flight}
    example.expected("served", {(x,) for x in leave | arrive})
    example.expected("departs", {(x,) for x in leave})
    example.expected("never_departs", {(x,) for x in arrive - leave})
    example.expected("never_arrives", {(x,) for x in leave - arrive})
    by = {x: {a for y, _, a in flight if x == y} for x in leave}
    example.expected("monopoly", {(x, *names) for x, names in by.items() if len(names) == 1})
    example.expected("departures", Counter(x for x, _, _ in flight).items())
    example.expected("destinations", Counter(x for x, _ in {(x, y) for x, y, _ in flight}).items())
    example.expected("airlines", {(x, len(names)) for x, names in by.items()})


def ranges() -> None:
    example = Example("ranges")
    primes = [n for n in range(2, 101) if all(n % d for d in range(2, n))]
    triples = {
        (a, b, c) for a in range(1, 30) for b in range(a, 30) for c in range(b, 30) if a * a + b * b == c * c
    }
    example.expected("prime", {(p,) for p in primes})
    example.expected("twin", {(p, p + 2) for p in primes if p + 2 in primes})
    example.expected("pythagorean", triples)
    example.expected("table", {(x, y, x * y) for x in range(1, 6) for y in range(1, 6)})
    example.expected("even", {(n,) for n in range(0, 20, 2)})
    example.expected("countdown", {(n,) for n in range(10, 0, -3)})
    example.expected("below", {(n, m) for n in range(5) for m in range(n)})
    example.expected("nothing", [])


def project_plan() -> None:
    example = Example("project_plan")
    rng = example.random
    tasks = [f"task{i:02}" for i in range(40)]
    duration = {t: rng.randrange(1, 12) for t in tasks}
    needs = {(t, b) for i, t in enumerate(tasks) if i > 3 for b in rng.sample(tasks[max(0, i - 12) : i], 2)}
    example.facts("duration", duration.items())
    example.facts("needs", needs)
    start: dict[str, int] = {}
    for t in tasks:  # in an order in which prerequisites come first
        start[t] = max((start[b] + duration[b] for u, b in needs if u == t), default=0)
    end = max(start[t] + duration[t] for t in tasks)
    latest: dict[str, int] = {}
    for b in reversed(tasks):
        latest[b] = min((latest[t] - duration[b] for t, c in needs if c == b), default=end - duration[b])
    example.expected("start", start.items())
    example.expected("finish", {(t, start[t] + duration[t]) for t in tasks})
    example.expected("project_ends", {(end,)})
    example.expected("latest", latest.items())
    example.expected("slack", {(t, latest[t] - start[t]) for t in tasks})
    example.expected("critical", {(t,) for t in tasks if latest[t] == start[t]})


def inferred_types() -> None:
    example = Example("inferred_types")
    parent = {("ann", "bea"), ("bea", "cleo"), ("bea", "dan"), ("cleo", "eve")}
    born = {"ann": 1931, "bea": 1955, "cleo": 1978, "dan": 1981, "eve": 2004}
    height = {"ann": 1.62, "bea": 1.7, "dan": 1.815}
    ancestor = closure(parent)
    example.expected("ancestor", ancestor)
    example.expected("age_gap", {(x, y, born[y] - born[x]) for x, y in ancestor})
    example.expected("taller", {(x, y) for x in height for y in height if height[x] > height[y]})
    example.expected("tag", {(x, f"{x}/{y}") for x, y in born.items()})
    example.expected("descendants", Counter(x for x, _ in ancestor).items())


def facts_and_rules() -> None:
    example = Example("facts_and_rules")
    links = {(1, 2), (2, 3), (3, 1)}
    links |= {(y, x) for x, y in links}
    example.expected("link", links)
    example.expected("degree", Counter(x for x, _ in links).items())


def queens() -> None:
    example = Example("queens")
    boards = {
        rows
        for rows in permutations(range(1, 7))
        if all(abs(rows[i] - rows[j]) != j - i for j in range(6) for i in range(j))
    }
    example.expected("board", boards)


def two_syntaxes() -> None:
    example = Example("two_syntaxes")
    rng = example.random
    people = [f"e{i:02}" for i in range(60)]
    salary = {e: 30000 + 500 * rng.randrange(80) + 1500 * (60 - i) // 10 for i, e in enumerate(people)}
    manages = {(people[rng.randrange(i // 4, max(1, i // 2))], people[i]) for i in range(1, 60)}
    example.facts("salary", salary.items())
    example.facts("manages", manages)
    best: dict[str, int] = {}
    for b, e in closure(manages):
        best[b] = max(best.get(b, 0), salary[e])
    less = {(b,) for b, s in best.items() if salary[b] < s}
    example.expected("earns_less", less)
    example.expected("paid_less", less)
    example.expected("best_below", best.items())


if __name__ == "__main__":
    main()
