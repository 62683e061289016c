"""A graph with a heavy head for `triangles.dl`, and dense groups for `four_cliques.dl`."""

from collections import Counter
from itertools import combinations
from random import Random

from common import Example


def main() -> None:
    triangles()
    four_cliques()


def triangles() -> None:
    example = Example("triangles")
    edges = preferential(example.random, nodes=300, per_node=4)
    edges |= {(y, x) for x, y in sorted(edges)[::9]}  # some are stored in both directions
    near = neighbours(edges)
    found = {(x, y, z) for x in near for y in near[x] if x < y for z in near[x] & near[y] if y < z}
    sides = Counter(pair for t in found for pair in combinations(t, 2))
    example.facts("edge", edges)
    example.expected("triangle", found)
    example.expected("triangles", {(len(found),)})
    example.expected("triangles_at", Counter(v for t in found for v in t).items())
    example.expected("diamonds_on", {(x, y, n * (n - 1) // 2) for (x, y), n in sides.items() if n > 1})


def four_cliques() -> None:
    example = Example("four_cliques")
    rng = example.random
    friends = {tuple(rng.sample(range(120), 2)) for _ in range(260)}
    for start in range(0, 120, 10):  # a dense circle of friends in every ten
        circle = range(start, start + 9)
        friends |= {tuple(rng.sample(pair, 2)) for pair in combinations(circle, 2) if rng.random() < 0.6}
    near = neighbours(friends)
    cliques = {
        (a, b, c, d)
        for a in near
        for b in near[a]
        if a < b
        for c in near[a] & near[b]
        if b < c
        for d in near[a] & near[b] & near[c]
        if c < d
    }
    count = Counter(x for clique in cliques for x in clique)
    example.facts("friend", friends)
    example.expected("clique", cliques)
    example.expected("cliques_of", {(x, count[x]) for x in near})
    example.expected_stdout(f"clique\t{len(cliques)}\n")


def preferential(rng: Random, nodes: int, per_node: int) -> set[tuple[int, int]]:
    """Each node links to earlier ones, popular ones more often."""
    ends, edges = [0, 1], {(1, 0)}
    for x in range(2, nodes):
        for y in sorted({rng.choice(ends) for _ in range(per_node)}):
            edges.add((x, y) if rng.random() < 0.5 else (y, x))
            ends += [x, y]
    return edges


def neighbours(edges: set[tuple[int, int]]) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {}
    for x, y in edges:
        near.setdefault(x, set()).add(y)
        near.setdefault(y, set()).add(x)
    return near


if __name__ == "__main__":
    main()
