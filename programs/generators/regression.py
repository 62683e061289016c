"""Houses, schools and shops for `regression.dl`; cofactors over the joins, made row by row."""

from itertools import product
from math import fsum

from common import Example, Row


def main() -> None:
    example = Example("regression")
    rng = example.random
    postcodes = range(1, 7)
    houses = []
    for h in range(60):
        postcode, area = rng.choice(postcodes), rng.randrange(30, 200)
        houses.append((h, postcode, area, 20 + 3 * area + 10 * postcode + rng.randrange(-15, 16)))
    schools = [(s, rng.choice(postcodes), rng.randrange(1, 7)) for s in range(15)]
    shops = [(s, rng.choice(postcodes), rng.randrange(1, 32) / 8) for s in range(20)]
    example.facts("house", houses)
    example.facts("school", schools)
    example.facts("shop", shops)

    joined = [(price, area, mark) for (_, p, area, price), (_, q, mark) in product(houses, schools) if p == q]
    market = cofactor(("price", "area", "mark"), joined)
    example.expected("market", [(*place, int(value)) for place, value in market.items()])
    local: list[Row] = []
    for p in postcodes:
        near = [1.0 / (1.0 + km) for _, q, km in shops if q == p]
        rows = [(price, area, n) for (_, q, area, price), n in product(houses, near) if p == q]
        if rows:
            entries = cofactor(("price", "area", "near"), rows)
            local += [(p, *place, float(value)) for place, value in entries.items()]
    example.expected("local", local)
    n, x, y, xx, xy = (market[place] for place in LINE)
    example.expected("slope", [((n * xy - x * y) / (n * xx - x * x),)])


LINE = (("1", "1"), ("1", "area"), ("1", "price"), ("area", "area"), ("area", "price"))


def cofactor(names: tuple[str, ...], rows: list[tuple[float, ...]]) -> dict[tuple[str, str], float]:
    """Sums of products; each product is rounded, their sum once."""
    full = [(1.0, *map(float, row)) for row in rows]
    return {
        (a, b): fsum(row[i] * row[j] for row in full)
        for i, a in enumerate(("1", *names))
        for j, b in enumerate(("1", *names))
    }


if __name__ == "__main__":
    main()
