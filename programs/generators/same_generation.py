"""Families for `same_generation.dl`: five generations, most people with two parents in the one before."""

import itertools

from common import Example


def main() -> None:
    example = Example("same_generation")
    rng = example.random
    generations = [[f"p{g}_{i:02}" for i in range(size)] for g, size in enumerate((8, 14, 22, 30, 36))]
    parents: dict[str, set[str]] = {}
    for older, younger in itertools.pairwise(generations):
        for child in younger:
            parents[child] = set(rng.sample(older, rng.choice((1, 2, 2, 2))))
    # A marriage across generations: one person has a grandparent's sibling for a parent.
    parents["p4_00"].add("p2_00")

    example.facts("parent", {(c, p) for c, ps in parents.items() for p in ps})
    sibling = {(x, y) for x in parents for y in parents if x != y and parents[x] & parents[y]}
    grand = {x: {g for p in ps for g in parents.get(p, ())} for x, ps in parents.items()}
    example.expected("same_generation", same_generation(parents, sibling))
    cousins = {(x, y) for x in grand for y in grand if x != y and grand[x] & grand[y]} - sibling
    example.expected("cousin", cousins)
    example.expected("founder", {(p,) for ps in parents.values() for p in ps if p not in parents})


def same_generation(parents: dict[str, set[str]], sibling: set[tuple[str, str]]) -> set[tuple[str, str]]:
    children: dict[str, set[str]] = {}
    for child, ps in parents.items():
        for p in ps:
            children.setdefault(p, set()).add(child)
    known, work = set(sibling), list(sibling)
    while work:
        p, q = work.pop()
        for x in children.get(p, ()):
            for y in children.get(q, ()):
                if x != y and (x, y) not in known:
                    known.add((x, y))
                    work.append((x, y))
    return known


if __name__ == "__main__":
    main()
