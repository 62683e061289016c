"""Owns the log: records are added at its end, and are on the disk before anyone is told that they are.

Lifecycle of a record.  1 `append` writes it; a process that ends now loses nothing, a machine that stops may.
2 `sync` brings it to the disk with all before it.  Threads that wait for the disk at the same time share one
sync: the first of them does it, for all that has been appended until then.

A failed sync says nothing about what is on the disk, and asking again would only seem to succeed: the log is
*poisoned*, and takes nothing more until the database is opened again.  A failed write is taken back.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from pathlib import Path

from dlog.durable.files import Files, Handle, synced
from dlog.durable.frames import FRAME_BYTES, HEADER_BYTES, LOG, frame_of, header
from dlog.errors import StoreError

SMALL_BYTES = 1 << 16  # records up to this are one write


class Log:
    """The log of one generation, open for writing."""

    def __init__(self, files: Files, path: Path, handle: Handle, size: int, synced: int):
        self.path = path
        self.size = size  # bytes that were appended
        self.synced = synced  # bytes that are on the disk
        self.poison = ""  # why nothing more is taken
        self._files = files
        self._handle = handle
        self._turn = threading.Condition()
        self._syncing = False

    @classmethod
    def create(cls, files: Files, path: Path, generation: int) -> Log:
        """An empty one.  It is on the disk; its name is when the folder has been synced."""
        handle = files.open(path)
        try:
            files.truncate(handle, 0)  # what a failed checkpoint left behind
            files.write(handle, [header(LOG, generation)])
            synced(files, handle)
        except BaseException:
            files.close(handle)
            raise
        return cls(files, path, handle, HEADER_BYTES, HEADER_BYTES)

    @classmethod
    def reopen(cls, files: Files, path: Path, end: int) -> Log:
        """An existing one, without what comes behind `end`."""
        handle = files.open(path)
        try:
            files.truncate(handle, end)
            synced(files, handle)
        except BaseException:
            files.close(handle)
            raise
        return cls(files, path, handle, end, end)

    def require_sound(self) -> None:
        if self.poison:
            help = "open the database again: what was committed is read from its files"
            raise StoreError(f"nothing more can be committed: {self.poison}", help=help)

    def append(self, payload: Sequence[bytes]) -> None:
        """One record, whole or not at all.  REQUIRES: one thread appends at a time.  O(bytes)."""
        if self.poison:
            self.require_sound()
        length = sum(map(len, payload))
        parts = [b"".join(payload)] if length <= SMALL_BYTES else list(payload)
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        frame = frame_of(length, checksum, self.synced)
        try:
            self._files.write(self._handle, [frame + parts[0]] if len(parts) == 1 else [frame, *parts])
        except OSError as error:
            self._take_back(error)
            raise StoreError(f"cannot write {self.path}: {error.strerror}") from None
        self.size += FRAME_BYTES + length

    def _take_back(self, error: OSError) -> None:
        try:
            self._files.truncate(self._handle, self.size)
        except OSError:
            self.poison = f"a write to {self.path} failed and could not be taken back ({error.strerror})"

    def sync(self) -> None:
        """Everything that was appended before this call is on the disk afterwards."""
        wanted = self.size
        with self._turn:
            while self._syncing and self.synced < wanted:
                self._turn.wait()
            self.require_sound()
            if self.synced >= wanted:
                return
            self._syncing = True
            reached = self.size
        try:
            self._files.sync(self._handle)
        except OSError as error:
            self.poison = f"{self.path} could not be synced to the disk ({error.strerror})"
        finally:
            with self._turn:
                self._syncing = False
                if not self.poison:
                    self.synced = max(self.synced, reached)
                self._turn.notify_all()
        self.require_sound()

    def close(self) -> None:
        self._files.close(self._handle)
