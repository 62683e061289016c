"""Statements of a random little program for `points_to.dl`: short chains of copies, few fields."""

from common import Example


def main() -> None:
    example = Example("points_to")
    rng = example.random
    variables = [f"v{i}" for i in range(220)]
    fields = ["left", "right", "value", "next"]
    new = {(rng.choice(variables), f"o{i}") for i in range(110)}
    assign = {tuple(rng.sample(variables, 2)) for _ in range(155)}
    load = {(*rng.sample(variables, 2), rng.choice(fields)) for _ in range(75)}
    store = {(b, rng.choice(fields), w) for b, w in (rng.sample(variables, 2) for _ in range(75))}
    for name, rows in (("new", new), ("assign", assign), ("load", load), ("store", store)):
        example.facts(name, rows)

    points_to, heap = analyse(new, assign, load, store)
    example.expected("points_to", points_to)
    example.expected("heap_points_to", heap)
    example.expected("may_read", may_read(points_to, load, store))
    example.expected("never_stored", {(o,) for _, o in new} - {(o,) for _, _, o in heap})


def analyse(new: set, assign: set, load: set, store: set) -> tuple[set, set]:
    """Applies every statement to everything known, over and over, until nothing is new."""
    points_to, heap = set(new), set()
    while True:
        known = len(points_to), len(heap)
        at: dict[str, set[str]] = {}
        for v, o in points_to:
            at.setdefault(v, set()).add(o)
        for v, w in assign:
            points_to |= {(v, o) for o in at.get(w, ())}
        for b, f, w in store:
            heap |= {(base, f, o) for base in at.get(b, ()) for o in at.get(w, ())}
        for v, b, f in load:
            points_to |= {(v, o) for base, g, o in heap if g == f and base in at.get(b, ())}
        if known == (len(points_to), len(heap)):
            return points_to, heap


def may_read(points_to: set, load: set, store: set) -> set:
    return {
        (v, w, f)
        for v, b, f in load
        for c, g, w in store
        if f == g and any((c, o) in points_to for x, o in points_to if x == b)
    }


if __name__ == "__main__":
    main()
