"""Owns the one Spark session of a process: how it is obtained, configured and ended.

    from dlog.spark.cluster.session import start, stop

    spark = start("local[2]")          # a pyspark.sql.SparkSession; any master URL
    ...
    stop()                             # also happens when the process ends

`start` finds Java (`dlog.spark.cluster.java`), starts it tuned for a short start, and returns the existing
session when it is called again with the same master; `settings` are Spark's own and override those made
here.  Workers run this process's interpreter.  With a `local` master everything listens on the loopback
device only.  Spark's log goes into a file that is deleted with the session; `log_tail()` shows its end.
Ctrl-C cancels Spark's jobs and raises KeyboardInterrupt in the driver.  Knows nothing of programs.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dlog.errors import DlogError
from dlog.spark.cluster import java
from dlog.spark.cluster.reasons import reason, task_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One more shard costs 30-50 ms, adaptive execution another job per exchange.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.ansi.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "dlog.spark.run.daemon",
    "spark.sql.warehouse.dir": "",
    "spark.log.level": "ERROR",
}
_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.shuffle.compress": "false",  # nothing leaves the machine
    "spark.broadcast.compress": "false",
    # Local files without checksum files, and a stream's notes as files instead of
    # links: Hadoop starts a process for each of these (a batch of a stream took twice as long).
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

_NO_WORDS = re.compile(r"\s*(at [\w.$/]+\(|\.\.\. \d+ more|$)")  # a line of a Java stack trace

TRIES = 4  # of a task, before its job fails

_session: SparkSession | None = None
_machine: java.Machine | None = None
_asked: tuple[str, dict[str, str]] | None = None


def start(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    java_options: tuple[str, ...] | None = None,
    app: str = "dlog",
) -> SparkSession:
    """The session for a master.  3 s for the first one, nothing for the same again."""
    global _session, _machine, _asked
    asked = (master, dict(settings or {}))
    if _session is not None:
        if asked == _asked:
            return _session
        stop()
    _check_packages()
    check_master(master)
    if is_local(master):
        compile_kernels()
    _machine = _start_machine(master, settings or {}, java_options)
    try:
        _session = _connect(master, {**_made(master), **(settings or {}), "spark.app.name": app})
    except Exception as error:
        tail = log_tail()
        stop()
        raise DlogError(f"no Spark session at {master}: {reason(error)}{tail}") from None
    _asked = asked
    return _session


def stop() -> None:
    """End the session and its Java machine."""
    global _session, _machine, _asked
    session, machine = _session, _machine
    _session = _machine = _asked = None
    if machine is None:
        return
    from pyspark import SparkContext

    try:
        if session is not None:
            session.stop()
        if SparkContext._gateway is not None:
            SparkContext._gateway.shutdown()
    except Exception:  # the machine has already ended, or was interrupted: it ends all the same
        pass
    finally:
        SparkContext._gateway = SparkContext._jvm = None
        machine.end()


def log_tail(lines: int = 5) -> str:
    """The last lines that Spark logged, indented, for an error message; without stack traces."""
    if _machine is None or not _machine.log.exists():
        return ""
    logged = _machine.log.read_text(encoding="utf-8", errors="replace").splitlines()
    words = [line.strip() for line in logged if not _NO_WORDS.match(line)]
    return "".join(f"\n  {line}" for line in words[-lines:])


def gave_up(error: Exception) -> DlogError:
    """The error of a job whose tasks failed as often as they may."""
    return DlogError(f"Spark failed: {task_reason(error)}{log_tail(3)}")


def cores(spark: SparkSession) -> int:
    """How many tasks run at the same time."""
    return max(int(spark.sparkContext.defaultParallelism), 1)


@contextmanager
def quiet() -> Iterator[None]:
    """In the block nothing is logged: py4j would log an interrupt, which is raised as an exception anyway."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _check_packages() -> None:
    try:
        import pyspark
    except ImportError:
        raise DlogError("Spark needs the Python package pyspark", help=java.HELP_INSTALL) from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise DlogError(f"pyspark {pyspark.__version__} is too old: 4.0 is needed", help=java.HELP_INSTALL)


def read_settings(given: Iterable[str]) -> dict[str, str]:
    """Settings from the command line, `NAME=VALUE`."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise DlogError(f"bad setting: {text}", help="write spark.NAME=VALUE")
        found[name] = value
    return found


def check_master(master: str) -> None:
    """Refuse what Spark would not understand: its own error comes only after it has started."""
    if not re.fullmatch(r"local(\[([1-9]\d*|\*)(, *[1-9]\d*)?\])?|(spark|k8s)://.+|yarn", master):
        raise DlogError(
            f"unknown Spark master: {master}", help="as in local[2], local[*], spark://HOST:7077, yarn"
        )


def compile_kernels() -> None:
    """Compiles missing kernels in this process: workers would wait for each other without showing it."""
    from dlog.jit import BOUNDSCHECK, DISABLED
    from dlog.jit.compiling import compile_all
    from dlog.jit.image import NoImage

    if not (BOUNDSCHECK or DISABLED):
        with suppress(NoImage):  # reported by the caller of the kernel
            compile_all()


def _start_machine(master: str, settings: Mapping[str, str], options: tuple[str, ...] | None) -> java.Machine:
    """Settings go on its command line, too: Spark fetches packages before it starts."""
    from pyspark.find_spark_home import _find_spark_home

    if options is None:
        options = java.QUICK if is_local(master) else ("-XX:+UseParallelGC",)
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    arguments = ["--master", master, *_mode(master), *given, "pyspark-shell"]
    options = (*options, *_memory(settings))
    return java.start(java.find_java(), Path(_find_spark_home()), arguments, options)


def _mode(master: str) -> list[str]:
    return [] if is_local(master) else ["--deploy-mode", "client"]


def _memory(settings: Mapping[str, str]) -> list[str]:
    """By default Java takes a quarter of the memory, not 1 GB as with Spark's scripts.

    >>> _memory({"spark.driver.memory": "4g"})
    ['-Xmx4g']
    """
    wanted = settings.get("spark.driver.memory")
    return [f"-Xmx{wanted}"] if wanted else []


def _made(master: str) -> dict[str, str]:
    made = {**_SETTINGS, **(_LOOPBACK if is_local(master) else {})}
    made["spark.pyspark.python"] = sys.executable
    made["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    made["spark.sql.warehouse.dir"] = str(Path("spark-warehouse").absolute())
    return made


def _connect(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Point pyspark at our machine by its environment variables, and make the session."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    assert _machine is not None
    door = {
        "PYSPARK_GATEWAY_PORT": str(_machine.port),
        "PYSPARK_GATEWAY_SECRET": _machine.secret,
        "PYSPARK_PYTHON": sys.executable,
    }
    before = {name: os.environ.get(name) for name in door}
    os.environ.update(door)
    try:
        SparkContext._ensure_initialized()
    finally:
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            _put_back(name, before[name])
    builder = SparkSession.builder.master(_with_retries(master))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _with_retries(master: str) -> str:
    """A local master that restarts a task when its worker died, as others do.

    >>> _with_retries("local[2]"), _with_retries("local"), _with_retries("yarn")
    ('local[2,4]', 'local[1,4]', 'yarn')
    """
    if not is_local(master) or "," in master:
        return master
    return f"local[{master[6:-1] or 1},{TRIES}]"


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


atexit.register(stop)
