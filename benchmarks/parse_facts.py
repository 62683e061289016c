"""Facts and rules in program files: how fast they are parsed, and what the fast path of facts gains.

The grammar's path is the same facts with a comment inside each, which excludes them from the fast path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.harness import DLOG, Row, at_least, faster, timed
from dlog.language.format import format_program
from dlog.language.parse import parse

FACTS, RULES = 100_000, 1_000
KINDS: dict[str, Callable[[int], str]] = {
    "ints": lambda i: f"edge({i}, {i * 7919 % 100_003}).",
    "strings": lambda i: f'name({i}, "person number {i}", "town {i % 100}").',
    "functional": lambda i: f'price["item {i}"] = {i % 1000}.{i % 100:02}.',
}


def benchmark(scale: float) -> Iterator[Row]:
    facts, rules = at_least(100, FACTS * scale), at_least(10, RULES * scale)
    for kind, fact in KINDS.items():
        fast = "\n".join(map(fact, range(facts)))
        slow = "\n".join(map(slow_form(fact), range(facts // 10)))  # a tenth: it is that much slower
        measured = timed({DLOG: partial(parse, fast), "grammar": partial(parse, slow)})
        ours, theirs = measured[DLOG].seconds / facts, measured["grammar"].seconds / (facts // 10)
        yield Row(f"one fact parsed, {kind}", f"{facts:,} facts", ours, theirs, "the grammar", faster(5))
    text = "\n".join(map(rule, range(rules)))
    program = parse(text)
    for name, action in (("parsed", lambda: parse(text)), ("formatted", lambda: format_program(program))):
        yield Row(f"one rule {name}", f"{rules:,} rules", timed({DLOG: action})[DLOG].seconds / rules)


def slow_form(fact: Callable[[int], str]) -> Callable[[int], str]:
    """The fact with an empty comment after its first bracket."""

    def slow(i: int) -> str:
        text = fact(i)
        bracket = min(place for place in (text.find("("), text.find("[")) if place >= 0) + 1
        return f"{text[:bracket]}/**/{text[bracket:]}"

    return slow


def rule(i: int) -> str:
    return f"path{i}(x, z, c + d) <- path{i}(x, y, c), edge(y, z, d), !blocked(x, z), c + d < {i} * 10."
