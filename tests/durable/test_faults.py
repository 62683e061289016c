"""Whatever fails, whenever: acknowledged is recovered, recovered was attempted, transactions are whole."""

from __future__ import annotations

import copy
import errno
import random
from collections.abc import Callable
from typing import NamedTuple

import pytest

import dlog
from dlog.errors import StoreError
from tests.durable.model import FOLDER, PROGRAM, RULE, Model, same
from tests.durable.simulated import Crash, SimulatedFiles


class Step(NamedTuple):
    """Something done to a database, and what it means."""

    do: Callable[[dlog.Database], object]
    mean: Callable[[Model], None]


def text(statement: str, inserts: dict, erases: dict, branch: str = "main", **more: object) -> Step:  # type: ignore[type-arg]
    def do(db: dlog.Database) -> object:
        db.checkout(branch)
        return db.execute(statement)

    return Step(do, lambda model: model.commit(branch, inserts, erases, **more))  # type: ignore[arg-type]


def batch(db: dlog.Database) -> None:
    db.checkout("main")
    with db.transaction(batch_id="b1") as tx:
        tx.insert("edge", [(2 * k, 2 * k + 1) for k in range(20, 60)])


def batched(model: Model) -> None:
    if "b1" not in model.states[model.heads["main"]][2]:
        model.commit("main", {"edge": {(2 * k, 2 * k + 1) for k in range(20, 60)}}, {}, batch="b1")


def fork(model: Model) -> None:
    model.heads["trial"] = model.heads["main"]


def merge(db: dlog.Database) -> None:
    db.checkout("main")
    db.merge("trial")


def merged(model: Model) -> None:
    inserts, erases = model.merge_changes("main", "trial")
    model.commit("main", inserts, erases, merged=model.heads["trial"])


def nothing(model: Model) -> None:
    pass


STEPS = [
    text('+edge(2, 3), +name(2, "zwei").', {"edge": {(2, 3)}, "name": {(2, "zwei")}}, {}),
    Step(batch, batched),
    Step(batch, batched),
    Step(lambda db: db.branch("trial"), fork),
    text('^price["tea"] = 4.', {"price": {("tea", 4)}}, {"price": {("tea", 3)}}, "trial"),
    text("-edge(1, 2), +seen(7), +flag().", {"seen": {(7,)}, "flag": {()}}, {"edge": {(1, 2)}}),
    text(RULE, {}, {}, rule=True),
    Step(lambda db: db.checkpoint(), nothing),
    text('+price["nuts"] = 1, -seen(100).', {"price": {("nuts", 1)}}, {"seen": {(100,)}}, "trial"),
    Step(merge, merged),
    text("+edge(3, 2).", {"edge": {(3, 2)}}, {}),
]


def run(files: SimulatedFiles, durability: str = "full") -> list[Model]:
    """Does all steps; the models that the database may agree with afterwards, the acknowledged one first."""
    model, doubtful = Model(), []
    try:
        db = dlog.Database(FOLDER, source=PROGRAM, durability=durability, files=files)
        for step in STEPS:
            later = copy.deepcopy(model)
            try:
                step.mean(later)
            except KeyError:  # its branch was never made
                continue
            try:
                step.do(db)
            except StoreError:
                doubtful.append(later)
            except Crash:
                doubtful.append(later)
                raise
            except dlog.DlogError:  # what an earlier failure has left out is missing now
                continue
            else:
                model, doubtful = later, []
        db.close()
    except (StoreError, Crash):
        pass
    return [model, *doubtful]


def require_one_of(models: list[Model], files: SimulatedFiles, what: str) -> None:
    files.disarm()
    files.kill()
    with dlog.Database(FOLDER, source=PROGRAM, files=files) as db:
        found = [same(model, db, thorough=n == 0) for n, model in enumerate(models)]
        assert "" in found, f"{what}: {found}"
        db.execute("+edge(70, 71).")  # and it continues


def operations() -> list[str]:
    files = SimulatedFiles()
    files.arm(0)
    (model,) = run(files)
    assert model.heads == {"main": 8, "trial": 6}
    found = files.operations
    require_one_of([model], files, "nothing failed")
    return found


OPERATIONS = operations()


def test_the_steps_use_every_operation() -> None:
    assert set(OPERATIONS) == {
        "make_folder", "lock", "open", "write", "sync", "truncate", "rename", "remove", "sync_folder",
        "reserve",
    }  # fmt: skip


LONG = pytest.mark.fuzz


