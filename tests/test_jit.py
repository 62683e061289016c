"""The compilation of kernels: where machine code is kept, when it is made, and what a call checks."""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from dlog import jit, places
from dlog.jit import cache, compiling, elf, groups

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

# Compiles two small kernels only.  Says what was computed and whether this process imported numba.
IMAGE = """
    import sys
    import numpy as np
    from dlog.jit import compiling
    name = "dlog.storage.queue.row_set_kernels"
    compiling.group_of = lambda module, kernel, everything: {name: ("bitmap_add", "hash_add")}
    {before}
    from dlog.storage.queue.row_set_kernels import bitmap_add, hash_add
    table, found = np.full(16, -1), np.zeros(4, np.int64)
    print(hash_add(np.array([5, 7, 5, 9]), 4, table, found), found, end=" ")
    print(bitmap_add(np.array([3, 3]), 2, np.zeros(1, np.int64), found), "numba" in sys.modules)
    """
ANSWER = "3 [0 1 3 0] 1 "
SAID = "compiling kernels (once per installation) ...\n"
WAITED = "waiting for another process to compile kernels ...\n"


def image_script(before: str = "") -> str:
    return textwrap.dedent(IMAGE).replace("{before}", before)


@pytest.fixture(scope="module")
def one_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory with the images of two kernels, made by three processes that started at once."""
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
    assert images(folder / "cache") == {"bitmap_add", "hash_add"}, "nothing but what is needed"
    return folder / "cache"


def images(root: Path) -> set[str]:
    return {file.stem for file in root.rglob("*.image")}


needs_images = pytest.mark.skipif(jit.DISABLED or jit.BOUNDSCHECK, reason="no images are made")


@needs_images
def test_a_second_process_compiles_nothing_and_imports_no_numba(one_image: Path, tmp_path: Path) -> None:
    run = python(image_script(), cwd=tmp_path, DLOG_CACHE_DIR=str(one_image))
    assert (run.stdout, run.stderr) == (ANSWER + "False\n", "")


@needs_images
@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="LLVM links there")
def test_linking_needs_no_llvm_and_gives_the_same_as_llvm(one_image: Path, tmp_path: Path) -> None:
    script = image_script() + "\nprint('llvmlite' in sys.modules)\n"
    alone = python(script, cwd=tmp_path, DLOG_CACHE_DIR=str(one_image))
    assert alone.stdout == ANSWER + "False\nFalse\n"
    (tmp_path / "script.py").unlink()
    without = "from dlog.jit import elf; elf.link = lambda code, function: None"
    script = image_script(without) + "\nprint('llvmlite' in sys.modules)\n"
    by_llvm = python(script, cwd=tmp_path, DLOG_CACHE_DIR=str(one_image))
    assert by_llvm.stdout == ANSWER + "False\nTrue\n"


@needs_images
def test_an_object_file_with_unknown_parts_is_left_to_llvm(one_image: Path) -> None:
    head, _, code = next(one_image.rglob("hash_add.image")).read_bytes().partition(b"\n")
    name = json.loads(head)["name"]
    if elf.link(code, name) is None:
        pytest.skip("LLVM links here")
    absolute = elf.ABSOLUTE_64.to_bytes(4, "little")
    for other in (code[:200], b"", code.replace(b"\x7fELF", b"\x7fELG"), code[:18] + b"\0\0" + code[20:]):
        assert elf.link(other, name) is None
    assert elf.link(code, "another") is None
    assert elf.link(code.replace(b"PyEval_SaveThread", b"PyEval_LostThread"), name) is None
    sections = elf._sections(code)
    entries = next(s for s in sections if s.type == elf.RELA and sections[s.info].type == elf.PROGBITS)
    at = entries.offset + 8  # the type of its first relocation
    assert code[at : at + 4] == absolute
    assert elf.link(code[:at] + b"\x09" + code[at + 1 :], name) is None


@needs_images
def test_a_function_that_outlives_its_module_at_exit_is_freed_safely(one_image: Path, tmp_path: Path) -> None:
    """Freed memory is overwritten, so that reading it ends the process."""
    script = image_script() + "\nimport sys\nfrom dlog.jit import KERNELS\n"
    script += "sys.late = [kernel.target for kernel in KERNELS]\n"
    memory = {"MALLOC_PERTURB_": "255", "PYTHONMALLOC": "malloc"}
    run = python(script, cwd=tmp_path, DLOG_CACHE_DIR=str(one_image), **memory)
    assert (run.returncode, run.stderr) == (0, "")


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
    file = next(copy.rglob("hash_add.image"))
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

    with pytest.raises(TypeError, match="only be called by kernels"):
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


# Groups: what is compiled together


def test_groups_name_kernels_that_exist_and_each_once() -> None:
    modules = compiling.kernel_modules()
    named = [(m, k) for group in groups.NAMED for m, kernels in group.items() for k in kernels]
    assert len(named) == len(set(named))
    assert all(kernel in modules[module].kernels for module, kernel in named)


def test_every_kernel_is_in_exactly_one_group() -> None:
    everything = {name: module.kernels for name, module in compiling.kernel_modules().items()}
    for module, kernels in everything.items():
        for kernel in kernels:
            group = groups.group_of(module, kernel, everything)
            assert kernel in group[module]
            for other, names in group.items():
                assert all(groups.group_of(other, name, everything) == group for name in names)


# Prints which kernels a run of the command line called.
CALLS = """
    import sys
    from dlog.jit import kernels
    called = set()
    def call(kernel, *args):
        called.add(f"{kernel.__module__} {kernel.__name__}")
        return kernel.target(*args)
    kernels.Kernel.__call__ = call
    from dlog.cli import main
    try:
        main()
    finally:
        print(*sorted(called), sep="\\n", file=open("called.txt", "w"))
    """


def calls(folder: Path, *arguments: str) -> set[tuple[str, ...]]:
    (folder / "calls.py").write_text(textwrap.dedent(CALLS))
    subprocess.run([sys.executable, "calls.py", *arguments], cwd=folder, check=True, capture_output=True)
    return {tuple(line.split()) for line in (folder / "called.txt").read_text().splitlines()}


@needs_images
def test_the_demo_calls_the_first_group_only(tmp_path: Path) -> None:
    programs = cache.PACKAGE.parent / "programs"
    facts = str(programs / "company_control" / "facts")
    called = calls(tmp_path, "run", str(programs / "company_control.dl"), "-F", facts, "-D", "-")
    first = {(module, kernel) for module, kernels in groups.FIRST.items() for kernel in kernels}
    assert called <= first, "it waits for the compiler once"
    assert len(first - called) <= 2, "it compiles hardly more than it needs"


@needs_images
def test_a_first_recursive_program_calls_two_groups(tmp_path: Path) -> None:
    (tmp_path / "hello.dl").write_text(
        "edge(1, 2). edge(2, 3). reach(x, y) <- edge(x, y). reach(x, z) <- reach(x, y), edge(y, z).\n"
        "farthest[x] = d <- agg<<d = max(y)>> reach(x, y).  .output reach\n?- farthest[1] = d.\n"
    )
    called = calls(tmp_path, "run", "hello.dl", "-D", "-")
    assert called <= {(m, k) for group in groups.NAMED for m, kernels in group.items() for k in kernels}


@needs_images
def test_what_an_interrupted_compilation_has_finished_is_used(tmp_path: Path) -> None:
    """The process ends when the first of two images is there; the next one makes the other only."""
    stop = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
count = compiling._Progress.count
def interrupt(self, what, module):
    count(self, what, module)
    if what == "image":
        import os
        os.kill(os.getpid(), signal.SIGINT)
compiling._Progress.count = interrupt
"""
    env = {"DLOG_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "interrupted").mkdir()
    broken = python(image_script(stop), cwd=tmp_path / "interrupted", **env)
    assert broken.returncode != 0 and "KeyboardInterrupt" in broken.stderr
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("*.image")}
    assert before
    run = python(image_script(), cwd=tmp_path, **env)
    assert run.stdout == ANSWER + "False\n"
    assert images(tmp_path / "cache") == {"bitmap_add", "hash_add"}
    assert {file: file.stat().st_mtime_ns for file in before} == before, "nothing is compiled twice"


