"""Facts and rules in program files: how fast they are parsed, and what the fast path of facts gains.

Run: python -m benchmarks.parse_facts [FACTS] [RULES]

The grammar path is the same facts with a comment inside each, which keeps them from the fast path; a tenth of
them, since it is that much slower.  Times are processor time, the best of some runs; ratios are what counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from dlog.language.format import format_program
from dlog.language.parse import parse

FACTS, RULES = 100_000, 1_000
RUNS = 3
KINDS: dict[str, Callable[[int], str]] = {
    "ints": lambda i: f"edge({i}, {i * 7919 % 100_003}).",
    "strings": lambda i: f'name({i}, "person number {i}", "town {i % 100}").',
    "functional": lambda i: f'price["item {i}"] = {i % 1000}.{i % 100:02}.',
}


def main(facts: int = FACTS, rules: int = RULES) -> None:
    """Print one line for each kind of fact, and one for rules."""
    print(f"{facts:,} facts{'':16}s     rows/s   grammar rows/s   ratio")
    for kind, fact in KINDS.items():
        fast = best(lambda text: parse(text), "\n".join(map(fact, range(facts)))) / facts
        slow = best(lambda text: parse(text), "\n".join(map(slow_form(fact), range(facts // 10)))) / (
            facts // 10
        )
        print(f"  {kind:<20}{fast * facts:7.2f} {1 / fast:10,.0f} {1 / slow:16,.0f} {slow / fast:7.1f}")
    text = "\n".join(map(rule, range(rules)))
    seconds = best(lambda text: parse(text), text)
    print(f"{rules:,} rules{'':15}{seconds:7.2f} {rules / seconds:10,.0f}")
    program = parse(text)
    seconds = best(lambda _: format_program(program), text)
    print(f"{rules:,} rules formatted{'':5}{seconds:7.2f} {rules / seconds:10,.0f}")


def slow_form(fact: Callable[[int], str]) -> Callable[[int], str]:
    """The fact with an empty comment behind its first bracket."""

    def slow(i: int) -> str:
        text = fact(i)
        bracket = min(place for place in (text.find("("), text.find("[")) if place >= 0) + 1
        return f"{text[:bracket]}/**/{text[bracket:]}"

    return slow


def rule(i: int) -> str:
    return f"path{i}(x, z, c + d) <- path{i}(x, y, c), edge(y, z, d), !blocked(x, z), c + d < {i} * 10."


def best(work: Callable[[str], object], text: str) -> float:
    """Seconds of processor time of the fastest run."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work(text)
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
