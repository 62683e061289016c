"""A random object-oriented program for `call_graph.dl`: classes in a tree, methods that create, copy,
store, load and call, with main as the only entry."""

from dataclasses import dataclass, field
from random import Random

from common import Example

RELATIONS = [
    "extends",
    "defines",
    "new",
    "object_class",
    "assign",
    "load",
    "store",
    "virtual_call",
    "static_call",
    "this",
    "formal",
    "actual",
    "returns",
    "result",
    "entry",
]


@dataclass
class Program:
    """The facts, by relation."""

    rows: dict[str, set] = field(default_factory=lambda: {name: set() for name in RELATIONS})

    def add(self, relation: str, *row: object) -> None:
        self.rows[relation].add(row)

    def __getitem__(self, relation: str) -> set:
        return self.rows[relation]


def main() -> None:
    example = Example("call_graph")
    program = random_program(example.random)
    for name in RELATIONS:
        example.facts(name, program[name])
    lookup = method_lookup(program)
    reachable, calls, points_to = analyse(program, lookup)
    targets = {
        (i, sum(1 for j, _ in calls if j == i)) for m, i, _, _ in program["virtual_call"] if m in reachable
    }
    example.expected("lookup", {(c, s, m) for (c, s), m in lookup.items()})
    example.expected("reachable", {(m,) for m in reachable})
    example.expected("calls", calls)
    example.expected("points_to", points_to)
    example.expected("dead", {(m,) for _, _, m in program["defines"] if m not in reachable})
    example.expected("targets", targets)
    example.expected("monomorphic", {(i,) for i, n in targets if n == 1})


def random_program(rng: Random) -> Program:
    program = Program()
    classes = ["Object"] + [f"C{i}" for i in range(1, 24)]
    for i, name in enumerate(classes[1:], 1):
        program.add("extends", name, classes[rng.randrange(max(0, i - 6), i)])
    signatures = ["run", "visit", "close", "equals", "copy"]
    methods = [("main", 0)]
    for name in classes:
        for s in signatures:
            if name == "Object" or rng.random() < 0.35:
                method = f"{name}.{s}"
                program.add("defines", name, s, method)
                program.add("this", method, f"{method}/this")
                methods.append((method, 1))
    methods += [(f"helper{i}", 1) for i in range(10)]
    program.add("entry", "main")
    for method, arguments in methods:
        random_body(rng, program, method, arguments, classes, signatures)
    return program


def random_body(
    rng: Random, program: Program, method: str, arguments: int, classes: list[str], signatures: list[str]
) -> None:
    local = [f"{method}/{x}" for x in "abcde"]
    if arguments:
        program.add("formal", method, 0, f"{method}/arg")
    known = local + [f"{method}/arg"] * arguments
    if any(m == method for _, _, m in program["defines"]):
        known.append(f"{method}/this")
    for v in rng.sample(local, 1 if method != "main" else 5):
        site = f"{method}/new_{v[-1]}"
        program.add("new", method, v, site)
        program.add("object_class", site, rng.choice(classes[1:]))
    program.add("assign", rng.choice(local), rng.choice(known))
    if rng.random() < 0.2:
        program.add("store", rng.choice(known), rng.choice("fg"), rng.choice(known))
    if rng.random() < 0.2:
        program.add("load", rng.choice(local), rng.choice(known), rng.choice("fg"))
    for n in range(2 if method != "main" else 8):
        call = f"{method}/call{n}"
        if rng.random() < 0.7 or method == "main":
            program.add("virtual_call", method, call, rng.choice(known), rng.choice(signatures))
        else:
            program.add("static_call", method, call, f"helper{rng.randrange(10)}")
        program.add("actual", call, 0, rng.choice(known))
        program.add("result", call, rng.choice(local))
    program.add("returns", method, rng.choice(known))


def method_lookup(program: Program) -> dict[tuple[str, str], str]:
    """What a class offers: its own methods, else those of its superclass."""
    super_of = dict(program["extends"])
    own = {(c, s): m for c, s, m in program["defines"]}
    classes = set(super_of) | set(super_of.values())
    signatures = {s for _, s in own}
    lookup = {}
    for c in classes:
        for s in signatures:
            at: str | None = c
            while at is not None and (at, s) not in own:
                at = super_of.get(at)
            if at is not None:
                lookup[c, s] = own[at, s]
    return lookup


def analyse(program: Program, lookup: dict[tuple[str, str], str]) -> tuple[set, set, set]:
    """Round after round over the whole program, until a round finds nothing new."""
    class_of = dict(program["object_class"])
    this, returns, result = dict(program["this"]), dict(program["returns"]), dict(program["result"])
    formal = {(m, n): v for m, n, v in program["formal"]}
    reachable = {m for (m,) in program["entry"]}
    calls: set = set()
    points_to: set = set()
    heap: set = set()
    flows = set(program["assign"])
    while True:
        known = tuple(map(len, (reachable, calls, points_to, heap, flows)))
        points_to |= {(v, o) for m, v, o in program["new"] if m in reachable}
        calls |= {(i, m) for caller, i, m in program["static_call"] if caller in reachable}
        for caller, i, receiver, s in program["virtual_call"]:
            for v, o in list(points_to):
                if caller in reachable and v == receiver and (class_of[o], s) in lookup:
                    callee = lookup[class_of[o], s]
                    calls.add((i, callee))
                    points_to.add((this[callee], o))
        reachable |= {m for _, m in calls}
        for i, m in calls:
            flows |= {(formal[m, n], w) for j, n, w in program["actual"] if i == j and (m, n) in formal}
            if i in result and m in returns:
                flows.add((result[i], returns[m]))
        at: dict[str, set[str]] = {}
        for v, o in points_to:
            at.setdefault(v, set()).add(o)
        for v, w in flows:
            points_to |= {(v, o) for o in at.get(w, ())}
        for b, f, w in program["store"]:
            heap |= {(base, f, o) for base in at.get(b, ()) for o in at.get(w, ())}
        for v, b, f in program["load"]:
            points_to |= {(v, o) for base, g, o in heap if g == f and base in at.get(b, ())}
        if known == tuple(map(len, (reachable, calls, points_to, heap, flows))):
            return reachable, calls, points_to


if __name__ == "__main__":
    main()
