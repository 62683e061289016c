"""Facts and expected outputs of the programs in `souffle/` about declarations, rules and the preprocessor."""

from collections import Counter
from random import Random

from common import Example, closure


def main() -> None:
    several_names()
    several_heads()
    disjunction()
    negated_groups()
    nullary()
    plans()
    pragmas()
    qualifiers()
    inlined()
    macros()
    includes()
    question_marks()
    comments()
    mutual_recursion()
    strata()


def souffle(name: str) -> Example:
    return Example(f"souffle/{name}")


def several_names() -> None:
    example = souffle("several_names")
    sets = [set(range(0, 40, step)) for step in (2, 3, 5)]
    for name, numbers in zip(("red", "green", "blue"), sets, strict=True):
        example.facts(name, {(x,) for x in numbers})
    red, green, blue = sets
    example.expected("yellow", {(x,) for x in red & green})
    example.expected("white", {(x,) for x in red & green & blue})
    example.expected("any", {(x, sum(x in s for s in sets)) for x in red | green | blue})


def several_heads() -> None:
    example = souffle("several_heads")
    parent = {(f"p{i:02}", f"p{i // 2:02}") for i in range(2, 30)}
    example.facts("parent", parent)
    example.expected("person", {(x,) for pair in parent for x in pair})
    example.expected("child_of", {(y, x) for x, y in parent})
    example.expected("related", parent | {(y, x) for x, y in parent})
    example.expected("grandparent", {(x, z) for x, y in parent for w, z in parent if y == w})
    example.expected("generation", [(2,)])


def disjunction() -> None:
    example = souffle("disjunction")
    rng = example.random
    towns = [f"T{c}" for c in "ABCDEFGHIJ"]
    flight = {tuple(rng.sample(towns, 2)) for _ in range(14)}
    train = {tuple(rng.sample(towns, 2)) for _ in range(14)} | set(sorted(flight)[:3])
    example.facts("flight", flight)
    example.facts("train", train)
    rail = train | {(y, x) for x, y in train}
    direct = flight | train
    example.expected("trip", flight | rail)
    example.expected("reach", {(*f, "air") for f in flight} | {(*r, "rail") for r in rail})
    example.expected("two_legs", {(x, z) for x, y in direct for w, z in direct if y == w and x != z})
    example.expected("both", flight & rail)


def negated_groups() -> None:
    example = souffle("negated_groups")
    rng = example.random
    dishes = ["beef", "fish", "rice", "beans", "kale"]
    eats = {f"p{i:02}": set(rng.sample(dishes, rng.randrange(0, 4))) for i in range(30)}
    example.facts("person", {(p,) for p in eats})
    example.facts("eats", {(p, d) for p, ds in eats.items() for d in ds})
    example.expected("vegetarian", {(p,) for p, ds in eats.items() if not ds & {"beef", "fish"}})
    example.expected("picky", {(p,) for p, ds in eats.items() if not {"rice", "beans"} <= ds})
    example.expected("fasting", {(p,) for p, ds in eats.items() if not ds})
    neither = {p for p, ds in eats.items() if not ds & {"rice", "beans"} and not {"fish", "beef"} <= ds}
    example.expected("neither", {(p,) for p in neither})


def nullary() -> None:
    example = souffle("nullary")
    for name, holds in (
        ("raining", True),
        ("umbrella", False),
        ("wet", True),
        ("dry", False),
        ("windy", False),
    ):
        example.expected(name, {()} if holds else set())
    example.expected("report", [("wet",), ("calm",)])


def random_edges(rng: Random, nodes: int, edges: int) -> set[tuple[int, int]]:
    return {tuple(rng.sample(range(1, nodes + 1), 2)) for _ in range(edges)}


def plans() -> None:
    example = souffle("plans")
    edges = random_edges(example.random, 30, 40) | {(4, 5), (5, 9), (9, 4)}
    path = closure(edges)
    example.facts("edge", edges)
    example.expected("path", path)
    example.expected("double", path)
    triangles = {
        (x, y, z) for x, y in edges for w, z in edges if y == w and (z, x) in edges and x < y and x < z
    }
    example.expected("triangle", triangles)


def pragmas() -> None:
    souffle("pragmas").expected("later", closure({(1, 2), (2, 3), (3, 4)}))


