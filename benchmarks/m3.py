"""M3 programs on streams: tuples of a star join, groups of a 3-way join, memory.

The star is that of house prices: six relations with one column in common, the sum of a product of columns
over their join, input shuffled.  A kernel written by hand for exactly this query, with presized tables and
without checks of overflow, is the limit.  DuckDB computes the query again after a batch.  Reading and parsing
are not measured, by any side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa

from benchmarks.harness import RUNS, Aim, Row, at_least, below, duck, faster, timed, within
from dlog.jit import Words, kernel, pointer
from dlog.m3 import parse
from dlog.m3.runtime.runtime import Runtime, Step

BATCH = 1000
BY_HAND = "written by hand"
SAMPLES = 5  # batches after which DuckDB computes again

# Name, prefix of its own columns, number of columns.
RELATIONS = (
    ("HOUSE", "h", 11), ("SHOP", "s", 6), ("INSTITUTION", "i", 3),
    ("RESTAURANT", "r", 3), ("DEMOGRAPHICS", "d", 5), ("TRANSPORT", "t", 4),
)  # fmt: skip
NAMES = [name for name, _, _ in RELATIONS]


def benchmark(scale: float) -> Iterator[Row]:
    yield from star(scale)
    yield from groups(scale)
    yield from memory(scale)


# The star


def columns(prefix: str, number: int) -> list[str]:
    return ["postcode", *(f"{prefix}{i}" for i in range(2, number + 1))]


def star_program(batch: bool) -> str:
    """One map for each relation, the sum of its own factor by postcode, and one for the result."""
    text = [
        f"CREATE STREAM {name}({', '.join(f'{c} int' for c in columns(prefix, n))});"
        for name, prefix, n in RELATIONS
    ]
    text.append("DECLARE MAP Q(long)[][] := 0;")
    text += [f"DECLARE MAP V_{name}(long)[][postcode: int] := 0;" for name in NAMES]
    text.append("DECLARE QUERY Q := Q(long)[][];")
    for name, prefix, n in RELATIONS:
        others = " * ".join(f"V_{other}(long)[][postcode]" for other in NAMES if other != name)
        factor = "h2" if name == "HOUSE" else "1"
        head = f"{name}({', '.join(columns(prefix, n))})"
        if batch:
            rows = f"(DELTA {name})({', '.join(columns(prefix, n))}) * {factor}"
            text.append(
                f"ON BATCH UPDATE OF {name} {{ Q(long)[][] += AggSum([], {rows} * {others});"
                f" V_{name}(long)[][postcode] += AggSum([postcode], {rows}); }}"
            )
            continue
        for event, sign in (("+", 1), ("-", -1)):
            text.append(
                f"ON {event} {head} {{ Q(long)[][] += {sign} * {factor} * {others};"
                f" V_{name}(long)[][postcode] += {sign} * {factor}; }}"
            )
    return "\n".join(text)


def star(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(1)
    rows = at_least(300, 200_000 * scale)
    postcodes = at_least(20, 25_000 * scale)
    data = [
        np.concatenate([rng.integers(0, 10, (n, rows)), np.ones((1, rows), np.int64)]) for *_, n in RELATIONS
    ]
    for words in data:
        words[0] = rng.integers(0, postcodes, rows)
    batches = [
        (r, np.ascontiguousarray(words[:, start : start + BATCH]))
        for start in range(0, rows, BATCH)
        for r, words in enumerate(data)
    ]
    total = f"{6 * rows:,} tuples"
    size = max(1 << 10, 1 << int(4 * postcodes).bit_length())
    whole, single = star_program(True), star_program(False)

    for name, text, feed, by_hand, aim in (
        ("star sum, batches of 1,000", whole, by_batches, in_batches, within(2)),
        ("star sum, rows taken together", single, by_batches, in_batches, None),
        ("star sum, tuple by tuple", single, one_by_one, tuple_by_tuple, within(2)),
    ):
        ours = ready(text, feed, batches, data)
        measured = timed({"dlog": ours, BY_HAND: lambda by_hand=by_hand: by_hand(batches, data, size)})
        assert measured["dlog"].result == measured[BY_HAND].result
        seconds = measured["dlog"].seconds
        yield Row(name, total, seconds, measured[BY_HAND].seconds, BY_HAND, aim)
        rate = 6 * rows / seconds / 1e6
        yield Row(f"{name}: rate", total, rate, unit="M tuples/s")
    # Two rows for each postcode: DuckDB has to read the whole result of the join.
    few = {name: words[:, : 2 * postcodes] for name, words in zip(NAMES, data, strict=True)}
    yield from against_duck("star sum, one batch", whole, STAR_SQL, few, faster(20))


def ready(text: str, feed: Callable, batches: list, data: list) -> Callable[[], int]:
    """A run over all batches; the program is parsed and compiled before."""
    program = parse(text)
    waiting = [Runtime(program) for _ in range(RUNS)]

    def run() -> int:
        runtime = waiting.pop()
        feed(runtime, batches, data)
        return runtime["Q"]["value"][0].as_py()

    return run


def by_batches(runtime: Runtime, batches: list, data: list) -> None:
    for r, words in batches:
        runtime.apply_words(NAMES[r], words)


def one_by_one(runtime: Runtime, batches: list, data: list) -> None:
    """The relations in turns, a tuple of each: no two tuples of one relation come together."""
    steps = [Step(name, words) for name, words in zip(NAMES, data, strict=True)]
    runtime.apply_steps(steps, *in_turn(data[0].shape[1]))


@lru_cache(maxsize=1)
def in_turn(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The order of the tuples as given: (relation, row) of each."""
    return np.tile(np.arange(6), n), np.repeat(np.arange(n), 6)


