"""Imports point one way: down the layers, and sideways only where a pair is named."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path

import finecomb

ROOT = Path(finecomb.__file__).parent
LAYERS: list[set[str]] = [
    {"version"},
    {"plugins"},
    {"core"},
    {"protocols"},
    {"engine"},
    {"statistics"},
    {"annotators"},
    {"corpora"},
    {"collection", "formats", "reporting"},
    {"api"},
    {"testing"},
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


CALLED_DIRECTLY = {
    ("server", "finecomb.statistics.selection.view.view"): "is the public function `fc.view`",
}
"""Functions of statistics and reporting that a client calls without `api`, each with the reason."""
COMPUTING_ROOMS = {"server": ("statistics", "reporting"), "cli": ("statistics",)}
"""Packages whose functions a client calls through `api`; the command line prints with the renderers of reporting."""


def imported_functions(file: Path, rooms: Sequence[str]) -> Iterator[str]:
    """Yield the functions and modules of `rooms` that a file imports; types and constants compute nothing."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(room_prefixes(rooms)))
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                if not f"{name}.".startswith(room_prefixes(rooms)):
                    continue
                value = getattr(importlib.import_module(node.module), name.rpartition(".")[2], None)
                if value is None or inspect.isfunction(value) or inspect.ismodule(value):  # None: a module not loaded
                    yield name


def room_prefixes(rooms: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"finecomb.{room}." for room in rooms)


def test_clients_call_computations_through_the_api() -> None:
    called = {
        (client, name): file.relative_to(ROOT)
        for client, rooms in COMPUTING_ROOMS.items()
        for file in (ROOT / client).rglob("*.py")
        for name in imported_functions(file, rooms)
    }
    wrong = [f"{file} imports {called_[1]}" for called_, file in called.items() if called_ not in CALLED_DIRECTLY]
    assert wrong == []
    assert set(called) == set(CALLED_DIRECTLY)


def test_a_computation_that_a_client_calls_directly_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "page.py"
    file.write_text(
        "from finecomb import core, statistics\n"
        "import finecomb.statistics.power\n"
        "from finecomb.statistics.agreement import second_pass_changes\n"
        "from finecomb.statistics.gold.disputes import Dispute, find_disputes\n"
        "def page():\n"
        "    from finecomb.reporting.tables import format_table\n",
        encoding="utf-8",
    )
    assert list(imported_functions(file, ("statistics", "reporting"))) == [
        "finecomb.statistics",
        "finecomb.statistics.power",
        "finecomb.statistics.agreement.second_pass_changes",
        "finecomb.statistics.gold.disputes.find_disputes",
        "finecomb.reporting.tables.format_table",
    ]


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
