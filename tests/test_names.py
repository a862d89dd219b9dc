"""Names explain themselves: one class name for one thing, and locals named after their values."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import finecomb
from finecomb.cli.commands import COMMANDS

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


PARTICIPLES = frozenset(
    """begun broken built chosen done drawn found given gone held hidden kept known laid left lost made meant met paid
    said seen sent shown sold spent spoken stood taken taught thought thrown told won worn written""".split()
)
"""Irregular participles; regular ones end in -ed."""
PREPOSITIONS = frozenset(
    """about above across after against along among apart around at before behind below beside between beyond by down
    for from further in inside into most near of off on out over since still through to under up upon whom whose with
    within without""".split()
)
NOT_PARTICIPLES = frozenset("by embed feed need proceed read seed set speed split cut put finding string".split())
"""Verbs and nouns that only look like participles, and `study.by("model")`, which data frames have too."""


def is_bare(name: str) -> bool:
    """Return whether a function has one word for a name, and that is a participle or a preposition."""
    word = name.strip("_")
    if name.startswith("__") or "_" in word or word in NOT_PARTICIPLES:
        return False
    return word.endswith(("ed", "ing")) or word in PARTICIPLES or word in PREPOSITIONS


@pytest.mark.parametrize("room", ROOMS)
def test_no_function_is_named_by_a_bare_participle(room: str) -> None:
    bare = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for file in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_bare(node.name)
    ]
    assert bare == []


def test_no_public_function_hides_a_package() -> None:
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages & (set(dir(finecomb)) | {row.name for row in COMMANDS}) <= {"formats", "protocols"}