def test_progress_counts_up_to_all_on_a_terminal_and_is_one_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = compiling.kernel_modules()["dlog.storage.queue.row_set_kernels"]
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        progress = compiling._Progress([module])
        for what in ("kernel", "image"):
            for _ in module.kernels:
                progress.count(what, module)
        progress.end()
        said = capsys.readouterr().err
        assert said.endswith(" 100%\n") and " 60%" in said if is_terminal else said == SAID


# The cache: what is removed


def entry(root: Path, name: str, *, age: float = 0.0, bytes: int = 10) -> Path:
    made = root / name
    made.mkdir(parents=True)
    (made / "content").write_bytes(b"x" * bytes)
    os.utime(made, (time.time() - age,) * 2)
    return made


def listed(root: Path, package: Path, *names: str) -> None:
    """An installation's list."""
    folder = root / "installations"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / package.name).write_text("\n".join([str(package), *names]) + "\n")


def installation(folder: Path) -> Path:
    folder.mkdir()
    (folder / "places.py").touch()
    return folder


def left(root: Path) -> set[str]:
    return {path.name for path in places.entries(root)}


def test_what_only_a_vanished_installation_used_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    names = [f"module-{n:016x}" for n in range(3)]
    for name in names:
        entry(root, name)
    listed(root, installation(tmp_path / "here"), names[0])
    listed(root, tmp_path / "gone", names[0], names[1])
    (root / "notes").mkdir()
    places.clean(root)
    assert left(root) == {names[0], names[2]}, "in use; in no list, but new"
    assert (root / "notes").is_dir() and not (root / "installations" / "gone").exists()


