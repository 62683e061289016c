"""The compilation of kernels: where machine code is kept, when it is made, and what a call checks."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dlog import jit, places
from dlog.jit import cache, compiling

KERNEL = """
    import sys
    import numpy as np
    from dlog.jit import helper, kernel

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
def test_compiles_once_per_installation_and_reports_it(tmp_path: Path) -> None:
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
        "deep____init__": "def late():\n    from dlog import other\n",
        "__init__": "from dlog import other\n",
        "other": "y = 1\n",
    }
    where = package(tmp_path, **texts)
    digest = cache.source_digest(where / "top.py", where)
    package(tmp_path, other="y = 2\n")
    cache._read_module.cache_clear()
    assert cache.source_digest(where / "top.py", where) == digest
    package(tmp_path, deep__low="x = 2\n")
    cache._read_module.cache_clear()
    assert cache.source_digest(where / "top.py", where) != digest


def test_old_directories_go_and_the_three_last_used_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in range(6):
        old = tmp_path / f"module-{age:016x}"
        old.mkdir()
        os.utime(old, (1000 - age, 1000 - age))
    (tmp_path / "other-0000000000000001").mkdir()
    (tmp_path / "notes").mkdir()
    monkeypatch.setattr(cache, "directory_name", lambda source: "module-00000000000000ff")
    made = cache.make_directory(Path("module.py"), [tmp_path])
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
    made = cache.make_directory(Path("module.py"), [file / "cache", tmp_path / "good"])
    assert made.parent == tmp_path / "good"
    assert cache.make_directory(Path("module.py"), [file / "cache"]).is_dir()


