"""Owns what a transaction collects and what a commit tells.  Knows nothing of how derived predicates follow.

Lifecycle.  1 `Transaction` collects changes of base facts, and rules to add or remove; nothing of it is seen
by readers.  2 The database takes all of it, or nothing.  3 `Commit` has the net change of every predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from dlog.engine.facts import net_change, rows_with_keys, upserted
from dlog.engine.loading import python_codes, quick_codes
from dlog.engine.looked import Asked, nowhere
from dlog.engine.pending import Pending
from dlog.engine.result import Result
from dlog.engine.statements import Extension, extend, without
from dlog.errors import DataError, DlogError, did_you_mean
from dlog.interrupts import uninterrupted
from dlog.ir.rules import Predicate, Program
from dlog.language import ast
from dlog.language.change_text import ChangeText, read_changes
from dlog.language.parse import expand_includes, parse
from dlog.storage.batch import Change as Difference
from dlog.storage.dictionary import Dictionary
from dlog.storage.relation import Relation

if TYPE_CHECKING:
    from dlog.engine.database import Database

Op = str  # "+", "-" or "^", as in the language
FEW_CHANGES = 1024  # rows of one statement that go the short way
MOST_STEPS = 4  # each costs a tenth of the long way
SignedRows = tuple[int, str, Any]  # +1 or -1, a predicate, rows of codes


@dataclass(frozen=True)
class Change:
    """The rows that a predicate gained and lost, net: a row is in at most one of the two."""

    predicate: str
    inserted: Result
    erased: Result

    def __repr__(self) -> str:
        return f"<{self.predicate}: +{len(self.inserted):,} -{len(self.erased):,}>"


class Commit(NamedTuple):
    """A transaction that took place: the version it made and what changed, base and derived.

    `operations` counts seeks and nexts of its joins, and derivations of recursions that it looked at;
    `answers` are those of queries that stood in its text; `ways` tells how derived predicates, and
    constraints by their texts, followed: "delta", "stages", "trace" or "from scratch"; `costs` has the
    operations of each.  `looked()` tells for rules that are kept by their traces where the transaction made
    them look again: `print` each of them.  `repeated`: nothing was done, since a batch with this id had been
    applied before.
    """

    version: int
    changes: Mapping[str, Change]
    seconds: float
    operations: int = 0
    answers: Sequence[tuple[str, Result]] = ()
    ways: Mapping[str, str] = MappingProxyType({})
    costs: Mapping[str, int] = MappingProxyType({})
    looked: Asked = nowhere
    repeated: bool = False


class Changes(Mapping[str, Change]):
    """The net change of every predicate that a user knows, found and decoded when asked for."""

    __slots__ = ("_dictionary", "_given", "_known", "_predicates")

    def __init__(
        self,
        differences: Mapping[str, Difference] | Callable[[], Mapping[str, Difference]],
        predicates: Mapping[str, Predicate],
        dictionary: Dictionary,
    ):
        self._given = differences
        self._known: dict[str, Difference] | None = None
        self._predicates = predicates
        self._dictionary = dictionary

    @property
    def differences(self) -> dict[str, Difference]:
        """The same in codes."""
        if self._known is None:
            given = self._given() if callable(self._given) else self._given
            self._known = {n: d for n, d in given.items() if not self._predicates[n].auxiliary and d}
            self._given = self._known
        return self._known

    def __getitem__(self, name: str) -> Change:
        columns = self._predicates[name].columns
        inserted, erased = (Result(name, columns, rows, self._dictionary) for rows in self.differences[name])
        return Change(name, inserted, erased)

    def predicate(self, name: str) -> Predicate:
        """What the rows of a change are rows of."""
        return self._predicates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __repr__(self) -> str:
        parts = (f"{n}: +{len(d.inserted):,} -{len(d.erased):,}" for n, d in self.differences.items())
        return f"<{', '.join(parts) or 'no change'}>"


def shown_ways(ways: Mapping[str, str], program: Program) -> Mapping[str, str]:
    """Ways by names that a user knows: a part of a predicate counts as the predicate, a constraint is its
    text."""
    names = _shown_names(ways, program)
    if names is None:
        return ways
    shown: dict[str, str] = {}
    for name, way in sorted(ways.items(), key=lambda item: "'" in item[0]):
        shown.setdefault(names[name], way)
    return shown


def shown_costs(costs: Mapping[str, int], program: Program) -> Mapping[str, int]:
    """Operations by the same names: those of a predicate's parts are its own."""
    names = _shown_names(costs, program)
    if names is None:
        return costs
    shown: dict[str, int] = {}
    for name, operations in costs.items():
        shown = added_costs(shown, {names[name]: operations})
    return shown


