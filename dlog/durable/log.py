"""Owns the log: records are appended and synced to the disk, when the durability says so.

Lifecycle of a record.  1 `append` writes it; if the process ends now it is safe, if the machine crashes it
may be lost.  2 `sync` writes it to the disk with all before it.  Threads that wait for the disk at the same
time share one sync: the first of them does it, for all that has been appended until then.

Space is reserved ahead of the records in large steps, so that a sync writes only the bytes of a record to
the disk, not a new file size: a third less time on a fast disk.  `close` gives back what is left.

A failed sync says nothing about what is on the disk, and a retry would only seem to succeed: the log is
*poisoned*, and accepts nothing more until the database is opened again.  A failed write is undone.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from os import getpid
from pathlib import Path
from zlib import crc32

from dlog.durable.files import Files, Handle, synced
from dlog.durable.frames import HEADER_BYTES, LOG, frame_of, header
from dlog.errors import StoreError

_ROOM = "nothing was changed: free some space or check the disk, and commit again"


class Log:
    """The log of one generation, open for writing."""

    def __init__(self, files: Files, path: Path, handle: Handle, size: int):
        self.path = path
        self.size = size  # bytes that were appended
        self.synced = size  # bytes that are on the disk
        self.poison = ""  # why nothing more is accepted
        self._reserved = size  # space has been reserved up to here
        self._files = files
        self._handle = handle
        self._syncing = threading.Lock()
        self._owner = getpid()  # a forked process has the handle, too, and must not use it

    @classmethod
    def create(cls, files: Files, path: Path, generation: int) -> Log:
        """An empty one.  Its contents are on the disk; its name is, once the folder has been synced."""
        handle = files.open(path)
        try:
            files.truncate(handle, 0)  # what a failed checkpoint left behind
            files.write(handle, [header(LOG, generation)], 0)
            synced(files, handle)
        except BaseException:
            files.close(handle)
            raise
        return cls(files, path, handle, HEADER_BYTES)

    @classmethod
    def reopen(cls, files: Files, path: Path, end: int) -> Log:
        """An existing one, without what comes after `end`."""
        handle = files.open(path)
        try:
            files.truncate(handle, end)
            synced(files, handle)
        except BaseException:
            files.close(handle)
            raise
        return cls(files, path, handle, end)

    def require_sound(self) -> None:
        if getpid() != self._owner:
            help = "open it in one process and fork before, or read it there with read_only=True"
            raise StoreError(
                f"{self.path} belongs to process {self._owner}, from which this one was forked", help=help
            )
        if self.poison:
            help = "open the database again: what was committed is read from its files"
            raise StoreError(f"nothing more can be committed: {self.poison}", help=help)

    def append(self, payload: Sequence[bytes]) -> None:
        """One record, completely or not at all.  REQUIRES: one thread appends at a time.  O(bytes)."""
        if self.poison or getpid() != self._owner:
            self.require_sound()
        body = b"".join(payload)
        record = frame_of(len(body), crc32(body), self.synced) + body
        end = self.size + len(record)
        if end > self._reserved:
            self._reserve(end)
        try:
            self._files.write(self._handle, (record,), self.size)
        except OSError as error:
            self._take_back(error)
            raise StoreError(f"cannot write {self.path}: {error.strerror}", help=_ROOM) from None
        self.size = end

    def _reserve(self, end: int) -> None:
        """If that fails, the file grows as it is written, and reservation is retried after as many bytes."""
        self._reserved = end + self._files.reserved_bytes
        with suppress(OSError):
            self._files.reserve(self._handle, self.size, self._reserved - self.size)

    def _take_back(self, error: OSError) -> None:
        self._reserved = self.size
        try:
            self._files.truncate(self._handle, self.size)
        except OSError:
            self.poison = f"a write to {self.path} failed and could not be undone ({error.strerror})"

    def sync(self) -> None:
        """Afterwards everything appended before this call is on the disk."""
        wanted = self.size
        with self._syncing:  # a thread that waits here finds it done, or does it for all who wait
            if self.poison:
                self.require_sound()
            if self.synced >= wanted:
                return
            reached = self.size
            try:
                self._files.sync(self._handle)
            except OSError as error:
                self.poison = f"{self.path} could not be synced to the disk ({error.strerror})"
                self.require_sound()
            self.synced = reached

    def close(self) -> None:
        """Reserved space that was not used is given back; readers take zeros as the end."""
        if self._reserved > self.size and not self.poison and getpid() == self._owner:
            with suppress(OSError):
                self._files.truncate(self._handle, self.size)
        self._files.close(self._handle)
