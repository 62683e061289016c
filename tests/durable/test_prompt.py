"""What the document shows is what happens: commits, kill -9, reopening, branches, differences, merging."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import dlog
from tests.test_docs import NOTICE, ROOT, _without_times, blocks

_TYPED = "dlog> "
_NOTICE = re.compile(NOTICE)


def run(block: str, folder: Path) -> tuple[list[str], list[str]]:
    """(What was printed, what is shown), without times."""
    command, *lines = block.splitlines()
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "dlog"
    typed = [line.removeprefix(_TYPED) for line in lines if line.startswith(_TYPED)]
    shown = [line for line in lines if not line.startswith(_TYPED)]
    killed = shown[-1] == "Killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "dlog", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**_environment()},
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in typed))
    process.stdin.flush()
    printed = []
    if killed:
        while len(printed) < len(shown) - 1:
            line = process.stdout.readline().rstrip("\n")
            printed += [] if _NOTICE.match(line) else [line]
        process.send_signal(signal.SIGKILL)
        printed.append("Killed")
    rest, _ = process.communicate()
    printed += [line for line in rest.splitlines() if not _NOTICE.match(line)]
    assert process.returncode == (-signal.SIGKILL if killed else 0)
    return [_same(line) for line in printed], [_same(line) for line in shown]


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _same(line: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "WHEN", _without_times(line))


def test_sessions_of_the_document_follow_each_other(tmp_path: Path) -> None:
    shutil.copy(ROOT / "programs" / "reach.dl", tmp_path)
    for block in blocks("docs/durable.md", "console"):
        printed, shown = run(block, tmp_path)
        assert printed == shown
    dumped = subprocess.run(
        [sys.executable, "-m", "dlog", "dump", "state"],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
    ).stdout
    with dlog.Database(tmp_path / "state") as db:
        assert dlog.Database(source=dumped)["reach"].rows() == db["reach"].rows()
