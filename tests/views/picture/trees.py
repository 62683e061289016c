"""Random view trees to draw, and the paper's (4.10): made by hand, not by the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from dlog.m3.syntax import ast
from dlog.views.tree.tree import VariableOrder, View, ViewTree


def leaf(name: str, keys: Sequence[str], changes: bool = False, kept: bool = False) -> View:
    return View(name, tuple(keys), (name,), atom=name, materialised=kept, changes=(name,) if changes else ())


def view(
    variables: str | Sequence[str],
    keys: Sequence[str],
    *children: View,
    factors: Sequence[ast.Node] = (),
    conditions: Sequence[ast.Node] = (),
    kept: bool = False,
) -> View:
    names = [variables] if isinstance(variables, str) else list(variables)
    relations = tuple(name for child in children for name in child.relations)
    changes = tuple(name for child in children for name in child.changes)
    return View(
        names[0], tuple(keys), relations, tuple(names), children, tuple(factors), tuple(conditions),
        materialised=kept, changes=changes,
    )  # fmt: skip


def tree(root: View) -> ViewTree:
    return ViewTree(root, VariableOrder(()))


def hybrid_tree() -> ViewTree:
    """Fig. 4.9: updates of R alone."""
    b = view(
        "B", "A",
        view(["C", "extra"], "AB", leaf("R", ["A", "B", "C", "extra"], changes=True)),
        view("D", "AB", leaf("S", "ABD"), kept=True),
    )  # fmt: skip
    e = view("E", "A", leaf("T", "AE"), view("F", "E", leaf("U", "EF"), kept=True), kept=True)
    return tree(view("A", "", b, e, factors=[ast.Variable("A")], kept=True))


def random_tree(seed: int, variables: int) -> ViewTree:
    """Some variables in a forest's shape, relations of any width at the leaves, names short and long."""
    random = Random(seed)
    long_names = random.random() < 0.5
    names = [f"attribute_{n}" if long_names and random.random() < 0.5 else f"x{n}" for n in range(variables)]
    below: dict[int, list[int]] = {n: [] for n in range(variables)}
    for n in range(1, variables):
        below[random.choice((n - 1, max(0, n - 3), random.randrange(n)))].append(n)

    def made(n: int, above: list[str]) -> View:
        keys = [name for name in above if random.random() < 0.7]
        children = [made(child, [*above, names[n]]) for child in below[n]]
        if not children or random.random() < 0.2:
            relation = f"{'RELATION' if long_names else 'R'}{n}"
            columns = [*keys, names[n]]
            children.insert(0, leaf(relation, columns, random.random() < 0.6, random.random() < 0.3))
        factors = [ast.Variable(names[n])] if random.random() < 0.3 else []
        return view(names[n], keys, *children, factors=factors, kept=random.random() < 0.5)

    return tree(made(0, []))
