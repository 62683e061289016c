"""Arrows point one way, and the front end stays light."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINT = Path(sys.executable).with_name("lint-imports")
HEAVY = ("numpy", "numba", "llvmlite", "pyspark", "pyarrow", "pandas", "polars")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(
        [LINT, "--no-cache", "--config", folder / "pyproject.toml"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_layers_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("storage/layout.py", "import dlog.engine.database", "Layers"),
        ("language/ast.py", "def late():\n    from dlog.ir import rules", "Layers"),
        ("storage/layout.py", "import numba", "Only dlog.jit imports numba"),
        (
            "values/int.py",
            "import pyarrow",
            "Types load numpy and pyarrow when first used, and import nothing heavy",
        ),
        ("io/options.py", "import pyspark.sql", "Only dlog.spark imports pyspark"),
    ],
)
def test_layers_broken_are_found(tmp_path: Path, module: str, line: str, contract: str) -> None:
    shutil.copytree(ROOT / "dlog", tmp_path / "dlog", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with open(tmp_path / "dlog" / module, "a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1 and f"{contract} BROKEN" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--version"],
        ["check", "programs/reach.dl"],
        ["check", "programs/errors/type_conflict.dl"],
        ["check", "programs/time_zones.dl"],
        ["check", "programs/errors/bad_literal_duration.dl"],
        ["format", "programs/reach.dl"],
        ["format", "programs/time_zones.dl"],
    ],
    ids=lambda arguments: " ".join(arguments) or "nothing",
)
def test_front_end_is_light(arguments: list[str]) -> None:
    """These commands answer before a heavy library could be loaded."""
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print('HEAVY', *[m for m in {HEAVY!r} if sys.modules.get(m)]))\n"
        f"sys.argv = ['dlog', *{arguments!r}]\n"
        "from dlog.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "HEAVY", done.stdout + done.stderr