STAR_SQL = f"SELECT sum(h2) FROM {' NATURAL JOIN '.join(n.lower() for n in NAMES)}"


# The same by hand


def tables(size: int) -> Words:
    """Six tables of (postcode, sum), -1 for an empty slot."""
    words = np.zeros((6, size, 2), np.int64)
    words[:, :, 0] = -1
    return words.reshape(-1)


def in_batches(batches: list, data: list, size: int) -> int:
    words, result = tables(size), 0
    for r, part in batches:
        factors = part[1] if r == 0 else part[-1]
        result += star_rows(words, size, part[0], factors, r, 0, part.shape[1])
    return result


def tuple_by_tuple(batches: list, data: list, size: int) -> int:
    words = tables(size)
    keys = np.stack([part[0] for part in data], axis=1).reshape(-1)
    factors = np.stack([part[1] if r == 0 else part[-1] for r, part in enumerate(data)], axis=1).reshape(-1)
    return star_rows(words, size, keys, factors, 0, 1, len(keys))


@kernel
def star_rows(words: Words, size: int, keys: Words, factors: Words, relation: int, turn: int, n: int) -> int:
    """Rows of one relation; with `turn` 1, of all in turns."""
    tables = pointer(words)
    shift, mask, result = 64, size - 1, 0
    while (1 << (64 - shift)) < size:
        shift -= 1
    for i in range(n):
        key, product = keys[i], factors[i]
        start = np.uint64(np.int64(key * np.int64(-7046029254386353131)).view(np.uint64) >> np.uint64(shift))
        first = np.uint64(start).view(np.int64)
        own = (relation + turn * i) % 6
        for r in range(6):
            slot, base = first, r * 2 * size
            while tables[base + 2 * slot] != key and tables[base + 2 * slot] != -1:
                slot = (slot + 1) & mask
            if r != own:
                product *= tables[base + 2 * slot + 1]
            else:
                tables[base + 2 * slot] = key
                tables[base + 2 * slot + 1] += factors[i]
        result += product
    return result


# Groups of a 3-way join: every group's sum follows each of the three relations

GROUPS = """
CREATE STREAM R(a int, b int); CREATE STREAM S(b int, c int); CREATE STREAM T(c int, d int);
DECLARE MAP Q(long)[][a: int] := 0;
DECLARE MAP M_R(long)[][a: int, b: int] := 0; DECLARE MAP M_S(long)[][b: int, c: int] := 0;
DECLARE MAP V_T(long)[][c: int] := 0; DECLARE MAP V_ST(long)[][b: int] := 0;
DECLARE MAP V_RS(long)[][a: int, c: int] := 0;
DECLARE QUERY Q := Q(long)[][a];
ON BATCH UPDATE OF R {
  Q[][a] += AggSum([a], (DELTA R)(a, b) * V_ST[][b]);
  V_RS[][a, c] += AggSum([a, c], (DELTA R)(a, b) * M_S[][b, c]);
  M_R[][a, b] += (DELTA R)(a, b);
}
ON BATCH UPDATE OF S {
  Q[][a] += AggSum([a], (DELTA S)(b, c) * V_T[][c] * M_R[][a, b]);
  V_RS[][a, c] += AggSum([a, c], (DELTA S)(b, c) * M_R[][a, b]);
  V_ST[][b] += AggSum([b], (DELTA S)(b, c) * V_T[][c]);
  M_S[][b, c] += (DELTA S)(b, c);
}
ON BATCH UPDATE OF T {
  Q[][a] += AggSum([a], (DELTA T)(c, d) * d * V_RS[][a, c]);
  V_ST[][b] += AggSum([b], (DELTA T)(c, d) * d * M_S[][b, c]);
  V_T[][c] += AggSum([c], (DELTA T)(c, d) * d);
}
"""
GROUPS_SQL = "SELECT a, sum(d) FROM r NATURAL JOIN s NATURAL JOIN t GROUP BY a"


