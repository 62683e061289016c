"""Owns all input and output of a durable database: nothing else in the package touches a file.

So a test can put another class in its place, and let the Nth operation fail.  Knows nothing of what files
hold.  Every method raises OSError; callers turn it into an error for the user.
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

    reserved_bytes = 1 << 18  # what a log asks for at once: some two thousand small records

    def make_folder(self, folder: Path) -> None:
        """With all above it; no error when it is there."""
        folder.mkdir(parents=True, exist_ok=True)

    def names(self, folder: Path) -> list[str]:
        """What is in a folder; nothing when there is no folder."""
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
        """The same where they lie.  REQUIRES: nobody shortens the file."""
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def open(self, path: Path) -> Handle:
        """To write to it; made when it is not there."""
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)

    def write(self, file: Handle, parts: Sequence[Buffer], at: int) -> None:
        """All bytes of all parts, from an offset on.  When it fails some of them may have been written."""
        for part in parts:
            done = os.pwrite(file, part, at) if len(part) <= MOST_BYTES else 0
            while done < len(part):
                done += os.pwrite(file, memoryview(part)[done : done + MOST_BYTES], at + done)
            at += done

    def reserve(self, file: Handle, start: int, size: int) -> None:
        """Space for bytes behind the end of a file, which are zeros until they are written.

        To sync them later costs less than to sync a file that has grown: its size stays as it is.
        """
        if not hasattr(os, "posix_fallocate"):
            raise OSError(errno.ENOSYS, "this system cannot reserve space")
        os.posix_fallocate(file, start, size)

    def sync(self, file: Handle) -> None:
        """Everything that was written is on the disk afterwards."""
        getattr(os, "fdatasync", os.fsync)(file)

    def truncate(self, file: Handle, size: int) -> None:
        os.ftruncate(file, size)

    def close(self, file: Handle) -> None:
        os.close(file)

    def rename(self, path: Path, to: Path) -> None:
        """In one step: whoever looks sees the one or the other."""
        os.replace(path, to)

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def sync_folder(self, folder: Path) -> None:
        """Names that were made, changed or removed are on the disk afterwards."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def lock(self, path: Path) -> Handle | None:
        """Hold a file against all other processes until it is closed; None when another one holds it.

        The system lets go of it when the process ends, however it ends.
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
    """A sync that failed: what the disk has is not known any more."""


def synced(files: Files, file: Handle) -> None:
    """`Files.sync`, whose failure is told apart."""
    try:
        files.sync(file)
    except OSError as error:
        raise SyncError(error.errno, error.strerror) from None


def folder_synced(files: Files, folder: Path) -> None:
    """`Files.sync_folder`, whose failure is told apart."""
    try:
        files.sync_folder(folder)
    except OSError as error:
        raise SyncError(error.errno, error.strerror) from None


MOST_BYTES = 1 << 30  # of one write: the system takes no more than two of these
