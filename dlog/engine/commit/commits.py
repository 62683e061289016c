"""Owns what a commit reports.  Nothing of it is computed before it is requested.

Knows nothing of how derived predicates are maintained: the code that makes a state leaves what there is to
report (`CommitSummary`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from dlog.engine.commit.oracle_report import OracleReport
from dlog.engine.commit.record_uses import codes_in_rows
from dlog.engine.commit.result import Result
from dlog.ir.rules import Predicate, Program
from dlog.jit import Words
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.batch import Change as Difference
from dlog.storage.relation.deferred import DeferredChange


class CommitSummary(Protocol):
    """The data of a maintained transaction, by the names that the engine has."""

    @property
    def ways(self) -> Mapping[str, str]:
        """How derived predicates were maintained."""

    def costs(self) -> Mapping[str, int]:
        """Operations, by the names of `ways`."""

    def differences(self) -> Mapping[str, Difference]:
        """The net change of every predicate, in codes."""

    def change_of(self, name: str) -> Callable[[], Difference] | None:
        """How to find the change of a predicate that is certain to have changed; None: see `differences`."""

    def oracle_reports(self) -> Sequence[OracleReport]:
        """Where rules that are maintained by their traces were re-examined."""

    def note(self, seconds: float, maintained: float) -> None:
        """The time that it took."""


class Change:
    """The rows that a predicate gained and lost, net: a row is in at most one of the two."""

    __slots__ = ("_find", "_found", "predicate")

    def __init__(self, predicate: str, find: Callable[[], tuple[Result, Result]]):
        """`find` gives what is inserted and what is erased, when one of them is first read."""
        self.predicate = predicate
        self._find: Callable[[], tuple[Result, Result]] | None = find
        self._found: tuple[Result, Result] | None = None

    @classmethod
    def of(cls, predicate: str, inserted: Result, erased: Result) -> Change:
        change = cls(predicate, lambda: (inserted, erased))
        change._found = inserted, erased
        return change

    @property
    def inserted(self) -> Result:
        return self._results[0]

    @property
    def erased(self) -> Result:
        return self._results[1]

    @property
    def _results(self) -> tuple[Result, Result]:
        found, find = self._found, self._find
        if found is None and find is not None:
            found = self._found = find()
            self._find = None
        assert found is not None
        return found

    def __repr__(self) -> str:
        return f"<{self.predicate}: +{len(self.inserted):,} -{len(self.erased):,}>"


class Changes(Mapping[str, Change]):
    """The net change of every predicate that a user can see, found and decoded on request."""

    __slots__ = ("__weakref__", "_change_of", "_dictionary", "_given", "_known", "_predicates")

    def __init__(
        self,
        differences: Callable[[], Mapping[str, Difference]],
        predicates: Mapping[str, Predicate],
        dictionary: Dictionary,
        change_of: Callable[[str], Callable[[], Difference] | None] = lambda name: None,
    ):
        """`change_of` as in `CommitSummary`."""
        self._given = differences
        self._change_of = change_of
        self._known: dict[str, Difference] | None = None
        self._predicates = predicates
        self._dictionary = dictionary

    @property
    def differences(self) -> dict[str, Difference]:
        """The same in codes.  Not of equivalence relations: only the change of their pairs is known."""
        return {
            name: change
            for name, change in self._visible.items()
            if change and not self._predicates[name].is_equivalence
        }

    def difference(self, name: str) -> Difference | None:
        """The same of one predicate, if it changed; of an equivalence relation, of its pairs."""
        return self._visible.get(name) or None

    @property
    def _visible(self) -> dict[str, Difference]:
        """Of predicates that may have changed."""
        if self._known is None:
            self._known = {n: d for n, d in self._given().items() if self._is_shown(n)}
        return self._known

    def _is_shown(self, name: str) -> bool:
        return name in self._predicates and not self._predicates[name].auxiliary

    def __getitem__(self, name: str) -> Change:
        change = self.difference(name)
        if change is None or self._predicates[name].is_equivalence:
            raise KeyError(name)
        return Change.of(name, *self._results(name, change))

    def noted(self, name: str) -> Change | None:
        """The change of a predicate, whose rows may be found only when they are read."""
        declared = self._predicates.get(name)
        may_wait = self._known is None and declared is not None and not declared.has_records
        if may_wait and (find := self._change_of(name)) is not None:
            return Change(name, lambda: self._results(name, find()))
        return self.get(name)

    def _results(self, name: str, change: Difference) -> tuple[Result, Result]:
        columns, dictionary = self._predicates[name].columns, self._dictionary
        if isinstance(change, DeferredChange):
            shown = [Result(name, columns, rows, dictionary, texts) for rows, texts in change.shown()]
        else:
            shown = [Result(name, columns, rows, dictionary) for rows in change]
        inserted, erased = shown
        return inserted, erased

    def held_records(self) -> Iterator[Words]:
        """The codes of records in its rows."""
        for name, change in self.differences.items():
            yield from codes_in_rows(self._predicates[name].columns, (change.inserted, change.erased))

    def predicate(self, name: str) -> Predicate:
        """The predicate of the rows of a change."""
        return self._predicates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __repr__(self) -> str:
        parts = (f"{n}: +{len(d.inserted):,} -{len(d.erased):,}" for n, d in self.differences.items())
        return f"<{', '.join(parts) or 'no change'}>"


class Commit:
    """A committed transaction: the version it made and what changed, base and derived.

    `answers` are those of queries in its text.  `repeated`: nothing was done, since a batch with
    this id had been applied before.
    """

    __slots__ = (
        "__weakref__",
        "_changes",
        "_dictionary",
        "_program",
        "_summary",
        "answers",
        "repeated",
        "seconds",
        "version",
    )

    def __init__(
        self,
        version: int,
        summary: CommitSummary,
        program: Program,
        dictionary: Dictionary,
        repeated: bool = False,
    ):
        self.version = version
        self._summary = summary
        self._program = program
        self._dictionary = dictionary
        self._changes: Changes | None = None
        self.seconds = 0.0
        self.answers: Sequence[tuple[str, Result]] = ()
        self.repeated = repeated
        if program.has_records:
            dictionary.records.holders.add(self)

    @property
    def changes(self) -> Changes:
        """The net change of every predicate."""
        if self._changes is None:
            summary, predicates = self._summary, self._program.predicates
            self._changes = Changes(summary.differences, predicates, self._dictionary, summary.change_of)
            if self._program.has_records:
                self._dictionary.records.holders.add(self._changes)
        return self._changes

    def held_records(self) -> Iterator[Words]:
        """The codes of records that have changed."""
        return self.changes.held_records()

    @property
    def operations(self) -> int:
        """Seeks and nexts of its joins, and derivations of recursions that it examined."""
        return sum(self._summary.costs().values())

    @property
    def ways(self) -> Mapping[str, str]:
        """How derived predicates, and constraints by their texts, were maintained: "delta", "stages", "trace"
        or "from scratch".  A part of a predicate counts as the predicate."""
        ways = self._summary.ways
        shown: dict[str, str] = {}
        for name, way in sorted(ways.items(), key=lambda item: "'" in item[0]):
            shown.setdefault(_shown_name(name, self._program), way)
        return shown

    @property
    def costs(self) -> Mapping[str, int]:
        """The operations of each of them, including those of a predicate's parts."""
        shown: dict[str, int] = {}
        for name, operations in self._summary.costs().items():
            name = _shown_name(name, self._program)
            shown[name] = shown.get(name, 0) + operations
        return shown

    def oracle_reports(self) -> Sequence[OracleReport]:
        """For rules that are maintained by their traces, what the transaction made them examine again:
        `print` each of them."""
        return self._summary.oracle_reports()

    def __repr__(self) -> str:
        return f"Commit(version={self.version}, changes={self.changes!r}, seconds={self.seconds:.6f})"


