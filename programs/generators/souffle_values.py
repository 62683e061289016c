"""Expected outputs of the programs in `souffle/` about values, operators, functors and aggregates."""

import math
import re
from collections import Counter

from common import Example


def main() -> None:
    types()
    literals()
    operators()
    division()
    aggregates_of_marks()
    aggregates_of_orders()
    aggregates_of_games()
    functors()
    conditions()
    floats()
    unsigned()


def souffle(name: str) -> Example:
    return Example(f"souffle/{name}")


def types() -> None:
    example = souffle("subtypes")
    example.expected("city", [("Bern",), ("Vaduz",), ("Chur",)])
    example.expected("high", [("Bern",), ("Chur",), ("Matterhorn",)])
    example.expected("high_city", [("Bern",), ("Chur",)])

    example = souffle("union_types")
    example.expected("pet_of", [("Ida", "Mia"), ("Ida", "Tom"), ("Ida", "Bello"), ("Udo", "Rex")])
    example.expected("unchipped", [("Tom",), ("Bello",)])

    example = souffle("old_types")
    towns = ["Aarau", "Basel", "Chur"]
    people = {(f"P{i:02}", 7 * i % 60, towns[i * i % 3]) for i in range(25)}
    example.facts("person", people)
    together = {(n, m) for n, _, t in people for m, _, u in people if t == u and n < m}
    example.expected("adult", {(n, a) for n, a, _ in people if a >= 18})
    example.expected("together", together)
    example.expected_stdout(f"together\t{len(together)}\n")

    example = souffle("casts")
    example.expected("noun", [("house",), ("tree",)])
    example.expected("counted", [("house", 5), ("tree", 4)])
    example.expected("bits", [(0, 0), (17, 17)])


def literals() -> None:
    example = souffle("literals")
    numbers = [("0", 0), ("42", 42), ("-7", -7), ("0x1F", 31), ("0xff", 255), ("0b1011", 11)]
    numbers += [("10.0.0.1", 10 * 2**24 + 1), ("127.0.0.1", 127 * 2**24 + 1), ("2147483647", 2**31 - 1)]
    example.expected("as_number", numbers)
    example.expected("as_unsigned", [("42u", 42), ("0xFFu", 255), ("0b101u", 5), ("4294967295", 2**32 - 1)])
    example.expected("as_float", [("1.5", 1.5), ("-0.25", -0.25), ("2.0", 2.0), ("100.0", 100.0)])
    network = 10 * 2**24 + 1 * 2**16 + 2 * 2**8
    example.expected("in_network", [(network + 3, network), (network + 77, network)])

    example = souffle("escapes")
    texts = [
        ("quotes", 'she said "yes"'),
        ("backslash", "C:\\temp"),
        ("apostrophe", "it's"),
        ("slashes", "// no comment /* here */"),
        ("empty brackets", "[] () {}"),
    ]
    lengths = {(name, len(s)) for name, s in texts} | {("tab", 3), ("newline", 4), ("nothing", 0)}
    example.expected("text", texts)
    example.expected("length", lengths)
    example.expected("line_in_two", [(1,)])


def operators() -> None:
    example = souffle("precedence")
    values = {
        "2+3*4": 14,
        "(2+3)*4": 20,
        "20-5-3": 12,
        "100/10/5": 2,
        "17%10*2": 14,
        "2^3^2": 512,
        "2*3^2": 18,
        "-2^2": -4,
        "3--2": 5,
        "1+2 bshl 3": (1 + 2) << 3,
        "5 band 1+2": 5 & (1 + 2),
        "8 bor 7 band 3": 8 | (7 & 3),
        "1 bor 6 bxor 2": 1 | (6 ^ 2),
        "12 bxor 10 band 6": 12 ^ (10 & 6),
        "1 lor 0 land 0": 1,
        "1 lxor 1 land 0": 1,
        "lnot 0 + 1": 2,
        "bnot 0 band 12": ~0 & 12,
    }
    example.expected("value", values.items())

    example = souffle("bits")
    rng = example.random
    pairs = {(rng.randrange(0, 5000), rng.randrange(0, 5000)) for _ in range(40)}
    pairs |= {(64, 3), (1024, 1), (-1, 5), (-12, 10), (0, 0), (1, 1)}
    firsts = {x for x, _ in pairs}
    example.facts("pair", pairs)
    example.expected("both", {(x, y, x & y, x | y, x ^ y) for x, y in pairs})
    example.expected("inverted", {(x, ~x) for x in firsts})
    example.expected("shifted", {(x, x << 3, x >> 2, x >> 1) for x in firsts if x >= 0})
    example.expected("odd", {(x,) for x in firsts if x % 2})
    example.expected("power_of_two", {(2**n,) for n in range(14) if 2**n in firsts})

    example = souffle("logic_words")
    bits = (0, 1, 5)
    truth = {
        (x, y, int(bool(x and y)), int(bool(x or y)), int(bool(x) != bool(y))) for x in bits for y in bits
    }
    example.expected("truth", truth)
    example.expected("opposite", {(x, int(not x)) for x in bits})
    example.expected("implies", {(x, y) for x in bits for y in bits if not x or y})


