"""Owns one shard of a stream: a process with a durable database of its own rows.

    python -m dlog.spark.stream.shard      # its setup is the first line of standard input, as JSON

The process that started it keeps its standard input open: when that ends, however it does, the shard ends
after its current batch.  It prints its port and its last batch in one line on standard output, then answers
one request after the other on the loopback device, with a key that only its starter and Spark's tasks have.

A batch.  1 `batch`, by a task: its rows are applied and its files staged, and there it waits.  2 `commit`, by
the stream, when all shards have come that far, or `drop`, if one cannot.  So a batch with an error changes
no shard.  One that comes again, because a task or a stream was restarted, is recognised by its number and
published from what was staged.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import ProcessError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from dlog.errors import DlogError, StoreError
from dlog.io import Rejected
from dlog.spark.plan.hashing import shards_of
from dlog.spark.plan.places import WHOLE
from dlog.spark.stream.database import StreamDatabase
from dlog.spark.stream.errors import encoded, raised
from dlog.spark.stream.files import Rows
from dlog.spark.stream.sinks import Sinks, changed_rows, outputs_of
from dlog.storage.values import decode

Answer = dict[str, Any]

HOST = "127.0.0.1"
_SIGNS = "dlog sign"  # the column of operations in what is sent
_BUSY_SECONDS = 30.0  # how long a shard waits for one of an earlier stream to end


class Setup(NamedTuple):
    """A shard's settings; all of it can be written as JSON."""

    number: int
    shards: int
    key: str
    folder: str
    program: str
    facts: str
    streamed: list[str]
    places: dict[str, int | None]
    sink: str
    partials: str
    format: str


class FileRows(NamedTuple):
    """Rows of one file for a shard.  `bad` are its bad rows, for the shard that stores them."""

    predicate: str
    name: str
    modified: float
    rows: Rows


# Requests


def packed(rows: Rows) -> bytes:
    """Rows and bad rows as bytes."""
    bad = json.dumps([list(vars(b).values()) for b in rows.bad]).encode()
    table = rows.table.append_column(_SIGNS, pa.array(rows.signs, pa.string()))
    table = table.replace_schema_metadata({b"bad": bad})
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpacked(data: bytes) -> Rows:
    table = ipc.open_stream(data).read_all()
    signs = table.column(_SIGNS).to_numpy().astype("U1")
    bad = [Rejected(*row) for row in json.loads(table.schema.metadata[b"bad"])]
    return Rows(table.drop_columns([_SIGNS]).replace_schema_metadata(None), signs, bad)


def ask(port: int, key: str, request: Mapping[str, Any], data: Sequence[bytes] = ()) -> Answer:
    """Send a request to a shard and wait for its answer.  Raises what went wrong there."""
    try:
        with Client((HOST, port), authkey=bytes.fromhex(key)) as connection:
            connection.send_bytes(json.dumps({**request, "parts": len(data)}).encode())
            for part in data:
                connection.send_bytes(part)
            answer = json.loads(connection.recv_bytes())
    except (OSError, EOFError, ProcessError):
        raise DlogError("the process of a shard has ended", help="rerun the same command to resume") from None
    if "error" in answer:
        raise raised(answer["error"])
    return answer


# The shard


class ShardDatabase(StreamDatabase):
    """Has only those facts of the program and its files that belong to its shard."""

    def __init__(self, setup: Setup, **options: Any):
        self._setup = setup
        super().__init__(Path(setup.folder), setup.streamed, program=Path(setup.program), **options)

    def _restore(self) -> None:
        if self._found is None:
            for name, place in self._setup.places.items():
                if place is not None and place != WHOLE and name in self.store.relations:
                    self._leave_out_others(name, place)
        super()._restore()

    def _leave_out_others(self, name: str, place: int) -> None:
        relation, type = self.store.relations[name], self.program.predicates[name].columns[place].type
        rows = relation.rows()
        values = decode(np.ascontiguousarray(rows[:, place]), type, self.store.dictionary)
        others = shards_of(values, type, self._setup.shards) != self._setup.number
        if others.any():
            relation.apply_in_place(erases=np.ascontiguousarray(rows[others]))


class Waiting:
    """A batch that is applied and staged: its thread waits for commit or drop."""

    def __init__(self, number: int, take: Callable[[Callable[[], None]], Answer]):
        """`take` calls its argument before it commits."""
        self.number = number
        self._said: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[Answer | None] = SimpleQueue()
        threading.Thread(target=self._run, args=(take,), daemon=True).start()
        self.over = self._answers.get()  # its answer, if it does not wait

    def _run(self, take: Callable[[Callable[[], None]], Answer]) -> None:
        try:
            self._answers.put(take(self._wait))
        except DlogError as error:
            self._answers.put({"error": encoded(error)})
        except Exception as error:  # a bug: the shard continues, and the stream stops with it
            self._answers.put({"error": encoded(DlogError(f"the batch failed: {error!r}"))})

    def _wait(self) -> None:
        self._answers.put(None)
        if not self._said.get():
            raise DlogError("the batch is dropped")

    def end(self, commits: bool) -> Answer:
        self._said.put(commits)
        return self._answers.get() or {}


