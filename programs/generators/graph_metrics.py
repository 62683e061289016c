"""A directed graph in several pieces for `graph_metrics.dl`, some nodes of it without edges."""

from collections import Counter
from itertools import combinations
from math import fsum

from common import Example


def main() -> None:
    example = Example("graph_metrics")
    rng = example.random
    nodes = set(range(1, 241))
    edges = set()
    for x in nodes:
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            y = 60 * ((x - 1) // 60) + 1 + int(60 * rng.random() ** 2)  # four pieces, low numbers are popular
            if x != y and x % 60 > 3:
                edges.add((x, y))
                if rng.random() < 0.3:
                    edges.add((y, x))
    example.facts("node", {(x,) for x in nodes})
    example.facts("edge", edges)

    out, into = Counter(x for x, _ in edges), Counter(y for _, y in edges)
    total = {x: out[x] + into[x] for x in nodes}
    top = max(total.values())
    mutual = {(x, y) for x, y in edges if (y, x) in edges}
    example.expected("degree", {(x, out[x], into[x]) for x in nodes})
    example.expected("degree_histogram", Counter(total.values()).items())
    example.expected("busiest", {(x, d) for x, d in total.items() if d == top})
    example.expected("edges", {(len(edges),)})
    example.expected("mutuals", {(len(mutual),)})
    example.expected("reciprocity", {(len(mutual) / len(edges),)})

    near = {x: {y for y in nodes if (x, y) in edges or (y, x) in edges} for x in nodes}
    clustering = set()
    for x in nodes:
        k = len(near[x])
        t = sum(1 for y, z in combinations(near[x], 2) if z in near[y])
        if k > 1:
            clustering.add((x, t, float(2 * t) / float(k * (k - 1))))
    example.expected("clustering", clustering)
    example.expected("mean_clustering", {(fsum(c for _, _, c in clustering) / len(clustering),)})

    component = {x: min(connected(x, near)) for x in nodes}
    size = Counter(component.values())
    example.expected("component", component.items())
    example.expected("component_size", size.items())
    example.expected("largest_component", {(c, n) for c, n in size.items() if n == max(size.values())})


def connected(start: int, near: dict[int, set[int]]) -> set[int]:
    seen, work = {start}, [start]
    while work:
        fresh = near[work.pop()] - seen
        seen |= fresh
        work += fresh
    return seen


if __name__ == "__main__":
    main()
