"""Facts and expected outputs of the programs in `souffle/` about files: parameters of input and output."""

from collections import Counter
from itertools import product

from common import Example, closure, lines

RULE = "-" * 15
DOUBLE_RULE = "=" * 15


def main() -> None:
    delimiters()
    headers()
    columns()
    rfc4180()
    compress()
    names()
    standard_output()
    print_sizes()
    limit_size()


def souffle(name: str) -> Example:
    return Example(f"souffle/{name}")


def delimiters() -> None:
    example = souffle("delimiters")
    birds = [("wren", 10, "brown"), ("robin", 14, "red"), ("great tit", 14, "yellow"), ("crow", 46, "black")]
    birds += [("jay", 34, "brown"), ("siskin", 12, "yellow"), ("blackbird", 25, "black")]
    plumage = [("brown", "sparrow"), ("yellow", "siskin"), ("black", "rook"), ("black", "crow")]
    example.facts("bird", birds, file="birds.txt", delimiter=",")
    example.facts("plumage", plumage, delimiter=" :: ")
    example.expected("small", {(n, c) for n, c, _ in birds if c < 20}, delimiter=";")
    alike = {(n, e) for n, _, c in birds for d, e in plumage if c == d and n != e}
    example.expected("looks_like", alike, file="looks.txt", delimiter=" ~ ")


def headers() -> None:
    example = souffle("headers")
    rng = example.random
    sales = {
        (day, rng.choice(("tea", "rum", "ale", "cider")), rng.randrange(1, 30))
        for day in range(1, 15)
        for _ in "abc"
    }
    example.facts("sale", sales, header=("day", "item", "pieces"))
    by_item, by_day = Counter(), Counter()
    for day, item, pieces in sales:
        by_item[item] += pieces
        by_day[day] += pieces
    example.expected("total", by_item.items(), header=("item", "pieces"))
    best = {(d, n) for d, n in by_day.items() if n > 60}
    example.expected("best_day", best, file="best.csv", delimiter=",", header=("day", "pieces"))


def columns() -> None:
    example = souffle("columns")
    rng = example.random
    towns = ["Oslo", "Bergen", "Narvik"]
    people = {
        (f"n{i:02}", rng.choice("abc"), rng.choice(towns), rng.randrange(1930, 2010)) for i in range(20)
    }
    example.facts("people", people, file="people.csv", delimiter=",")
    elder = {(a, b, t) for a, _, t, x in people for b, _, u, y in people if t == u and x < y}
    example.expected("born", {(year, name) for name, _, _, year in people})
    example.expected("elder", elder)


def rfc4180() -> None:
    example = souffle("rfc4180")
    books = [
        ("Emma", "Austen, Jane", 1815),
        ("Persuasion", "Austen, Jane", 1817),
        ("Moby-Dick; or, The Whale", "Melville, Herman", 1851),
        ('The "Canary" Murder Case', "Van Dine, S. S.", 1927),
        ("Ulysses", "Joyce, James", 1922),
        ("Dubliners", "Joyce, James", 1914),
        ('"Once More"', "Anon", 1801),
    ]
    text = "".join('"{}","{}",{}\n'.format(t.replace('"', '""'), a, y) for t, a, y in books)
    example.path("facts", "books.csv").write_text(text)
    old = {(t, y) for t, _, y in books if y < 1900 and '"' not in t}
    example.expected("old", old, delimiter=",", quote=True)
    example.expected("quoted", {(t,) for t, _, _ in books if '"' in t})
    example.expected("writes", Counter(a for _, a, _ in books).items(), delimiter=";", quote=True)


def compress() -> None:
    example = souffle("compress")
    rng = example.random
    links = {(rng.randrange(40), rng.randrange(40)) for _ in range(500)}
    example.facts("link", links, file="link.facts.gz")
    example.expected("back", {(x, y) for x, y in links if (y, x) in links}, file="back.csv.gz")
    example.expected("forth", {(x, y) for x, y in links if (y, x) not in links}, file="forth.gz")


def names() -> None:
    example = souffle("names")
    north, south, east = {"ice", "wind", "sea"}, {"ice", "sun", "sea"}, {"dawn", "sea"}
    example.facts("north", {(x,) for x in north})
    example.facts("antipode", {(x,) for x in south})
    example.facts("east", {(x,) for x in east}, file="sunrise.txt")
    example.expected("corners", product(north | south, east))
    example.expected("everywhere", {(x,) for x in north & south & east}, file="everywhere.txt")
    everything = {(x,) for x in north | south | east}
    example.expected("all", everything)
    example.expected("all", everything, file="copy.csv")


def standard_output() -> None:
    rows = lines([("Earth", 1), ("Mars", 2)])
    souffle("standard_output").expected_stdout(f"{RULE}\nwith_moons\n{DOUBLE_RULE}\n{rows}{DOUBLE_RULE}\n")


def print_sizes() -> None:
    example = souffle("print_sizes")
    rng = example.random
    edges = {(x, y) for x, y in ((rng.randrange(60), rng.randrange(60)) for _ in range(75)) if x != y}
    path = closure(edges)
    loops = {x for x, y in path if x == y}
    example.facts("edge", edges)
    example.expected_stdout(f"edge\t{len(edges)}\npath\t{len(path)}\nloop\t{len(loops)}\nnone\t0\n")


def limit_size() -> None:
    powers, x = set(), 1
    for n in range(20):
        powers.add((n, x))
        x = 3 * x % 1000
    souffle("limit_size").expected("power", powers)


if __name__ == "__main__":
    main()
