"""Towns and roads for `shortest_paths.dl`: random points, roads between near ones, two of them cut off."""

import heapq

from common import Example


def main() -> None:
    example = Example("shortest_paths")
    rng = example.random
    towns = range(1, 181)
    at = {t: (rng.random(), rng.random()) for t in towns}
    roads = set()
    for x in towns:
        nearest = sorted(
            (((at[x][0] - at[y][0]) ** 2 + (at[x][1] - at[y][1]) ** 2) ** 0.5, y) for y in towns if y != x
        )
        for length, y in nearest[:2] + nearest[5:6]:
            roads.add((x, y, 2 + int(length * 200) + rng.randrange(6)))
    roads |= {(901, 902, 7), (902, 903, 9)}  # an island
    depots = [3, 77]
    example.facts("road", roads)
    example.facts("depot", [(d,) for d in depots])

    link: dict[tuple[int, int], int] = {}
    for x, y, w in roads:
        for pair in ((x, y), (y, x)):
            link[pair] = min(w, link.get(pair, w))
    dist = {(s, x): d for s in depots for x, d in dijkstra(link, s).items()}
    nearest_depot = {x: min(dist[s, x] for s in depots if (s, x) in dist) for _, x in dist}
    far = max(nearest_depot.values())
    example.expected("dist", {(s, x, d) for (s, x), d in dist.items()})
    example.expected("on_route", {
        (s, x, y) for (x, y), w in link.items() for s in depots
        if (s, x) in dist and dist[s, y] == dist[s, x] + w
    })  # fmt: skip
    example.expected("served_by", {(x, s) for (s, x), d in dist.items() if d == nearest_depot[x]})
    example.expected("cut_off", {(x,) for x, _ in link if x not in nearest_depot})
    example.expected("farthest", {(x, d) for x, d in nearest_depot.items() if d == far})


def dijkstra(link: dict[tuple[int, int], int], start: int) -> dict[int, int]:
    done: dict[int, int] = {}
    queue = [(0, start)]
    while queue:
        d, x = heapq.heappop(queue)
        if x not in done:
            done[x] = d
            for (a, y), w in link.items():
                if a == x and y not in done:
                    heapq.heappush(queue, (d + w, y))
    return done


if __name__ == "__main__":
    main()
