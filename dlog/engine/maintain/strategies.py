"""Owns the list of strategies: the only place that names them, in the order in which they are asked.

Each has a folder beside this module with `offer.py` (what it would cost, or why it cannot), `keep.py` (the
strategy with its state) and, where there is something to put there, `explain.py` and kernels.  A folder is
loaded when it is first asked.  Knows nothing of rules; the command line reads the names from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dlog.errors import DlogError, SourceError, did_you_mean
from dlog.language.ast import Pragma


@dataclass(frozen=True)
class Entry:
    """`offer.py` of its folder has the functions

    refuse(name, question)              why it cannot maintain a stratum, if it cannot; cheap
    offer(name, question)               what it would cost, an `Offer`
    make(name, question)                the strategy; raises UnsupportedError for what is found only now
    rule_offer(name, question, rule)    the same for one rule, if it finds changes rule by rule
    """

    name: str
    folder: str
    selectable: bool = True  # by the user, for all rules that allow it
    by_rule: bool = False  # whether it is chosen for each rule of a stratum
    on_request: bool = False  # its method is chosen for a rule only if the user asks for it
    changes_only: bool = False  # whether it finds the change of a head whose relation is not stored
    classes: bool = False  # whether it maintains the classes of equivalence relations
    subsumptions: bool = False  # whether it maintains predicates with a subsumption
    totals: bool = False  # whether it maintains recursive sums and counts
    memory: bool = False  # whether it maintains predicates whose rows depend on those that they had
    calls: bool = False  # whether it calls functors
    sequences: bool = False  # whether it maintains sequences
    last_resort: bool = False  # asked only when all others refuse: it is never cheaper

    @property
    def offers(self) -> Any:
        """Its module `offer`."""
        return import_module(f"{__package__}.{self.folder}.offer")


FROM_SCRATCH = "from scratch"
PRAGMA = "strategy"
REGISTRY = (
    Entry("delta", "delta", by_rule=True, changes_only=True),
    Entry("trace", "trace", by_rule=True),
    Entry("trace-exact", "trace", by_rule=True, on_request=True),
    Entry("views", "views"),
    Entry("stages", "stages", selectable=False),
    Entry("calls", "calls", selectable=False, calls=True),
    Entry("classes", "classes", selectable=False, classes=True),
    Entry("subsumptions", "subsumptions", selectable=False, subsumptions=True),
    Entry("numbering", "numbering", selectable=False, sequences=True),
    Entry("choices", "choices", selectable=False, memory=True),
    Entry("autonumbers", "autonumbers", selectable=False, memory=True),
    Entry(
        FROM_SCRATCH,
        "scratch",
        selectable=False,
        last_resort=True,
        classes=True,
        subsumptions=True,
        sequences=True,
        memory=True,
    ),
    Entry("multilevel", "multilevel"),
    Entry("join_graph", "join_graph", by_rule=True, on_request=True, changes_only=True),
)
SELECTABLE = tuple(entry.name for entry in REGISTRY if entry.selectable)


def require_strategy(name: str | None) -> None:
    """Raises for the name of a strategy that the user cannot select."""
    if name is None or name in SELECTABLE:
        return
    if not isinstance(name, str):
        raise TypeError(f"strategy must be a string, not {name!r}")
    known = did_you_mean(name, SELECTABLE, f"the strategies are {', '.join(SELECTABLE)}")
    message = f"unknown strategy {name}" if name else "the name of a strategy is missing"
    raise DlogError(message, help=known)


def requested(name: str | None, pragmas: Sequence[Pragma]) -> str | None:
    """The strategy for all rules: that of the caller, or of `.pragma "strategy" "NAME"`, the last one."""
    require_strategy(name)
    for pragma in pragmas:
        if pragma.key == PRAGMA:
            try:
                require_strategy(pragma.value or "")
            except DlogError as error:
                raise SourceError(error.message, span=pragma.span, help=error.help) from None
    named = [pragma.value for pragma in pragmas if pragma.key == PRAGMA]
    return name if name is not None or not named else named[-1]
