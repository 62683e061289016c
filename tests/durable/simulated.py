"""Owns a disk in memory that can fail at any operation and lose what was never synced."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlog.durable.files import Files


@dataclass
class Node:
    """A file: what the system has of it, and what the disk has."""

    seen: bytearray = field(default_factory=bytearray)
    safe: bytes = b""


class Crash(BaseException):
    """The process ends here."""


class SimulatedFiles(Files):
    """`fail_at` is the operation that fails, counted from 1: once, or with `for_ever` all from then on.

    A write that fails has written some of its bytes.  With `crash` the process ends there instead.
    """

    reserved_bytes = 500  # so that it happens often

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}  # as the system sees them
        self.safe_nodes: dict[str, Node] = {}  # names that the disk has
        self.handles: dict[int, tuple[str, Node]] = {}
        self.locked: set[str] = set()
        self.count = 0
        self.next_handle = 100
        self.fail_at = 0
        self.for_ever = False
        self.crash = False
        self.error = errno.EIO
        self.operations: list[str] = []

    # Failing

    def arm(
        self, fail_at: int, *, for_ever: bool = False, crash: bool = False, error: int = errno.EIO
    ) -> None:
        self.count, self.operations = 0, []
        self.fail_at, self.for_ever, self.crash, self.error = fail_at, for_ever, crash, error

    def disarm(self) -> None:
        self.arm(0)

    def _fails(self, operation: str) -> bool:
        self.count += 1
        self.operations.append(operation)
        return bool(self.fail_at) and (
            self.count == self.fail_at or (self.for_ever and self.count > self.fail_at)
        )

    def _step(self, operation: str) -> None:
        if self._fails(operation):
            self._fail()

    def _fail(self) -> None:
        if self.crash:
            raise Crash
        raise OSError(self.error, os.strerror(self.error))

    # Ending

    def kill(self) -> None:
        """The process ends; the system has what it was given."""
        self.handles, self.locked = {}, set()

    def lose_power(self, rng: random.Random) -> None:
        """The machine stops: of what was not synced the disk has something, or nothing."""
        self.kill()
        nodes = self.safe_nodes if rng.random() < 0.5 else self.nodes
        for node in {id(n): n for n in (*self.nodes.values(), *self.safe_nodes.values())}.values():
            node.safe = _left(node, rng)
            node.seen = bytearray(node.safe)
        self.nodes, self.safe_nodes = dict(nodes), dict(nodes)

    # Operations

    def make_folder(self, folder: Path) -> None:
        self._step("make_folder")

    def names(self, folder: Path) -> list[str]:
        return sorted(Path(name).name for name in self.nodes if Path(name).parent == folder)

    def read(self, path: Path, start: int = 0) -> bytes:
        if str(path) not in self.nodes:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return bytes(self.nodes[str(path)].seen[start:])

    def map(self, path: Path) -> Any:
        return self.read(path)

    def open(self, path: Path) -> int:
        self._step("open")
        node = self.nodes.setdefault(str(path), Node())
        self.next_handle += 1
        self.handles[self.next_handle] = (str(path), node)
        return self.next_handle

    def write(self, file: int, parts: Sequence[Any], at: int) -> None:
        data, seen = b"".join(bytes(part) for part in parts), self.handles[file][1].seen
        assert at <= len(seen)
        if self._fails("write"):
            seen[at : at + len(data) // 2] = data[: len(data) // 2]
            self._fail()
        seen[at : at + len(data)] = data

    def reserve(self, file: int, start: int, size: int) -> None:
        """What fails has reserved some of it."""
        seen = self.handles[file][1].seen
        assert start <= len(seen)
        fails = self._fails("reserve")
        seen += bytes(max(0, start + (size // 2 if fails else size) - len(seen)))
        if fails:
            self._fail()

    def sync(self, file: int) -> None:
        self._step("sync")
        node = self.handles[file][1]
        node.safe = bytes(node.seen)

    def truncate(self, file: int, size: int) -> None:
        if file not in self.handles:  # of a process that was killed
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._step("truncate")
        del self.handles[file][1].seen[size:]

    def close(self, file: int) -> None:
        if file in self.handles:
            name, _ = self.handles.pop(file)
            self.locked.discard(f"{name} {file}")

    def rename(self, path: Path, to: Path) -> None:
        self._step("rename")
        self.nodes[str(to)] = self.nodes.pop(str(path))

    def remove(self, path: Path) -> None:
        self._step("remove")
        if str(path) not in self.nodes:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        del self.nodes[str(path)]

    def sync_folder(self, folder: Path) -> None:
        self._step("sync_folder")
        self.safe_nodes = dict(self.nodes)

    def lock(self, path: Path) -> int | None:
        self._step("lock")
        if any(held.startswith(f"{path} ") for held in self.locked):
            return None
        node = self.nodes.setdefault(str(path), Node())
        self.next_handle += 1
        self.handles[self.next_handle] = (str(path), node)
        self.locked.add(f"{path} {self.next_handle}")
        return self.next_handle


BLOCK_BYTES = 16  # that a disk writes atomically


def _left(node: Node, rng: random.Random) -> bytes:
    """What the disk has of a file when the machine stops: of bytes that differ from those that were synced
    some blocks, the first ones more often than any others."""
    seen, safe = bytes(node.seen), node.safe
    size = rng.choice([len(seen), rng.randint(*sorted((len(seen), len(safe))))])
    left = bytearray(safe[:size].ljust(size, b"\0"))
    whole = rng.random()
    for at in range(0, min(size, len(seen)), BLOCK_BYTES):
        new = seen[at : min(at + BLOCK_BYTES, size)]
        if new != left[at : at + BLOCK_BYTES]:
            if rng.random() > whole:
                if rng.random() < 0.5:
                    break
                continue
            left[at : at + len(new)] = new
    return bytes(left)