def _shown_name(name: str, program: Program) -> str:
    """The user's name of a predicate, or a constraint."""
    if "'" not in name:
        return name
    texts = (c.text for c in program.constraints if c.violations == name)
    return next(texts, name.split("'")[0])


class RecordedSummary:
    """The report of a transaction that took the general path, or of none."""

    __slots__ = ("_costs", "_differences", "_oracle_reports", "ways")

    def __init__(
        self,
        differences: Mapping[str, Difference] = MappingProxyType({}),
        ways: Mapping[str, str] = MappingProxyType({}),
        costs: Mapping[str, int] = MappingProxyType({}),
        oracle_reports: Sequence[OracleReport] = (),
    ):
        self._differences, self.ways, self._costs = differences, ways, costs
        self._oracle_reports = oracle_reports

    def differences(self) -> Mapping[str, Difference]:
        return self._differences

    def change_of(self, name: str) -> None:
        """They are known."""

    def costs(self) -> Mapping[str, int]:
        return self._costs

    def oracle_reports(self) -> Sequence[OracleReport]:
        return self._oracle_reports

    def note(self, seconds: float, maintained: float) -> None:
        """Strata were timed one by one."""


def added_costs(costs: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Of several steps, together."""
    total: dict[str, int] = {}
    for one in costs:
        for name, operations in one.items():
            total[name] = total.get(name, 0) + operations
    return total
