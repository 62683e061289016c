"""Owns the durable database: the engine's, with a folder that has every commit before it is reported.

Lifecycle.  1 Opening reads the checkpoint and the log, restores base facts, rules and texts, and
evaluates.  2 A commit is written to the log after all maintenance and before it is visible; if
that fails, it does not take place.  3 A log that has become long is replaced by a checkpoint.  4 `close`.
"""

from __future__ import annotations

import hashlib
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlog.durable.branches import Branching
from dlog.durable.checkpoint import Image, values_of
from dlog.durable.files import Files
from dlog.durable.folder import Folder, Found, read_folder
from dlog.durable.frames import corruption
from dlog.durable.log import Log
from dlog.durable.past import Past
from dlog.durable.records import BranchRecord, CommitRecord, Texts
from dlog.durable.replay import replay, restore_texts, restore_values
from dlog.durable.states import changes_between, facts_of, program_text, stored_relations
from dlog.durable.timeline import MAIN, Moment, Timeline
from dlog.engine.commit.commits import Changes, Commit, RecordedSummary
from dlog.engine.maintain.strategy import net_difference
from dlog.engine.state.memory import memory_in
from dlog.engine.statements import settled
from dlog.engine.transaction import Transaction
from dlog.errors import DlogError, StoreError, did_you_mean
from dlog.interrupts import uninterrupted
from dlog.ir.check import check_program, load_program
from dlog.ir.rules import Program
from dlog.language import ast
from dlog.language.source import Source, read_source
from dlog.planning.versions import COUNTER, facts_name, given_name
from dlog.storage.index.batch import Change as Difference
from dlog.storage.relation.relation import Relation

FULL, GROUP, NONE = "full", "group", "none"
DURABILITIES = (FULL, GROUP, NONE)


