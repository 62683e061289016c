"""Products for `bill_of_materials.dl`: a layered assembly graph whose lowest layer is bought."""

from collections import Counter
from decimal import Decimal

from common import Example, Scaled


def main() -> None:
    example = Example("bill_of_materials")
    rng = example.random
    layers = [[f"{kind}_{i}" for i in range(size)] for kind, size in
              (("bike", 6), ("assembly", 12), ("module", 18), ("piece", 24), ("stock", 30))]  # fmt: skip
    uses: dict[tuple[str, str], int] = {}
    for depth, layer in enumerate(layers[:-1]):
        below = layers[depth + 1] + (layers[-1] if depth else [])  # some stock goes in at any level
        for part in layer:
            for q in rng.sample(below, rng.randrange(2, 5)):
                uses[part, q] = rng.choice((1, 1, 1, 2, 2, 3, 4, 8))
    price = {p: Decimal(rng.randrange(5, 9000)) / 100 for p in layers[-1]}
    parts = {p for layer in layers for p in layer}
    example.facts("part", {(p,) for p in parts})
    example.facts("uses", {(p, q, n) for (p, q), n in uses.items()})
    example.facts("price", {(p, Scaled(c, 2)) for p, c in price.items()})

    amount, routes = Counter(), Counter()
    for part in parts:
        for q, n in all_paths(part, uses):
            amount[part, q] += n
            routes[part, q] += 1
    cost = dict(price)
    for part in parts - price.keys():
        cost[part] = sum(n * price[q] for (p, q), n in amount.items() if p == part and q in price)
    products = parts - {q for _, q in uses}
    material = {(p, q): n * price[q] for (p, q), n in amount.items() if q in price}
    dearest = set()
    for p in products:
        top = max((c for (r, _), c in material.items() if r == p), default=None)
        dearest |= {(p, q, Scaled(c, 2)) for (r, q), c in material.items() if r == p and c == top}
    example.expected("amount", {(p, q, n) for (p, q), n in amount.items()})
    example.expected("routes", {(p, q, n) for (p, q), n in routes.items()})
    example.expected("cost", {(p, Scaled(c, 2)) for p, c in cost.items() if c})
    example.expected("product", {(p,) for p in products})
    example.expected("dearest_material", dearest)


def all_paths(part: str, uses: dict[tuple[str, str], int]) -> list[tuple[str, int]]:
    """Where every path down from a part ends, with the product of the amounts along it."""
    paths = []
    work = [(part, 1)]
    while work:
        at, n = work.pop()
        for (p, q), m in uses.items():
            if p == at:
                paths.append((q, n * m))
                work.append((q, n * m))
    return paths


if __name__ == "__main__":
    main()
