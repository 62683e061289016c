"""Functors: how functions in Python are given, called, checked, and followed under change."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dlog
from dlog.implementations import REGISTERED
from tests.programs.test_programs import lines

ROOT = Path(__file__).parents[2]
PRICES = ROOT / "programs" / "python"
ONE = ".functor f(x: number): number\nq(x) -> int(x).\np(x, @f(x)) <- q(x).\n"
PAIR = ".functor f(x: number, y: float): float\nq(x, y) -> int(x), float(y).\np(x, @f(x, y)) <- q(x, y).\n"


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(REGISTERED)
    REGISTERED.clear()
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


def opened(source: str, **functions: Any) -> dlog.Database:
    return dlog.Database(source=source, functions=functions)


# How they are given


@pytest.mark.parametrize(
    "made",
    [
        lambda x, y: x * y,
        dlog.function(name="f", vectorized=True)(lambda x, y: x * y),
        dlog.function(name="f", vectorized="arrow")(lambda x, y: pc.multiply(x.cast(pa.float64()), y)),
        dlog.function(name="f", numba=True)(lambda x, y: x * y),
    ],
)
def test_ways_to_call_agree(made: Any) -> None:
    """Also over more rows than a part has."""
    db = opened(PAIR, f=made)
    rows = [(i % 300 - 150, i / 8) for i in range(70_000)]
    db.apply(insert={"q": rows})
    assert db["p"].rows() == sorted({(x, x * y + 0.0) for x, y in rows})


def test_a_function_that_numba_compiled_is_called_by_numba() -> None:
    numba = pytest.importorskip("numba")
    db = opened(ONE + "q(3).", f=numba.njit(lambda x: x * 2))
    assert db["p"].rows() == [(3, 6)]
    assert "by numba" in db.explain("p")


def test_registered_for_the_process_and_hidden_by_the_database() -> None:
    @dlog.function
    def f(x: int) -> int:
        return -x

    assert f(2) == -2
    assert dlog.Database(source=ONE + "q(3).")["p"].rows() == [(3, -3)]
    assert opened(ONE + "q(3).", f=lambda x: x)["p"].rows() == [(3, 3)]
    assert dlog.Database(source=ONE + "q(3).", functions=[f])["p"].rows() == [(3, -3)]
    dlog.register_function(lambda x: x + 1, name="f")
    assert dlog.Database(source=ONE + "q(3).")["p"].rows() == [(3, 4)]


TYPES = {
    "number": (7, 8),
    "unsigned": (2**63 + 1, 2**64 - 1),
    "float": (0.5, float("inf")),
    "symbol": ("a", "été"),
    "bool": (True, False),
    "decimal(10, 2)": (Decimal("1.25"), Decimal("-0.01")),
    "date": (dt.date(2026, 1, 2), dt.date(1, 1, 1)),
    "datetime": (dt.datetime(2026, 1, 2, 3, 4, 5, 6), dt.datetime(1970, 1, 1)),
    "timestamp": (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
    "duration": (dt.timedelta(days=3, microseconds=1), dt.timedelta(0)),
    "Point": ((1, "a"), None),
    "Shape": (dlog.Branch("Circle", (2.5,)), dlog.Branch("None_")),
}


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("vectorized", [False, "numpy"])
def test_values_of_every_type_go_in_and_out(type: str, vectorized: bool | str) -> None:
    here, there = TYPES[type]
    seen = []

    def f(x: Any) -> Any:
        seen.append(x)
        if vectorized:
            return [there] * len(x)
        return there

    source = f"""
        .type Point = [x: number, y: symbol]
        .type Shape = Circle {{radius: float}} | None_ {{}}
        .functor f(x: {type}): {type}
        .decl q(x: {type})
        .decl p(x: {type}, y: {type})
        p(x, @f(x)) :- q(x).
    """
    db = opened(source, f=dlog.function(name="f", vectorized=vectorized)(f))
    db.apply(insert={"q": [(here,)]})
    assert db["p"].rows() == [(here, there)]
    if not vectorized:
        assert seen == [here]
    db.apply(erase={"q": [(here,)]})
    assert db["p"].rows() == [] and len(seen) == 1


# Rules that call them


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("p(x) <- q(x), @f(x) = 4.", [(2,)]),
        ("p(y) <- q(x), y = @f(@f(x)) + 1.", [(5,), (9,), (13,)]),
        ("p(x) <- q(x), !q(@f(x)).", [(2,), (3,)]),
        ("p(x) <- q(x), (@f(x) = 2 ; x = 3).", [(1,), (3,)]),
        ("p(n) <- agg<<n = sum(@f(x))>> q(x).", [(12,)]),
        ("p(n) <- n = sum @f(x) : { q(x) }.", [(12,)]),
        ("p(@f(3)).", [(6,)]),
        ("p(z) <- q(x), q(y), z = @f(x * 10 + y), z > 60.", [(62,), (64,), (66,)]),
        ("p(x) <- x = 1. p(@f(x)) <- p(x), x < 100.", [(2**i,) for i in range(8)]),
        ("p(x) -> int(x). p(@f(x)) <- q(x). q(x) -> @f(x) < 7.", [(2,), (4,), (6,)]),
    ],
)
def test_rules(rule: str, rows: list[tuple[int, ...]]) -> None:
    source = f".functor f(x: number): number\nq(x) -> int(x).\n{rule}"
    db = opened(source, f=lambda x: 2 * x)
    db.apply(insert={"q": [(1,), (2,), (3,)]})
    assert db["p"].rows() == rows
    db.check()
    db.verify()
    assert opened(f"{source} q(1). q(2). q(3).", f=lambda x: 2 * x)["p"].rows() == rows


def test_a_function_is_called_once_for_each_row_of_arguments_and_not_for_deletions() -> None:
    called: list[int] = []

    def f(x: int) -> int:
        """A function that is none: it gives another value each time."""
        called.append(x)
        return random.randrange(10**12)

    source = ONE.replace("q(x) -> int(x).", "q(x, y) -> int(x), int(y).").replace("<- q(x)", "<- q(x, _)")
    db = dlog.Database(
        source=source + "t[] = n <- agg<<n = sum(y)>> p(_, y).\nq(1, 1). q(1, 2). q(2, 1).",
        functions={"f": f},
    )
    assert sorted(called) == [1, 2]
    first = dict(db["p"].rows())
    db.execute("-q(1, 1). +q(3, 1).")
    assert called[2:] == [3] and db["p"].rows()[0] == (1, first[1])
    db.execute("-q(1, 2). -q(2, 1).")
    ((three, value),) = db["p"].rows()
    assert three == 3 and db["t"].rows() == [(value,)]
    assert len(called) == 3
    db.check()


def test_no_call_for_rows_that_other_conditions_reject() -> None:
    source = ".functor f(x: number): number\nq(x) -> int(x).\nbad(x) -> int(x).\n"
    source += "p(@f(x)) <- q(x), x > 0, !bad(x).\nq(0). q(1). q(2). bad(2)."
    db = opened(source, f=lambda x: 12 // x if x != 2 else None)
    db.execute("+q(-1). +q(3). +bad(1).")
    assert db["p"].rows() == [(4,)]
    called: list[int] = []
    opened(source, f=lambda x: called.append(x) or x).execute("+q(5). +bad(5).")
    assert called == [1]


@pytest.mark.parametrize("vectorized", [False, "numpy", "arrow"])
def test_no_value_makes_the_condition_false(vectorized: bool | str) -> None:
    def even(x: Any) -> Any:
        if vectorized == "arrow":
            return pa.array([v if v % 2 == 0 else None for v in x.to_pylist()])
        return np.ma.masked_array(x, x % 2 == 1) if vectorized else (x if x % 2 == 0 else None)

    db = opened(ONE + "q(1). q(2). q(3).", f=dlog.function(name="f", vectorized=vectorized)(even))
    assert db["p"].rows() == [(2, 2)]
    db.execute("-q(1). -q(2). +q(4).")
    assert db["p"].rows() == [(4, 4)]
    db.verify()


def test_a_stateful_functor_is_called_again_in_each_transaction() -> None:
    source = ONE.replace("): number", "): number stateful")
    count = iter(range(100))
    db = opened(source + "q(1).", f=lambda x: next(count))
    assert db["p"].rows() == [(1, 0)]
    db.execute("+q(2).")
    assert db["p"].rows() == [(1, 1), (2, 2)]
    assert "from scratch whenever it is touched, because @f is stateful" in db.explain("p")


def test_queries_snapshots_and_derivations() -> None:
    db = opened(ONE + "q(1). q(2).", f=lambda x: x * x)
    snapshot = db.snapshot()
    db.execute("+q(3).")
    assert db.query("?- q(x), y = @f(x + 1).").rows() == [(1, 4), (2, 9), (3, 16)]
    assert snapshot.query("?- q(x), y = @f(x + 1).").rows() == [(1, 4), (2, 9)]
    assert "9 = @f(3)" in db.why("p(3, 9)")
    assert "stores p'@f" in db.explain("p") and "called for each row" in db.explain("p")


# What fails


def raises(x: Any) -> Any:
    if np.any(np.asarray(x) == 41):
        raise ValueError("not this one")
    return x


FAULTS: list[tuple[Any, bool | str, str]] = [
    (raises, False, "@f(41) raised ValueError: not this one"),
    (raises, "numpy", "@f(41) raised ValueError: not this one"),
    (raises, "arrow", "@f(41) raised ValueError: not this one"),
    (lambda x: "a", False, "@f(40) returned a wrong value: 'a' is not an int"),
    (lambda x: x + 0.5, False, "@f(40) returned a wrong value: 40.5 is not an int"),
    (lambda x: x * 2**70, False, "@f(40) returned a wrong value"),
    (lambda x: True, False, "@f(40) returned a wrong value: True is not an int"),
    (lambda x: x + 0.5, "numpy", "@f(40) returned a wrong value: 40.5 is not an int"),
    (lambda x: x[1:], "numpy", "@f returned 2 values for 3 rows"),
    (lambda x: 3, "numpy", "@f(40) returned 3, not an array of 3 values"),
    (lambda x: x.reshape(3, 1), "numpy", "@f(40) returned array"),
]


@pytest.mark.parametrize(("code", "vectorized", "message"), FAULTS)
def test_failures_abort_and_say_where(code: Callable[..., Any], vectorized: bool | str, message: str) -> None:
    made = dlog.function(name="f", vectorized=vectorized)(code)
    good = dlog.function(name="f", vectorized=vectorized)(lambda x: x)
    current = [good]
    db = opened(ONE, f=dlog.function(name="f", vectorized=vectorized)(lambda x: current[0].code(x)))
    db.execute("+q(1).")
    current[0] = made
    with pytest.raises(dlog.FunctionError) as error:
        db.execute("+q(40). +q(41). +q(42). -q(1).")
    assert error.value.message.startswith(message)
    assert (error.value.line, error.value.column) == (3, 6)
    assert db["q"].rows() == [(1,)] and db["p"].rows() == [(1, 1)] and db.version == 1
    current[0] = good
    db.execute("+q(40).")
    assert db["p"].rows() == [(1, 1), (40, 40)]
    db.check()
    db.verify()


def test_digits_of_a_decimal_that_do_not_fit() -> None:
    source = ".functor f(x: number): decimal(4, 2)\nq(x) -> int(x).\np(@f(x)) <- q(x)."
    for value, why in (
        (Decimal("1.234"), "more than 2 digits"),
        (Decimal(1000), "1000 is not a decimal(4, 2)"),
    ):
        with pytest.raises(dlog.FunctionError) as error:
            opened(source + "q(1).", f=lambda x, value=value: value)
        assert why in error.value.message


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda: 1, "the function f does not take 1 arguments"),
        (lambda x, y: 1, "the function f does not take 1 arguments"),
        (type("A", (), {"insert": raises, "result": raises}), "f is implemented by a class of an aggregate"),
    ],
)
def test_functions_that_do_not_fit_their_declaration(code: Any, message: str) -> None:
    with pytest.raises(dlog.DlogError) as error:
        opened(ONE, f=code)
    assert error.value.message == message and error.value.line == 1


def test_annotations_are_compared_with_the_declaration() -> None:
    def f(x: str) -> int:
        return 1

    with pytest.raises(dlog.DlogError, match="the function f says that x is string"):
        opened(ONE, f=f)


def test_numba_computes_with_numbers_only() -> None:
    source = ".functor f(x: symbol): symbol\nq(x) -> string(x).\np(@f(x)) <- q(x)."
    with pytest.raises(dlog.DlogError, match="numba cannot compute with a string"):
        opened(source, f=dlog.function(name="f", numba=True)(lambda x: x))


def test_rules_that_come_later_need_implementations_too() -> None:
    db = dlog.Database(source="q(1).")
    with pytest.raises(dlog.DlogError, match="there is no implementation of the functor g"):
        db.execute(".functor g(x: number): number\np(@g(x)) <- q(x).")
    assert "p" not in db.program.predicates
    dlog.register_function(lambda x: x + 1, name="g")
    db.execute(".functor g(x: number): number\np(@g(x)) <- q(x).")
    assert db["p"].rows() == [(2,)]


# Aggregates


class Sum:
    made = 0

    def __init__(self) -> None:
        self.total, self.inserted = 0, 0

    def insert(self, x: int) -> None:
        if x == 13:
            raise ValueError("unlucky")
        type(self).made += 1
        self.total += x

    def erase(self, x: int) -> None:
        type(self).made += 1
        self.total -= x

    def result(self) -> int:
        return self.total


AGGREGATE = ".functor f(x: number): number aggregate\nq(k, x) -> int(k), int(x).\n"
BOTH = AGGREGATE + "p[k] = z <- agg<<z = @f(x)>> q(k, x).\nr(z) <- z = @f x : { q(_, x) }.\n"


def test_an_aggregate_follows_at_the_cost_of_the_change() -> None:
    class Counted(Sum):
        made = 0

    db = dlog.Database(source=BOTH, functions={"f": Counted}, strategy="delta")
    db.apply(insert={"q": [(i % 10, i) for i in range(100, 5100)]})
    db.execute("+q(1, 1).")
    db.execute("-q(1, 1).")
    before = Counted.made
    for i in range(20):
        db.execute(f"+q({i % 10}, {-i - 1}). -q({i % 10}, {100 + i}).")
    assert Counted.made - before <= 20 * 4 + 10 * 501  # a group is made the first time
    before = Counted.made
    for i in range(20):
        db.execute(f"-q({i % 10}, {-i - 1}). +q({i % 10}, {100 + i}).")
    assert Counted.made - before == 20 * 4
    db.check()
    db.verify()


def test_an_abort_leaves_groups_as_they_were() -> None:
    db = opened(BOTH + "q(1, 2). q(1, 3). q(2, 5).", f=Sum)
    db.execute("+q(1, 4).")
    for text in ("+q(1, 6). +q(1, 13).", "-q(1, 2). +q(2, 13)."):
        with pytest.raises(dlog.FunctionError) as error:
            db.execute(text)
        assert error.value.message == "@f.insert(13) raised ValueError: unlucky" and error.value.line in (
            3,
            4,
        )
    snapshot = db.snapshot()
    db.execute("+q(1, 7). -q(2, 5).")
    assert db["p"].rows() == [(1, 16)] and db["r"].rows() == [(16,)]
    assert snapshot["p"].rows() == [(1, 9), (2, 5)]
    assert "@f of 4 assignments" in db.why("p[1] = 16")
    with db.transaction() as tx:
        tx.insert("q", [(1, 100)])
        tx.rollback()
    db.execute("+q(1, 1).")
    assert db["p"].rows() == [(1, 17)]
    db.check()
    db.verify()


def test_an_aggregate_without_erase_and_one_on_arrays() -> None:
    class Greatest:
        def __init__(self) -> None:
            self.value = -(10**9)

        def insert(self, x: int) -> None:
            self.value = max(x, self.value)

        def result(self) -> int:
            return self.value

    @dlog.aggregate(name="f", vectorized=True)
    class OfArrays(Greatest):
        def insert(self, x: Any) -> None:
            assert isinstance(x, np.ndarray)
            self.value = max(int(x.max()), self.value)

    for db in (opened(BOTH, f=Greatest), dlog.Database(source=BOTH), opened(BOTH, f=OfArrays)):
        db.apply(insert={"q": [(1, 5), (1, 7), (2, 3)]})
        db.execute("+q(2, 4). -q(1, 7).")
        assert db["p"].rows() == [(1, 5), (2, 4)]
        db.execute("-q(2, 4). -q(2, 3).")
        assert db["p"].rows() == [(1, 5)]
        db.verify()


def test_wrong_results_and_classes_of_aggregates() -> None:
    class Wrong(Sum):
        def result(self) -> Any:
            return None

    with pytest.raises(dlog.FunctionError, match=r"@f.result\(\) returned a wrong value: there is no value"):
        opened(BOTH + "q(1, 2).", f=Wrong)
    with pytest.raises(dlog.DlogError, match="the aggregate Empty has no insert"):
        opened(BOTH, f=type("Empty", (), {}))
    with pytest.raises(dlog.DlogError, match="f is implemented by a function"):
        opened(BOTH, f=lambda x: x)


# Elsewhere


def test_a_folder_is_opened_with_the_implementation(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    functions = {"f": lambda x: x * 3}
    with dlog.Database(folder, source=ONE + "q(1).", functions=functions) as db:
        db.execute("+q(2).")
    with pytest.raises(dlog.DlogError) as error, dlog.Database(folder):
        pass
    assert "there is no implementation of the functor f" in error.value.message
    assert error.value.help is not None and "functions={" in error.value.help
    with dlog.Database(folder, functions=functions) as db:
        assert db["p"].rows() == [(1, 3), (2, 6)] and db.version == 1
        db.branch("other")
        db.execute("+q(3).")
        db.checkout("other")
        assert db["p"].rows() == [(1, 3), (2, 6)]
        db.execute("-q(1).")
        assert db["p"].rows() == [(2, 6)]
        db.verify()


def test_commands_take_a_file_of_functions(tmp_path: Path) -> None:
    program = ["prices.dl", "--functions", "prices.py"]
    run = [sys.executable, "-m", "dlog"]
    done = subprocess.run(
        [*run, "run", *program, "-F", "prices/facts", "-D", tmp_path], cwd=PRICES, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    for path in (PRICES / "prices" / "expected").iterdir():
        assert lines(tmp_path / path.name) == lines(path)
    for command in (
        ["check"],
        ["explain"],
        ["apply", "--tx", "prices/day.tx", "--verify", "-F", "prices/facts"],
    ):
        done = subprocess.run([*run, command[0], *program, *command[1:]], cwd=PRICES, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
    without = subprocess.run(
        [*run, "run", "prices.dl", "-F", "prices/facts"], cwd=PRICES, capture_output=True
    )
    assert b"help: write it in Python with @dlog.function: dlog ... --functions FILE.py" in without.stderr


def test_other_processes_refuse_functors() -> None:
    from dlog.spark.plan.functors import refuse_functors

    refuse_functors(dlog.check("q(1). p(x) <- q(x).").rules, "--spark")
    for program in (ONE, BOTH):
        with pytest.raises(dlog.UnsupportedError, match="@f cannot be called in other processes") as error:
            refuse_functors(dlog.check(program).rules, "--spark")
        assert error.value.help == "leave out --spark" and error.value.line == 3


def test_delta_rules_call_functors() -> None:
    source = ".functor f(x: number): number\nq(x) -> int(x).\nr(x) -> int(x).\n+r(y) <- +q(x), y = @f(x).\n"
    db = opened(source, f=lambda x: 12 // x)
    db.execute("+q(1). +q(4).")
    assert db["r"].rows() == [(3,), (12,)]
    with pytest.raises(dlog.FunctionError, match=r"@f\(0\) raised ZeroDivisionError"):
        db.execute("+q(0).")
    assert db["r"].rows() == [(3,), (12,)] and db["q"].rows() == [(1,), (4,)]
