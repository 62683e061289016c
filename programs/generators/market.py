"""Houses, shops, schools and stops for `views/market.dl`; sums of a postcode as products of smaller ones."""

from decimal import Decimal

from common import Example

POSTCODES, EACH = 12, 26


def main() -> None:
    example = Example("views")
    rng = example.random
    numbers = [(i, 1 + i % POSTCODES) for i in range(POSTCODES * EACH)]
    houses = [(i, p, Decimal(rng.randrange(5_000, 60_000)) / 100) for i, p in numbers]
    shops = [(i, p, rng.randrange(100)) for i, p in numbers]
    schools = [(i, p, rng.randrange(1, 7)) for i, p in numbers]
    stops = [(i, p, rng.randrange(30)) for i, p in numbers]
    for name, rows in (("house", houses), ("shop", shops), ("school", schools), ("stop", stops)):
        example.facts(name, rows)
    demand, offers = [], []
    for postcode in range(1, POSTCODES + 1):
        prices = [price for _, p, price in houses if p == postcode]
        sales = [n for _, p, n in shops if p == postcode]
        good = sum(p == postcode and mark > 1 for _, p, mark in schools)
        near = sum(p == postcode for _, p, _ in stops)
        demand.append((postcode, sum(prices) * sum(sales) * good * near))
        offers.append((postcode, len(prices) * len(sales) * good * near))
    example.expected("demand", demand)
    example.expected("offers", offers)


if __name__ == "__main__":
    main()
