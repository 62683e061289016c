"""ARCHITECTURE.md agrees with the code: every module it names exists, and its table is the list of layers."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "dlog"


def contracts() -> dict[str, dict]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {c["name"]: c for c in settings["tool"]["importlinter"]["contracts"]}


def names(cell: str) -> list[str]:
    return [name.removesuffix(".py") for name in re.findall(r"`([^`]+)`", cell)]


def rooms_table() -> list[list[str]]:
    """The cells of the table under "Rooms", without its head."""
    section = TEXT.split("\n## Rooms\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_every_module_that_is_named_exists() -> None:
    packages = "|".join(sorted(p.name for p in PACKAGE.iterdir() if p.is_dir()))
    named = set(re.findall(rf"(?<![\w./])((?:{packages})(?:\.[a-z_0-9]+)+)\b(?!\()", TEXT))
    assert len(named) > 100
    missing = {
        name
        for name in named
        if not (path := PACKAGE.joinpath(*name.split("."))).is_dir() and not path.with_suffix(".py").is_file()
    }
    assert not missing


def test_the_table_of_rooms_is_the_list_of_layers() -> None:
    layers = [re.findall(r"dlog\.(\w+)", layer) for layer in contracts()["Layers"]["layers"]]
    table = [names(package) for package, _, _ in rooms_table() if package]
    assert table == layers


def test_the_rooms_of_a_package_are_in_the_order_of_its_layers() -> None:
    """A room imports only from those after it in the table."""
    rooms: dict[str, list[str]] = {}
    current = ""
    for package, inside, _ in rooms_table():
        current = names(package)[0] if package else current
        rooms.setdefault(current, []).extend(names(re.sub(r"\(.*?\)", "", inside)))
    for package, listed in rooms.items():
        contract = contracts().get(f"Rooms of dlog.{package}")
        if contract is not None:
            level = {name: i for i, row in enumerate(contract["layers"]) for name in re.findall(r"\w+", row)}
            assert listed, package
            assert [level[name] for name in listed] == sorted(level[name] for name in listed), package


def test_every_package_is_in_the_table() -> None:
    listed = {name for package, _, _ in rooms_table() for name in names(package)}
    found = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert found - listed == {"__init__", "__main__"}


def test_no_room_of_the_engine_has_more_than_twenty_modules() -> None:
    sizes = {p.parent: len(list(p.parent.glob("*.py"))) for p in (PACKAGE / "engine").rglob("__init__.py")}
    assert {folder.name: n for folder, n in sizes.items() if n > 20} == {}


def test_types_of_times_are_known_to_their_own_files_only() -> None:
    """Whatever depends on a type is asked of its object: the youngest types are named nowhere else."""
    names = {"datetime", "timestamp", "duration"}
    named = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Constant) and node.value in names)
        or (isinstance(node, ast.Name) and node.id in {name.upper() for name in names})
    }
    assert named and {Path(name).parts[0] for name in named} == {"values"}
