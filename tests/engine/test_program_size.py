"""The cost of a program is linear in its number of rules, whatever their shape and whatever is asked.

Counted, not timed: lines of Python that run, each turn of a loop too, function by function, so that one
quadratic loop shows among all that is linear.  For three times the rules a function may run three times the
lines, and somewhat more for logarithms; a quadratic one runs nine times as many.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import dlog
from benchmarks.program_size import chain
from dlog.apply import Options, apply_file
from dlog.engine.database import plan_only
from dlog.engine.maintain.triggers.small_transaction import Step
from dlog.engine.run import run_program
from dlog.ir.check import load_program
from dlog.language.format import format_program
from dlog.language.parse import parse_file
from dlog.language.source import read_source

N = 8
MOST = 5.5  # times the lines for three times the rules

OWN = (str(Path(dlog.__file__).parent), __file__)  # files whose lines are counted
# By the clock, or when there is memory to give back.
NOW_AND_THEN = ("resident_bytes", "Arena.", "cannot_come")

Counts = Counter[CodeType]  # lines run by each function


def numbered(text: str, n: int) -> str:
    """A text once for each number from 1 to n, `@` standing for the number and `^` for the one before."""
    return "".join(text.replace("@", str(i)).replace("^", str(i - 1)) + "\n" for i in range(1, n + 1))


SHAPES: dict[str, Callable[[int], str]] = {
    "chain": chain,
    "wanted for one value": lambda n: f"p0(1).\n{numbered('p@(x) <- p^(x).', n)}?- p{n}(1).\n",
    "star": lambda n: f"p0(1).\n{numbered('p@(x) <- p0(x), x < @.', n)}{numbered('.output p@', n)}",
    "one predicate": lambda n: f"p0(1).\n{numbered('q(x) <- p0(x), x < @.', n)}.output q\n",
    "recursion": lambda n: f"p0(1).\n{numbered('p@(x) <- p^(x).', n)}p0(x) <- p{n}(x).\n.output p{n}\n",
    "recursions": lambda n: (
        f"p0(1).\n{numbered('p@(x) <- p^(x). p@(x) <- q@(x). q@(x) <- p@(x), x < 9.', n)}.output p{n}\n"
    ),
    "negations": lambda n: f"p0(1). b(5).\n{numbered('p@(x) <- p^(x), !b(x).', n)}.output p{n}\n",
    "sums": lambda n: (
        f"p0(1).\n{numbered('q@[] = s <- agg<<s = sum(x)>> p^(x). p@(x) <- q@[] = x.', n)}.output p{n}\n"
    ),
    "functions": lambda n: (
        f"p0(1). f0[1] = 2.\n{numbered('f@[x] = y + 1 <- f^[x] = y, p0(x).', n)}.output f{n}\n"
    ),
    "constraints": lambda n: f"p0(1).\n{numbered('p0(x) -> x < 5 + @.', n)}.output p0\n",
    "queries": lambda n: f"p0(1).\n{numbered('?- p0(@).', n)}",
    "facts": lambda n: f"p0(1).\n{numbered('p0(@).', n)}{numbered('q@(@).', n)}.output p0\n",
}


def lines_run(action: Callable[[], object]) -> Counts:
    """How many lines each function runs, counting a line once for each turn of a loop in it."""
    counts: Counts = Counter()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OWN) or frame.f_code.co_qualname.startswith(NOW_AND_THEN):
            return None
        counts[frame.f_code] += 1
        return trace

    before, collecting = sys.gettrace(), gc.isenabled()
    gc.collect()
    gc.disable()  # what it frees, and when, depends on more than the action
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
        if collecting:
            gc.enable()
    return counts


def require_linear(few: Counts, many: Counts) -> None:
    """`many` are of three times the rules.  What ran less than a line for each rule is not judged."""
    wrong = [
        f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}: {few[code]} lines, then {lines}"
        for code, lines in many.items()
        if few[code] >= N and lines > MOST * few[code]
    ]
    assert not wrong, "\n".join(wrong)


def written(folder: Path, shape: str, n: int) -> Path:
    program = folder / f"{n}.dl"
    program.write_text(SHAPES[shape](n))
    return program


def opened(program: Path) -> dlog.Database:
    """A database that has strategies and plans for changes of p0."""
    database = dlog.Database(program)
    for _ in range(2):
        database.apply(insert={"p0": [(3,)]})
        database.apply(erase={"p0": [(3,)]})
    return database


def test_quadratic_function_is_noticed() -> None:
    def pairs(n: int) -> list[int]:
        return [a for a in range(n) for b in range(n) if a == b]

    with pytest.raises(AssertionError, match="pairs"):
        require_linear(lines_run(partial(pairs, N)), lines_run(partial(pairs, 3 * N)))


@pytest.mark.parametrize("shape", SHAPES)
def test_linear_run(shape: str, tmp_path: Path) -> None:
    run_program(written(tmp_path, shape, 2), tmp_path, tmp_path)
    counts = []
    for n in (N, 3 * N):
        program = written(tmp_path, shape, n)
        counts.append(lines_run(partial(run_program, program, tmp_path, tmp_path)))
    require_linear(*counts)


@pytest.mark.parametrize(
    "shape", ["chain", "star", "one predicate", "recursion", "negations", "sums", "constraints"]
)
def test_linear_one_row(shape: str, tmp_path: Path) -> None:
    """A transaction of one row, which all rules follow; the first one, which makes plans, too."""
    opened(written(tmp_path, shape, 2))
    first, later = [], []
    for n in (N, 3 * N):
        database = dlog.Database(written(tmp_path, shape, n))
        insert = partial(database.apply, insert={"p0": [(3,)]})
        first.append(lines_run(insert))
        database.apply(erase={"p0": [(3,)]})
        insert()
        database.apply(erase={"p0": [(3,)]})
        later.append(lines_run(insert))
    require_linear(*first)
    require_linear(*later)


def test_linear_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a change costs is not copied for each rule: a copy is one line, however long it takes."""
    database = opened(written(tmp_path, "chain", N))
    accounts: list[tuple[object, ...]] = []
    add_costs = Step.add_costs

    def noted(step: Step, name: str, way: str, operations: int) -> None:
        add_costs(step, name, way, operations)
        accounts.append((step.ways, step.costs(), step.later))

    monkeypatch.setattr(Step, "add_costs", noted)
    for _ in range(2):  # what belongs to a trigger is copied, so the next change begins anew
        commit = database.apply(insert={"p0": [(4,)]})
        assert len(commit.ways) == len(commit.costs) == N
        assert len(accounts) == N - 1
        assert len({tuple(map(id, parts)) for parts in accounts}) == 1
        database.apply(erase={"p0": [(4,)]})
        accounts.clear()


@pytest.mark.parametrize("action", ["check", "format", "explain", "apply", "add a rule", "reopen"])
def test_linear_action(action: str, tmp_path: Path) -> None:
    (tmp_path / "change.dl").write_text("+p0(2).\n")
    _prepared(action, tmp_path, 2)()
    counts = [lines_run(_prepared(action, tmp_path, n)) for n in (N, 3 * N)]
    require_linear(*counts)


def _prepared(action: str, folder: Path, n: int) -> Callable[[], object]:
    """What is counted, for a chain of n rules."""
    program = written(folder, "chain", n)
    if action == "check":
        return lambda: load_program(read_source(program))
    if action == "format":
        return lambda: format_program(parse_file(program))
    if action == "explain":
        return lambda: plan_only(program, folder, None).explain(None)
    if action == "apply":
        return lambda: apply_file(dlog.Database(program), folder / "change.dl", Options(changes=True))
    if action == "add a rule":
        database = opened(program)
        return lambda: _add_rule(database)
    place = folder / f"db{n}"
    dlog.Database(place, program=program).close()
    return lambda: dlog.Database(place).close()


def _add_rule(database: dlog.Database) -> None:
    with database.transaction() as transaction:
        transaction.execute("more(x) <- p0(x).")
