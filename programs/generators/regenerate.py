"""Runs every generator: `python programs/generators/regenerate.py`.

With `--check` it writes to a scratch folder instead and fails if a committed file differs or is left over.
Files of Parquet and SQLite are only checked to exist: their bytes change with the version of the library.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GENERATORS = sorted(p for p in HERE.glob("*.py") if p.stem not in ("common", "regenerate", "workload"))


def main() -> int:
    if "--check" not in sys.argv[1:]:
        run_all(HERE.parent)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        run_all(Path(scratch))
        problems = differences(Path(scratch), HERE.parent)
    print("\n".join(problems) or "every generated file is as committed")
    return 1 if problems else 0


def run_all(target: Path) -> None:
    for generator in GENERATORS:
        subprocess.run(
            [sys.executable, str(generator)], check=True, env={**os.environ, "DLOG_PROGRAMS": str(target)}
        )


def differences(fresh: Path, committed: Path) -> list[str]:
    """Files under `facts` and `expected` that one side lacks or that differ."""
    here, there = data_files(fresh), data_files(committed)
    problems = [f"not generated: {p}" for p in sorted(there - here)]
    problems += [f"missing: {p}" for p in sorted(here - there)]
    for path in sorted(here & there):
        if path.suffix not in (".parquet", ".sqlite") and content(fresh / path) != content(committed / path):
            problems.append(f"differs: {path}")
    return problems


def content(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def data_files(root: Path) -> set[Path]:
    return {
        p.relative_to(root)
        for kind in ("facts", "expected")
        for p in root.rglob(f"{kind}/*")
        if p.is_file() and "errors" not in p.relative_to(root).parts
    }


if __name__ == "__main__":
    sys.exit(main())