@pytest.mark.parametrize(
    "env, expected",
    [
        ({"DLOG_CACHE_DIR": "/a"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/dlog"),
        ({"HOME": "/c"}, "/c/.cache/dlog"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="other places")
def test_where_machine_code_is_stored(
    env: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DLOG_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert places.roots()[0] == Path(expected)


def test_only_jit_imports_numba() -> None:
    imports = re.compile(r"^\s*(?:import|from)\s+(?:numba|llvmlite)\b", re.MULTILINE)
    importers = {path.parent.name for path in cache.PACKAGE.rglob("*.py") if imports.search(path.read_text())}
    assert importers == {"jit"}


# Images: machine code of dlog's own modules

# Compiles one small module only.  Says what was computed and whether this process imported numba.
IMAGE = """
    import sys
    import numpy as np
    from dlog.jit import compiling
    name = "dlog.storage.queue.row_set_kernels"
    everything = compiling.kernel_modules
    compiling.kernel_modules = lambda: {name: everything()[name]}
    {before}
    from dlog.storage.queue.row_set_kernels import bitmap_add, hash_add
    table, found = np.full(16, -1), np.zeros(4, np.int64)
    print(hash_add(np.array([5, 7, 5, 9]), 4, table, found), found, end=" ")
    print(bitmap_add(np.array([3, 3]), 2, np.zeros(1, np.int64), found), "numba" in sys.modules)
    """
ANSWER = "3 [0 1 3 0] 1 "
SAID = "compiling kernels (once per installation) ...\n"
WAITED = "waiting for another process that compiles kernels ...\n"


def image_script(before: str = "") -> str:
    return textwrap.dedent(IMAGE).replace("{before}", before)


@pytest.fixture(scope="module")
def one_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory with the image of one module, made by three processes that started at once."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "script.py").write_text(image_script())
    running = [
        subprocess.Popen(
            [sys.executable, str(folder / "script.py")],
            env=os.environ | {"DLOG_CACHE_DIR": str(folder / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = [process.communicate() for process in running]
    assert [out for out, _ in outputs] == [ANSWER + "False\n"] * 3
    said = [err for _, err in outputs]
    assert said.count(SAID) == 1, "one compiles, the others wait for it"
    assert set(said) <= {SAID, WAITED, ""}
    return folder / "cache"


needs_images = pytest.mark.skipif(jit.DISABLED or jit.BOUNDSCHECK, reason="no images are made")


@needs_images
def test_a_second_process_compiles_nothing_and_imports_no_numba(one_image: Path, tmp_path: Path) -> None:
    run = python(image_script(), cwd=tmp_path, DLOG_CACHE_DIR=str(one_image))
    assert (run.stdout, run.stderr) == (ANSWER + "False\n", "")


@needs_images
def test_images_in_a_place_that_cannot_be_written_are_used(one_image: Path, tmp_path: Path) -> None:
    forbid = """
def refuse(*args, **kwargs): raise OSError("read-only")
import os, tempfile
os.mkdir = os.utime = tempfile.mkdtemp = tempfile.TemporaryFile = tempfile.mkstemp = refuse
"""
    run = python(image_script(forbid), cwd=tmp_path, DLOG_CACHE_DIR=str(one_image))
    assert (run.stdout, run.stderr) == (ANSWER + "False\n", "")


@needs_images
def test_an_image_of_another_machine_is_rebuilt(one_image: Path, tmp_path: Path) -> None:
    copy = tmp_path / "cache"
    shutil.copytree(one_image, copy)
    file = next(copy.rglob("kernels.image"))
    file.write_bytes(file.read_bytes().replace(b'"machine": "', b'"machine": "another ', 1))
    assert python(image_script(), cwd=tmp_path, DLOG_CACHE_DIR=str(copy)).stderr == SAID
    file.write_bytes(file.read_bytes()[:40])  # and one that was cut off
    assert python(image_script(), cwd=tmp_path, DLOG_CACHE_DIR=str(copy)).stderr == SAID


@needs_images
def test_when_no_image_can_be_made_numba_compiles_and_the_reason_is_given(tmp_path: Path) -> None:
    broken = "compiling.sys = type('', (), {'executable': '/bin/false', 'stderr': sys.stderr})"
    run = python(image_script(broken), cwd=tmp_path, DLOG_CACHE_DIR=str(tmp_path / "cache"))
    assert run.stdout == ANSWER + "True\n"
    assert run.stderr.startswith(SAID + "kernels are compiled at their first call: ")
    again = python(image_script(broken), cwd=tmp_path, DLOG_CACHE_DIR=str(tmp_path / "cache"))
    assert again.stdout == ANSWER + "True\n"
    assert SAID not in again.stderr, "what failed is not tried again"


@needs_images
def test_a_call_checks_its_arguments() -> None:
    from dlog.storage.queue.row_set_kernels import bitmap_add

    keys, bits, out = np.arange(4), np.zeros(4, np.int64), np.zeros(8, np.int64)
    assert bitmap_add(keys, 4, bits, out) == 4
    assert bitmap_add(np.arange(4, dtype=np.longlong), np.int64(4), bits, out) == 0
    wrong: list[tuple[object, ...]] = [
        (keys, 4, bits),
        (keys, 4, bits, out, out),
        ([0, 1], 2, bits, out),
        (keys.astype(float), 4, bits, out),
        (keys.astype(np.int32), 4, bits, out),
        (keys.astype(">i8"), 4, bits, out),
        (keys.reshape(2, 2), 4, bits, out),
        (keys, 4, bits, out[::2]),
        (keys, 4.0, bits, out),
        (keys, None, bits, out),
    ]
    for arguments in wrong:
        with pytest.raises(TypeError):
            bitmap_add(*arguments)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        bitmap_add(keys, 1 << 63, bits, out)
    assert bitmap_add(keys.view(np.memmap), 4, bits, out) == 0  # a subtype of arrays


@needs_images
def test_helpers_are_called_by_kernels_only() -> None:
    from dlog.storage.index.tree_kernels import compare

    with pytest.raises(TypeError, match="by kernels only"):
        compare(np.zeros(1, np.int64), 0, 0, 0, 0, 0, 0, 0)


@needs_images
def test_results_of_other_kinds_and_memory_taken_inside_a_kernel() -> None:
    from dlog.algebra import LIMBS, exact_float, float_sums, round_sum

    assert round_sum(exact_float(0.5), 0, LIMBS) == 0.5
    assert float_sums(np.array([0.1] * 10), np.array([0, 10])).tolist() == [1.0]


@pytest.mark.skipif(jit.DISABLED, reason="functions stay as they are")
def test_every_kernel_declares_its_parameters() -> None:
    modules = compiling.kernel_modules()
    for module in modules:
        importlib.import_module(module)
    entries = [k for k in jit.KERNELS if k.is_entry and k.__module__ in modules]
    assert {k.__module__ for k in entries} == set(modules)
    assert all(k.kinds for k in entries)


def test_modules_are_shared_out_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = {"a": {"x": 50, "y": 10}, "b": {"z": 58}, "c": {"x": 50}}
    monkeypatch.setattr(compiling.Module, "reached", property(lambda module: reached[module.name]))
    modules = [compiling.Module(name, Path(), 1) for name in reached]
    assert compiling._shares(modules, 2) == [["a", "c"], ["b"]], "what reaches the same, together"
    assert compiling._shares(modules[:1], 4) == [["a"]]
