"""Owns the database of a stream: numbered batches, each applied once, its files staged before its commit.

Knows nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.durable.database import Database
from dlog.engine.commit.commits import Changes, Commit
from dlog.engine.loading import load_inputs, python_codes
from dlog.engine.transaction import Transaction
from dlog.io import nullary_table
from dlog.spark.stream.files import Rows
from dlog.spark.stream.operations import ERASE, INSERT, last_operations
from dlog.spark.stream.sinks import outputs_of

SERIES = "stream"


class StreamDatabase(Database):
    """A durable database that takes numbered batches."""

    def __init__(self, folder: Path, streamed: Iterable[str], **options: Any):
        """Facts of predicates that are streamed are not read from the files of their `.input`."""
        self._streamed = frozenset(streamed)
        self._stage: Callable[[Changes], None] | None = None
        super().__init__(folder, **options)

    @property
    def last_number(self) -> int | None:
        """Of the last batch that was applied."""
        return self.last_batch(SERIES)

    def take_batch(
        self, number: int, files: Mapping[str, Sequence[Rows]], stage: Callable[[Changes], None]
    ) -> Commit:
        """One transaction: the rows of files by predicate, in order.

        `stage` gets the changes before anything is committed; if it fails, nothing is.  A batch that
        was applied before changes nothing, and `stage` is not called.
        """
        self._stage = stage
        try:
            with self.transaction(batch_id=f"{SERIES}#{number}") as transaction:
                for name, rows in files.items():
                    add_rows(transaction, name, rows)
        finally:
            self._stage = None
        assert transaction.commit_info is not None
        return transaction.commit_info

    def _keep(self, transaction: Transaction, commit: Commit) -> None:
        if self._stage is not None:
            self._stage(commit.changes)
        super()._keep(transaction, commit)

    def _changes_wanted(self) -> frozenset[str]:
        """What is written needs its changes, whatever else is stored."""
        return super()._changes_wanted() | {output.predicate.name for output in outputs_of(self.program)}

    def _load_inputs(self, facts: str | Path) -> None:
        kept = [d for d in self.program.directives if d.kind != "input" or d.predicate not in self._streamed]
        program = replace(self.program, directives=tuple(kept))
        load_inputs(program, self.store, facts, self.warn)


def add_rows(transaction: Transaction, name: str, files: Sequence[Rows]) -> None:
    """The operations of one predicate's rows, in the order of files and rows."""
    signs = np.concatenate([rows.signs for rows in files])
    if not len(signs):
        return
    predicate = transaction.program.predicates[name]
    if not predicate.columns:
        transaction.insert(name, nullary_table(1))
        return
    table = pa.concat_tables([rows.table for rows in files])
    if (signs == INSERT).all():
        transaction.insert(name, table)
    elif (signs == ERASE).all():
        transaction.erase(name, table)
    else:
        codes = np.stack(python_codes(transaction.database.store, name, table), axis=1)
        statements = last_operations(codes, signs, predicate.n_keys)
        transaction.changes += [(op, name, rows) for op, rows in statements]
