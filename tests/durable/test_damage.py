"""A damaged store is not trusted: torn tails are cut off and reported, damage before them is an error."""

from __future__ import annotations

import copy

import pytest

import dlog
from dlog.durable import frames
from dlog.durable.folder import read_folder
from dlog.errors import StoreError
from tests.durable.model import FOLDER, PROGRAM, Model, same
from tests.durable.simulated import Node, SimulatedFiles

LOG, CHECKPOINT = str(FOLDER / "log-1"), str(FOLDER / "checkpoint-1")


def written() -> tuple[SimulatedFiles, list[Model], list[int]]:
    """A disk with a database, its models version by version, and the offsets where records begin."""
    files, models, offsets = SimulatedFiles(), [Model()], []
    with dlog.Database(FOLDER, source=PROGRAM, files=files) as db:
        for n in range(5):
            offsets.append(db._folder.log.size)
            rows = {(n, n + 1), (n + 7, 3)}
            with db.transaction() as tx:
                tx.insert("edge", sorted(rows))
                tx.insert("name", [(n, f"text {n}")])
            models.append(copy.deepcopy(models[-1]))
            models[-1].commit("main", {"edge": rows, "name": {(n, f"text {n}")}}, {})
        assert len(files.nodes[LOG].seen) > db._folder.log.size  # space is reserved after its end
    return files, models, [*offsets, len(files.nodes[LOG].seen)]  # which is given back


FILES, MODELS, OFFSETS = written()


def disk(name: str, data: bytes) -> SimulatedFiles:
    """The same disk with other bytes in one file."""
    files = SimulatedFiles()
    files.nodes = {n: Node(bytearray(node.seen), node.safe) for n, node in FILES.nodes.items()}
    files.nodes[name] = Node(bytearray(data), data)
    return files


def content(name: str) -> bytes:
    return bytes(FILES.nodes[name].seen)


@pytest.mark.parametrize("reserved", [0, 300], ids=["at its end", "with space reserved behind it"])
def test_a_log_cut_anywhere_gives_the_transactions_before(reserved: int) -> None:
    for size in range(OFFSETS[1], OFFSETS[-1] + 1):
        data = content(LOG)[:size].rstrip(b"\0") if reserved else content(LOG)[:size]
        whole = sum(offset <= size for offset in OFFSETS[1:])
        cut = len(content(LOG)[OFFSETS[whole] : size].rstrip(b"\0"))  # zeros are not a loss
        if reserved and whole < len(OFFSETS) - 1:  # and a record that lacks only zeros is whole
            whole += content(LOG)[size : OFFSETS[whole + 1]].strip(b"\0") == b""
        files = disk(LOG, data + bytes(reserved))
        found = read_folder(FOLDER, files)
        assert found is not None and len(found.records) == whole
        cut = 0 if found.tail.end == OFFSETS[whole] > size else cut
        assert found.tail.cut == cut
        if size % 41 and size not in OFFSETS:
            continue
        reported: list[str] = []
        with dlog.Database(FOLDER, files=files, warn=reported.append) as db:
            assert same(MODELS[whole], db) == ""
            db.execute("+edge(50, 51).")
        reported = [line for line in reported if "cut off" in line]
        assert len(reported) == (cut > 0)
        assert not cut or reported[0].startswith(
            f"{LOG}: {cut:,} bytes cut off at offset {OFFSETS[whole]}: the "
        )
        with dlog.Database(FOLDER, files=files, warn=reported.append) as db:
            assert db.version == whole + 1 and (50, 51) in db["edge"].rows()


@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_in_the_log_is_found(bit: int) -> None:
    last = OFFSETS[-2]
    for at in range(OFFSETS[-1]):
        data = bytearray(content(LOG))
        data[at] ^= 1 << bit
        files = disk(LOG, bytes(data))
        if at >= last:
            found = read_folder(FOLDER, files)
            assert found is not None and len(found.records) == 4 and found.tail.end == last
            continue
        record = max((offset for offset in OFFSETS if offset <= at), default=0)
        with pytest.raises(StoreError) as error:
            read_folder(FOLDER, files)
        if 8 <= at < 12:  # the format: a newer one, or a header whose checksum is wrong
            assert "state/log-1" in str(error.value)
        else:
            assert f"{LOG} is damaged at offset {record}" in str(error.value)


