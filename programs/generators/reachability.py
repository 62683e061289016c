"""Flights for `reachability.dl`: a few well-connected hubs, spokes to them, and some one-way charters."""

import itertools
from collections import Counter

from common import Example, closure


def main() -> None:
    Example("reach").expected("reach", [])  # the program for the prompt has no facts

    example = Example("reachability")
    rng = example.random
    airports = sorted({"".join(rng.choice("ABCDEFGHIKLMNOPRSTUVZ") for _ in range(3)) for _ in range(70)})
    hubs = airports[::12]
    flights = {(a, b) for a, b in itertools.pairwise(hubs)} | {(hubs[-1], hubs[1])}
    for airport in airports:
        if airport not in hubs:
            hub = rng.choice(hubs)
            flights |= {(hub, airport)} if rng.random() < 0.6 else {(airport, hub)}
    flights |= {tuple(rng.sample(airports, 2)) for _ in range(25)}

    reach = closure(flights)
    left, entered = {x for x, _ in flights}, {y for _, y in flights}
    example.facts("flight", flights)
    example.expected("reach", reach)
    example.expected("round_trip", {(x, y) for x, y in reach if (y, x) in reach and x < y})
    example.expected("one_way", {(x, y) for x, y in reach if (y, x) not in reach})
    example.expected("sink", {(x,) for x in entered - left})
    example.expected("source", {(x,) for x in left - entered})
    example.expected("destinations", Counter(x for x, _ in reach).items())


if __name__ == "__main__":
    main()
