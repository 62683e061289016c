"""Output files appear whole or not at all, all together."""

import io
import os
import stat
from pathlib import Path

import pytest

from dlog.errors import DataError
from dlog.io import OutputOptions, OutputSet, output, to_arrow, write
from dlog.values import INT

TABLE = to_arrow([(1,), (2,)], [("x", INT)])


def options(name, folder, **params):
    return OutputOptions.from_params(name, params, folder)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Boom(Exception):
    pass


def failing_writer(error):
    def writer(table, columns, options, sink, progress):
        sink.write(b"half of it")
        raise error

    return writer


def test_nothing_is_visible_before_the_commit(tmp_path):
    outputs = OutputSet()
    outputs.write(TABLE, options("a", tmp_path))
    outputs.write(TABLE, options("b", tmp_path))
    outputs.check()
    assert all(name.startswith(".") and name.endswith(".part") for name in names(tmp_path))
    outputs.commit()
    outputs.check()
    assert names(tmp_path) == ["a.csv", "b.csv"]


def test_abort_removes_what_was_staged_and_folders_made(tmp_path):
    (tmp_path / "a.csv").write_text("old")
    outputs = OutputSet()
    outputs.write(TABLE, options("a", tmp_path))
    outputs.write(TABLE, options("b", tmp_path / "new" / "deep"))
    outputs.abort()
    assert names(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "old"


def test_an_exception_in_the_block_aborts(tmp_path):
    stdout = io.BytesIO()
    with pytest.raises(Boom), OutputSet(stdout=stdout) as outputs:
        outputs.write(TABLE, options("a", tmp_path))
        outputs.print_size("a", 2)
        raise Boom
    assert names(tmp_path) == []
    assert stdout.getvalue() == b""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Boom(), KeyboardInterrupt()])
@pytest.mark.parametrize("compress", [False, True])
def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch, error, compress):
    target = options("a", tmp_path, compress=compress)
    target.path.write_text("old")
    monkeypatch.setitem(output._WRITERS, "text", failing_writer(error))
    expected = DataError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        write(TABLE, target)
    if expected is DataError:
        assert caught.value.message == f'cannot write "{target.path}": No space left on device'
    assert names(tmp_path) == [target.path.name]
    assert target.path.read_text() == "old"


def test_a_failed_output_is_not_committed_by_later_commits(tmp_path, monkeypatch):
    outputs = OutputSet()
    outputs.write(TABLE, options("a", tmp_path))
    with monkeypatch.context() as patch:
        patch.setitem(output._WRITERS, "text", failing_writer(Boom()))
        with pytest.raises(Boom):
            outputs.write(TABLE, options("b", tmp_path))
    outputs.check()
    outputs.commit()
    assert names(tmp_path) == ["a.csv"]


def test_a_commit_that_fails_removes_the_rest(tmp_path):
    outputs = OutputSet()
    for name in "abc":
        outputs.write(TABLE, options(name, tmp_path))
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(DataError, match=r"cannot write .*b\.csv"):
        outputs.commit()
    assert names(tmp_path) == ["a.csv", "b.csv"]
    outputs.check()


def test_a_folder_in_the_place_of_a_file(tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(DataError, match=r'cannot write ".*a\.csv": it is a folder'):
        write(TABLE, options("a", tmp_path))
    assert names(tmp_path) == ["a.csv"]


def test_a_file_in_the_place_of_a_folder(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(DataError, match="cannot write"):
        write(TABLE, options("a", tmp_path / "out"))


def test_two_relations_in_one_file_are_refused(tmp_path):
    with pytest.raises(DataError, match="a and b would both be written to"), OutputSet() as outputs:
        outputs.write(TABLE, options("a", tmp_path, filename="x"))
        outputs.write(TABLE, options("b", tmp_path, filename="./x"))
    assert names(tmp_path) == []


def test_the_same_relation_twice_is_written_once(tmp_path):
    with OutputSet() as outputs:
        outputs.write(TABLE, options("a", tmp_path))
        outputs.write(TABLE.slice(1), options("a", tmp_path))
        outputs.check()
    assert names(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "2\n"


def test_folders_are_made(tmp_path):
    write(TABLE, options("a", tmp_path / "new" / "deep"))
    assert (tmp_path / "new" / "deep" / "a.csv").read_text() == "1\n2\n"


def test_rights_are_those_of_new_files_or_of_the_file_replaced(tmp_path):
    mask = os.umask(0o027)
    try:
        write(TABLE, options("a", tmp_path))
        (tmp_path / "b.csv").write_text("")
        (tmp_path / "b.csv").chmod(0o600)
        write(TABLE, options("b", tmp_path))
    finally:
        os.umask(mask)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.csv", "b.csv")]
    assert modes == [0o640, 0o600]


def test_links_stay_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "a.csv").symlink_to(tmp_path / "real" / "a.csv")
    write(TABLE, options("a", tmp_path))
    assert (tmp_path / "a.csv").is_symlink()
    assert (tmp_path / "real" / "a.csv").read_text() == "1\n2\n"


def test_devices_are_written_not_replaced(tmp_path):
    before = os.stat(os.devnull)
    write(TABLE, options("a", tmp_path, filename=os.devnull))
    after = os.stat(os.devnull)
    assert stat.S_ISCHR(after.st_mode) and before.st_ino == after.st_ino


def test_standard_output_is_printed_after_all_files_are_in_place(tmp_path):
    class Stream(io.BytesIO):
        def write(self, data):
            assert names(tmp_path) == ["a.csv"]
            return super().write(data)

    stream = Stream()
    with OutputSet(stdout=stream) as outputs:
        outputs.print_size("a", 2)
        outputs.write(TABLE, options("a", tmp_path))
    assert stream.getvalue() == b"a\t2\n"


@pytest.mark.parametrize("kind", ["file", "json", "parquet", "arrow"])
def test_every_format_is_atomic(tmp_path, kind):
    target = options("a", tmp_path, IO=kind)

    def interrupted(done, total):
        raise Boom

    with pytest.raises(Boom):
        write(TABLE, target, progress=interrupted)
    assert names(tmp_path) == []


def test_a_folder_that_others_make_meanwhile_is_theirs(tmp_path, monkeypatch):
    make = Path.mkdir

    def too_late(path):
        make(path)
        make(path)

    monkeypatch.setattr(Path, "mkdir", too_late)
    outputs = OutputSet()
    outputs.write(TABLE, options("a", tmp_path / "new"))
    outputs.abort()
    assert names(tmp_path) == ["new"]
