"""The cost of a program by its number of rules: a chain of n rules costs O(n), for a run and for a change.

    # p0(1).   p1(x) <- p0(x).   p2(x) <- p1(x).   ...   with the last predicate asked for.

Each action is measured with 1,000 and with 3,000 rules, in turns.  The ratio of the two should be 3.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import dlog
from benchmarks.harness import Row, at_least, below, timed
from dlog.apply import Options, apply_file
from dlog.engine.run import run_program

RULES = 1000
TIMES = 3
MOST = 3.5  # the ratio that three times as many rules may reach


def benchmark(scale: float) -> Iterator[Row]:
    small = at_least(20, RULES * scale)
    with tempfile.TemporaryDirectory() as folder:
        sizes = {small: _actions(Path(folder), small), TIMES * small: _actions(Path(folder), TIMES * small)}
        for what in sizes[small]:
            yield from _rows(what, {n: actions[what] for n, actions in sizes.items()})


def _rows(what: str, actions: dict[int, Callable[[], object]]) -> Iterator[Row]:
    gc.collect()
    gc.freeze()  # the garbage collector should walk through this program, not through those measured before
    measured = timed({f"{n:,} rules": action for n, action in actions.items()})
    for size, one in measured.items():
        yield Row(what, size, one.seconds)
    less, more = (one.seconds for one in measured.values())
    yield Row(f"{what}, {TIMES} times the rules", list(measured)[-1], more / less, aim=below(MOST), unit="x")


def chain(n: int) -> str:
    """The text of n rules, each of which reads the one before."""
    rules = "".join(f"p{i}(x) <- p{i - 1}(x).\n" for i in range(1, n + 1))
    return f"p0(1).\n{rules}.output p{n}\n"


def _actions(folder: Path, n: int) -> dict[str, Callable[[], object]]:
    """What is measured; all but the last begin with the text of the program."""
    program, change = folder / f"chain{n}.dl", folder / "change.dl"
    program.write_text(chain(n))
    change.write_text("+p0(2).\n")
    database = dlog.Database(program)
    for _ in range(2):  # strategies and plans are made, and indices that only changes need
        _one_row(database, n)
    return {
        "run": lambda: run_program(program, folder, folder),
        "apply": lambda: apply_file(dlog.Database(program), change, Options()),
        "one row inserted and erased": lambda: _one_row(database, n),
    }


def _one_row(database: dlog.Database, n: int) -> None:
    database.apply(insert={"p0": [(2,)]})
    assert len(database[f"p{n}"]) == 2
    database.apply(erase={"p0": [(2,)]})
    assert len(database[f"p{n}"]) == 1