def division() -> None:
    example = souffle("division")
    rng = example.random
    pairs = {(7, 3), (-7, 2), (-7, 3), (7, -3), (-7, -3), (0, 4), (9, 0), (-8, 4)}
    pairs |= {(rng.randrange(-200, 400), rng.randrange(-30, 60)) for _ in range(60)}
    example.facts("pair", pairs)
    quotient = {(x, y, math.trunc(x / y)) for x, y in pairs if y}
    example.expected("quotient", {(x, y, q, x - q * y) for x, y, q in quotient})
    example.expected("divides", {(y, x) for x, y, q in quotient if q * y == x})
    example.expected("gcd", {(x, y, math.gcd(x, y)) for x, y in pairs if x > 0 and y > 0})


def aggregates_of_marks() -> None:
    example = souffle("aggregate_atoms")
    rng = example.random
    marks = {(f"s{i:02}", c): rng.randrange(20, 101, 5) for i in range(20) for c in ("art", "bio", "geo")}
    example.facts("mark", {(s, c, p) for (s, c), p in marks.items()})
    points = list(marks.values())
    statistics = {"marks": len(points), "points": sum(points), "least": min(points), "most": max(points)}
    example.expected("statistics", statistics.items())
    kilos = [1.5, 4.25, 0.5, 0.75]
    example.expected("of_weights", {(4, sum(kilos), min(kilos), max(kilos), sum(kilos) / 4)})
    example.expected("best", {(s,) for (s, _), p in marks.items() if p == max(points)})

    example = souffle("aggregate_empty")
    example.expected("chairs", [("hall", 2, 65), ("attic", 0, 0)])
    example.expected("cheapest", [("hall", 25)])
    example.expected("dearest", [("hall", 40)])
    example.expected("empty", [("attic",)])


def aggregates_of_orders() -> None:
    example = souffle("aggregate_bodies")
    rng = example.random
    town = {f"c{i:02}": rng.choice(("Graz", "Linz", "Wels", "Enns")) for i in range(24)}
    orders = {100 + i: f"c{rng.randrange(20):02}" for i in range(60)}
    lines = {(o, rng.randrange(1, 6), rng.randrange(5, 80)) for o in orders for _ in range(2)}
    example.facts("customer", town.items())
    example.facts("order", orders.items())
    example.facts("line", lines)
    worth = Counter()
    for o, n, p in lines:
        worth[o] += n * p
    spent = {c: sum(w for o, w in worth.items() if orders[o] == c) for c in town}
    dearest: dict[str, int] = {}
    for o, _, p in lines:
        dearest[town[orders[o]]] = max(p, dearest.get(town[orders[o]], 0))
    size = Counter(town.values())
    over = {(c, sum(1 for o, w in worth.items() if orders[o] == c and w > 100)) for c in town}
    example.expected("spent", spent.items())
    example.expected("orders_over", over)
    example.expected("town", {(t, size[t], d) for t, d in dearest.items()})
    example.expected(
        "above_average", {(c,) for c, s in spent.items() if s * len(spent) > sum(spent.values())}
    )


def aggregates_of_games() -> None:
    example = souffle("aggregate_nested")
    rng = example.random
    players = [f"p{i:02}" for i in range(14)]
    games = {tuple(rng.sample(players, 2)) for _ in range(70)}
    games = {(w, lost) for w, lost in games if w != "p13"}
    example.facts("game", games)
    wins = {p: sum(1 for w, _ in games if w == p) for pair in games for p in pair}
    most = max(wins.values())
    example.expected("wins", wins.items())
    example.expected("champion", {(p, n) for p, n in wins.items() if n == most})
    example.expected("equals", {(p, sum(1 for m in wins.values() if m == n)) for p, n in wins.items()})
    example.expected("spread", {(most - min(wins.values()),)})


