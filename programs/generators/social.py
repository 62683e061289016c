"""A social network for `social.dl`, and the worked example of `retweets.dl`.

    python programs/generators/social.py                            the files that are shipped
    python programs/generators/social.py --scale 0.01 --to FOLDER   larger ones

At scale 1 there are 1 million users, 11 million followers, 6 million tweets and 7 million retweets, as in
the experiments of the thesis on GraphIVM (figure 9.2).  `--followers 100 --scale 0.01` is its small network.
As in the data of BSMA-Gen, tweets are a Poisson process.  How often a tweet is retweeted follows a power law,
and when it is retweeted decays exponentially; retweets are retweeted, too.

Expected outputs are computed with loops over dicts, never with dlog.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from pathlib import Path
from random import Random

from common import Example, Row, lines

USERS, FOLLOWERS, TWEETS, RETWEETS = 1_000_000, 11, 6, 7  # at scale 1; the others for each user
DAYS = 365.0
AGAIN = 0.35  # of all retweets are retweets of retweets
DELAY = 2.0  # days after which a tweet is retweeted, on average
POWER = 1.5  # of the power laws of followers and of retweets
CHAIN = 5  # joins of the longest queries


@dataclass(frozen=True)
class Network:
    """Rows in the order in which they came."""

    users: list[Row]
    followers: list[Row]  # user, who follows
    tweets: list[Row]  # user, tweet, day
    retweets: list[Row]  # user, retweet, what it retweets, day

    @property
    def relations(self) -> dict[str, list[Row]]:
        return {
            "user": self.users,
            "follower": self.followers,
            "tweet": self.tweets,
            "retweet": self.retweets,
        }


def network(users: int, followers: int, tweets: int, retweets: int, seed: int = 1) -> Network:
    """The same one for the same arguments."""
    rng = Random(f"social {seed}")
    follows = _followers(rng, users, followers)
    times = _poisson(rng, tweets)
    posted: list[tuple[float, int]] = [(time, rng.randrange(users)) for time in times]
    ends = sorted({u for u, _ in follows})
    seen_by: dict[int, list[int]] = defaultdict(list)
    for u, f in follows:
        seen_by[u].append(f)
    again: list[tuple[float, int, int]] = []  # time, user, place of what is retweeted
    sources = range(tweets)
    for number in _generations(retweets):
        first = len(posted)
        for source in _popular(rng, sources, number):
            time, author = posted[source]
            audience = seen_by.get(author) or ends or range(users)
            posted.append((time + rng.expovariate(1 / DELAY), rng.choice(audience)))
            again.append((*posted[-1], source))
        sources = range(first, len(posted))
    names = _names(posted, tweets)
    return Network(
        [(u,) for u in range(users)],
        follows,
        [(user, names[i], int(time)) for i, (time, user) in enumerate(posted[:tweets])],
        sorted(
            ((u, names[tweets + i], names[source], int(time)) for i, (time, u, source) in enumerate(again)),
            key=lambda row: row[1],
        ),
    )


def _followers(rng: Random, users: int, number: int) -> list[Row]:
    """Different pairs: half of them at random, half by a power law, which favours users with low numbers."""
    found: dict[tuple[int, int], None] = {}
    number = min(number, users * (users - 1) // 2)
    exponent = POWER / (POWER - 1)
    while len(found) < number:
        u = rng.random()
        pair = int(users * (u if len(found) % 2 else u**exponent)), rng.randrange(users)
        if pair[0] != pair[1]:
            found[pair] = None
    return list(found)


def _poisson(rng: Random, number: int) -> list[float]:
    """Times of a Poisson process: the gaps between them have an exponential distribution."""
    gaps = [rng.expovariate(1.0) for _ in range(number + 1)]
    whole = sum(gaps)
    return [DAYS * time / whole for time in accumulate(gaps[:number])]


def _generations(retweets: int) -> Iterator[int]:
    """How many are retweets of tweets, of these, of those, and so on."""
    while retweets:
        number = max(1, round(retweets * (1 - AGAIN)))
        yield number
        retweets -= number


def _popular(rng: Random, sources: range, number: int) -> list[int]:
    """So many of the sources, each as often as its popularity says."""
    ends = list(accumulate(rng.paretovariate(POWER) for _ in sources))
    return [sources[bisect_left(ends, rng.random() * ends[-1])] for _ in range(number)]


def _names(posted: list[tuple[float, int]], tweets: int) -> list[int]:
    """Numbers of tweets and of retweets, in the order of time; tweets come first."""
    order = [*range(tweets), *sorted(range(tweets, len(posted)), key=posted.__getitem__)]
    names = [0] * len(posted)
    for name, place in enumerate(order):
        names[place] = name
    return names


# What the queries find


class Found:
    """Rows by what they join on."""

    def __init__(self, data: Network):
        self.data = data
        self.followers: dict[int, list[int]] = defaultdict(list)
        self.tweets: dict[int, list[Row]] = defaultdict(list)
        self.retweets: dict[int, list[tuple[int, int]]] = defaultdict(list)  # user, retweet
        for u, f in data.followers:
            self.followers[u].append(f)
        for row in data.tweets:
            self.tweets[row[0]].append(row)
        for u, r, t, _ in data.retweets:
            self.retweets[t].append((u, r))

    def queries(self) -> dict[str, Iterable[Row]]:
        data = self.data
        timeline = [(f, u, t) for u, t, _ in data.tweets for f in self.followers[u]]
        third = [(u, t, v, r) for u, t, _ in data.tweets for v, r in self.retweets[t]]
        found: dict[str, Iterable[Row]] = {
            "q1": data.tweets,
            "q2": timeline,
            "q3": third,
            "q1_agg": Counter(u for u, _, _ in data.tweets).items(),
            "q2_agg": Counter(f for f, _, _ in timeline).items(),
            "q3_agg": Counter(row[0] for row in third).items(),
            "q_fan_out": [(f, g, u, t, d) for u, t, d in data.tweets for g, f in self.downwards(u, 2)],
        }
        for joins in range(2, CHAIN + 1):
            found[f"q_followers_{joins}"] = self.follower_chain(joins)
            found[f"q_retweets_{joins}"] = self.retweet_chain(joins)
        return found

    def downwards(self, u: int, steps: int) -> Iterator[tuple[int, ...]]:
        """A follower of u, one of his or hers, and so on."""
        if not steps:
            yield ()
            return
        for f in self.followers[u]:
            for rest in self.downwards(f, steps - 1):
                yield f, *rest

    def follower_chain(self, joins: int) -> Iterator[Row]:
        """Of two joins only the last follower is shown."""
        for u, t, _ in self.data.tweets:
            for path in self.downwards(u, joins):
                yield (path[-1], u, t) if joins == 2 else (*reversed(path), u, t)

    def retweet_chain(self, joins: int) -> Iterator[Row]:
        for first in {t for _, _, t, _ in self.data.retweets}:
            for path in self.retweeted(first, joins):
                for f in self.followers[path[-1][0]]:
                    if joins == 2:
                        yield first, f
                    elif joins == 3:
                        yield first, *(r for _, r in path), f
                    else:
                        yield first, *(value for pair in path for value in pair), f

    def retweeted(self, t: int, steps: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """A retweet of t, one of that, and so on."""
        if not steps:
            yield ()
            return
        for user, r in self.retweets[t]:
            for rest in self.retweeted(r, steps - 1):
                yield (user, r), *rest


# The worked example

USER = [("joe", "m", "USA"), ("bob", "m", "USA"), ("alice", "f", "USA"), ("cathy", "m", "Canada")]
TWEET = [("joe", "t1", date(2015, 2, 2)), ("joe", "t9", date(2015, 2, 3))]
RETWEET = [("t2", "bob", "t1"), ("t3", "bob", "t1"), ("t4", "alice", "t1"), ("t6", "bob", "t3")]
FOLLOWER = [("joe", "bob"), ("joe", "alice"), ("cathy", "bob")]


def worked_example() -> None:
    example = Example("retweets")
    for name, rows in (("user", USER), ("tweet", TWEET), ("retweet", RETWEET), ("follower", FOLLOWER)):
        example.facts(name, rows)
    joined = [
        (u, gender, country, t, day, v)
        for u, gender, country in USER
        for author, t, day in TWEET
        for _, v, source in RETWEET
        if u == author and t == source
    ]
    assert len(joined) == 3 and len(set(joined)) == 2, "bob retweets t1 twice"
    example.expected("retweet_tracker", joined)
    example.expected("tweet_reach", Counter(row[0] for row in joined).items())
    example.expected("timeline", [(u, f, t, day) for u, f in FOLLOWER for v, t, day in TWEET if u == v])


def shipped() -> None:
    example, data = Example("social"), network(10, 20, 12, 40)
    for name, rows in data.relations.items():
        example.facts(name, rows)
    for name, rows in Found(data).queries().items():
        example.expected(name, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="write a social network")
    parser.add_argument("--scale", type=float, help="a part of 1 million users; without it: what is shipped")
    parser.add_argument("--followers", type=float, default=FOLLOWERS, help="of each user, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, help="the folder for NAME.facts")
    given = parser.parse_args()
    if given.scale is None:
        worked_example()
        shipped()
        return
    if given.to is None:
        parser.error("--scale needs --to: the files in programs/social stay small")
    users = max(10, round(USERS * given.scale))
    data = network(users, round(users * given.followers), TWEETS * users, RETWEETS * users, given.seed)
    given.to.mkdir(parents=True, exist_ok=True)
    for name, rows in data.relations.items():
        (given.to / f"{name}.facts").write_text(lines(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
