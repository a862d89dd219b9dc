"""Names explain themselves: one class name for one thing, and locals named after their values."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import finecomb

ROOT = Path(finecomb.__file__).parent
FILLERS = frozenset("found own each said seen made asked kept known shown told".split())
"""Names that say how a value came about, and not what it is."""
MOST = 0.01
ROOMS = tuple(sorted(folder.name for folder in ROOT.iterdir() if any(folder.glob("*.py"))))


def test_a_class_name_is_defined_once() -> None:
    places = defaultdict(list)
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def local_names(file: Path) -> Iterator[tuple[str, int]]:
    """Parameters and variables of functions with their lines."""
    lines = set()
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    lines.add((node.arg, node.lineno))
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    lines.add((node.id, node.lineno))
    yield from lines


@pytest.mark.parametrize("room", ROOMS)
def test_locals_are_named_after_their_values(room: str) -> None:
    names = [(name, file, line) for file in sorted((ROOT / room).rglob("*.py")) for name, line in local_names(file)]
    fillers = [f"{file.relative_to(ROOT)}:{line}: {name}" for name, file, line in names if name in FILLERS]
    assert len(fillers) <= MOST * len(names), fillers
