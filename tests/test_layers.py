"""Imports point one way: down the layers, and sideways only where a pair is named."""

from __future__ import annotations

import ast
from pathlib import Path

import finecomb

ROOT = Path(finecomb.__file__).parent
LAYERS: list[set[str]] = [
    {"version"},
    {"core"},
    {"protocols"},
    {"engine"},
    {"statistics"},
    {"annotators"},
    {"corpora"},
    {"collection", "formats", "reporting"},
    {"api"},
    {"server"},
    {"__init__", "cli"},
    {"__main__"},
]
"""From the lowest to the highest; packages of one layer are listed together."""
SIDEWAYS = {("formats", "collection"), ("reporting", "collection"), ("reporting", "formats")}
"""Pairs of one layer of which the first may import the second."""
STATISTICS = [{"inference", "selection", "measures"}, {"agreement"}, {"comparisons"}, {"gold"}, {"judges"}]
"""The order inside `statistics`, from the lowest to the highest."""
LEVELS = {package: level for level, layer in enumerate(LAYERS) for package in layer}


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


def package_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def is_allowed(package: str, other: str) -> bool:
    return package == other or LEVELS[other] < LEVELS[package] or (package, other) in SIDEWAYS


def test_imports_point_one_way() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {other}"
        for file in ROOT.rglob("*.py")
        for other in imported(file) & set(LEVELS)
        if not is_allowed(package_of(file), other)
    ]
    assert wrong == []


def test_every_package_has_its_layer_and_every_layer_its_packages() -> None:
    assert {package_of(file) for file in ROOT.rglob("*.py")} == set(LEVELS)


def test_pairs_that_are_named_are_needed() -> None:
    pairs = {(package_of(file), other) for file in ROOT.rglob("*.py") for other in imported(file)}
    assert pairs >= SIDEWAYS


def test_the_core_reads_and_writes_no_files() -> None:
    for file in (ROOT / "core").glob("*.py"):
        modules = {
            alias.name
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not modules & {"os", "pathlib", "io", "socket", "subprocess", "urllib"}, file.name


def is_storage(file: Path) -> bool:
    return file.stem.endswith("_storage") or "database" in file.relative_to(ROOT / "collection").parts


def test_sql_stays_in_storage_modules() -> None:
    for file in (ROOT / "collection").rglob("*.py"):
        assert is_storage(file) or "sqlalchemy" not in file.read_text(encoding="utf-8"), file.name


def test_statistics_import_one_way() -> None:
    levels = {package: level for level, layer in enumerate(STATISTICS) for package in layer}
    wrong = []
    for package, level in levels.items():
        for file in (ROOT / "statistics" / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                parts = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
                if parts[:2] == ["finecomb", "statistics"] and len(parts) > 2 and levels.get(parts[2], -1) > level:
                    wrong.append(f"{file.relative_to(ROOT)} imports {parts[2]}")
    assert wrong == []