def qualifiers() -> None:
    example = souffle("qualifiers")
    edges = random_edges(example.random, 40, 60) | {(1, 7), (7, 9), (1, 9), (9, 41)}
    path = closure(edges)
    two = {(x, z) for x, y in edges for w, z in edges if y == w}
    example.facts("edge", edges)
    example.expected("path", path)
    example.expected("from_one", {(y,) for x, y in path if x == 1})
    example.expected("short_cut", edges & two)
    example.expected("sink", {(y,) for _, y in edges} - {(x,) for x, _ in edges})
    example.expected("four", {(x, z) for x, y in two for w, z in two if y == w})


def inlined() -> None:
    example = souffle("inlined")
    rng = example.random
    boxes = {f"box{i:02}": (rng.randrange(3, 40), rng.randrange(3, 40)) for i in range(25)}
    boxes |= {"cube": (18, 18), "crate": (39, 40), "beam": (2, 45)}
    example.facts("box", {(n, *size) for n, size in boxes.items()})

    def fits(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
        (w, h), (v, g) = inner, outer
        return (w < v and h < g) or (w < g and h < v)

    inside = {a for a in boxes for b in boxes if a != b and fits(boxes[a], boxes[b])}
    example.expected("large", {(n, w * h) for n, (w, h) in boxes.items() if w * h > 300})
    example.expected("oblong", {(n,) for n, (w, h) in boxes.items() if w != h})
    example.expected("outermost", {(n,) for n in boxes if n not in inside})


def macros() -> None:
    example = souffle("macros")
    edges = random_edges(example.random, 18, 60) | {(3, 3), (4, 4)}
    near = {(x, y) for x, y in edges if x != y}
    steps = {(x, y) for x, y in near if x < 12 and y < 12}
    example.facts("edge", edges)
    example.expected("step", steps)
    example.expected("size", [("large",)])
    example.expected("two_steps", {(x, z) for x, y in near for w, z in near if y == w and x < z < 12})
    example.expected("few", {(x,) for x, _ in steps if x < 5})


def includes() -> None:
    example = souffle("includes")
    edges = {(1, 2), (2, 3), (3, 4), (4, 2), (0, 1), (4, 5), (5, 6), (0, 7), (7, 1)}
    path = closure(edges)
    nodes = {x for pair in edges for x in pair}
    example.facts("edge", edges)
    example.expected("path", path)
    example.expected("before", {(y, x) for x, y in path})
    example.expected("everywhere", {(x,) for x in nodes if all(x == y or (x, y) in path for y in nodes)})


def question_marks() -> None:
    example = souffle("question_marks")
    rng = example.random
    people = [f"q{i:02}" for i in range(16)]
    knows = {tuple(rng.sample(people, 2)) for _ in range(60)}
    example.facts("Knows_", knows)
    example.expected("_mutual", {(x, y) for x, y in knows if (y, x) in knows and x < y})
    example.expected("popular", {(y, n) for y, n in Counter(y for _, y in knows).items() if n > 4})


def comments() -> None:
    example = souffle("comments")
    example.expected("a", [(1, 2), (2, 3)])
    example.expected("b", [(1,)])


def mutual_recursion() -> None:
    example = souffle("mutual_recursion")
    edges = random_edges(example.random, 30, 36) | {(1, 2), (2, 3), (3, 1)}
    example.facts("edge", edges)
    odd, even = set(edges), set()
    while True:
        known = len(odd) + len(even)
        even |= {(x, z) for x, y in odd for w, z in edges if y == w}
        odd |= {(x, z) for x, y in even for w, z in edges if y == w}
        if known == len(odd) + len(even):
            break
    example.expected("odd_path", odd)
    example.expected("on_odd_circle", {(x,) for x, y in odd if x == y})
    example.expected("only_even", even - odd)


def strata() -> None:
    example = souffle("strata")
    rng = example.random
    names = [f"lib{i:02}" for i in range(40)]
    depends = {
        (names[i], names[j]) for i in range(5, 40) for j in rng.sample(range(max(0, i - 12), i), 1 + i % 2)
    }
    depends |= {("app1", "core1"), ("app2", "core1"), ("app1", "core2"), ("app3", "core2"), ("app3", "lib30")}
    broken = {"lib23", "lib30"}
    example.facts("depends", depends)
    example.facts("broken", {(x,) for x in broken})
    packages = {x for pair in depends for x in pair}
    needs = closure(depends)
    failing = broken | {x for x, y in needs if y in broken}
    fine = packages - failing
    unsafe = {y for x, y in needs if x not in fine}
    example.expected("cannot_build", {(x,) for x in failing})
    example.expected("can_build", {(x,) for x in fine})
    example.expected("safe", {(y,) for _, y in needs if y in fine and y not in unsafe})
    example.expected("leaf", {(x,) for x in fine - {x for x, _ in depends}})


if __name__ == "__main__":
    main()