@pytest.mark.parametrize("for_ever", [False, True])
@pytest.mark.parametrize("error", [errno.EIO, pytest.param(errno.ENOSPC, marks=LONG)])
def test_invariant_any_operation_fails(for_ever: bool, error: int) -> None:
    for n in range(1, len(OPERATIONS) + 1):
        files = SimulatedFiles()
        files.arm(n, for_ever=for_ever, error=error)
        models = run(files)
        require_one_of(models, files, f"operation {n} ({OPERATIONS[n - 1]})")


@pytest.mark.parametrize(
    "durability", ["full", pytest.param("group", marks=LONG), pytest.param("none", marks=LONG)]
)
def test_invariant_killed_at_any_operation(durability: str) -> None:
    for n in range(1, len(OPERATIONS) + 1):
        files = SimulatedFiles()
        files.arm(n, crash=True)
        models = run(files, durability)
        require_one_of(models, files, f"killed at operation {n} ({OPERATIONS[n - 1]})")


@pytest.mark.parametrize("durability", ["full", pytest.param("group", marks=LONG)])
def test_invariant_power_lost_at_any_operation(durability: str) -> None:
    rng = random.Random(durability)
    for n in range(1, len(OPERATIONS) + 1):
        files = SimulatedFiles()
        files.arm(n, crash=True)
        models = run(files, durability)
        files.lose_power(rng)
        require_one_of(models, files, f"power lost at operation {n} ({OPERATIONS[n - 1]})")


def test_a_failed_sync_poisons_until_reopened() -> None:
    files = SimulatedFiles()
    db = dlog.Database(FOLDER, source=PROGRAM, files=files)
    db.execute("+edge(2, 3).")
    files.arm(2)  # the sync after the write
    with pytest.raises(StoreError, match="could not be synced"):
        db.execute("+edge(3, 4).")
    files.disarm()
    assert db.version == 1 and (3, 4) not in db["edge"].rows()
    for attempt in (lambda: db.execute("+edge(4, 5)."), lambda: db.branch("b"), db.checkpoint):
        with pytest.raises(StoreError, match="nothing more can be committed"):
            attempt()
    db.close()
    with dlog.Database(FOLDER, files=files) as db:
        assert db["edge"].rows() in ([(1, 2), (2, 3)], [(1, 2), (2, 3), (3, 4)])
        db.execute("+edge(4, 5).")


def test_a_failed_group_sync_shows_what_is_safe() -> None:
    files = SimulatedFiles()
    db = dlog.Database(FOLDER, source=PROGRAM, durability="group", files=files)
    db.execute("+edge(2, 3).")
    with pytest.raises(StoreError), db.group():
        db.execute("+edge(3, 4).")
        db.execute("+edge(4, 5).")
        assert db.version == 3
        files.arm(1)
    files.disarm()
    assert db.version == 1 and db["reach"].rows() == [(1, 2), (1, 3), (2, 3)]
    db.check()
    db.verify()


def test_a_full_disk_loses_one_transaction_and_no_more() -> None:
    files = SimulatedFiles()
    db = dlog.Database(FOLDER, source=PROGRAM, files=files)
    files.arm(2, error=errno.ENOSPC)  # space was reserved, and the write fails
    with pytest.raises(StoreError, match="No space left on device"):
        db.execute('+edge(2, 3), +name(5, "lost").')
    assert db.version == 0 and (2, 3) not in db["reach"].rows()
    files.disarm()
    db.execute('+edge(3, 4), +name(6, "kept").')
    db.close()
    with dlog.Database(FOLDER, files=files) as db:
        assert db.version == 1 and db["edge"].rows() == [(1, 2), (3, 4)]
        assert db["name"].rows() == [(1, "one"), (6, "kept")]


def test_a_checkpoint_that_fails_leaves_everything_as_it_was() -> None:
    files = SimulatedFiles()
    db = dlog.Database(FOLDER, source=PROGRAM, files=files)
    db.execute("+edge(2, 3).")
    files.arm(3, error=errno.ENOSPC)
    with pytest.raises(StoreError, match="cannot write a checkpoint"):
        db.checkpoint()
    files.disarm()
    db.execute("+edge(3, 4).")
    db.checkpoint()
    db.close()
    assert files.names(FOLDER) == ["checkpoint-2", "lock", "log-2"]
    with dlog.Database(FOLDER, files=files) as db:
        assert db.version == 2 and db["edge"].rows() == [(1, 2), (2, 3), (3, 4)]
