"""The compilation of kernels: where machine code is kept, when it is made, and for how many signatures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dlog import jit

KERNEL = """
    import sys
    import numpy as np
    from dlog.jit import cache_directory, compiled_kernels, helper, kernel
    from pathlib import Path

    @helper
    def twice(x):
        return 2 * x

    @kernel
    def total(a, n):
        s = 0
        for i in range(n):
            s += twice(a[i]) + twice(1)
        return s

    print(total(np.arange(4), 4), total(np.arange(3), 2))
    """


def python(code: str, *, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code as a file (numba keeps machine code only for functions that come from one)."""
    script = cwd / "script.py"
    if not script.exists():
        script.write_text(textwrap.dedent(code))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "DLOG_", "XDG_"))}
    return subprocess.run(
        [sys.executable, str(script)], env=clean | env, cwd=cwd, capture_output=True, text=True, timeout=200
    )


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_compiles_once_per_installation_and_says_so(tmp_path: Path) -> None:
    first = python(KERNEL, cwd=tmp_path, DLOG_CACHE_DIR=str(tmp_path / "cache"))
    again = python(KERNEL, cwd=tmp_path, DLOG_CACHE_DIR=str(tmp_path / "cache"))
    assert first.stdout == again.stdout == "20 6\n"
    assert first.stderr == "compiling kernels (once per installation) ...\n"
    assert again.stderr == ""


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_processes_that_start_at_once_share_the_directory(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(KERNEL))
    env = os.environ | {"DLOG_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "script.py")]
    running = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate()[0] for process in running] == ["20 6\n"] * 3
    assert python(KERNEL, cwd=tmp_path, DLOG_CACHE_DIR=str(tmp_path / "cache")).stderr == ""


def test_uncompiled_text_gives_the_same_and_imports_no_numba(tmp_path: Path) -> None:
    code = textwrap.dedent(KERNEL) + "print('numba' in sys.modules)\n"
    run = python(code, cwd=tmp_path, NUMBA_DISABLE_JIT="1", DLOG_CACHE_DIR=str(tmp_path / "cache"))
    assert run.stdout == "20 6\nFalse\n"
    assert run.stderr == ""


def test_bounds_are_checked_on_request(tmp_path: Path) -> None:
    code = textwrap.dedent(KERNEL) + "total(np.arange(3), 4)\n"
    run = python(code, cwd=tmp_path, DLOG_BOUNDSCHECK="1", DLOG_CACHE_DIR=str(tmp_path / "cache"))
    assert "IndexError" in run.stderr


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_the_programs_own_numba_directory_is_left_alone(tmp_path: Path) -> None:
    code = textwrap.dedent(KERNEL) + "import numba; print(numba.config.CACHE_DIR)\n"
    run = python(code, cwd=tmp_path, DLOG_CACHE_DIR=str(tmp_path / "cache"), NUMBA_CACHE_DIR="/elsewhere")
    assert run.stdout == "20 6\n/elsewhere\n"


def package(root: Path, **texts: str) -> Path:
    """A small package `dlog` of modules; `__` in a name stands for a folder."""
    for name, text in texts.items():
        path = root / "dlog" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "dlog"


def test_digest_follows_every_module_a_kernel_can_reach(tmp_path: Path) -> None:
    texts = {
        "top": "from dlog.deep.middle import f\n",
        "deep__middle": "from dlog.deep import (\n    low,\n)\n",
        "deep__low": "x = 1\n",
        "deep____init__": "",
        "other": "y = 1\n",
    }
    where = package(tmp_path, **texts)
    digest = jit.source_digest(where / "top.py", where)
    package(tmp_path, other="y = 2\n")
    jit._read_module.cache_clear()
    assert jit.source_digest(where / "top.py", where) == digest
    package(tmp_path, deep__low="x = 2\n")
    jit._read_module.cache_clear()
    assert jit.source_digest(where / "top.py", where) != digest


def test_old_directories_go_and_the_three_last_used_stay(tmp_path: Path) -> None:
    for age in range(6):
        old = tmp_path / f"module-{age:016x}"
        old.mkdir()
        os.utime(old, (1000 - age, 1000 - age))
    (tmp_path / "other-0000000000000001").mkdir()
    (tmp_path / "notes").mkdir()
    made = jit._make_directory([tmp_path], "module-00000000000000ff")
    left = sorted(d.name for d in tmp_path.iterdir())
    assert made.name in left
    assert left == [
        "module-0000000000000000",
        "module-0000000000000001",
        "module-00000000000000ff",
        "notes",
        "other-0000000000000001",
    ]


def test_a_place_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    made = jit._make_directory([file / "cache", tmp_path / "good"], "module-0000000000000000")
    assert made.parent == tmp_path / "good"
    assert jit._make_directory([file / "cache"], "module-0000000000000000").is_dir()


@pytest.mark.parametrize(
    "env, expected",
    [
        ({"DLOG_CACHE_DIR": "/a"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/dlog"),
        ({"HOME": "/c"}, "/c/.cache/dlog"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="other places")
def test_where_machine_code_is_kept(
    env: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DLOG_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert jit._cache_roots()[0] == Path(expected)


def test_only_jit_imports_numba() -> None:
    imports = re.compile(r"^\s*(?:import|from)\s+(?:numba|llvmlite)\b", re.MULTILINE)
    importers = [path.name for path in jit.PACKAGE.rglob("*.py") if imports.search(path.read_text())]
    assert importers == ["jit.py"]


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
def test_a_kernel_has_one_signature_whatever_calls_it() -> None:
    from dlog.storage.relation import Arena, Relation

    relation = Relation.build(Arena(1 << 28), np.arange(6000).reshape(3000, 2), 2, [(0, 1), (1, 0)])
    for change in ([(1, 2)], np.arange(8000).reshape(4000, 2), np.arange(20)[::-1].reshape(10, 2)[:, ::-1]):
        relation, _ = relation.apply(inserts=change, erases=[(2, 3)])
        relation = relation.insert_row((-1, -1)) or relation
    relation.check()
    signatures = jit.compiled_kernels()
    assert sum(signatures.values()) > 10
    assert {name: n for name, n in signatures.items() if n > 1} == {}
