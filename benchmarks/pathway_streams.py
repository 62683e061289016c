"""Groups over a stream of facts in Pathway: `python pathway_streams.py FILE.npz`, its own process.

The file has shops and amounts, the reducer (min, max or sum), the size of a transaction, and how many
transactions a window holds (0: facts only come in).  Prints the seconds of each transaction, from its first
fact to the end of its output, as JSON.  The end of a transaction is detected by a sum: sums of ints,
which are exact, show it themselves; for all else Pathway maintains the sum of the facts' numbers.  Does not
import dlog; the interpreter is that of `pathway_reach`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

PATIENCE = 1.0  # seconds between two checks


def replay(
    python: str, shops: np.ndarray, amounts: np.ndarray, reducer: str, size: int, window: int
) -> tuple[list[float], int, dict[int, float]]:
    """(Seconds of each transaction, the sum that showed the last end, the result of each shop).

    There are no results if they are sums of ints: these are the sum itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "facts.npz"
        np.savez(file, shops=shops, amounts=amounts, reducer=reducer, size=size, window=window)
        done = subprocess.run([python, __file__, str(file)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    results = {int(shop): value for shop, value in answer["results"].items()}
    return answer["seconds"], answer["total"], results


def totals_after(values: Any, size: int, window: int) -> list[int]:
    """The sum of the values after each transaction: only then it has ended."""
    n = len(values)
    total = np.concatenate([[0], np.cumsum(values)])
    ends = np.minimum(np.arange(size, n + size, size), n)
    starts = np.maximum(ends - window * size, 0) if window else np.zeros_like(ends)
    return (total[ends] - total[starts]).tolist()  # type: ignore[no-any-return]


def run(shops: list[int], amounts: list[Any], reducer: str, size: int, window: int) -> dict[str, Any]:
    import pathway as pw

    is_exact = isinstance(amounts[0], int)
    columns = {
        "number": pw.column_definition(dtype=int, primary_key=True),
        "shop": pw.column_definition(dtype=int),
        "amount": pw.column_definition(dtype=int if is_exact else float),
    }
    tells_itself = is_exact and reducer == "sum"
    expected = totals_after(amounts if tells_itself else range(len(shops)), size, window)
    ready = Event()
    seconds: list[float] = []
    total = ended = 0  # so far, and at the end of the last output
    results: dict[int, float] = {}
    facts = list(zip(range(len(shops)), shops, amounts, strict=True))
    parts = [facts[i : i + size] for i in range(0, len(facts), size)]

    class Stream(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            for i, part in enumerate(parts):
                started = time.perf_counter()
                for number, shop, amount in part:
                    self.next(number=number, shop=shop, amount=amount)
                if window and i >= window:
                    for number, shop, amount in parts[i - window]:
                        self.delete(number=number, shop=shop, amount=amount)
                self.commit()
                while ended != expected[i]:
                    ready.wait(PATIENCE)
                    ready.clear()
                seconds.append(time.perf_counter() - started)

        @property
        def _deletions_enabled(self) -> bool:
            return True

    def summed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        nonlocal total
        total += row["result"] if is_addition else -row["result"]

    def noted(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            results[row["shop"]] = row["result"]

    def time_ended(time: int) -> None:
        nonlocal ended
        ended = total
        ready.set()

    def subscribe(table: Any, on_change: Callable[..., None]) -> None:
        pw.io.subscribe(table, on_change=on_change, on_time_end=time_ended)

    sale = pw.io.python.read(Stream(), schema=pw.schema_builder(columns), autocommit_duration_ms=None)
    reduce = getattr(pw.reducers, reducer)
    subscribe(
        sale.groupby(sale.shop).reduce(sale.shop, result=reduce(sale.amount)),
        summed if tells_itself else noted,
    )
    if not tells_itself:
        subscribe(sale.reduce(result=pw.reducers.sum(sale.number)), summed)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": seconds, "total": total, "results": results}


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    answer = run(
        given["shops"].tolist(),
        given["amounts"].tolist(),
        str(given["reducer"]),
        int(given["size"]),
        int(given["window"]),
    )
    print(json.dumps(answer))
