"""Owns what a transaction collects.  Knows nothing of how derived predicates are maintained.

Lifecycle.  1 `Transaction` collects changes of base facts, and rules to add or remove; readers see nothing
of it.  2 The database takes all of it, or nothing.  3 A `Commit` has the net change of every predicate
(`dlog.engine.commit.commits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dlog.engine.blocks import block_of, without_block
from dlog.engine.commit.commits import Change, Commit
from dlog.engine.commit.record_uses import codes_in_rows
from dlog.engine.commit.result import Result
from dlog.engine.loading import python_codes, quick_codes
from dlog.engine.maintain.facts import net_change, rows_with_keys, upserted
from dlog.engine.state.pending import Pending, SignedRows
from dlog.engine.statements import Extension, extend, without
from dlog.errors import DataError, DlogError, did_you_mean
from dlog.interrupts import uninterrupted
from dlog.ir.rules import Predicate, Program
from dlog.jit import Words
from dlog.language import ast
from dlog.language.change_text import ChangeText, read_changes
from dlog.language.parse import expand_includes, parse
from dlog.storage.dictionary.records.uses import in_use
from dlog.storage.relation.relation import Relation

if TYPE_CHECKING:
    from dlog.engine.database import Database

Op = str  # "+", "-" or "^", as in the language
FEW_CHANGES = 1024  # rows of one statement that take the short path
MOST_STEPS = 4  # each costs a tenth of the general path


class Rollback(Exception):
    """Leaves the block of a transaction."""


class Transaction:
    """Changes to base facts and to the program, collected until commit.  Later ones override earlier ones."""

    batch_id: str | None = None
    merged: Any = None  # the moment of another branch whose changes these are: see `dlog.durable`
    queries: Sequence[ast.Query] = ()
    once: Sequence[ast.DeltaRule] = ()  # delta rules that run in this transaction only
    by_rules: frozenset[str] = frozenset()  # the predicates that delta rules may have changed
    commit_info: Commit | None = None

    def __init__(self, database: Database, batch_id: str | None = None):
        self.database = database
        self.tree: ast.Program = database.tree
        self.program: Program = database.program
        self._found = self.program
        self.changes: list[tuple[Op, str, Any]] = []
        if batch_id is not None:
            self.batch_id = batch_id

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        """Commits, unless the block was left by an error; `rollback` is not an error to the caller."""
        if kind is None:
            self.database.commit(self)
        return kind is Rollback

    def insert(self, predicate: str, rows: Any) -> None:
        """Rows as tuples, a pyarrow Table, a pandas or polars frame, or a numpy array."""
        self._add("+", predicate, rows)

    def erase(self, predicate: str, rows: Any) -> None:
        """Erases base facts; derived rows stay."""
        self._add("-", predicate, rows)

    def upsert(self, predicate: str, rows: Any) -> None:
        """Facts of a function: each replaces the value of its key."""
        self._require(predicate)
        if not self.program.predicates[predicate].is_functional:
            raise DataError(f"{predicate} is a relation: only a function has a value to replace")
        self._add("^", predicate, rows)

    def execute(self, text: str, name: str = "<string>") -> None:
        """Statements of the language: facts, `+ - ^`, rules, declarations, constraints.  All or none.

        Delta rules run once, in this transaction: `add_rules` adds them to the program.
        """
        if not self.take_changes(text):
            self.add_statements(expand_includes(parse(text, name)).statements)

    def take_changes(self, text: str) -> bool:
        """Does `execute` for a text of only a few plain changes of facts; False for anything else."""
        found = read_changes(text)
        changes = None if found is None else self._quick_changes(found)
        self.changes += changes or ()
        return changes is not None

    def _quick_changes(self, found: Sequence[ChangeText]) -> list[tuple[Op, str, Any]] | None:
        """Codes of changes of known predicates; None: the parser has to report an error."""
        dictionary = self.database.store.dictionary
        references = self.program.references
        groups: list[tuple[Op, Predicate, list[tuple[int | str, ...]]]] = []
        for op, name, is_functional, values in found:
            declared = self.program.predicates.get(name)
            if declared is None or declared.is_functional != is_functional or name in references:
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

    def add_rules(self, text: str, name: str = "<string>") -> None:
        """As `execute`, with delta rules that stay in the program."""
        self.add_statements(expand_includes(parse(text, name)).statements, to_stay=True)

    def add_statements(self, statements: Sequence[ast.Node], to_stay: bool = False) -> None:
        """As `execute`, or as `add_rules`, already parsed."""
        with in_use():
            self._take(extend(self.database, self.tree, self.program, statements, to_stay))

    def remove_rule(self, text: str) -> None:
        """Removes a rule or constraint from the program: the one that is equal."""
        self.tree, self.program = without(self.tree, text)

    def add_block(self, name: str, text: str, place: str | None = None) -> None:
        """Adds statements as a block; delta rules in it stay."""
        self.add_statements([block_of(name, text, place or name)], to_stay=True)

    def remove_block(self, name: str) -> None:
        """Removes the statements of a block."""
        self.tree, self.program = without_block(self.tree, name)

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
        if codes is not None:
            self.changes.append((op, predicate, codes))
            return
        with in_use():
            self.changes.append((op, predicate, self._slow_codes(predicate, rows)))

    def held_records(self) -> Iterator[Words]:
        """The codes of records in its changes."""
        for _, name, codes in list(self.changes):
            declared = self.program.predicates.get(name)
            if declared is not None and len(codes):
                yield from codes_in_rows(declared.columns, [codes])

    @uninterrupted
    def _slow_codes(self, predicate: str, rows: Any) -> Any:
        if self.program.has_records:
            self.database.store.dictionary.records.holders.add(self)
        codes = python_codes(self._store, predicate, rows)
        few = type(codes) is list and codes and len(codes[0]) <= FEW_CHANGES
        return np.stack(codes, axis=1) if few else codes

    def few_rows(self) -> list[SignedRows] | None:
        """Everything there is to do, if it is to insert or erase a few rows of codes, as steps.

        A row's sign is that of the last operation on it.
        """
        changes = self.changes
        if self.queries or self.program is not self._found or not changes:
            return None
        if len(changes) == 1:
            op, name, codes = changes[0]
            if op == "^":
                return self._upsert_steps(name, codes)
            if type(codes) is tuple:  # of a few
                return [(1 if op == "+" else -1, name, codes)]
        if len(changes) > MOST_STEPS:
            return self._merged()
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
        """The same for many statements: rows to erase first, so that there are as few states in between
        as possible."""
        if sum(len(codes) for _, _, codes in self.changes) > FEW_CHANGES:
            return None
        pending = self._pending()
        return None if pending is None else list(pending.steps()) or None

    def pending(self, predicate: str) -> Change:
        """What the transaction would change in a predicate's base facts if it were committed now.

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
        return Change.of(predicate, inserted, erased)

    def _pending(self) -> Pending | None:
        """The last operation on each row; None if there are whole tables among the changes.  O(rows log
        rows).
        """
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
        if extension.program.has_records:
            store.dictionary.records.holders.add(self)
        changes = [(op, name, store.literal_rows(name, rows)) for op, name, rows in extension.facts]
        changes += [("+", name, python_codes(store, name, table)) for name, table in extension.tables]
        self.tree, self.program = extension.tree, extension.program
        self.changes += changes
        self.queries = (*self.queries, *extension.queries)
        self.once = (*self.once, *extension.once)

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
