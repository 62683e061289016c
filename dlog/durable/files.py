"""Owns all input and output of a durable database: nothing else in the package touches a file.

So a test can replace the class and make the Nth operation fail.  Knows nothing of what files
contain.  Every method raises OSError; callers turn it into an error for the user.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Handle = int
Buffer = Any  # bytes, a view of them, an array, a map of a file


class Files:
    """The operations that the package needs, on the file system of the machine."""

    reserved_bytes = 1 << 18  # space that a log reserves at once: some two thousand small records

    def make_folder(self, folder: Path) -> None:
        """With all its parents; no error if it exists."""
        folder.mkdir(parents=True, exist_ok=True)

    def names(self, folder: Path) -> list[str]:
        """The names in a folder; none if there is no folder."""
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def read(self, path: Path, start: int = 0) -> bytes:
        """The bytes of a file as they are now, from an offset on."""
        with open(path, "rb") as file:
            file.seek(start)
            return file.read()

    def map(self, path: Path) -> Buffer:
        """The same, mapped instead of copied.  REQUIRES: no process truncates the file."""
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def open(self, path: Path) -> Handle:
        """Open for writing; created if it does not exist."""
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)

    def write(self, file: Handle, parts: Sequence[Buffer], at: int) -> None:
        """All bytes of all parts, from an offset on.  If it fails some of them may have been written."""
        for part in parts:
            done = os.pwrite(file, part, at) if len(part) <= MOST_BYTES else 0
            while done < len(part):
                done += os.pwrite(file, memoryview(part)[done : done + MOST_BYTES], at + done)
            at += done

    def reserve(self, file: Handle, start: int, size: int) -> None:
        """Space for bytes after the end of a file, which are zeros until they are written.

        Syncing them later costs less than syncing a file that has grown: the size stays the same.
        """
        if not hasattr(os, "posix_fallocate"):
            raise OSError(errno.ENOSYS, "this system cannot reserve space")
        os.posix_fallocate(file, start, size)

    def sync(self, file: Handle) -> None:
        """Afterwards everything written so far is on the disk."""
        getattr(os, "fdatasync", os.fsync)(file)

    def truncate(self, file: Handle, size: int) -> None:
        os.ftruncate(file, size)

    def close(self, file: Handle) -> None:
        os.close(file)

    def rename(self, path: Path, to: Path) -> None:
        """Atomic: readers see either the old or the new file."""
        os.replace(path, to)

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def sync_folder(self, folder: Path) -> None:
        """Afterwards names that were created, changed or removed are on the disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def lock(self, path: Path) -> Handle | None:
        """Lock a file against all other processes until it is closed; None if another one holds the lock.

        The system releases it when the process ends, however it ends.
        """
        try:
            import fcntl
        except ImportError:
            raise OSError(errno.ENOSYS, "this system has no locks on files") from None
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        return handle


class SyncError(OSError):
    """A sync failed: the contents of the disk are unknown."""


def synced(files: Files, file: Handle) -> None:
    """`Files.sync`, with its own error."""
    try:
        files.sync(file)
    except OSError as error:
        raise SyncError(error.errno, error.strerror) from None


def folder_synced(files: Files, folder: Path) -> None:
    """`Files.sync_folder`, with its own error."""
    try:
        files.sync_folder(folder)
    except OSError as error:
        raise SyncError(error.errno, error.strerror) from None


MOST_BYTES = 1 << 30  # of one write: the system takes no more than two of these
