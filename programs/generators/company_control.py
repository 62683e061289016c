"""Holdings for `company_control.dl`: pyramids of companies, checked to settle within three rounds."""

from collections import Counter, defaultdict
from decimal import Decimal

from common import Example, Scaled


def main() -> None:
    example = Example("company_control", seed=1)
    rng = example.random
    trees = ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Oak")
    trades = ("Holding", "Trading", "Energy", "Foods", "Labs", "Media")
    companies = [f"{tree} {trade}" for tree in trees for trade in trades]
    owns: dict[tuple[str, str], Decimal] = {}
    for i, company in enumerate(companies):
        free = Decimal(100)
        older = companies[: 2 * i // 3]  # keeps chains short
        for owner in rng.sample(older, min(len(older), rng.randrange(1, 4))):
            share = min(free, Decimal(rng.choice((1500, 2050, 2601, 3175, 5001, 5125, 6000))) / 100)
            if share > 0:
                owns[owner, company] = share
                free -= share
    acts, rounds = control(companies, owns)
    assert rounds == 3, f"the program has three rounds, the data need {rounds}"
    example.facts("owns", {(x, y, Scaled(s, 2)) for (x, y), s in owns.items()})

    known = {c for pair in owns for c in pair}
    controls = {(x, y) for x, y in acts if x != y}
    held = holdings(acts, owns)
    independent = known - {y for _, y in controls}
    example.expected("controls", controls)
    example.expected("stake", {(x, y, Scaled(held[x, y], 2)) for x, y in controls})
    example.expected("independent", {(x,) for x in independent})
    example.expected("group_size", Counter(x for x, _ in controls if x in independent).items())


def control(companies: list[str], owns: dict[tuple[str, str], Decimal]) -> tuple[set[tuple[str, str]], int]:
    """The pairs where one acts for the other, and the rounds that found something new."""
    acts = {(x, x) for x in companies}
    rounds = 0
    while True:
        more = {pair for pair, share in holdings(acts, owns).items() if share > 50} - acts
        if not more:
            return acts, rounds
        acts |= more
        rounds += 1


def holdings(acts: set, owns: dict[tuple[str, str], Decimal]) -> dict[tuple[str, str], Decimal]:
    """What x holds of z, directly and through those it acts for."""
    held: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for x, y in acts:
        for (owner, z), share in owns.items():
            if owner == y:
                held[x, z] += share
    return held


if __name__ == "__main__":
    main()
