"""Imports point one way."""

from __future__ import annotations

import ast
from pathlib import Path

import finecomb

ROOT = Path(finecomb.__file__).parent
ORDER = ["core", "protocols", "engine", "measure", "agreement", "gold"]
MIDDLE = {"judges", "people"}
SIDE = {"formats", "detect", "critics", "generate", "simulate", "store"}
DOORS = {"report", "server", "cli", "__init__"}


def level(part: str) -> int:
    if part in ORDER:
        return ORDER.index(part)
    return len(ORDER) + (0 if part in MIDDLE else 1 if part in SIDE else 2)


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {
                f"{node.module}.{alias.name}" if node.module == "finecomb" else node.module for alias in node.names
            }
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("finecomb.") and "." in name}


def test_imports_point_one_way() -> None:
    wrong = []
    for file in ROOT.rglob("*.py"):
        own = file.relative_to(ROOT).parts[0].removesuffix(".py")
        for other in imported(file):
            upward = level(other) > level(own)
            sideways = own in DOORS and other in DOORS and own != other and own not in {"cli", "server", "__init__"}
            if other != "version" and (upward or sideways):
                wrong.append(f"{file.relative_to(ROOT)} imports {other}")
    assert wrong == []


def test_every_part_has_its_place() -> None:
    parts = {file.relative_to(ROOT).parts[0].removesuffix(".py") for file in ROOT.rglob("*.py")}
    assert parts <= {*ORDER, *MIDDLE, *SIDE, *DOORS, "version"}


def test_the_core_reads_and_writes_no_files() -> None:
    for file in (ROOT / "core").glob("*.py"):
        modules = {
            alias.name
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not modules & {"os", "pathlib", "io", "socket", "subprocess", "urllib"}, file.name