def groups(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(2)
    rows = at_least(200, 100_000 * scale)
    keys = at_least(10, rows // 4)
    data = {}
    for name, (first, second) in {"R": (keys // 20 + 1, keys), "S": (keys, keys), "T": (keys, 100)}.items():
        pair = [rng.integers(0, first, rows), rng.integers(0, second, rows)]
        data[name] = np.stack([*pair, np.ones(rows, np.int64)])
    yield from against_duck("groups of a 3-way join, one batch", GROUPS, GROUPS_SQL, data, faster(5))
    total, program = f"{3 * rows:,} tuples", parse(GROUPS)
    for batch in (BATCH, 1):
        waiting = [Runtime(program) for _ in range(RUNS)]
        measured = timed({"dlog": lambda w=waiting, b=batch: in_turns(w.pop(), data, b)})
        rate = 3 * rows / measured["dlog"].seconds / 1e6
        yield Row(f"groups of a 3-way join, batches of {batch:,}: rate", total, rate, unit="M tuples/s")


def in_turns(runtime: Runtime, data: dict[str, Words], batch: int) -> int:
    """All relations, a batch of each in turn."""
    steps, n = [Step(name, words) for name, words in data.items()], next(iter(data.values())).shape[1]
    group = np.repeat(np.arange(n) // batch, len(steps))
    which = np.tile(np.arange(len(steps)), n)
    order = np.lexsort((which, group))
    runtime.apply_steps(steps, which[order], group[order])
    return runtime["Q"].num_rows


def against_duck(name: str, text: str, sql: str, data: dict[str, Words], aim: Aim) -> Iterator[Row]:
    """The last batches of a stream: ours as they come, DuckDB's query once after each."""
    rows = next(iter(data.values())).shape[1]
    kept = max(rows - SAMPLES * BATCH, rows // 2)
    batch = max((rows - kept) // SAMPLES, 1)
    runtime = Runtime(parse(text))
    for relation, words in data.items():
        for start in range(0, kept, BATCH):
            runtime.apply_words(relation, np.ascontiguousarray(words[:, start : min(start + BATCH, kept)]))
    source = {s.name: [c.name for c in s.columns] for s in runtime.program.sources}
    connection = duck(**{r.lower(): arrow(w[:, :kept], source[r]) for r, w in data.items()})
    ours, theirs = [], []
    for sample in range(SAMPLES):
        relation = list(data)[sample % len(data)]
        part = np.ascontiguousarray(data[relation][:, kept + sample * batch : kept + (sample + 1) * batch])
        started = time.process_time()
        runtime.apply_words(relation, part)
        ours.append(time.process_time() - started)
        connection.register("given", arrow(part, source[relation]))
        connection.execute(f"insert into {relation.lower()} select * from given")
        started = time.process_time()
        found = connection.execute(sql).fetchall()
        theirs.append(time.process_time() - started)
        expected = {row[:-1]: row[-1] for row in found if row[-1]}
        table = [c.to_pylist() for c in runtime["Q"].columns]
        assert {row[:-1]: row[-1] for row in zip(*table, strict=True) if row[-1]} == expected
    size = f"{batch:,} of {len(data) * rows:,} tuples"
    yield Row(name, size, float(np.median(ours)), float(np.median(theirs)), "DuckDB again", aim)


def arrow(words: Words, names: list[str]) -> pa.Table:
    return pa.table({name: words[i] for i, name in enumerate(names)})


# Memory


def memory(scale: float) -> Iterator[Row]:
    """Rows that are inserted and deleted, others each time: as much memory after many rounds as after a
    few.
    """
    runtime = Runtime(parse(GROUPS))
    rng = np.random.default_rng(3)
    rows, rounds = at_least(100, 20_000 * scale), 30

    def turn() -> None:
        parts = [(r, rng.integers(0, 1 << 40, (2, rows))) for r in "RST"]
        for sign in (1, -1):
            for relation, part in parts:
                runtime.apply_words(relation, np.concatenate([part, np.full((1, rows), sign)]))

    for _ in range(3):
        turn()
    before = runtime.maps.arena.usage().used_words
    for _ in range(rounds):
        turn()
    after = runtime.maps.arena.usage().used_words
    assert runtime["Q"].num_rows == 0
    size = f"{6 * rows * rounds:,} tuples"
    yield Row("memory after and before", size, after / before, aim=below(1.2), unit="x")