class Shard:
    """Takes batches, and reports what it did."""

    def __init__(self, setup: Setup, database: ShardDatabase):
        self.database = database
        outputs, places = outputs_of(database.program), setup.places
        own = [o for o in outputs if places[o.predicate.name] not in (None, WHOLE)]
        own += [o for o in outputs if places[o.predicate.name] == WHOLE and setup.number == 0]
        scattered = [o for o in outputs if places[o.predicate.name] is None]
        part = f"-shard-{setup.number:04}"
        self.sinks = Sinks(Path(setup.sink), own, setup.format, part)
        self.partials = Sinks(Path(setup.partials), scattered, "parquet", part)
        self._waiting: Waiting | None = None

    def prepare(self, number: int, parts: Sequence[FileRows]) -> Answer:
        """All of a batch but its commit; `partials` are its files for merging."""
        if self._waiting is None or self._waiting.number != number:  # else a task was retried
            self.end(commits=False)
            waiting = Waiting(number, lambda wait: self._take(number, parts, wait))
            if waiting.over is not None and "error" in waiting.over:
                return waiting.over
            if waiting.over is None:
                self._waiting = waiting
        return {"partials": [str(path) for path in self.partials.written(number)]}

    def end(self, commits: bool) -> Answer:
        """Commit the batch that waits, or drop it.  Nothing waits if it came again, or has nothing here."""
        waiting, self._waiting = self._waiting, None
        return {"inserted": 0, "erased": 0} if waiting is None else waiting.end(commits)

    def _take(self, number: int, parts: Sequence[FileRows], wait: Callable[[], None]) -> Answer:
        files: dict[str, list[Rows]] = {}
        bad: dict[str, list[Rejected]] = {}
        for part in sorted(parts, key=lambda p: (p.modified, p.name)):
            files.setdefault(part.predicate, []).append(part.rows)
            bad.setdefault(part.predicate, []).extend(part.rows.bad)

        def stage(changes: Any) -> None:
            self.partials.stage(number, changes)
            self.sinks.stage(number, changes, bad)
            wait()

        commit = self.database.take_batch(number, files, stage)
        self.partials.publish(number)
        self.sinks.publish(number)
        inserted, erased = changed_rows(commit.changes, self.sinks.outputs)
        return {"inserted": inserted, "erased": erased}

    def answer(self, request: Mapping[str, Any], data: Sequence[bytes]) -> Answer:
        if request["do"] in ("commit", "drop"):
            return self.end(commits=request["do"] == "commit")
        if request["do"] == "values":
            self.sinks.write_parts(self.database.snapshot())
            return {}
        parts = [
            FileRows(predicate, name, modified, unpacked(pack))
            for (predicate, name, modified), pack in zip(request["about"], data, strict=True)
        ]
        return self.prepare(request["number"], parts)


def serve(shard: Shard, listener: Listener, working: threading.Lock) -> None:
    """One request after the other, forever."""
    while True:
        try:
            with listener.accept() as connection, working:
                _serve_one(shard, connection)
        except (EOFError, OSError, ProcessError):  # the client has ended, or had no key
            continue


def _serve_one(shard: Shard, connection: Connection) -> None:
    request = json.loads(connection.recv_bytes())
    data = [connection.recv_bytes() for _ in range(request["parts"])]
    try:
        answer = shard.answer(request, data)
    except DlogError as error:
        answer = {"error": encoded(error)}
    except Exception as error:  # a bug: the shard continues, and the stream stops with it
        answer = {"error": encoded(DlogError(f"the batch failed: {error!r}"))}
    connection.send_bytes(json.dumps(answer).encode())


def _opened(setup: Setup) -> ShardDatabase:
    """The database, as soon as a shard of an earlier stream that is about to end has released it."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return ShardDatabase(setup, facts=setup.facts)
        except StoreError as error:
            if "is in use" not in error.message or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main() -> None:
    setup = Setup(**json.loads(sys.stdin.readline()))
    try:
        shard = Shard(setup, _opened(setup))
        shard.sinks.folder.mkdir(parents=True, exist_ok=True)
        listener = Listener((HOST, 0), authkey=bytes.fromhex(setup.key), backlog=64)
    except DlogError as error:
        print(json.dumps({"error": encoded(error)}), flush=True)
        return
    print(json.dumps({"port": listener.address[1], "last": shard.database.last_number}), flush=True)
    working = threading.Lock()
    threading.Thread(target=serve, args=(shard, listener, working), daemon=True).start()
    sys.stdin.read()  # until the stream ends
    with working:
        shard.end(commits=False)
        shard.database.close()
        os._exit(0)


if __name__ == "__main__":
    main()
