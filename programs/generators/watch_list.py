"""A day of accesses for `watch_list.dl`: machines with a few users each, who mostly do the same."""

from common import Example

MACHINES, ACCESSES, USERS, ACTIONS = 240, 560, 90, 12


def main() -> None:
    example = Example("watch_list")
    rng = example.random
    access = set()
    for machine in range(1, MACHINES + 1):
        users = rng.sample(range(1, USERS + 1), 8)
        for i in range(ACCESSES):
            action = 1 if rng.random() < 0.7 else rng.randrange(1, ACTIONS + 1)
            access.add((machine, 2 * i, rng.choice(users[: 1 + rng.randrange(8)]), action))
    guarded = set(rng.sample(range(1, MACHINES + 1), 4))
    suspects = set(rng.sample(range(1, USERS + 1), 20))
    forbidden = {5, 9, 11}
    example.facts("access", access, file="access.facts.gz")
    example.facts("guarded", {(m,) for m in guarded})
    example.facts("suspect", {(u,) for u in suspects})
    example.facts("forbidden", {(a,) for a in forbidden})
    found = {r for r in access if r[0] in guarded and r[2] in suspects and r[3] in forbidden}
    example.expected("alert", found)


if __name__ == "__main__":
    main()