def test_a_flipped_bit_in_the_last_record_is_cut_off_and_reported() -> None:
    for at in range(OFFSETS[-2], OFFSETS[-1], 29):
        data = bytearray(content(LOG))
        data[at] ^= 4
        reported: list[str] = []
        with dlog.Database(FOLDER, files=disk(LOG, bytes(data)), warn=reported.append) as db:
            assert same(MODELS[4], db) == ""
        assert len(reported) == 1 and f"cut off at offset {OFFSETS[-2]}" in reported[0]


def test_a_flipped_bit_in_the_checkpoint_is_an_error() -> None:
    whole = content(CHECKPOINT)
    for at in range(len(whole)):
        data = bytearray(whole)
        data[at] ^= 2
        with pytest.raises(StoreError, match="checkpoint-1"):
            read_folder(FOLDER, disk(CHECKPOINT, bytes(data)))


def test_a_checkpoint_cut_anywhere_is_an_error() -> None:
    whole = content(CHECKPOINT)
    for size in range(len(whole)):
        with pytest.raises(StoreError, match="checkpoint-1 is damaged at offset"):
            read_folder(FOLDER, disk(CHECKPOINT, whole[:size]))


def test_nothing_is_opened_that_is_damaged() -> None:
    data = bytearray(content(LOG))
    data[OFFSETS[1] + 40] ^= 1
    files = disk(LOG, bytes(data))
    for _ in range(2):
        with pytest.raises(StoreError, match=f"damaged at offset {OFFSETS[1]}: .*good records come after"):
            dlog.Database(FOLDER, files=files)
    assert files.nodes[LOG].seen == data  # nothing was cut


def test_records_that_were_never_synced_are_a_tail() -> None:
    """Without syncs a disk may have later records without earlier ones: nothing was promised of them."""
    files = SimulatedFiles()
    db = dlog.Database(FOLDER, source=PROGRAM, durability="none", files=files)
    start = len(files.nodes[LOG].seen)
    for n in range(3):
        db.execute(f"+edge({n}, 77).")
    files.kill()
    files.nodes[LOG].seen[start + 30] ^= 1
    reported: list[str] = []
    with dlog.Database(FOLDER, files=files, warn=reported.append) as db:
        assert db.version == 0 and same(Model(), db) == ""
    assert len(reported) == 1


@pytest.mark.parametrize("name", [LOG, CHECKPOINT])
def test_a_newer_format_is_refused(name: str) -> None:
    kind = frames.LOG if name == LOG else frames.CHECKPOINT
    data = frames.header(kind, 1, frames.FORMAT + 1) + content(name)[frames.HEADER_BYTES :]
    with pytest.raises(StoreError, match=f"{name} has format 2, but this dlog reads up to format 1"):
        read_folder(FOLDER, disk(name, data))


def test_files_of_two_databases_are_distinguished() -> None:
    other = disk(LOG, frames.header(frames.LOG, 7))
    with pytest.raises(StoreError, match="its name and its header do not agree"):
        read_folder(FOLDER, other)
    with pytest.raises(StoreError, match="another kind of file"):
        read_folder(FOLDER, disk(LOG, content(CHECKPOINT)))
    missing = disk(LOG, b"")
    del missing.nodes[LOG]
    with pytest.raises(StoreError, match="cannot read state/log-1: No such file"):
        read_folder(FOLDER, missing)
    strange = disk(LOG, content(LOG))
    strange.nodes = {str(FOLDER / "letters"): Node()}
    with pytest.raises(StoreError, match="is not a dlog database: it contains letters"):
        dlog.Database(FOLDER, files=strange)


def test_versions_that_do_not_follow_each_other_are_found() -> None:
    whole = content(LOG)
    first, second = whole[OFFSETS[0] : OFFSETS[1]], whole[OFFSETS[1] : OFFSETS[2]]
    data = whole[: OFFSETS[0]] + second + first
    with pytest.raises(StoreError, match=f"damaged at offset {OFFSETS[0]}: version 2 instead of 1"):
        read_folder(FOLDER, disk(LOG, data))