def _shown_names(names: Iterable[str], program: Program) -> dict[str, str] | None:
    """What a user calls each; None: they are called so."""
    for name in names:
        if "'" in name:
            break
    else:
        return None
    texts = {c.violations: c.text for c in program.constraints}
    return {name: texts.get(name, name.split("'")[0]) for name in names}


def added_costs(costs: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {**costs, **{name: costs.get(name, 0) + operations for name, operations in others.items()}}


class Rollback(Exception):
    """Leaves the block of a transaction."""


class Transaction:
    """Changes to base facts and to the program, kept until commit.  Later ones win over earlier ones."""

    __slots__ = (
        "_found",
        "batch_id",
        "changes",
        "commit_info",
        "database",
        "merged",
        "program",
        "queries",
        "tree",
    )

    def __init__(self, database: Database, batch_id: str | None = None):
        self.database = database
        self.batch_id = batch_id
        self.merged: Any = None  # the moment of another branch whose changes these are: see `dlog.durable`
        self.tree: ast.Program = database.tree
        self.program: Program = database.program
        self._found = self.program
        self.changes: list[tuple[Op, str, Any]] = []
        self.queries: list[ast.Query] = []
        self.commit_info: Commit | None = None

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        """Commits, unless the block was left by an error; `rollback` is none that anyone sees."""
        if kind is None:
            self.database.commit(self)
        return kind is Rollback

    def insert(self, predicate: str, rows: Any) -> None:
        """Rows as tuples, a pyarrow Table, a pandas or polars frame, or a numpy array."""
        self._add("+", predicate, rows)

    def erase(self, predicate: str, rows: Any) -> None:
        """Takes base facts away; what rules derive stays."""
        self._add("-", predicate, rows)

    def upsert(self, predicate: str, rows: Any) -> None:
        """Facts of a function: each replaces the value that its key has."""
        self._require(predicate)
        if not self.program.predicates[predicate].is_functional:
            raise DataError(f"{predicate} is a relation: only a function has a value to replace")
        self._add("^", predicate, rows)

    def execute(self, text: str, name: str = "<string>") -> None:
        """Statements of the language: facts, `+ - ^`, rules, declarations, constraints.  All or none."""
        if not self.take_changes(text):
            self.add_statements(expand_includes(parse(text, name)).statements)

    def take_changes(self, text: str) -> bool:
        """Does `execute` for a text that is nothing but a few plain changes of facts; False for all else."""
        found = read_changes(text)
        changes = None if found is None else self._quick_changes(found)
        self.changes += changes or ()
        return changes is not None

    def _quick_changes(self, found: Sequence[ChangeText]) -> list[tuple[Op, str, Any]] | None:
        """Codes of changes of known predicates; None: something is left to the parser to say."""
        dictionary = self.database.store.dictionary
        groups: list[tuple[Op, Predicate, list[tuple[int | str, ...]]]] = []
        for op, name, is_functional, values in found:
            declared = self.program.predicates.get(name)
            if declared is None or declared.is_functional != is_functional:
                return None
            if len(values) != len(declared.columns) or (op == "^" and not is_functional):
                return None
            if groups and groups[-1][0] == op != "^" and groups[-1][1] is declared:
                groups[-1][2].append(values)
            else:
                groups.append((op, declared, [values]))
        changes: list[tuple[Op, str, Any]] = []
        for op, declared, rows in groups:
            codes = quick_codes(declared, rows, dictionary)
            if codes is None:
                return None
            changes.append((op, declared.name, codes))
        return changes

    def add_statements(self, statements: Sequence[ast.Node]) -> None:
        """As `execute`, already parsed."""
        self._take(extend(self.database, self.tree, self.program, statements))

    def remove_rule(self, text: str) -> None:
        """Takes a rule or constraint out of the program: the one that says the same."""
        self.tree, self.program = without(self.tree, text)

    def rollback(self) -> NoReturn:
        """Leaves the block of `with db.transaction()`; nothing is changed."""
        raise Rollback

    def program_after(self) -> tuple[ast.Program, Program]:
        """The program that the database has after this transaction."""
        if self.program is self._found:
            return self.database.tree, self.database.program
        if self._found is not self.database.program:
            raise DlogError("another transaction has changed the program since this one began")
        return self.tree, self.program

    def _require(self, predicate: str) -> None:
        if predicate not in self.program.predicates:
            help = did_you_mean(predicate, self.program.predicates)
            raise DataError(f"unknown predicate {predicate}", help=help)

    def _add(self, op: Op, predicate: str, rows: Any) -> None:
        declared = self.program.predicates.get(predicate)
        if declared is None:
            self._require(predicate)
            return
        codes = quick_codes(declared, rows, self.database.store.dictionary)
        if codes is None:
            codes = self._slow_codes(predicate, rows)
        self.changes.append((op, predicate, codes))

    @uninterrupted
    def _slow_codes(self, predicate: str, rows: Any) -> Any:
        codes = python_codes(self._store, predicate, rows)
        few = type(codes) is list and codes and len(codes[0]) <= FEW_CHANGES
        return np.stack(codes, axis=1) if few else codes

    def few_rows(self) -> list[SignedRows] | None:
        """All that there is to do, when it is to insert or erase a few rows of codes, as steps.

        A row's sign is what was said of it last.
        """
        changes = self.changes
        if self.queries or self.program is not self._found or not changes:
            return None
        if len(changes) > MOST_STEPS:
            return self._merged()
        if changes[0][0] == "^" and len(changes) == 1:
            return self._upsert_steps(*changes[0][1:])
        if len(changes) == 2 and (steps := _apart(*changes)) is not None:
            return steps
        steps = []
        signs: dict[str, str] = {}
        for op, name, codes in changes:
            if op == "^" or type(codes) is list or not 0 < len(codes) <= FEW_CHANGES:
                return None
            if signs.setdefault(name, op) != op and type(codes) is tuple:
                return self._merged()
            steps.append((1 if op == "+" else -1, name, codes))
        return steps

    def _upsert_steps(self, name: str, codes: Any) -> list[SignedRows] | None:
        """One upsert: the rows that it replaces, then its own."""
        if type(codes) is list or not 0 < len(codes) <= FEW_CHANGES:
            return None
        relation = self.database.store.relations[name]
        replaced, rows = upserted(relation, codes, self.program.predicates[name].n_keys)
        steps: list[SignedRows] = [(-1, name, replaced), (1, name, rows)]
        return [step for step in steps if len(step[2])] or None

    def _merged(self) -> list[SignedRows] | None:
        """The same for many statements: rows to erase first, so that there are no more states in between
        than need be."""
        if sum(len(codes) for _, _, codes in self.changes) > FEW_CHANGES:
            return None
        pending = self._pending()
        return None if pending is None else list(pending.steps()) or None

    def pending(self, predicate: str) -> Change:
        """What the transaction would change of a predicate's base facts if it were committed now.

        >>> import dlog
        >>> db = dlog.Database(source="edge(1, 2). edge(2, 3).")
        >>> with db.transaction() as tx:
        ...     tx.insert("edge", [(3, 4), (1, 2)])
        ...     tx.erase("edge", [(2, 3), (9, 9)])
        ...     tx.pending("edge").inserted.rows(), tx.pending("edge").erased.rows()
        ([(3, 4)], [(2, 3)])
        """
        self._require(predicate)
        declared = self.program.predicates[predicate]
        relation = self.database.base_relation(predicate)
        if relation is None:
            relation = Relation.build(self.database.store.arena, [], len(declared.columns))
        ops = [(op, codes) for op, name, codes in self.changes if name == predicate]
        change = net_change(relation, ops, declared.n_keys)
        dictionary = self.database.store.dictionary
        inserted, erased = (Result(predicate, declared.columns, rows, dictionary) for rows in change)
        return Change(predicate, inserted, erased)

    def _pending(self) -> Pending | None:
        """The last word on each row; None if there are whole tables among the changes.  O(rows log rows)."""
        if any(type(codes) is list for _, _, codes in self.changes):
            return None
        pending = Pending()
        for op, name, codes in self.changes:
            rows = codes if type(codes) is tuple else tuple(map(tuple, codes.tolist()))
            if op == "^":
                relation, n_keys = self.database.base_relation(name), self.program.predicates[name].n_keys
                assert relation is not None
                replaced = rows_with_keys(relation, rows, n_keys)
                pending.replace(name, rows, n_keys, map(tuple, replaced.tolist()))
            else:
                pending.say(1 if op == "+" else -1, name, rows)
        return pending

    @uninterrupted
    def _take(self, extension: Extension) -> None:
        store = self.database.store.under(extension.program.predicates)
        changes = [(op, name, store.literal_rows(name, rows)) for op, name, rows in extension.facts]
        changes += [("+", name, python_codes(store, name, table)) for name, table in extension.tables]
        self.tree, self.program = extension.tree, extension.program
        self.changes += changes
        self.queries += extension.queries

    @property
    def _store(self) -> Any:
        return self.database.store.under(self.program.predicates)


def _apart(one: tuple[Op, str, Any], other: tuple[Op, str, Any]) -> list[SignedRows] | None:
    """Two statements on different rows, each a single one: what is erased first."""
    (op, name, row), (other_op, other_name, other_row) = one, other
    if type(row) is not tuple or type(other_row) is not tuple or len(row) > 1 or len(other_row) > 1:
        return None
    if op == "^" or other_op == "^" or (row == other_row and name == other_name):
        return None
    steps = [(1 if op == "+" else -1, name, row), (1 if other_op == "+" else -1, other_name, other_row)]
    return steps if op == "-" else steps[::-1]
