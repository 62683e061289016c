"""Owns a program as rules before it is typed: the output of lowering and the input of typing."""

from __future__ import annotations

from dataclasses import dataclass, field

from dlog.ir.lower.functors import Functors
from dlog.ir.lower.named_types import NamedTypes
from dlog.ir.lower.names import Names
from dlog.ir.rules import Constraint, FactBlock, FactDelta, Query, Rule
from dlog.language import ast


@dataclass
class Lowered:
    names: Names
    types: NamedTypes
    functors: Functors
    has_times: bool = False  # whether a column has a type of times, whose sums may be undefined
    rules: list[Rule] = field(default_factory=list)
    facts: list[FactBlock] = field(default_factory=list)
    deltas: list[FactDelta] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    directives: list[ast.Directive] = field(default_factory=list)
    pragmas: list[ast.Pragma] = field(default_factory=list)