def test_what_no_list_has_is_removed_when_it_is_old(tmp_path: Path) -> None:
    entry(tmp_path, f"spark-{1:016x}.classes.77", age=3 * places.DAY)
    entry(tmp_path, f"spark-{2:016x}.classes.78")
    places.clean(tmp_path)
    assert left(tmp_path) == {f"spark-{2:016x}.classes.78"}


def test_an_installation_keeps_the_three_versions_used_last(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    names = [f"module-{n:016x}" for n in range(5)]
    for n, name in enumerate(names):
        entry(root, name, age=n * places.DAY)
    listed(root, installation(tmp_path / "here"), *names)
    listed(root, installation(tmp_path / "there"), names[4])
    places.clean(root)
    assert left(root) == {*names[:3], names[4]}


def test_the_cache_stays_within_its_bound_and_loses_what_was_used_longest_ago(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    names = [f"{kind}-{0:016x}" for kind in ("a", "b", "c", "d")]
    for n, name in enumerate(names):
        entry(root, name, age=n, bytes=100)
    listed(root, installation(tmp_path / "here"), *names)
    places.clean(root, bound=250)
    assert left(root) == set(names[:2])


def test_of_what_was_used_on_one_day_the_largest_goes_first(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    kernels = [f"module{n}-{0:016x}" for n in range(5)]
    archives = [f"spark-{n:016x}.classes" for n in range(2)]
    for age, name in enumerate([*reversed(archives), *kernels]):  # the archives were used last
        entry(root, name, age=age, bytes=500 if name in archives else 10)
    listed(root, installation(tmp_path / "here"), *kernels, *archives)
    places.clean(root, bound=600)
    assert left(root) == {*kernels, archives[1]}


def test_an_entry_in_use_is_listed_once(tmp_path: Path) -> None:
    made = entry(tmp_path, f"module-{0:016x}", age=2 * places.DAY)
    for _ in range(3):
        places.mark_used(made)
    (file,) = (tmp_path / "installations").iterdir()
    assert file.read_text().splitlines() == [str(cache.PACKAGE), made.name]
    assert time.time() - made.stat().st_mtime < places.DAY


def test_the_command_shows_the_cache_and_empties_it(tmp_path: Path) -> None:
    entry(tmp_path, f"module-{0:016x}", bytes=2_000_000)
    command = [sys.executable, "-m", "dlog", "cache"]
    env = os.environ | {"DLOG_CACHE_DIR": str(tmp_path)}
    shown = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"{tmp_path}: 1 entry, 2.0 MB\n")
    subprocess.run([*command, "--clear"], env=env, check=True)
    assert left(tmp_path) == set()