def functors() -> None:
    example = souffle("text_functors")
    names = [("Ada", "Lovelace"), ("Kurt", "Goedel"), ("Emmy", "Noether"), ("Alan", "Turing"), ("Jo", "Ng")]
    example.facts("name", names)
    example.expected("full", {(f"{f} {s}", len(f) + len(s) + 1) for f, s in names})
    example.expected("initials", {(f[0] + s[0],) for f, s in names})
    example.expected("letter", {(c,) for f, _ in names for c in f})
    example.expected("numbered", {(f"no. {n} of {n + 2}",) for n in range(1, 4)})
    example.expected("parsed", [("42", 42), ("-7", -7), ("007", 7)])
    example.expected("code", [("1.500000",), ("-3",), ("250",)])
    example.expected("same", {(f, f) for f, _ in names})

    example = souffle("number_functors")
    triples = [(3, 1, 2), (-5, 5, 0), (7, 7, 7)]
    example.expected("ends", {(*t, min(t), max(t)) for t in triples})
    example.expected("middle", {(*t, sorted(t)[1]) for t in triples})
    example.expected("half", {(t[0], t[0] / 2) for t in triples})
    example.expected("truncated", [(2.75, 2), (-2.75, -2), (4.0, 4)])
    example.expected("unsigned_of", [(3, 3), (7, 7)])
    example.expected("bounded", [(0.5,), (1.0,), (1.5,)])

    example = souffle("ranges")
    example.expected("up", {(x,) for x in range(3, 8)})
    example.expected("odd", {(x,) for x in range(1, 12, 2)})
    example.expected("down", {(x,) for x in range(10, 0, -4)})
    example.expected("downwards", {(3,), (2,), (1,)})  # without a step it goes down where the end is below
    example.expected("quarter", {(0.0,), (0.25,), (0.5,), (0.75,)})
    example.expected("natural", {(2,), (3,), (4,)})
    example.expected("staircase", {(x, y) for x in range(1, 5) for y in range(x)})


def conditions() -> None:
    example = souffle("conditions")
    words = (
        "ant banana Berlin bean bone cane Cat crane dawn ebbe echo ice idea orange pan Rome stone tree an ode"
    )
    words = set(words.split())
    example.facts("word", {(w,) for w in words})
    example.expected("short", {(w,) for w in words if len(w) <= 4})
    example.expected("with_an", {(w,) for w in words if "an" in w})
    example.expected("capital", {(w,) for w in words if w[0].isupper()})
    ends = re.compile("[aeiou][^aeiou]*[aeiou]")
    example.expected("vowels_only_at_ends", {(w,) for w in words if ends.fullmatch(w)})
    example.expected("no_match", {(w,) for w in words if "e" not in w and "o" not in w})
    example.expected("between", {(w,) for w in words if "b" <= w < "d"})
    pairs = {(v, w) for v in words for w in words if v < w and len(v) == len(w) and v[0] == w[0]}
    example.expected("pair", pairs)
    example.expected("always", [(1,)])
    example.expected("never", [])


def floats() -> None:
    example = souffle("floats")
    rng = example.random
    sticks = {f"stick{i:02}": rng.randrange(2, 32) / 8 for i in range(16)}
    example.facts("stick", sticks.items())
    lengths = list(sticks.values())
    longer = {(a, b, sticks[a] - sticks[b]) for a in sticks for b in sticks if sticks[a] - sticks[b] > 1.5}
    example.expected("scaled", {(s, 2 * x, x / 2, x * x) for s, x in sticks.items()})
    example.expected("longer", longer)
    example.expected("all", {(len(lengths), sum(lengths), min(lengths), max(lengths))})
    example.expected("negative", {(s, -x) for s, x in sticks.items() if x >= 2})


def unsigned() -> None:
    example = souffle("unsigned")
    sizes = {"a.txt": 0, "b.txt": 1, "c.bin": 512, "d.bin": 513, "e.iso": 4294960000, "f.img": 3000000000}
    sizes |= {"g.dat": 70000, "h.dat": 65535}
    example.facts("size", sizes.items())
    assert all(b + 511 < 2**32 for b in sizes.values()), "no sum may wrap in 32 bits"
    example.expected("blocks", {(f, (b + 511) // 512) for f, b in sizes.items()})
    example.expected("rest", {(f, b % 512) for f, b in sizes.items()})
    example.expected("large", {(f,) for f, b in sizes.items() if b > 3000000000})
    example.expected("flags", {(f, b & 0xF, b >> 8) for f, b in sizes.items()})
    small = [b for b in sizes.values() if b < 100000]
    example.expected("total", {(sum(small), max(sizes.values()))})


if __name__ == "__main__":
    main()
