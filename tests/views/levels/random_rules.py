"""Owns random programs for levels of maps, as text: inline aggregates, negations, disjunctions, comparisons,
self-joins and derived predicates over four base relations.  The last rule derives `q`.
"""

from __future__ import annotations

import random

BASE = {"r": ("int", "int"), "s": ("int", "int"), "u": ("int",), "d": ("int", "decimal[9, 2]")}
DECLARATIONS = "r(a, b) -> int(a), int(b). s(b, c) -> int(b), int(c). u(a) -> int(a).\n"
DECLARATIONS += "d(a, p) -> int(a), decimal[9, 2](p).\n"
OPERATORS = ("<", "<=", ">", ">=", "=", "!=")


class RandomRules:
    """One program, with so many derived predicates at most.  `depth` limits how deep bodies are nested."""

    def __init__(self, rng: random.Random, derived: int = 2):
        self.rng, self.most = rng, derived
        self.derived: dict[str, tuple[str, bool]] = {}  # predicate -> its types, whether it is a function
        self.number = 0

    def text(self) -> str:
        rules = [self._derived(f"p{i}") for i in range(self.rng.randint(0, self.most))]
        rules.append(self._result())
        return DECLARATIONS + "\n".join(rules)

    # ---- rules

    def _derived(self, name: str) -> str:
        """A set of pairs, by one rule or two, or a function."""
        kind = self.rng.choice(("set", "set", "two", "sum"))
        if kind == "sum":
            bound: list[str] = []
            body = self._body(bound, 1)
            head = f"{name}[{self._one(bound)}] = z <- agg<<z = {self._aggregate(bound)}>> {body}."
        else:
            head = "\n".join(self._pair(name) for _ in range(2 if kind == "two" else 1))
        self.derived[name] = ("int", kind == "sum")
        return head

    def _pair(self, name: str) -> str:
        bound: list[str] = []
        body = self._body(bound, 1)
        return f"{name}({self._one(bound)}, {self._one(bound)}) <- {body}."

    def _result(self) -> str:
        bound: list[str] = []
        body = self._body(bound, 2)
        kind = self.rng.choice(("agg", "agg", "whole", "set", "inline", "two"))
        group = self._one(bound)
        if kind == "agg":
            return f"q[{group}] = z <- agg<<z = {self._aggregate(bound)}>> {body}."
        if kind == "whole":
            return f"q[] = z <- agg<<z = {self._aggregate(bound)}>> {body}."
        if kind == "inline":
            atom = self._atom(["g"], ["g"], 1)
            return f"q[g] = z <- {atom}, z = {self._inline(['g'], 1)}."
        if kind == "set":
            return f"q({group}, {self._one(bound)}) <- {body}."
        return f"q({group}, {self._one(bound)}) <- {body}.\n{self._pair('q')}"

    def _aggregate(self, bound: list[str]) -> str:
        kind = self.rng.choice(("count", "sum", "sum", "product", "distinct"))
        one, other = self._one(bound), self._one(bound)
        return {
            "count": "count()",
            "sum": f"sum({one})",
            "product": f"sum({one} * {other} - {one})",
            "distinct": f"count_distinct({one})",
        }[kind]

    # ---- bodies.  `bound` are variables that hold whole numbers; new ones are added

    def _body(self, bound: list[str], depth: int) -> str:
        literals = [self._atom(bound, None, 0) for _ in range(self.rng.choice((1, 1, 2)))]
        if not bound:
            literals.append(f"u({self._new(bound)})")
        literals += [self._extra(bound, depth) for _ in range(self.rng.choice((0, 1, 1, 2)))]
        return ", ".join(literals)

    def _atom(self, bound: list[str], only: list[str] | None, must: int) -> str:
        """`only`: the variables that may be used, no new ones, of which the first stands at least once."""
        names = [*BASE, *self.derived, "r", "s"]
        name = self.rng.choice(names if not must else ["r", "s", "u"])
        types = BASE.get(name) or (self.derived[name][0],) * 2
        args = [self._argument(bound, type, only) for type in types]
        if must:
            args[self.rng.randrange(len(args))] = (only or bound)[0]
        if name in self.derived and self.derived[name][1]:
            return f"{name}[{args[0]}] = {args[1]}"
        return f"{name}({', '.join(args)})"

    def _argument(self, bound: list[str], type: str, only: list[str] | None) -> str:
        if type != "int":
            return self.rng.choice(("_", "_", "1.25"))
        kinds = ["bound", "constant", "any"] + ["new"] * 3 * (only is None)
        kind = self.rng.choice(kinds)
        if kind == "new":
            return self._new(bound)
        known = bound if only is None else only
        if kind == "bound" and known:
            return self.rng.choice(known)
        return str(self.rng.randint(0, 2)) if kind == "constant" else "_"

    def _extra(self, bound: list[str], depth: int) -> str:
        kinds = ["comparison", "computed", "not", "decimal", "one of", "neither"]
        if depth > 0:
            kinds += ["inline", "inline", "compared", "compared", "not both", "either", "binds"]
        kind = self.rng.choice(kinds)
        one, other = self._one(bound), self._one(bound)
        op = self.rng.choice(OPERATORS)
        match kind:
            case "comparison":
                return f"{one} {op} {other} + {self.rng.randint(-1, 2)}"
            case "computed":
                text = f"{one} * {self.rng.randint(-1, 2)} + {other}"
                return f"{self._new(bound)} = {text}"
            case "not":
                return f"!{self._atom(bound, list(bound), 0)}"
            case "decimal":
                self.number += 1
                return f"d({one}, m{self.number}), m{self.number} * 2 {op} 1.5 + {one} * 0.5"
            case "one of" | "neither":
                parts = (self._atom(bound, list(bound), 0) for _ in range(2))
                return f"{'!' * (kind == 'neither')}({' ; '.join(parts)})"
            case "inline":
                text = self._inline(bound, depth - 1)
                return f"{self._new(bound)} = {text}"
            case "compared":
                return f"{one} {op} {self._inline(bound, depth - 1)}"
            case "not both":
                inner = list(bound)
                return f"!({self._atom(inner, None, 0)}, {self._extra(inner, depth - 1)})"
            case "either":
                parts = (self._extra(list(bound), depth - 1) for _ in range(2))
                return f"({' ; '.join(parts)})"
        name = self._new(list(bound))
        parts = (self._binding(bound, name) for _ in range(2))
        text = f"({' ; '.join(parts)})"
        bound.append(name)
        return text

    def _binding(self, bound: list[str], name: str) -> str:
        inner = list(bound)
        return self.rng.choice(
            (
                f"{name} = {self._one(inner)} + 1",
                f"s({self._one(inner)}, {name})",
                f"r({name}, _), {name} > {self._one(inner)}",
                f"{name} = 1, u({self._one(inner)})",
            )
        )

    def _inline(self, bound: list[str], depth: int) -> str:
        """A sum, a count or the doubled sum of decimals is compared as a whole number."""
        inner = list(bound)
        atom = self._atom(inner, None, 0)
        body = atom + (f", {self._extra(inner, depth)}" if self.rng.random() < 0.7 else "")
        if self.rng.random() < 0.4 or not inner:
            return f"count : {{ {body} }}"
        return f"sum {self._one(inner)} : {{ {body} }}"

    def _one(self, bound: list[str]) -> str:
        return self.rng.choice(bound) if bound else "1"

    def _new(self, bound: list[str]) -> str:
        self.number += 1
        bound.append(f"x{self.number}")
        return bound[-1]
