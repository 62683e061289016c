"""Layers behave as dicts do, and copies as copies, whatever is done to either."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.state.layers import MANY, MOST_WRITES, Layers, in_layers

NAMES = st.integers(0, 40).map("p{}".format)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["set", "del", "pop", "default", "update", "copy", "settle"]),
        st.integers(0, 3),
        st.lists(NAMES, min_size=1, max_size=MOST_WRITES),
        st.integers(),
    ),
    max_size=30,
)


def step(relations: dict[str, Any], what: str, names: list[str], value: int) -> object:
    """Do one thing; what it gives."""
    if what == "set":
        relations[names[0]] = value
    elif what == "del":
        relations.pop(names[0], None)
        if names[-1] in relations:
            del relations[names[-1]]
    elif what == "pop":
        return relations.pop(names[0], "none")
    elif what == "default":
        return relations.setdefault(names[0], value)
    elif what == "update":
        relations.update(dict.fromkeys(names, value))
    return None


@given(st.sets(NAMES, min_size=15), STEPS)
def test_layers_and_their_copies_are_dicts(names: set[str], steps: list[Any]) -> None:
    below: dict[str, Any] = dict.fromkeys(sorted(names), -1)
    pairs: list[tuple[Layers, dict[str, Any]]] = [(Layers({}, below), dict(below))]
    for what, which, over, value in steps:
        layers, model = pairs[which % len(pairs)]
        if what == "settle":
            layers.settle()
        elif what == "copy":
            pairs.append((layers.copy(), model.copy()))
        else:
            assert step(layers, what, over, value) == step(model, what, over, value)
        for found, expected in pairs:
            assert_same(found, expected)
    assert below == dict.fromkeys(names, -1)


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert dict(found) == expected == {**found} and found == expected
    assert dict(found.items()) == expected and sorted(found.values()) == sorted(expected.values())
    assert sorted(found) == sorted(found.keys()) == sorted(expected) and len(found) == len(expected)
    assert bool(found) == bool(expected) and found | {"x": 1} == expected | {"x": 1}
    for name in ("p0", "p1", "p40", *expected):
        assert (name in found) == (name in expected) and found.get(name) == expected.get(name)
        if name in expected:
            assert found[name] == expected[name]


def test_a_name_that_is_not_there() -> None:
    layers = Layers({}, {"p": 1})  # type: ignore[dict-item]
    for missing in (lambda: layers["q"], lambda: layers.pop("q"), lambda: layers.__delitem__("q")):
        with pytest.raises(KeyError, match="q"):
            missing()


def test_copies_share_what_is_below() -> None:
    layers: dict[str, Any] = in_layers({f"p{i}": i for i in range(MANY)})  # type: ignore[misc]
    assert isinstance(layers, Layers)
    layers["p0"] = 7
    layers.settle()
    assert "p0" not in layers._below, "an old version is kept"
    copied: Any = layers.copy()
    copied["p0"] = 8
    copied.settle()
    assert copied._below is layers._below and (copied["p0"], layers["p0"]) == (8, 7)
    assert type(in_layers({"p": 1})) is dict  # type: ignore[dict-item]


def test_many_predicates_under_transactions() -> None:
    rules = "".join(f"r{i}(x, z) <- a{i}(x, y), b{i}(y, z). s{i}(x) <- r{i}(x, x)." for i in range(30))
    rules += "t(x, y) <- a0(x, y). t(x, z) <- t(x, y), a0(y, z). a0(x, y) -> x != 99."
    db = dlog.Database(source=rules + "".join(f"a{i}(0, 0). b{i}(1, 2)." for i in range(30)))
    assert isinstance(db.store.relations, Layers)
    expected: dict[str, set[tuple[int, int]]] = {f"a{i}": {(0, 0)} for i in range(30)}
    held = []
    for n in range(120):
        name, row = f"a{n * n % 31 % 30}", (n % 7, n % 5)
        held.append((db.snapshot(), name, sorted(expected[name])))
        if n % 3 == 2:
            db.apply(erase={name: [row]})
            expected[name].discard(row)
        elif n % 10 == 9:
            with pytest.raises(dlog.DlogError, match="constraint broken"):
                db.apply(insert={name: [row], "a0": [(99, 1)]})
        else:
            db.apply(insert={name: [row, (n, n + 1)]})
            expected[name] |= {row, (n, n + 1)}
        if n == 60:
            db.execute("late(x) <- a3(x, _), !b3(x, _).")
            db.remove_rule("s7(x) <- r7(x, x).")
    db.check()
    db.verify()
    assert {name: db[name].rows() for name in expected} == {n: sorted(rows) for n, rows in expected.items()}
    assert all(view[name].rows() == rows for view, name, rows in held)
