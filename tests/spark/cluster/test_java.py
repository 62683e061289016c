"""The archive of Java's loaded classes: one is adopted, others of its kind go."""

from __future__ import annotations

import os
import time
from pathlib import Path

from dlog import places
from dlog.spark.cluster import java


def test_one_archive_remains(tmp_path: Path) -> None:
    """Machines that ran at the same time each write one; what was written just now may not be complete."""
    root = tmp_path / "cache"
    assert places.is_writable(root)
    names = [f"spark-0123.classes.{number}" for number in (7, 8, 9)]
    for name in (*names, "spark-0123.classes.part", "spark-4567.classes.7"):
        (root / name).write_text(name)
        os.utime(root / name, (time.time() - 60,) * 2)
    (root / names[2]).touch()
    java._adopt(root, "spark-0123.classes")
    assert (root / "spark-0123.classes").read_text() in names[:2]
    assert not (root / names[0]).exists() and not (root / names[1]).exists()
    os.utime(root / names[2], (time.time() - 60,) * 2)
    java._drop_others(root, "spark-0123.classes")
    assert sorted(file.name for file in root.iterdir()) == [
        "spark-0123.classes",
        "spark-0123.classes.part",
        "spark-4567.classes.7",
    ]