class Database(Branching):
    """A program with its data, in memory or in a folder.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Database(folder, source="reach(x, y) <- edge(x, y).  edge(1, 2).") as db:
    ...     commit = db.execute("+edge(2, 3).")
    >>> with Database(folder) as db:
    ...     db.version, db["reach"].rows()
    (1, [(1, 2), (2, 3)])
    """

    _folder: Folder | None = None
    _read_only = False
    _known: Past | None = None  # commits that have been read once
    _found: Found | None = None  # while it is opened
    _made_from: Source | None = None  # the program, when it is opened with it again
    _texts = 0  # codes whose texts are in the files
    _records = 0  # numbers of records that are in the files
    _deferred = 0  # blocks of `group` that are open

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        source: str | Source | None = None,
        program: str | Path | None = None,
        durability: str = FULL,
        read_only: bool = False,
        files: Files | None = None,
        **options: Any,
    ):
        """From a program file (`path` or `program`) or a text (`source`), in memory; or, if `path` is a
        folder or does not exist, in that folder; then the program argument is used only when the folder is
        new.

        `durability` says when a commit returns: "full", when it is on the disk; "group", the same, and
        commits of several threads, or in a block of `group()`, share the wait; "none", when the system has
        it, which survives the end of the process but not a crash of the machine.  With `read_only` the folder
        is read as it is now: any number of processes can do that while one writes.

        Other options are those of `dlog.engine.database.Database`.
        """
        if durability not in DURABILITIES:
            help = did_you_mean(durability, DURABILITIES, f"there are {', '.join(DURABILITIES)}")
            raise DlogError(f"unknown durability {durability}", help=help)
        folder = Path(path) if path is not None and is_folder(path) else None
        if folder is None and path is not None:
            if program is not None:
                raise DlogError(f"{path} is a program, not a folder")
            program, path = path, None
        if program is not None and source is not None:
            raise DlogError("a database has one program: give its path or its source, not both")
        self.durability = durability
        self._unsynced: deque[tuple[int, Any]] = deque()  # ends of records, and the state before each
        if folder is None:
            if read_only:
                help = "give the folder of one, as --db DIR or as the path"
                raise DlogError("only a database in a folder can be opened read-only", help=help)
            super().__init__(program, source=source, **options)
            self._timeline = Timeline(Moment(0, (), self._shown))
        else:
            self._open(folder, files or Files(), program, source, read_only, options)

    # Opening

    def _open(
        self,
        path: Path,
        files: Files,
        program: str | Path | None,
        source: str | Source | None,
        read_only: bool,
        options: dict[str, Any],
    ) -> None:
        given = source if program is None else read_source(program)
        self._read_only = read_only
        folder = None if read_only else Folder.open(path, files)
        try:
            found = self._found = read_folder(path, files)
            if found is not None:
                _require_same_program(path, found, given)
                self._made_from = given if isinstance(given, Source) else None
                self._recover(path, found, read_only, options)
            elif folder is None:
                raise no_database(path)
            else:
                super().__init__(source=given, **options)
                self._timeline = Timeline(Moment(0, (), self._shown))
            self._origin = found.checkpoint.origin if found is not None else _digest(given)
            if folder is not None:
                self._begin(folder, found)
            self._found = None
        except BaseException:
            if folder is not None:
                folder.close()
            raise

    def _recover(self, path: Path, found: Found, read_only: bool, options: dict[str, Any]) -> None:
        past = Past.of(found.checkpoint).take(found.records, found.tail.end)
        text = past.program(past.heads[MAIN])
        if read_only:
            self._known = past
        self._timeline = found.checkpoint.timeline()
        super().__init__(source=Source(str(path), text), **{**options, "load": False})

    def _program_of(self, source: Source) -> tuple[ast.Program, Program]:
        """If a folder still has the program of the file it was created from, errors refer to the file."""
        if self._made_from is not None:
            try:
                tree = settled(*load_program(self._made_from))
                if program_text(tree) == source.text:
                    return tree, check_program(tree)
            except DlogError:  # of a file that it includes: use the text in the folder
                pass
        return super()._program_of(source)

    def _restore(self) -> None:
        """Base facts and texts of the checkpoint, then the log."""
        found = self._found
        if found is None:
            return
        records = [kept.record for kept in found.records]
        texts = [
            *found.checkpoint.texts,
            *(r.texts for r in records if isinstance(r, CommitRecord) and r.texts),
        ]
        values = [
            *found.checkpoint.values,
            *(r.values for r in records if isinstance(r, CommitRecord) and r.values),
        ]
        n = len(records)
        self._progress("recover", "texts", 0, n)
        try:
            restore_texts(self.store.dictionary, texts)
            restore_values(self.store.dictionary, values)
        except ValueError as error:
            raise corruption(found.checkpoint.path, 0, str(error)) from None
        self._progress("recover", "facts", 0, n)
        found.checkpoint.fill(self._timeline, self.store.arena)
        self._progress("recover", "transactions", n, n)
        replay(self._timeline, records, self.store.arena)
        head = self._timeline.heads[MAIN]
        for name, predicate in self.program.predicates.items():
            relation = head.state.relations.get(name)
            if relation is not None and relation.arity == predicate.arity:
                self.store.relations[name] = relation
        self.store.relations |= memory_in(self.program, head.state.relations)
        self.version = head.version
        self._texts = len(self.store.dictionary)
        self._records = self.store.dictionary.records.numbers

    def _begin(self, folder: Folder, found: Found | None) -> None:
        """Takes ownership of the folder.  A new one gets its first checkpoint: the program and its facts."""
        if found is None:
            self._write_checkpoint(folder)
        else:
            folder.begin(found, self.warn)
            self._known = Past.of(found.checkpoint)
        self._folder = folder
        weakref.finalize(self, folder.close)

    # Committing

    def _done_before(self, transaction: Transaction) -> Commit | None:
        batch_id = transaction.batch_id
        if batch_id is not None and batch_id in self._timeline.heads[self.current_branch].batches:
            done = Commit(self.version, RecordedSummary(), self.program, self.store.dictionary, repeated=True)
            transaction.commit_info = done
            return done
        if self._read_only:
            raise self._only_read()
        return None

    def last_batch(self, series: str) -> int | None:
        """The number of the last batch `SERIES#NUMBER` that was applied here; None if there was none."""
        with self._lock:
            return self._timeline.heads[self.current_branch].batches.last(series)

    def _keep(self, transaction: Transaction, commit: Commit) -> None:
        if self._folder is not None:
            self._write(transaction, commit.changes)
        merged, timeline = transaction.merged, self._timeline
        timeline.commit(self.current_branch, self.version, None, merged, transaction.batch_id)
        if merged is not None:
            timeline.prune()

    def _write(self, transaction: Transaction, changes: Changes) -> None:
        """Writes the record of a commit to the log and, if requested, to the disk."""
        log = self._log()
        n = len(self.store.dictionary)
        texts = None
        if n > self._texts:
            texts = Texts(self._texts, *self.store.dictionary.since(self._texts, n))
        given, values = self.store.dictionary.records.numbers, None
        if given > self._records:
            values = values_of(self.store.dictionary, self._records, given)
        record = CommitRecord(
            self.version,
            time.time(),
            self.current_branch,
            self._base_changes(transaction, changes),
            None if self.tree is self._shown.tree else program_text(self.tree),
            transaction.batch_id,
            None if transaction.merged is None else transaction.merged.version,
            texts,
            values,
        )
        log.append(record.parts())
        if self.durability == FULL:
            log.sync()
        elif self.durability == GROUP:
            self._unsynced.append((log.size, self._shown))
        self._texts, self._records = n, given

    def _pinned_records(self) -> int:
        """Commits of the log may have those that are in files, until the next checkpoint."""
        return self._records

    def _base_changes(self, transaction: Transaction, changes: Changes) -> Mapping[str, Difference]:
        """The net change of base facts and memory.  O(rows that changed), or O(predicates) when the program
        did."""
        before, relations = self._shown, self.store.relations
        if self.program is not before.program:
            old = stored_relations(before.program, before.relations)
            return changes_between(old, stored_relations(self.program, relations), self.store.arena)
        owner = self._maintenance.owner
        found: dict[str, Difference] = {}
        for _, name, _ in transaction.changes:
            if name in owner:
                facts = facts_name(name)
                change = net_difference(before.relations[facts], relations[facts])
                if change:
                    found[name] = change
            elif (difference := changes.difference(name)) is not None:
                found[name] = difference
        return found | self._memory_changes(before.relations)

    def _memory_changes(self, before: Mapping[str, Relation]) -> dict[str, Difference]:
        """The net change of choices and numbers.  O(rows that changed)."""
        names = {name: given_name(name) for name in self.program.remembered}
        if names:
            names[COUNTER] = COUNTER
        found, relations = {}, self.store.relations
        for name, stored in names.items():
            old, new = before.get(name), relations.get(name)
            if new is not None and new is not old:
                change = net_difference(old or Relation(self.store.arena, new.arity), new)
                if change:
                    found[stored] = change
        return found

    def _acknowledge(self) -> None:
        if self._folder is None:
            return
        if self.durability == GROUP and not self._deferred:
            self.sync()
        log = self._folder.log
        if log is not None and log.size > self._folder.most_bytes:
            try:
                self.checkpoint()
            except StoreError as error:
                self.warn(f"warning: {error.message}")

    def sync(self) -> None:
        """Afterwards everything committed so far is on the disk, whatever the durability.

        If it fails, the state reverts to the last one known to be there, and no more commits are accepted.
        """
        log = self._log()
        try:
            log.sync()
        except StoreError:
            self._fall_back()
            raise
        with self._lock:
            while self._unsynced and self._unsynced[0][0] <= log.synced:
                self._unsynced.popleft()

    def _fall_back(self) -> None:
        with self._lock:
            if self._unsynced:
                shown = self._unsynced[0][1]
                self._unsynced.clear()
                self._timeline.heads[self.current_branch].version = shown.version
                self._take_up(shown)

    @contextmanager
    def group(self) -> Iterator[None]:
        """Commits in the block return at once, and are all on the disk at its end.

        REQUIRES: durability "group".
        """
        if self.durability != GROUP:
            raise DlogError(f"durability is {self.durability}: commits are grouped with durability group")
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1
            if not self._deferred and self._folder is not None:
                self.sync()

    def _log(self) -> Log:
        if self._folder is None:
            raise StoreError("the database is in memory only", help="give Database a folder: its path")
        if self._folder.log is None:
            raise StoreError("the database is closed", help="open it again: Database(path)")
        return self._folder.log

    def _only_read(self) -> StoreError:
        help = "open it to write: without --read-only, without read_only=True"
        return StoreError("the database was opened read-only", help=help)

    # Files

    def _write_branch(self, record: BranchRecord) -> None:
        if self._read_only:
            raise self._only_read()
        if self._folder is not None:
            log = self._log()
            log.append(record.parts())
            if self.durability != NONE:
                log.sync()

    def _past(self) -> Past | None:
        """The log is read from where reading stopped last: O(bytes since then)."""
        past, folder = self._known, self._folder
        if past is None or folder is None:
            return past
        size = self._log().size
        return past if past.end == size else past.take(folder.log_since(past.end), size)

    def _write_checkpoint(self, folder: Folder) -> None:
        timeline, dictionary = self._timeline, self.store.dictionary
        dictionary.records.collect()
        facts = {moment.version: facts_of(moment.state) for moment in timeline.moments()}
        given = dictionary.records.numbers
        image = Image(timeline, facts, dictionary, len(dictionary), given, self._origin)
        folder.checkpoint(image)
        self._known = Past.of_timeline(timeline, {version: text for version, (text, _) in facts.items()})
        self._texts, self._records = image.n_texts, image.n_records

    @uninterrupted
    def checkpoint(self) -> None:
        """Writes everything into a new file, and begins a new log: opening is faster, and the earlier
        versions that no branch has are forgotten.  O(size of the base facts)."""
        with self._lock:
            if self._read_only:
                raise self._only_read()
            if self._folder is None:
                raise DlogError(
                    "a database in memory has no checkpoints", help="--db DIR keeps it in a folder"
                )
            self.sync()
            self._write_checkpoint(self._folder)

    def close(self) -> None:
        """Writes everything to the disk and lets others write.  Reading still works; transactions do not."""
        with self._lock:
            folder = self._folder
            if folder is not None and folder.log is not None:
                try:
                    if not folder.log.poison:
                        folder.log.sync()
                finally:
                    folder.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()


def open_database(
    folder: Path | None, program: str | Path | None, durability: str = FULL, **options: Any
) -> Database:
    """The database for a command's options: in a folder if one is given, else in memory."""
    if folder is None:
        return Database(program, **options)
    if not is_folder(folder):
        raise StoreError(
            f"{folder} is not a folder", help="--db takes a folder, which is created if it does not exist"
        )
    return Database(folder, program=program, durability=durability, **options)


def no_database(path: Path) -> StoreError:
    return StoreError(f"there is no database in {path}", help=f"dlog repl --db {path} creates one")


def is_folder(path: str | Path) -> bool:
    """Whether a path names a database folder, existing or to be created, rather than a program."""
    path = Path(path)
    return path.is_dir() or not (path.exists() or path.suffix == ".dl")


def _digest(source: str | Source | None) -> str:
    text = source.text if isinstance(source, Source) else source or ""
    return hashlib.sha256(text.encode()).hexdigest()


def _require_same_program(path: Path, found: Found, given: str | Source | None) -> None:
    """A command that created a database can be repeated."""
    if given is not None and _digest(given) != found.checkpoint.origin:
        help = "leave the program out; rules are added by transactions"
        raise StoreError(f"{path} was created from another program", help=help)
